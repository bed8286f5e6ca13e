"""Covering doubt: buy the items whose units lie nearest to what the model doubts and no label is near to yet.

A *unit* is what a model decides at once (a sentence, a word, a head, a pair of spans). Units of the pool are drawn as
*targets*, in proportion to the root of their doubt. A target is covered as far as its nearest labelled unit is near:
exp(−d² / s²), with s² the median of d² over the targets. What an item adds is the share of each task's uncovered doubt
that its units cover, summed over the tasks.

Shares add up over units, so long items are worth more than short ones; doubts count by their mass, so that what is
bought keeps to the pool's distribution. The sum is submodular: an item's gain only shrinks as others are bought. So an
old gain is a bound of the new one, most items need never be looked at again, and what no selection can pass follows
from the gains that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bursar.errors import InfeasibleError
from bursar.ragged import BoolArray, FloatArray, IntArray, flat_positions, offsets_of
from bursar.selection.candidates import Certificate
from bursar.selection.evidence import Units
from bursar.selection.limits import Limits

Vectors = NDArray[np.float32]

PRICE_POWER = 0.5  # gains are divided by the price to this power: at 1 cheap items are bought again and again
TARGETS = 2000  # of each task
BLOCK = 64  # items whose gains are looked at together
ITEMS_AT_ONCE = 2048
TIE = 1e-9  # of gains: closer than this is a tie
KEPT_BYTES = 400_000_000  # coverages of a pool up to here are computed once


class Coverage:
    """How far one task's doubt is covered, and what items of the pool would add.

    >>> units = Units(np.eye(2, dtype=np.float32), np.array([0, 1, 2]), np.array([1.0, 1.0]))
    >>> cover = Coverage(units, np.zeros((0, 2), dtype=np.float32), np.random.default_rng(0))
    >>> before = cover.gains(np.array([0, 1]))
    >>> cover.add(0)
    >>> bool((cover.gains(np.array([0, 1])) < before).all())
    True
    """

    def __init__(
        self, units: Units, known: Vectors, rng: np.random.Generator, targets: int = TARGETS, *, weight: float = 1.0
    ) -> None:
        self.units, self.weight = units, weight  # how much the task counts
        places, counts = drawn(np.sqrt(units.doubt), targets, rng)
        self.targets, self.weights = units.vectors[places], counts.astype(np.float32)  # (targets, width), (targets,)
        self._norms: Vectors = np.einsum("ij,ij->i", self.targets, self.targets)
        near = self._nearest(known, np.array([0, len(known)]))[0]  # infinite where nothing is labelled
        usual = np.median(np.repeat(near, counts)) if len(known) and len(near) else self._usual()
        self.scale = max(float(usual), 1e-6)
        self.covered: Vectors = np.exp(-near / self.scale)
        self.open = max(float((1 - self.covered) @ self.weights), 1e-9)  # what may still be covered
        small = len(units) * len(self.targets) * 4 <= KEPT_BYTES
        self._kept = self._rows(np.arange(len(units))) if small else None

    def rows(self, items: IntArray) -> Vectors:
        """How far each item covers each target: (items, targets)."""
        return self._kept[items] if self._kept is not None else self._rows(items)

    def gains(self, items: IntArray) -> FloatArray:
        """The share of the doubt that each item would cover beyond what is covered: (items,)."""
        more = np.maximum(self.rows(items) - self.covered, 0)
        found: FloatArray = self.weight * (more @ self.weights).astype(np.float64) / self.open
        return found

    def add(self, item: int) -> None:
        """The item is bought: what it covers is covered."""
        self.covered = np.maximum(self.covered, self.rows(np.array([item]))[0])

    def _rows(self, items: IntArray) -> Vectors:
        found = np.zeros((len(items), len(self.targets)), dtype=np.float32)
        for at in range(0, len(items), ITEMS_AT_ONCE):
            part = items[at : at + ITEMS_AT_ONCE]
            places = flat_positions(self.units.offsets, part)
            counts = np.diff(self.units.offsets)[part]
            found[at : at + len(part)] = np.exp(
                -self._nearest(self.units.vectors[places], offsets_of(counts)) / self.scale
            )
        return found

    def _nearest(self, vectors: Vectors, offsets: IntArray) -> Vectors:
        """The squared distance of each target to the nearest of each item's units: infinite where it has none."""
        found = np.full((len(offsets) - 1, len(self.targets)), np.inf, dtype=np.float32)
        filled = np.flatnonzero(np.diff(offsets))
        if len(filled) and len(self.targets):
            products = vectors @ (2 * self.targets.T)
            products -= np.einsum("ij,ij->i", vectors, vectors)[:, None]
            highest = np.maximum.reduceat(products, offsets[:-1][filled], axis=0)
            found[filled] = np.maximum(self._norms - highest, 0)
        return found

    def _usual(self) -> float:
        """Where nothing is labelled: the median squared distance between targets."""
        some = self.targets[:: max(1, len(self.targets) // 200)]
        if len(some) < 2:
            return 1.0
        apart = ((some[:, None] - some[None]) ** 2).sum(axis=2)
        return float(np.median(apart[~np.eye(len(some), dtype=bool)])) / 2


def drawn(weights: FloatArray, count: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Positions in proportion to their weights, one in each of equal slices of the total, and how often each came.

    >>> places, counts = drawn(np.array([0.0, 1.0, 0.0, 3.0]), 8, np.random.default_rng(0))
    >>> places.tolist(), counts.tolist()
    ([1, 3], [2, 6])
    """
    running = np.cumsum(weights, dtype=np.float64)
    if not len(running) or running[-1] <= 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    at = (np.arange(count) + rng.random()) / count * running[-1]
    found = np.searchsorted(running, at, side="right").clip(max=int(np.flatnonzero(weights)[-1]))
    places, counts = np.unique(found, return_counts=True)
    return places, counts


# -- spending ----------------------------------------------------------------------------------------------------------
def buy_cover(
    tasks: Sequence[Coverage], price: IntArray, budget: int, limits: Limits, able: BoolArray, power: float
) -> tuple[IntArray, Certificate]:
    """Greedily buy whole items: at each step the one with the highest gain over its price to this power.

    What an item's gain was before is a bound of what it is now. ``limits`` are those of whole items: one column.
    """
    purse = Purse(price, budget, limits, able)
    everything = np.arange(len(price))
    bounds = _gains(tasks, everything)  # (items,), never below the gains
    worth = np.maximum(price, 1).astype(float) ** power
    bound = _passed_by_none(bounds, price, budget, able)
    reached = 0.0
    for among in purse.phases():
        while (open_ := purse.open & among()).any():
            item = _best(bounds, open_, worth, tasks)
            reached += float(bounds[item])
            purse.buy(item)
            for task in tasks:
                task.add(item)
    left = np.where(purse.taken, 0.0, bounds)
    bound = min(bound, reached + _passed_by_none(left, price, budget, able), sum(task.weight for task in tasks))
    bound = max(bound, reached)
    items = np.array(purse.bought, dtype=np.int64)
    return items, Certificate(reached, bound, bound - reached <= 1e-9 * max(1.0, bound))


def _gains(tasks: Sequence[Coverage], items: IntArray) -> FloatArray:
    found = np.zeros(len(items))
    for at in range(0, len(items), ITEMS_AT_ONCE):
        part = items[at : at + ITEMS_AT_ONCE]
        for task in tasks:
            found[at : at + len(part)] += task.gains(part)
    return found


def _best(bounds: FloatArray, open_: BoolArray, worth: FloatArray, tasks: Sequence[Coverage]) -> int:
    """The open item whose gain is worth most; ties go to the first. ``bounds`` become gains where it looks."""
    candidates = np.flatnonzero(open_)
    scores = bounds[candidates] / worth[candidates]
    order = candidates[np.argsort(-scores, kind="stable")]
    best = -np.inf
    for start in range(0, len(order), BLOCK):
        block = order[start : start + BLOCK]
        if bounds[block[0]] / worth[block[0]] < best - TIE:
            break
        bounds[block] = np.minimum(bounds[block], _gains(tasks, block))
        best = max(best, float((bounds[block] / worth[block]).max()))
    return int(np.argmax(open_ & (bounds / worth >= best - TIE)))


def _passed_by_none(gains: FloatArray, price: IntArray, budget: int, able: BoolArray) -> float:
    """The most that items could add if no gain shrank and one item could be bought in part."""
    offered = np.flatnonzero(able & (price <= budget) & (gains > 0))
    order = offered[np.argsort(-gains[offered] / np.maximum(price[offered], 1e-9), kind="stable")]
    running = np.cumsum(price[order])
    whole = int(np.searchsorted(running, budget, side="right"))
    total = float(gains[order[:whole]].sum())
    if whole < len(order):
        spent = int(running[whole - 1]) if whole else 0
        total += float(gains[order[whole]]) * (budget - spent) / max(int(price[order[whole]]), 1)
    return total


class Purse:
    """What is bought, and what still may be: within the budget, and within every limit on whole items."""

    def __init__(self, price: IntArray, budget: int, limits: Limits, able: BoolArray) -> None:
        self.price, self.left, self.limits = price, int(budget), limits
        self.open: BoolArray = able & (price <= self.left)
        self.taken = np.zeros(len(price), dtype=bool)
        self.bought: list[int] = []
        self._uses = [limit.use[:, 0] for limit in limits.sums]
        self._used = np.zeros(len(limits.sums))
        self._room = None if limits.groups is None else limits.groups.at_most.copy()
        self._close()

    def phases(self) -> Iterator[Callable[[], BoolArray]]:
        """What may be bought, one minimum after the other, then anything."""
        everything = np.ones(len(self.price), dtype=bool)
        for number, limit in enumerate(self.limits.sums):
            if limit.at_least > 0:
                helps = self._uses[number] > 0
                yield lambda n=number, floor=limit.floor, h=helps: h if self._used[n] < floor else ~everything  # type: ignore[misc]
                if self._used[number] < limit.floor:
                    raise InfeasibleError(
                        f"greedy spending got to {self._used[number]:g} of {limit.name} and not to {limit.at_least:g}",
                        fix="raise the budget, ask for less at least, or spend exactly",
                    )
        yield lambda: everything

    def buy(self, item: int) -> None:
        """Pay for an item, and close what can no longer be bought."""
        self.bought.append(item)
        self.taken[item] = True
        self.open[item] = False
        self.left -= int(self.price[item])
        for number, use in enumerate(self._uses):
            self._used[number] += use[item]
        if self._room is not None and self.limits.groups is not None:
            self._room[self.limits.groups.group[item]] -= 1
        self._close()

    def _close(self) -> None:
        self.open &= self.price <= self.left
        for number, (limit, use) in enumerate(zip(self.limits.sums, self._uses, strict=True)):
            self.open &= self._used[number] + use <= limit.ceiling
        if self._room is not None and self.limits.groups is not None:
            self.open &= self._room[self.limits.groups.group] > 0
