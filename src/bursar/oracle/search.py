"""The search for the best labelling order: simulated annealing, then greedy steps (paper 4, algorithm 1).

Four things make it fast without changing the chain. A proposal needs scores only for the prefixes it changes, and known
scores are cached. The outcome of a proposal can mostly be guessed, so the models of the next ones are trained together
with its own. A judge that trains networks gets sets one by one and drops those no longer needed. And since the number
that decides on a proposal is drawn first, a proposal is dropped as soon as perfect scores could not save it.

A *surrogate*, a cheaper judge that picks the most promising of several moves at each step, does change the chain.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import Any

import numpy as np

from bursar.errors import ConfigError
from bursar.oracle.judge import Judge, ScoreCache, ScoreStream, key_of
from bursar.oracle.problem import Order, OrderMove, propose, quality
from bursar.ragged import FloatArray, IntArray

FALL = 0.02  # assumed loss of a rejected proposal on a prefix; changes only the time

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
        curve = cache.scores(order.prefixes())
        start = float(quality(curve))
        return cls(0, order, curve, order, curve, history=[(0, start, start)])

    def base(self, annealing: bool) -> tuple[Order, FloatArray]:
        """The order that proposals are made from, and its curve; greedy steps start from the best order."""
        return (self.order, self.curve) if annealing else (self.best, self.best_curve)

    def as_json(self) -> dict[str, Any]:
        orders = {"order": self.order.batches.tolist(), "best": self.best.batches.tolist()}
        curves = {"curve": self.curve.tolist(), "best_curve": self.best_curve.tolist()}
        return vars(self) | orders | curves | {"history": [list(point) for point in self.history]}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> SearchState:
        orders = {name: Order(np.array(found[name])) for name in ("order", "best")}
        curves = {name: np.array(found[name]) for name in ("curve", "best_curve")}
        history = [(int(step), float(q), float(b)) for step, q, b in found["history"]]
        return cls(**{**found, **orders, **curves, "history": history})


def is_current(state: SearchState, cache: ScoreCache) -> bool:
    """Whether the judge still gives the scores in a state; otherwise code or data have changed."""
    pairs = (state.base(annealing) for annealing in (True, False))
    return all(np.array_equal(cache.scores(order.prefixes()), curve) for order, curve in pairs)


@dataclass(frozen=True)
class SearchOptions:
    """What a search may be given in addition.

    ``callback`` gets the state after each proposal: one object that keeps changing. Store its JSON to resume.
    """

    state: SearchState | None = None  # of an earlier search; a random order without
    callback: SearchCallback | None = None
    cache: ScoreCache | None = None
    surrogate: Judge | None = None


def search(
    judge: Judge, shape: tuple[int, int], plan: SearchPlan, *, seed: int = 0, options: SearchOptions | None = None
) -> SearchState:
    """Search for the best order of this shape: batches, and items per batch."""
    given = options or SearchOptions()
    surrogate, cache = given.surrogate, given.cache or ScoreCache(judge)
    if plan.screened > 1 and (surrogate is None or surrogate.pool != judge.pool):
        raise ConfigError(
            f"screened = {plan.screened} needs a surrogate for the same pool", fix="pass one, or use screened = 1"
        )
    chain = OrderChain(cache, plan, seed, ScoreCache(surrogate) if surrogate is not None else None)
    if given.state is not None:
        now = replace(given.state, history=[*given.state.history])
    else:
        now = SearchState.start(Order.random(judge.pool, *shape, seed), cache)
    if shape == (1, judge.pool):
        now.step = plan.all_steps  # there is only one order
    return _Run(chain, judge.stream()).to_the_end(now, given.callback)


# -- the chain ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Proposal:
    """An order that a move leads to, and what is known of the prefixes that the move changes."""

    order: Order
    places: IntArray  # of these prefixes in the curve
    slack: float  # accepted if the quality changes by more than this; 0 or negative
    sets: Sequence[IntArray]  # one per prefix
    keys: Sequence[bytes]
    scores: FloatArray  # nan if not known yet


class OrderChain:
    """Makes proposals and decides on them; the state is kept apart, in ``SearchState``."""

    def __init__(self, cache: ScoreCache, plan: SearchPlan, seed: int, surrogate: ScoreCache | None) -> None:
        self.judge, self.plan, self.seed, self.cache, self.surrogate = cache.judge, plan, seed, cache, surrogate

    def proposal(self, here: Order, step: int) -> Proposal:
        """The proposal of a step, made from this order."""
        move, u = self._move(here, step)
        slack = 0.0
        if step <= self.plan.steps:
            slack = math.log(u) / (self.plan.cooling * step) if u > 0 and self.plan.cooling else -math.inf
        after, prefixes = here.moved(move), move.changed(len(here.batches))
        sets = [after.prefix(prefix) for prefix in prefixes]
        keys = [key_of(items) for items in sets]
        scores = np.array([self.cache.get(key) for key in keys], dtype=float)
        return Proposal(after, np.array(prefixes, dtype=np.int64) - 1, slack, sets, keys, scores)

    def _move(self, here: Order, step: int) -> tuple[OrderMove, float]:
        """Draw a move; with a surrogate, draw several and take the one it scores best."""
        first, u = propose(here, self.judge.pool, self.seed, step)
        surrogate = self.surrogate
        if surrogate is None or self.plan.screened == 1:
            return first, u
        others = [propose(here, self.judge.pool, self.seed, step, draw)[0] for draw in range(1, self.plan.screened)]

        def gain(move: OrderMove) -> float:
            after, prefixes = here.moved(move), move.changed(len(here.batches))
            found = surrogate.scores([order.prefix(k) for order in (after, here) for k in prefixes])
            return float(found[: len(prefixes)].sum() - found[len(prefixes) :].sum())

        return max([first, *others], key=gain), u

    def settle(self, now: SearchState, proposal: Proposal) -> None:
        """Accept or reject the proposal of the next step; if some of its scores are not known, it is dropped."""
        annealing = now.step < self.plan.steps
        curve = now.base(annealing)[1].copy()
        before, best = float(quality(curve)), float(quality(now.best_curve))
        curve[proposal.places] = proposal.scores
        now.step += 1
        if missing := int(np.isnan(curve).sum()):
            now.dropped += 1
            now.spared += missing
            return
        reached = float(quality(curve))
        if reached > before + proposal.slack:
            if annealing:
                now.order, now.curve = proposal.order, curve
            if reached > best:
                now.best, now.best_curve = proposal.order, curve
            now.accepted += 1
            now.history.append((now.step, reached, max(reached, best)))

    def hopeless(self, now: SearchState, proposal: Proposal, scores: FloatArray) -> bool:
        """Whether a proposal from the present order would be rejected even if all unknown scores were perfect."""
        if not self.plan.drop:
            return False
        curve = now.base(now.step < self.plan.steps)[1].copy()
        before = float(quality(curve))
        curve[proposal.places] = np.where(np.isnan(scores), self.judge.highest, scores)
        return float(quality(curve)) <= before + proposal.slack

    def enough(self, now: SearchState, proposal: Proposal) -> int:
        """How many prefixes to judge before checking whether a proposal from the present order is hopeless.

        Enough to drop it if they scored a little below the current order; all if even that would not do.
        """
        guess = proposal.scores.copy()
        current = now.base(now.step < self.plan.steps)[1]
        for number, place in enumerate(proposal.places.tolist() if self.plan.drop else ()):
            if self.hopeless(now, proposal, guess):
                return number
            if np.isnan(guess[number]):
                guess[number] = current[place] - FALL
        return len(guess)


# -- running it --------------------------------------------------------------------------------------------------------
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


class _Run:
    """Runs a chain with scores from a stream, so that no batch waits for its slowest model.

    The next proposals form a tree, since each may be accepted or not. Nodes are requested by the probability that they
    are needed, as far as there is room; each new score changes these probabilities. Decisions are made step by step on
    the same numbers, so the chain is the same.
    """

    def __init__(self, chain: OrderChain, stream: ScoreStream) -> None:
        self.chain, self.stream, self.cache = chain, stream, chain.cache
        self.changes = RunningNormal(0.01)  # of the scores of prefixes, by recent proposals
        self.nodes: dict[tuple[int, bytes], Proposal] = {}

    def to_the_end(self, now: SearchState, callback: SearchCallback | None) -> SearchState:
        with closing(self.stream):
            while now.step < self.chain.plan.all_steps:
                if self._decided(now):
                    if callback is not None:
                        callback(now)
                    continue
                self.stream.request(self._wanted(now))
                self._add(self.stream.results())
        return now

    def _add(self, scores: Mapping[bytes, float]) -> None:
        self.cache.add(scores)
        for node in self.nodes.values():  # which need them even if the cache is too small
            for at, key in enumerate(node.keys):
                if key in scores:
                    node.scores[at] = scores[key]

    def _decided(self, now: SearchState) -> bool:
        """Decide on the next proposal if enough of its scores are known."""
        base, curve = now.base(now.step < self.chain.plan.steps)
        node = self._node(base, now.step + 1)
        if np.isnan(node.scores).any() and not self.chain.hopeless(now, node, node.scores):
            return False
        self.cache.asked += len(node.keys)
        changes = node.scores - curve[node.places]
        self.chain.settle(now, node)
        for change in changes[~np.isnan(changes)].tolist():
            self.changes.update(change)
        self.nodes = {key: held for key, held in self.nodes.items() if key[0] > now.step}
        return True

    def _wanted(self, now: SearchState) -> dict[bytes, IntArray]:
        """The sets to request, those most likely to be needed first."""
        wanted: dict[bytes, IntArray] = {}
        plan, number, most = self.chain.plan, count(), self.stream.room
        annealing = now.step < plan.steps  # greedy steps start from the best order, which may still change
        last = min(plan.steps if annealing else plan.all_steps, now.step + plan.ahead)
        root, curve = now.base(annealing)
        tree = [(-1.0, next(number), now.step + 1, root, curve)]
        while tree and len(wanted) < most:
            unlikely, _, step, base, curve = heapq.heappop(tree)
            node = self._node(base, step)
            missing = np.flatnonzero(np.isnan(node.scores)).tolist()
            if base is root and len(missing) > 1:
                enough = self.chain.enough(now, node)
                missing = [at for at in missing if at < enough]
            if step == now.step + 1:
                most = max(most, len(missing))
            wanted |= {node.keys[at]: node.sets[at] for at in missing}
            if step == last or len(wanted) >= most:
                continue
            changes = node.scores - curve[node.places]
            known = changes[~np.isnan(changes)]
            needed = node.slack * len(curve) - float(known.sum())
            chance = self.changes.chance(needed, len(changes) - len(known))  # that it is accepted
            after = curve.copy()
            after[node.places] = node.scores
            for likely, there, reached in ((chance, node.order, after), (1 - chance, base, curve)):
                if likely * -unlikely >= self.stream.likely:
                    heapq.heappush(tree, (likely * unlikely, next(number), step + 1, there, reached))
        return dict(islice(wanted.items(), most))

    def _node(self, base: Order, step: int) -> Proposal:
        where = step, base.batches.tobytes()
        if where not in self.nodes:
            self.nodes[where] = self.chain.proposal(base, step)
        return self.nodes[where]
