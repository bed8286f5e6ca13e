"""The search for the best labelling order: simulated annealing, then greedy steps (paper 4, algorithm 1).

Four things make it fast without changing the chain. A proposal needs scores only for the prefixes it changes, and known
scores are cached. The outcome of a proposal can mostly be guessed, so the next ones are made in advance and all their
models are trained together. A judge that trains networks gets sets one by one and drops those no longer needed. And
since the number that decides on a proposal is drawn first, a proposal is dropped as soon as perfect scores could not
save it.

A *surrogate*, a cheaper judge that picks the most promising of several moves at each step, does change the chain.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count, islice

import numpy as np

from bursar.errors import ConfigError
from bursar.oracle.async_evaluation import ScoreStream
from bursar.oracle.chain import OrderChain, Proposal, RunningNormal, SearchCallback, SearchPlan, SearchState
from bursar.oracle.judge import Judge, ScoreCache, key_of
from bursar.oracle.orders import Order
from bursar.ragged import FloatArray, IntArray

LIKELY = 0.12  # sets are requested if needed with at least this probability; changes only the time


@dataclass(frozen=True)
class SearchOptions:
    """What a search may be given in addition.

    ``callback`` gets the state after each round of proposals. It is one object that keeps changing; store it with
    ``as_json`` and pass it as ``state`` to resume.
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
    stream = judge.stream() if plan.ahead > 1 else None
    if stream is not None:
        return AsyncSearch(chain, stream).run(now, given.callback)
    while now.step < plan.all_steps:
        chain.decide(now, list(chain.ahead(now)))
        if given.callback is not None:
            given.callback(now)
    return now


# -- with a judge that scores sets one by one --------------------------------------------------------------------------
@dataclass(frozen=True)
class ProposalNode:
    """A proposal and the keys of its sets."""

    proposal: Proposal
    places: IntArray  # of the sets in the curve
    keys: Sequence[bytes]


class AsyncSearch:
    """Runs a chain with scores from a stream, so that no batch waits for its slowest model.

    The next proposals form a tree, since each may be accepted or not. Nodes are requested by the probability that they
    are needed, as far as there is room; each new score changes these probabilities. Decisions are made step by step on
    the same numbers, so the chain is the same.
    """

    def __init__(self, chain: OrderChain, stream: ScoreStream) -> None:
        self.chain, self.stream, self.cache = chain, stream, chain.cache
        self.changes = RunningNormal(0.01)  # of the scores of prefixes, by recent proposals
        self.nodes: dict[tuple[int, bytes], ProposalNode] = {}

    def run(self, now: SearchState, callback: SearchCallback | None) -> SearchState:
        """Run to the end of the plan."""
        try:
            while now.step < self.chain.plan.all_steps:
                if self._decided(now):
                    if callback is not None:
                        callback(now)
                    continue
                self.stream.request(self._wanted(now))
                self.cache.add(self.stream.results())
        finally:
            self.stream.close()
        return now

    def _annealing(self, now: SearchState) -> bool:
        return now.step < self.chain.plan.steps

    def _decided(self, now: SearchState) -> bool:
        """Decide on the next proposal if enough of its scores are known."""
        base, curve = now.base(self._annealing(now))
        node = self._node(base, now.step + 1)
        scores = self._scores(node)
        if np.isnan(scores).any() and not self.chain.hopeless(now, node.proposal, scores):
            return False
        changes = scores - curve[node.places]
        self.cache.asked += len(node.keys)
        self.chain.settle(now, node.proposal, scores)
        for change in changes[~np.isnan(changes)].tolist():
            self.changes.update(change)
        self.nodes = {key: held for key, held in self.nodes.items() if key[0] > now.step}
        return True

    def _wanted(self, now: SearchState) -> dict[bytes, IntArray]:
        """The sets to request, those most likely to be needed first."""
        wanted: dict[bytes, IntArray] = {}
        plan, number = self.chain.plan, count()
        annealing = self._annealing(now)
        last = min(plan.steps if annealing else plan.all_steps, now.step + plan.ahead)
        tree = [(-1.0, next(number), now.step + 1, *now.base(annealing))]
        while tree and len(wanted) < self.stream.room:
            unlikely, _, step, base, curve = heapq.heappop(tree)
            node = self._node(base, step)
            scores = self._scores(node)
            missing = np.flatnonzero(np.isnan(scores)).tolist()
            wanted |= {node.keys[at]: node.proposal.sets[at] for at in missing}
            if step == last:
                continue
            chance = self._chance(node, scores - curve[node.places], len(curve))
            after = curve.copy()
            after[node.places] = scores
            for likely, there, reached in ((chance, node.proposal.order, after), (1 - chance, base, curve)):
                if likely * -unlikely >= LIKELY:
                    heapq.heappush(tree, (likely * unlikely, next(number), step + 1, there, reached))
        return dict(islice(wanted.items(), self.stream.room))

    def _chance(self, node: ProposalNode, changes: FloatArray, batches: int) -> float:
        """The probability that a proposal is accepted, given the known changes of scores."""
        known = changes[~np.isnan(changes)]
        needed = node.proposal.slack * batches - float(known.sum())
        return self.changes.chance(needed, len(changes) - len(known))

    def _node(self, base: Order, step: int) -> ProposalNode:
        where = step, base.batches.tobytes()
        if where not in self.nodes:
            proposal = self.chain.proposal(base, step)
            places: IntArray = np.array(proposal.prefixes, dtype=np.int64) - 1
            self.nodes[where] = ProposalNode(proposal, places, [key_of(items) for items in proposal.sets])
        return self.nodes[where]

    def _scores(self, node: ProposalNode) -> FloatArray:
        return np.array([self.cache.get(key) for key in node.keys], dtype=float)
