"""The chain of a search for the best order: proposals, what decides on them, and where it is (paper 4, algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bursar.errors import ConfigError
from bursar.oracle.judge import Judge, Memory
from bursar.oracle.orders import Move, Order, propose, quality
from bursar.ragged import FloatArray, IntArray

FALL = 0.02  # what a refused proposal may well lose on a prefix; it changes nothing but the time
SURE = 0.3  # proposals are guessed ahead while they are needed with at least this probability

Told = Callable[["State"], None]


@dataclass(frozen=True)
class Plan:
    """How long to search and how fast to cool; the defaults are the paper's."""

    steps: int = 25_000
    greedy_steps: int = 5_000
    cooling: float = 0.1  # γ
    screened: int = 1  # moves of which a surrogate picks one; more than 1 changes the chain
    ahead: int = 64  # proposals that are judged at once at most; it changes nothing but the time
    drop: bool = True  # proposals that can no longer be accepted; it changes nothing but the time

    def __post_init__(self) -> None:
        for name in ("steps", "greedy_steps"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} = {getattr(self, name)}", fix="search for 0 steps or more")
        if not 0 <= self.cooling < math.inf:
            raise ConfigError(f"cooling = {self.cooling}", fix="use a number from 0 up, such as 0.1")
        for name in ("ahead", "screened"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}", fix="look at 1 proposal or more at a time")

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
    spared: int = 0  # prefixes of dropped proposals that nobody waited for; how many depends on what is ready first
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


def still_so(state: State, memory: Memory) -> bool:
    """Whether the judge scores the orders of a state as it did: otherwise code or data have changed since."""
    for order, curve in ((state.order, state.curve), (state.best, state.best_curve)):
        asked = [memory.judge.asked(order, k) for k in range(1, len(order.batches) + 1)]
        if not np.array_equal(memory.scores(asked), curve):
            return False
    return True


@dataclass(frozen=True)
class Candidate:
    """A proposal, made from the order that the search will be at if the guesses before it come true."""

    step: int
    order: Order
    prefixes: Sequence[int]  # those that it changes
    slack: float  # what it may lose and still be accepted, as a number below 0
    sets: Sequence[IntArray]  # one a prefix
    known: bool  # whether the search is at that order already
    taken: bool  # the guess: whether it will be accepted


class Guess:
    """What proposals have gained or lost of late, and so how likely the next one is to be accepted."""

    def __init__(self) -> None:
        self.mean, self.variance = 0.0, 1e-4

    def heard(self, gain: float) -> None:
        self.mean += 0.05 * (gain - self.mean)
        self.variance += 0.05 * ((gain - self.mean) ** 2 - self.variance)

    def chance(self, slack: float) -> float:
        """Of a gain above the slack, if gains are normal."""
        if slack == -math.inf:
            return 1.0
        return 0.5 * math.erfc((slack - self.mean) / math.sqrt(2 * self.variance + 1e-18))


class Chain:
    """The judge, the plan and the seed of a search; where it is stands in its ``State``."""

    def __init__(self, judge: Judge, plan: Plan, seed: int, memory: Memory, surrogate: Memory | None) -> None:
        self.judge, self.plan, self.seed, self.memory, self.surrogate = judge, plan, seed, memory, surrogate
        self.guess = Guess()

    def begin(self, order: Order) -> State:
        curve = self.memory.scores([self.judge.asked(order, k) for k in range(1, len(order.batches) + 1)])
        start = float(quality(curve))
        return State(0, order, curve, order, curve, history=[(0, start, start)])

    # -- proposals -----------------------------------------------------------------------------------------------------
    def ahead(self, now: State) -> Iterator[Candidate]:
        """The next proposals along the likeliest path, as many as the judge likes to be asked about at once."""
        base, known, sure, wanted = None, True, 1.0, 0
        for step in range(now.step + 1, min(now.step + self.plan.ahead, self.plan.all_steps) + 1):
            annealing = step <= self.plan.steps
            if not annealing and now.step < self.plan.steps:
                return  # greedy steps begin from the best order, which may yet change
            here = base or (now.order if annealing else now.best)
            candidate = self.candidate(here, step, known)
            yield candidate
            wanted += sum(some not in self.memory for some in candidate.sets)
            chance = self.guess.chance(candidate.slack)
            sure *= max(chance, 1 - chance)
            if wanted >= self.judge.at_once or sure < SURE:
                return
            if candidate.taken:
                base, known = candidate.order, False

    def candidate(self, here: Order, step: int, known: bool = True) -> Candidate:
        """The proposal of a step, made from this order."""
        move, u = self._proposed(here, step)
        slack, after = self._slack(step, u), here.moved(move)
        prefixes = move.changed(len(here.batches), self.judge.ordered)
        sets = [self.judge.asked(after, prefix) for prefix in prefixes]
        return Candidate(step, after, prefixes, slack, sets, known, self.guess.chance(slack) >= 0.5)

    def _slack(self, step: int, u: float) -> float:
        if step > self.plan.steps:
            return 0.0
        return math.log(u) / (self.plan.cooling * step) if u > 0 and self.plan.cooling else -math.inf

    def _proposed(self, here: Order, step: int) -> tuple[Move, float]:
        """A move by the kernel; with a surrogate, the one of several that it thinks most of."""
        first, u = propose(here, self.judge.pool, self.seed, step)
        if self.surrogate is None or self.plan.screened == 1:
            return first, u
        others = [propose(here, self.judge.pool, self.seed, step, draw)[0] for draw in range(1, self.plan.screened)]
        moves = [first, *others]
        return moves[int(np.argmax([self._promise(here, move) for move in moves]))], u

    def _promise(self, here: Order, move: Move) -> float:
        """What a surrogate thinks that a move gains."""
        assert self.surrogate is not None
        after, prefixes = here.moved(move), move.changed(len(here.batches))
        found = self.surrogate.scores([order.prefix(k) for order in (after, here) for k in prefixes])
        return float(found[: len(prefixes)].sum() - found[len(prefixes) :].sum())

    # -- decisions -----------------------------------------------------------------------------------------------------
    def decide(self, now: State, candidates: Sequence[Candidate]) -> None:
        """On one proposal after the other, until one does not end as guessed: the others are for another order."""
        for candidate, scores in zip(candidates, self._ask(now, candidates), strict=True):
            if self.settle(now, candidate, scores) != candidate.taken:
                return

    def settle(self, now: State, candidate: Candidate, scores: FloatArray) -> bool:
        """Take a proposal or not, by the scores of the prefixes that it changes; one that is dropped lacks some."""
        annealing = candidate.step <= self.plan.steps
        curve = (now.curve if annealing else now.best_curve).copy()
        before, best = float(quality(curve)), float(quality(now.best_curve))
        curve[np.array(candidate.prefixes) - 1] = scores
        now.step = candidate.step
        missing = int(np.isnan(curve).sum())
        if missing:
            now.dropped += 1
            now.spared += missing
            return False
        reached = float(quality(curve))
        self.guess.heard(reached - before)
        taken = reached > before + candidate.slack
        if taken:
            if annealing:
                now.order, now.curve = candidate.order, curve
            if reached > best:
                now.best, now.best_curve = candidate.order, curve
            now.accepted += 1
            now.history.append((candidate.step, reached, max(reached, best)))
        return taken

    def _ask(self, now: State, candidates: Sequence[Candidate]) -> list[FloatArray]:
        """The scores of all prefixes that proposals change, judged together; those of dropped ones are not numbers.

        Of proposals that are likely to be dropped first as many as should do, the others if that was not enough.
        """
        scores: list[FloatArray] = [np.full(len(candidate.sets), np.nan) for candidate in candidates]
        first = [self._enough(now, candidate) for candidate in candidates]
        self._fill(candidates, scores, [range(count) for count in first])
        rest = [
            range(count, count if self.hopeless(now, candidate, some) else len(some))
            for candidate, some, count in zip(candidates, scores, first, strict=True)
        ]
        self._fill(candidates, scores, rest)
        return scores

    def _fill(self, candidates: Sequence[Candidate], scores: Sequence[FloatArray], places: Sequence[range]) -> None:
        """Judge some sets of every proposal, all in one go."""
        wanted = [candidate.sets[at] for candidate, some in zip(candidates, places, strict=True) for at in some]
        answers = iter(self.memory.scores(wanted).tolist())
        for found, some in zip(scores, places, strict=True):
            for at in some:
                found[at] = next(answers)

    def _enough(self, now: State, candidate: Candidate) -> int:
        """How many prefixes to judge before asking whether the others can still save the proposal.

        So many that it would be dropped if they scored a little less than the present order's do; all of them if even
        then it could be saved, as is usual where scores are far from perfect.
        """
        if not self.plan.drop or not candidate.known:
            return len(candidate.sets)
        guess = np.full(len(candidate.sets), np.nan)
        present = now.curve if candidate.step <= self.plan.steps else now.best_curve
        for count, prefix in enumerate(candidate.prefixes):
            if self.hopeless(now, candidate, guess):
                return count
            guess[count] = present[prefix - 1] - FALL
        return len(candidate.sets)

    def hopeless(self, now: State, candidate: Candidate, scores: FloatArray) -> bool:
        """Whether perfect scores where none is known yet could not save a proposal."""
        if not candidate.known or not self.plan.drop:
            return False
        curve = (now.curve if candidate.step <= self.plan.steps else now.best_curve).copy()
        before = float(quality(curve))
        curve[np.array(candidate.prefixes) - 1] = np.where(np.isnan(scores), self.judge.highest, scores)
        return float(quality(curve)) <= before + candidate.slack
