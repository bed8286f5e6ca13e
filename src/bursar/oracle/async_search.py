"""The same search, with a judge that is asked set by set: no round has to wait for its slowest model.

What the next proposals will be is a tree: each may be accepted or not. Its nodes are asked about in the order of how
likely they are to be needed, as far as there is room; every score that is heard changes how likely they are, and so
what is wanted next. Decisions are made in the order of steps, on the same numbers: the chain is the same.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, islice

import numpy as np

from bursar.oracle.async_evaluation import Stream
from bursar.oracle.chain import Candidate, Chain, State, Told
from bursar.oracle.judge import key_of
from bursar.oracle.orders import Order
from bursar.ragged import FloatArray, IntArray

WORTH = 0.12  # sets are asked about while they are needed with at least this probability; it changes only the time


@dataclass(frozen=True)
class Node:
    """A proposal made from some order, and the keys of the sets that it asks about."""

    candidate: Candidate
    places: IntArray  # of those sets in the curve
    keys: Sequence[bytes]


class Changes:
    """What proposals have changed the score of a prefix by, of late."""

    def __init__(self) -> None:
        self.mean, self.variance = 0.0, 1e-4

    def heard(self, changes: FloatArray) -> None:
        for change in changes.tolist():
            self.mean += 0.01 * (change - self.mean)
            self.variance += 0.01 * ((change - self.mean) ** 2 - self.variance)

    def chance(self, needed: float, unknown: int) -> float:
        """Of so many unknown changes adding up to more than is needed, if they are normal."""
        if not unknown:
            return float(needed < 0)
        if needed == -math.inf:
            return 1.0
        return 0.5 * math.erfc((needed - unknown * self.mean) / math.sqrt(2 * unknown * self.variance + 1e-18))


class Streamed:
    """A chain and the stream that it hears scores from."""

    def __init__(self, chain: Chain, stream: Stream) -> None:
        self.chain, self.stream, self.memory = chain, stream, chain.memory
        self.changes = Changes()
        self.nodes: dict[tuple[int, bytes], Node] = {}

    def run(self, now: State, told: Told | None) -> State:
        """To the end of the plan."""
        try:
            while now.step < self.chain.plan.all_steps:
                if self._decided(now):
                    if told is not None:
                        told(now)
                    continue
                self.stream.want(self._wanted(now))
                self.memory.heard(self.stream.heard())
        finally:
            self.stream.close()
        return now

    def _decided(self, now: State) -> bool:
        """Decide on the next proposal if enough is known of it."""
        node = self._node(self._base(now), now.step + 1)
        scores = self._scores(node)
        if np.isnan(scores).any() and not self.chain.hopeless(now, node.candidate, scores):
            return False
        curve = now.curve if node.candidate.step <= self.chain.plan.steps else now.best_curve
        changes = scores - curve[node.places]
        self.memory.asked += len(node.keys)
        self.chain.settle(now, node.candidate, scores)
        self.changes.heard(changes[~np.isnan(changes)])
        self.nodes = {key: held for key, held in self.nodes.items() if key[0] > now.step}
        return True

    def _wanted(self, now: State) -> dict[bytes, IntArray]:
        """The sets to work on, the likeliest to be needed first."""
        wanted: dict[bytes, IntArray] = {}
        plan, number = self.chain.plan, count()
        annealing = now.step < plan.steps
        last = min(plan.steps if annealing else plan.all_steps, now.step + plan.ahead)
        tree = [(-1.0, next(number), now.step + 1, self._base(now), now.curve if annealing else now.best_curve)]
        while tree and len(wanted) < self.stream.room:
            unlikely, _, step, base, curve = heapq.heappop(tree)
            node = self._node(base, step)
            scores = self._scores(node)
            missing = np.flatnonzero(np.isnan(scores)).tolist()
            wanted |= {node.keys[at]: node.candidate.sets[at] for at in missing}
            if step == last:
                continue
            chance = self._chance(node, scores - curve[node.places], len(curve))
            after = curve.copy()
            after[node.places] = scores
            for likely, there, reached in ((chance, node.candidate.order, after), (1 - chance, base, curve)):
                if likely * -unlikely >= WORTH:
                    heapq.heappush(tree, (likely * unlikely, next(number), step + 1, there, reached))
        return dict(islice(wanted.items(), self.stream.room))

    def _chance(self, node: Node, changes: FloatArray, batches: int) -> float:
        """Of a proposal being taken, given as many changes of scores as are known."""
        known = changes[~np.isnan(changes)]
        needed = node.candidate.slack * batches - float(known.sum())
        return self.changes.chance(needed, len(changes) - len(known))

    def _base(self, now: State) -> Order:
        """The order that the next proposal is made from."""
        return now.order if now.step < self.chain.plan.steps else now.best

    def _node(self, base: Order, step: int) -> Node:
        where = step, base.batches.tobytes()
        if where not in self.nodes:
            candidate = self.chain.candidate(base, step)
            places: IntArray = np.array(candidate.prefixes, dtype=np.int64) - 1
            self.nodes[where] = Node(candidate, places, [key_of(items) for items in candidate.sets])
        return self.nodes[where]

    def _scores(self, node: Node) -> FloatArray:
        return np.array([self.memory.get(key) for key in node.keys], dtype=float)
