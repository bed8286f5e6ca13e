"""The Markov chain of a search for the best order: proposals, decisions and state (paper 4, algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bursar.errors import ConfigError
from bursar.oracle.judge import ScoreCache
from bursar.oracle.orders import Order, OrderMove, propose, quality
from bursar.ragged import FloatArray, IntArray

FALL = 0.02  # assumed loss of a rejected proposal on a prefix; changes only the time
SURE = 0.3  # speculate on proposals needed with at least this probability; changes only the time

SearchCallback = Callable[["SearchState"], None]


@dataclass(frozen=True)
class SearchPlan:
    """How long to search and how fast to cool; the defaults are the paper's."""

    steps: int = 25_000
    greedy_steps: int = 5_000
    cooling: float = 0.1  # γ
    screened: int = 1  # moves of which a surrogate picks one; more than 1 changes the chain
    ahead: int = 64  # maximum number of proposals judged together; changes only the time
    drop: bool = True  # drop proposals that can no longer be accepted; changes only the time

    def __post_init__(self) -> None:
        for name in ("steps", "greedy_steps"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} = {getattr(self, name)}", fix="use 0 or more steps")
        if not 0 <= self.cooling < math.inf:
            raise ConfigError(f"cooling = {self.cooling}", fix="use a number from 0 up, such as 0.1")
        for name in ("ahead", "screened"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}", fix="use 1 or more")

    @property
    def all_steps(self) -> int:
        return self.steps + self.greedy_steps


@dataclass
class SearchState:
    """The state of a search, from which it can resume."""

    step: int  # steps done
    order: Order
    curve: FloatArray  # (batches,): scores after 1 to K batches
    best: Order
    best_curve: FloatArray
    accepted: int = 0
    dropped: int = 0
    spared: int = 0  # prefixes of dropped proposals that were not judged; depends on the timing
    history: list[tuple[int, float, float]] = field(default_factory=list)  # step, quality, best quality

    @classmethod
    def start(cls, order: Order, cache: ScoreCache) -> SearchState:
        """The state before the first step."""
        curve = cache.scores(order.prefixes())
        start = float(quality(curve))
        return cls(0, order, curve, order, curve, history=[(0, start, start)])

    def base(self, annealing: bool) -> tuple[Order, FloatArray]:
        """The order that proposals are made from, and its curve; greedy steps start from the best order."""
        return (self.order, self.curve) if annealing else (self.best, self.best_curve)

    def as_json(self) -> dict[str, Any]:
        """Convert to JSON values."""
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
    def from_json(cls, found: dict[str, Any]) -> SearchState:
        """Convert from JSON values."""
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


def is_current(state: SearchState, cache: ScoreCache) -> bool:
    """Whether the judge still gives the scores in a state; otherwise code or data have changed."""
    pairs = (state.base(annealing) for annealing in (True, False))
    return all(np.array_equal(cache.scores(order.prefixes()), curve) for order, curve in pairs)


@dataclass(frozen=True)
class Proposal:
    """A new order, made from the order that the search will be at if earlier guesses come true."""

    step: int
    order: Order
    prefixes: Sequence[int]  # changed by the move
    slack: float  # accepted if the quality changes by more than this; 0 or negative
    sets: Sequence[IntArray]  # one per prefix
    known: bool  # whether the search is at the base order already
    taken: bool  # the guess: whether it will be accepted


class RunningNormal:
    """A normal distribution with exponentially weighted mean and variance, to guess what is accepted."""

    def __init__(self, rate: float) -> None:
        self.rate, self.mean, self.variance = rate, 0.0, 1e-4

    def update(self, value: float) -> None:
        self.mean += self.rate * (value - self.mean)
        self.variance += self.rate * ((value - self.mean) ** 2 - self.variance)

    def chance(self, threshold: float, terms: int = 1) -> float:
        """The probability that a sum of this many values is above a threshold."""
        if not terms:
            return float(threshold < 0)
        if threshold == -math.inf:
            return 1.0
        return 0.5 * math.erfc((threshold - terms * self.mean) / math.sqrt(2 * terms * self.variance + 1e-18))


class OrderChain:
    """Makes proposals and decides on them; the state is kept apart, in ``SearchState``."""

    def __init__(self, cache: ScoreCache, plan: SearchPlan, seed: int, surrogate: ScoreCache | None) -> None:
        self.judge, self.plan, self.seed, self.cache, self.surrogate = cache.judge, plan, seed, cache, surrogate
        self.gains = RunningNormal(0.05)  # of recent proposals

    # -- proposals -----------------------------------------------------------------------------------------------------
    def ahead(self, now: SearchState) -> Iterator[Proposal]:
        """The next proposals along the likeliest path, as many as the judge scores well together."""
        base, known, sure, wanted = None, True, 1.0, 0
        for step in range(now.step + 1, min(now.step + self.plan.ahead, self.plan.all_steps) + 1):
            annealing = step <= self.plan.steps
            if not annealing and now.step < self.plan.steps:
                return  # greedy steps start from the best order, which may still change
            proposal = self.proposal(base or now.base(annealing)[0], step, known)
            yield proposal
            wanted += sum(some not in self.cache for some in proposal.sets)
            chance = self.gains.chance(proposal.slack)
            sure *= max(chance, 1 - chance)
            if wanted >= self.judge.at_once or sure < SURE:
                return
            if proposal.taken:
                base, known = proposal.order, False

    def proposal(self, here: Order, step: int, known: bool = True) -> Proposal:
        """The proposal of a step, made from this order."""
        move, u = self._move(here, step)
        slack, after = self._slack(step, u), here.moved(move)
        prefixes = move.changed(len(here.batches))
        sets = [after.prefix(prefix) for prefix in prefixes]
        return Proposal(step, after, prefixes, slack, sets, known, self.gains.chance(slack) >= 0.5)

    def _slack(self, step: int, u: float) -> float:
        if step > self.plan.steps:
            return 0.0
        return math.log(u) / (self.plan.cooling * step) if u > 0 and self.plan.cooling else -math.inf

    def _move(self, here: Order, step: int) -> tuple[OrderMove, float]:
        """Draw a move; with a surrogate, draw several and take the one it scores best."""
        first, u = propose(here, self.judge.pool, self.seed, step)
        if self.surrogate is None or self.plan.screened == 1:
            return first, u
        others = [propose(here, self.judge.pool, self.seed, step, draw)[0] for draw in range(1, self.plan.screened)]
        moves = [first, *others]
        return moves[int(np.argmax([self._surrogate_gain(here, move) for move in moves]))], u

    def _surrogate_gain(self, here: Order, move: OrderMove) -> float:
        assert self.surrogate is not None
        after, prefixes = here.moved(move), move.changed(len(here.batches))
        found = self.surrogate.scores([order.prefix(k) for order in (after, here) for k in prefixes])
        return float(found[: len(prefixes)].sum() - found[len(prefixes) :].sum())

    # -- decisions -----------------------------------------------------------------------------------------------------
    def decide(self, now: SearchState, proposals: Sequence[Proposal]) -> None:
        """Decide on proposals until a guess is wrong: the following ones were made from another order."""
        for proposal, scores in zip(proposals, self._scores(now, proposals), strict=True):
            if self.settle(now, proposal, scores) != proposal.taken:
                return

    def settle(self, now: SearchState, proposal: Proposal, scores: FloatArray) -> bool:
        """Accept or reject a proposal, given the scores of its prefixes; if some are nan, it is dropped."""
        annealing = proposal.step <= self.plan.steps
        curve = now.base(annealing)[1].copy()
        before, best = float(quality(curve)), float(quality(now.best_curve))
        curve[np.array(proposal.prefixes) - 1] = scores
        now.step = proposal.step
        missing = int(np.isnan(curve).sum())
        if missing:
            now.dropped += 1
            now.spared += missing
            return False
        reached = float(quality(curve))
        self.gains.update(reached - before)
        taken = reached > before + proposal.slack
        if taken:
            if annealing:
                now.order, now.curve = proposal.order, curve
            if reached > best:
                now.best, now.best_curve = proposal.order, curve
            now.accepted += 1
            now.history.append((proposal.step, reached, max(reached, best)))
        return taken

    def _scores(self, now: SearchState, proposals: Sequence[Proposal]) -> list[FloatArray]:
        """Judge the prefixes of all proposals together; what is not needed stays nan.

        For proposals that will probably be dropped, only as many prefixes as should suffice are judged at first.
        """
        scores: list[FloatArray] = [np.full(len(proposal.sets), np.nan) for proposal in proposals]
        first = [self._enough(now, proposal) for proposal in proposals]
        self._fill(proposals, scores, [range(count) for count in first])
        rest = [
            range(count, count if self.hopeless(now, proposal, some) else len(some))
            for proposal, some, count in zip(proposals, scores, first, strict=True)
        ]
        self._fill(proposals, scores, rest)
        return scores

    def _fill(self, proposals: Sequence[Proposal], scores: Sequence[FloatArray], places: Sequence[range]) -> None:
        wanted = [proposal.sets[at] for proposal, some in zip(proposals, places, strict=True) for at in some]
        answers = iter(self.cache.scores(wanted).tolist())
        for found, some in zip(scores, places, strict=True):
            for at in some:
                found[at] = next(answers)

    def _enough(self, now: SearchState, proposal: Proposal) -> int:
        """How many prefixes to judge before checking whether the proposal is hopeless.

        Enough to drop it if they scored a little below the current order; all of them if even that would not do, which
        is usual while scores are far from perfect.
        """
        if not self.plan.drop or not proposal.known:
            return len(proposal.sets)
        guess = np.full(len(proposal.sets), np.nan)
        current = now.base(proposal.step <= self.plan.steps)[1]
        for count, prefix in enumerate(proposal.prefixes):
            if self.hopeless(now, proposal, guess):
                return count
            guess[count] = current[prefix - 1] - FALL
        return len(proposal.sets)

    def hopeless(self, now: SearchState, proposal: Proposal, scores: FloatArray) -> bool:
        """Whether a proposal would be rejected even if all unknown scores were perfect."""
        if not proposal.known or not self.plan.drop:
            return False
        curve = now.base(proposal.step <= self.plan.steps)[1].copy()
        before = float(quality(curve))
        curve[np.array(proposal.prefixes) - 1] = np.where(np.isnan(scores), self.judge.highest, scores)
        return float(quality(curve)) <= before + proposal.slack
