"""The search for the best labelling order: simulated annealing, then greedy steps (paper 4, algorithm 1).

Three things make it fast and none of them changes the chain. A proposal asks only about the prefixes whose sets it
changes, and a memory knows those that were asked about before. Most proposals are refused, so the next ones are
guessed ahead as if this one were, and all that they need is trained together. And because the number that decides on a
proposal is drawn first, a proposal is dropped as soon as perfect scores on its other prefixes could not save it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bursar.errors import ConfigError
from bursar.oracle.judge import Judge, Memory
from bursar.oracle.orders import Order, propose, quality
from bursar.ragged import FloatArray

FALL = 0.02  # what a refused proposal may well lose on a prefix; it changes nothing but the time

Told = Callable[["State"], None]


@dataclass(frozen=True)
class Plan:
    """How long to search and how fast to cool; the defaults are the paper's."""

    steps: int = 25_000
    greedy_steps: int = 5_000
    cooling: float = 0.1  # γ
    ahead: int = 16  # proposals that are judged at once; it changes nothing but the time
    drop: bool = True  # proposals that can no longer be accepted; it changes nothing but the time

    def __post_init__(self) -> None:
        for name in ("steps", "greedy_steps"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} = {getattr(self, name)}", fix="search for 0 steps or more")
        if not 0 <= self.cooling < math.inf:
            raise ConfigError(f"cooling = {self.cooling}", fix="use a number from 0 up, such as 0.1")
        if self.ahead < 1:
            raise ConfigError(f"ahead = {self.ahead}", fix="judge at least 1 proposal at a time")

    @property
    def all_steps(self) -> int:
        return self.steps + self.greedy_steps


@dataclass
class State:
    """Where a search is: all that is needed to go on with it."""

    step: int  # steps that are done
    order: Order
    curve: FloatArray  # (batches,): scores after 1 to K batches
    best: Order
    best_curve: FloatArray
    accepted: int = 0
    dropped: int = 0
    spared: int = 0  # prefixes of dropped proposals that nobody had to judge
    history: list[tuple[int, float, float]] = field(default_factory=list)  # step, quality, best quality

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "step": self.step,
            "order": self.order.batches.tolist(),
            "curve": self.curve.tolist(),
            "best": self.best.batches.tolist(),
            "best_curve": self.best_curve.tolist(),
            "accepted": self.accepted,
            "dropped": self.dropped,
            "spared": self.spared,
            "history": [list(point) for point in self.history],
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> State:
        """Back from plain values."""
        return cls(
            **{
                **found,
                "order": Order(np.array(found["order"])),
                "best": Order(np.array(found["best"])),
                "curve": np.array(found["curve"]),
                "best_curve": np.array(found["best_curve"]),
                "history": [(int(step), float(q), float(b)) for step, q, b in found["history"]],
            }
        )


@dataclass(frozen=True)
class _Candidate:
    """A proposal and what it needs."""

    step: int
    order: Order
    prefixes: Sequence[int]  # those that it changes
    least: float  # the quality that it must have more of (greedy), or at least


def search(
    judge: Judge,
    batches: int,
    size: int,
    plan: Plan,
    *,
    seed: int = 0,
    state: State | None = None,
    told: Told | None = None,
    memory: Memory | None = None,
) -> State:
    """The best order found, from a random one or from where an earlier search was.

    ``told`` hears of the state after every round of proposals; what it hears is all that ``state`` needs to go on.
    """
    memory = memory or Memory(judge)
    now = state or _begin(memory, Order.random(judge.pool, batches, size, seed))
    width = 1
    while now.step < plan.all_steps:
        candidates = list(_ahead(now, judge.pool, plan, seed, width))
        before = now.accepted
        _judged(now, candidates, memory, judge.highest, plan)
        width = 1 if now.accepted > before else min(2 * width, plan.ahead)
        if told is not None:
            told(now)
    return now


def _begin(memory: Memory, order: Order) -> State:
    curve = memory.scores([order.prefix(k) for k in range(1, len(order.batches) + 1)])
    start = float(quality(curve))
    return State(0, order, curve, order, curve, history=[(0, start, start)])


def _ahead(now: State, pool: int, plan: Plan, seed: int, width: int) -> Iterator[_Candidate]:
    """The next proposals, as if all of them were refused."""
    for step in range(now.step + 1, min(now.step + width, plan.all_steps) + 1):
        annealing = step <= plan.steps
        if not annealing and now.step < plan.steps:
            return  # greedy steps begin from the best order, which may yet change
        here, curve = (now.order, now.curve) if annealing else (now.best, now.best_curve)
        move, u = propose(here, pool, seed, step)
        if not annealing:
            slack = 0.0
        elif u > 0:
            slack = math.log(u) / (plan.cooling * step) if plan.cooling else -math.inf
        else:
            slack = -math.inf
        yield _Candidate(step, here.moved(move), move.changed(len(here.batches)), float(quality(curve)) + slack)


def _judged(now: State, candidates: Sequence[_Candidate], memory: Memory, highest: float, plan: Plan) -> None:
    """Decide on proposals one after the other, until one is accepted: the others were made for another order."""
    for candidate, curve in zip(candidates, _curves(now, candidates, memory, highest, plan), strict=True):
        now.step = candidate.step
        missing = int(np.isnan(curve).sum())
        if missing:
            now.dropped += 1
            now.spared += missing
            continue
        reached, best = float(quality(curve)), float(quality(now.best_curve))
        if reached > candidate.least:
            if candidate.step <= plan.steps:
                now.order, now.curve = candidate.order, curve
            if reached > best:
                now.best, now.best_curve = candidate.order, curve
            now.accepted += 1
            now.history.append((candidate.step, reached, max(reached, best)))
            return


def _curves(
    now: State, candidates: Sequence[_Candidate], memory: Memory, highest: float, plan: Plan
) -> list[FloatArray]:
    """The curve of every proposal; where one was dropped, what was not judged is not a number.

    All prefixes are judged together, but for proposals that are likely to be dropped half-way: of those first as many
    as should do.
    """
    curves = [_kept(now, candidate, plan) for candidate in candidates]
    first = [_enough(c, curve, now, highest, plan) for c, curve in zip(candidates, curves, strict=True)]
    _fill(candidates, curves, first, memory)
    rest = []
    for candidate, curve, done in zip(candidates, curves, first, strict=True):
        hopeless = plan.drop and float(np.nan_to_num(curve, nan=highest).mean()) <= candidate.least
        rest.append(candidate.prefixes[:0] if hopeless else candidate.prefixes[len(done) :])
    _fill(candidates, curves, rest, memory)
    return curves


def _kept(now: State, candidate: _Candidate, plan: Plan) -> FloatArray:
    """The scores that a proposal leaves as they are; those that it changes are not numbers yet."""
    curve = (now.curve if candidate.step <= plan.steps else now.best_curve).copy()
    curve[np.array(candidate.prefixes) - 1] = np.nan
    return curve


def _enough(candidate: _Candidate, kept: FloatArray, now: State, highest: float, plan: Plan) -> Sequence[int]:
    """The prefixes to judge before asking whether the others can still save the proposal.

    They are those after which it would be dropped if they scored a little less than the present order's do; all of them
    if even then it could be saved, as is usual where scores are far from perfect.
    """
    if not plan.drop:
        return candidate.prefixes
    guess, present = np.nan_to_num(kept, nan=highest), now.curve if candidate.step <= plan.steps else now.best_curve
    for count, prefix in enumerate(candidate.prefixes):
        if guess.mean() <= candidate.least:
            return candidate.prefixes[:count]
        guess[prefix - 1] = present[prefix - 1] - FALL
    return candidate.prefixes


def _fill(
    candidates: Sequence[_Candidate], curves: Sequence[FloatArray], prefixes: Sequence[Sequence[int]], memory: Memory
) -> None:
    """Judge prefixes of many proposals in one go and put their scores where they belong."""
    wanted = [(at, prefix) for at, some in enumerate(prefixes) for prefix in some]
    if wanted:
        found = memory.scores([candidates[at].order.prefix(prefix) for at, prefix in wanted])
        for (at, prefix), score in zip(wanted, found.tolist(), strict=True):
            curves[at][prefix - 1] = score
