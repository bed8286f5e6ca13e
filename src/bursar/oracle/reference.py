"""A good order for little: each batch is the best of a hundred that ten strategies propose.

It looks one batch ahead where annealing looks at whole orders, so it is no optimum. But it asks a judge about some
hundred sets a batch, and annealing about several a step for tens of thousands of steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bursar.errors import ConfigError
from bursar.learners.learner import Progress, no_progress
from bursar.oracle.heuristics import (
    Sides,
    beliefs_of,
    buy,
    candidates_of,
    features_of,
    passes_for,
    seed_of,
    strategy_for,
)
from bursar.oracle.judge import Judge, Memory
from bursar.oracle.orders import Order, quality
from bursar.oracle.problem import Problem
from bursar.ragged import FloatArray, IntArray

PROPOSERS = (
    "RANDOM",
    "RANDOM+IDMR",
    "MAX-ENT",
    "MAX-ENT+IDMR",
    "MARGIN",
    "NORM-MIN-CONF",
    "BALD",
    "VARIATION-RATIO",
    "K-CENTER",
    "BADGE",
)
PROPOSALS = 10  # of each


class Offer(NamedTuple):
    """A batch that somebody proposes."""

    by: str
    items: IntArray  # positions in the pool


@dataclass(frozen=True, eq=False)
class Found:
    """An order, its scores on validation items, and what it took to find it."""

    order: Order
    curve: FloatArray  # (batches,)
    judged: int  # sets
    seconds: float
    steps: int = 0  # batches, or steps of annealing
    by: tuple[str, ...] = ()  # whose batches were taken

    @property
    def quality(self) -> float:
        return float(quality(self.curve))


def reference_order(
    judge: Judge,
    problem: Problem,
    *,
    proposers: Sequence[str] = PROPOSERS,
    proposals: int = PROPOSALS,
    seed: int = 0,
    features: Sides | None = None,
    progress: Progress = no_progress,
) -> Found:
    """Batch after batch the one with which the model scores best on validation items, of all that are proposed.

    Every strategy proposes what it would buy of all that is left, and then of random halves of it.

    >>> from bursar.oracle.probe import ProbeJudge
    >>> from bursar.simulation import assistant_corpus
    >>> sizes = {"pool": 30, "warm": 10, "aside": 10, "validation": 20, "test": 20}
    >>> corpus = assistant_corpus(100).with_tasks(["intent"])
    >>> problem = Problem.draw(corpus, sizes, batches=2, size=5, metric="accuracy", seed=0)
    >>> judge = ProbeJudge.of(problem, penalty=1.0)
    >>> found = reference_order(judge, problem, proposers=["RANDOM", "MAX-ENT"], proposals=3)
    >>> found.order.batches.shape, found.judged <= 2 * 2 * 3
    ((2, 5), True)
    """
    if proposals < 1 or not proposers:
        raise ConfigError("nobody proposes a batch", fix="let at least one strategy propose at least one")
    strategies = [strategy_for(problem, name) for name in proposers]
    needs = frozenset().union(*(strategy.needs for strategy in strategies))
    sides = features_of(problem, needs) if features is None else features

    def offers(bought: IntArray) -> Iterable[Offer]:
        batch = len(bought) // problem.size
        believed = {}
        for number, strategy in enumerate(strategies):
            passes = passes_for(strategy)
            if passes not in believed:
                believed[passes] = beliefs_of(judge, bought, passes, seed_of(seed, batch))
            left, candidates = candidates_of(problem, strategy, believed[passes], bought, sides)
            for proposal in range(proposals):
                drawn = seed_of(seed, batch, number, proposal)
                among = _half(len(left), problem.size, drawn) if proposal else np.arange(len(left))
                yield Offer(strategy.name, left[among[buy(strategy, candidates.take(among), problem.size, drawn)]])

    return greedy_order(judge, offers, problem.batches, progress=progress)


def _half(items: int, least: int, seed: int) -> IntArray:
    """The positions of a random half, but of no fewer than a batch."""
    some: IntArray = np.sort(np.random.default_rng([seed, 79]).permutation(items)[: max(least, items // 2)])
    return some


def greedy_order(
    judge: Judge, offers: Callable[[IntArray], Iterable[Offer]], batches: int, *, progress: Progress = no_progress
) -> Found:
    """Batch after batch the best that is offered, given what is labelled so far; ties go to the first."""
    began, memory = time.perf_counter(), Memory(judge)
    bought: IntArray = np.zeros(0, dtype=np.int64)
    taken: list[Offer] = []
    curve: list[float] = []
    for batch in range(batches):
        offered = list(offers(bought))
        walks = [np.concatenate([bought, np.sort(offer.items)]) for offer in offered]
        scores = memory.scores(walks if judge.ordered else [np.sort(walk) for walk in walks])
        best = int(scores.argmax())
        taken.append(offered[best])
        curve.append(float(scores[best]))
        bought = walks[best]
        progress(f"batch {batch + 1} by {offered[best].by}", (batch + 1) / batches)
    return Found(
        Order.of(np.stack([offer.items for offer in taken])),
        np.array(curve),
        memory.trained,
        time.perf_counter() - began,
        batches,
        tuple(offer.by for offer in taken),
    )
