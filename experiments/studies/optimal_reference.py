"""A good order at low cost: each batch is the best of a hundred that ten strategies propose.

It looks one batch ahead while annealing optimises whole orders, so it is no optimum. But it needs about a hundred sets
per batch, and annealing several per step for tens of thousands of steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bursar.errors import ConfigError
from bursar.learners.learner import Progress, no_progress
from bursar.oracle.judge import Judge, ScoreCache
from bursar.oracle.problem import Order, quality
from bursar.ragged import FloatArray, IntArray
from bursar.random_streams import rng
from experiments.studies.optimal_heuristics import StrategyBuyer, passes_for, strategy_for

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


class ProposedBatch(NamedTuple):
    """A batch, and who proposes it."""

    by: str
    items: IntArray  # positions in the pool


@dataclass(frozen=True, eq=False)
class FoundOrder:
    """An order, its scores on validation items, and the effort."""

    order: Order
    curve: FloatArray  # (batches,)
    judged: int  # sets
    seconds: float
    steps: int = 0  # batches, or steps of annealing
    by: tuple[str, ...] = ()  # the proposer of each batch

    @property
    def quality(self) -> float:
        return float(quality(self.curve))


def reference_order(
    buyer: StrategyBuyer,
    *,
    proposers: Sequence[str] = PROPOSERS,
    proposals: int = PROPOSALS,
    progress: Progress = no_progress,
) -> FoundOrder:
    """For each batch, take the proposal with the best score on validation items.

    Each strategy proposes what it would buy from all that is left, then from random halves of it.

    >>> from experiments.studies.judge_models import ProbeModels
    >>> from bursar.oracle.problem import LabellingProblem
    >>> from bursar.simulation import assistant_corpus
    >>> sizes = {"pool": 30, "warm": 10, "aside": 10, "validation": 20, "test": 20}
    >>> corpus = assistant_corpus(100).with_tasks(["intent"])
    >>> problem = LabellingProblem.draw(corpus, sizes, shape=(2, 5), metric="accuracy", seed=0)
    >>> buyer = StrategyBuyer(ProbeModels.of(problem), problem)
    >>> found = reference_order(buyer, proposers=["RANDOM", "MAX-ENT"], proposals=3)
    >>> found.order.batches.shape, found.judged <= 2 * 2 * 3
    ((2, 5), True)
    """
    if proposals < 1 or not proposers:
        raise ConfigError("no strategy proposes a batch", fix="use at least one proposer and one proposal")
    size = buyer.problem.size
    strategies = [strategy_for(buyer.problem, name) for name in proposers]
    features = buyer.features_for(strategies)

    def proposed(bought: IntArray) -> Iterable[ProposedBatch]:
        batch = len(bought) // size
        predicted = {}
        for number, strategy in enumerate(strategies):
            passes = passes_for(strategy)
            if passes not in predicted:
                predicted[passes] = buyer.predictions(bought, passes, buyer.seed_at(batch))
            left, candidates = buyer.candidates(strategy, predicted[passes], bought, features)
            for proposal in range(proposals):
                drawn = buyer.seed_at(batch, number, proposal)
                among = _half(len(left), size, drawn) if proposal else np.arange(len(left))
                items = left[among[buyer.batch(strategy, candidates.take(among), drawn)]]
                yield ProposedBatch(strategy.name, items)

    return greedy_order(buyer.judge, proposed, buyer.problem.batches, progress=progress)


def _half(items: int, least: int, seed: int) -> IntArray:
    """The positions of a random half, but at least of a batch."""
    some: IntArray = np.sort(rng(seed, "random half").permutation(items)[: max(least, items // 2)])
    return some


def greedy_order(
    judge: Judge,
    proposed: Callable[[IntArray], Iterable[ProposedBatch]],
    batches: int,
    *,
    progress: Progress = no_progress,
) -> FoundOrder:
    """For each batch, take the best proposal given the items bought so far; the first one if scores are equal."""
    started, cache = time.perf_counter(), ScoreCache(judge)
    bought: IntArray = np.zeros(0, dtype=np.int64)
    taken: list[ProposedBatch] = []
    curve: list[float] = []
    for batch in range(batches):
        options = list(proposed(bought))
        walks = [np.concatenate([bought, np.sort(option.items)]) for option in options]
        scores = cache.scores([np.sort(walk) for walk in walks])
        best = int(scores.argmax())
        taken.append(options[best])
        curve.append(float(scores[best]))
        bought = walks[best]
        progress(f"batch {batch + 1} by {options[best].by}", (batch + 1) / batches)
    return FoundOrder(
        Order.of(np.stack([batch.items for batch in taken])),
        np.array(curve),
        cache.trained,
        time.perf_counter() - started,
        batches,
        tuple(batch.by for batch in taken),
    )
