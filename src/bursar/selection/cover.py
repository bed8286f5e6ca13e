"""COVER: buy the items whose units are nearest to uncertain units that no label is near yet.

A *unit* is one decision of a model (a sentence, a word, a head, a pair of spans); its *doubt* is its uncertainty.
Units of the pool are sampled as *targets*, in proportion to the square root of their doubt. The nearest labelled unit
covers a target by exp(−d² / s²), where s² is the median of d² over the targets. The gain of an item is the share of
each task's uncovered doubt that its units cover, summed over the tasks.

Shares add up over units, so long items are worth more than short ones. Targets follow the pool's distribution, so the
selection does too. The sum is submodular: an item's gain only shrinks as others are bought, so ``spend.greedy`` can
maximise it.

In a pool of more than ``CANDIDATES`` items, that many candidates are sampled in proportion to the same doubt. Other
items are bought only if no candidate can be, and the certificate compares with selections of candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bursar.errors import SelectionError
from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.selection.candidates import Candidates, Selection, Units
from bursar.selection.spend.greedy import Account, buy_greedily

Vectors = NDArray[np.float32]

PRICE_POWER = 0.5  # gains are divided by the price to this power; at 1, cheap items win too often
TARGETS = 2000  # per task
UNITS_AT_ONCE = 2048  # units whose distances to all targets are computed together; they fit the cache
ITEMS_AT_ONCE = 1024
CANDIDATES = 50_000  # candidates of a larger pool; the coverage of each is cached
KEPT_BYTES = 400_000_000  # cache of one task's coverages: all items of a small pool, else the best


class Coverage:
    """How far one task's doubt is covered, and how much each item would add."""

    def __init__(
        self, units: Units, known: Vectors, rng: np.random.Generator, targets: int = TARGETS, *, weight: float = 1.0
    ) -> None:
        self.units, self.weight = units, weight  # the task's weight
        places, counts = systematic_sample(np.sqrt(units.doubt), targets, rng)
        self.targets, self.weights = units.vectors[places], counts.astype(np.float32)  # (targets, width), (targets,)
        near = _nearest(known, self.targets)
        usual = np.median(np.repeat(near, counts)) if len(known) and len(near) else self._usual()
        self.scale = max(float(usual), 1e-6)
        self.covered: Vectors = np.exp(-near / self.scale)
        self.open = max(float((1 - self.covered) @ self.weights), 1e-9)  # still uncovered
        self._scaled = np.ascontiguousarray(_as_target(self.targets).T / np.float32(self.scale))
        self._counts = np.diff(units.offsets)
        capacity = min(len(units), KEPT_BYTES // (4 * max(1, len(places))))
        self._kept: Vectors = np.empty((capacity, len(places)), dtype=np.float32)
        self._kept_at, self._filled = np.full(len(units), -1), 0  # row of an item in the cache; −1 if absent

    @property
    def shares(self) -> FloatArray:
        """Each item's share of the sampling weight of targets, times the task's weight: (items,)."""
        running = np.concatenate([[0.0], np.cumsum(np.sqrt(self.units.doubt))])[self.units.offsets]
        return self.weight * np.diff(running) / max(float(running[-1]), 1e-300)

    def rows(self, items: IntArray) -> Vectors:
        """How far each item covers each target: (items, targets). Cached as far as memory allows."""
        at = self._kept_at[items]
        new = np.flatnonzero(at < 0)
        if not len(new):
            kept: Vectors = self._kept[at]
            return kept
        found = np.empty((len(items), len(self.weights)), dtype=np.float32)
        found[new] = self._rows(items[new])
        found[at >= 0] = self._kept[at[at >= 0]]
        if len(new) <= len(self._kept):
            self._keep(items[new], found[new])
        return found

    def gains(self, items: IntArray) -> FloatArray:
        """The share of the doubt that each item would newly cover: (items,)."""
        found = np.zeros(len(items))
        rows = self.rows if len(items) <= len(self._kept) else self._rows
        order = np.argsort(self._counts[items], kind="stable")  # batch items with the same number of units
        for start in range(0, len(items), ITEMS_AT_ONCE):
            part = order[start : start + ITEMS_AT_ONCE]
            more = rows(items[part])
            more -= self.covered
            found[part] = np.maximum(more, 0, out=more) @ self.weights
        return self.weight / self.open * found

    def add(self, item: int) -> None:
        self.covered = np.maximum(self.covered, self.rows(np.array([item]))[0])

    def _rows(self, items: IntArray) -> Vectors:
        found = np.full((len(items), len(self.weights)), -np.inf, dtype=np.float32)  # −d² / s² to the nearest unit
        counts, starts = self._counts[items], self.units.offsets[items]
        for count in np.unique(counts[counts > 0]).tolist():
            alike, step = np.flatnonzero(counts == count), max(1, UNITS_AT_ONCE // count)
            for part in (alike[at : at + step] for at in range(0, len(alike), step)):
                places = (starts[part][:, None] + np.arange(count)).ravel()
                products = _as_unit(self.units.vectors[places]) @ self._scaled
                found[part] = products.reshape(len(part), count, -1).max(axis=1)
        np.minimum(found, 0, out=found)
        return np.exp(found, out=found)

    def _keep(self, items: IntArray, rows: Vectors) -> None:
        if self._filled + len(items) > len(self._kept):  # full: empty it, what is used again soon is cached again
            self._kept_at[:], self._filled = -1, 0
        places = np.arange(self._filled, self._filled + len(items))
        self._kept[places], self._kept_at[items] = rows, places
        self._filled += len(items)

    def _usual(self) -> float:
        """The scale when nothing is labelled: half the median squared distance between targets."""
        some = self.targets[:: max(1, len(self.targets) // 200)]
        if len(some) < 2:
            return 1.0
        apart = ((some[:, None] - some[None]) ** 2).sum(axis=2)
        return float(np.median(apart[~np.eye(len(some), dtype=bool)])) / 2


def _nearest(vectors: Vectors, targets: Vectors) -> Vectors:
    """The squared distance of each target to the nearest vector; infinite if there are no vectors."""
    found = np.full(len(targets), -np.inf, dtype=np.float32)
    scaled = np.ascontiguousarray(_as_target(targets).T)
    for at in range(0, len(vectors), UNITS_AT_ONCE):
        np.maximum(found, (_as_unit(vectors[at : at + UNITS_AT_ONCE]) @ scaled).max(axis=0), out=found)
    return np.maximum(-found, 0)


def _as_unit(vectors: Vectors) -> Vectors:
    """Extend vectors so that the product with ``_as_target`` of others is −d² = −|u|² + 2ut − |t|²."""
    return np.concatenate([vectors, -_norms(vectors), np.ones((len(vectors), 1), dtype=np.float32)], axis=1)


def _as_target(vectors: Vectors) -> Vectors:
    return np.concatenate([2 * vectors, np.ones((len(vectors), 1), dtype=np.float32), -_norms(vectors)], axis=1)


def _norms(vectors: Vectors) -> Vectors:
    found: Vectors = np.einsum("ij,ij->i", vectors, vectors)[:, None]
    return found


def systematic_sample(weights: FloatArray, count: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Sample positions in proportion to their weights at equal steps of the running total, and count each."""
    running = np.cumsum(weights, dtype=np.float64)
    if not len(running) or running[-1] <= 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    at = (np.arange(count) + rng.random()) / count * running[-1]
    found = np.searchsorted(running, at, side="right").clip(max=int(np.flatnonzero(weights)[-1]))
    places, counts = np.unique(found, return_counts=True)
    return places, counts


# -- spending ----------------------------------------------------------------------------------------------------------
class LabelGains:
    """The gain of each label of an item: one column per task."""

    def __init__(self, tasks: Sequence[Coverage], open_: BoolArray) -> None:
        self.tasks, self.open = tasks, open_  # (items, tasks)
        self.most = sum(task.weight for task in tasks)

    def of(self, items: IntArray) -> FloatArray:
        """(items, tasks); 0 where a label cannot be bought."""
        found = np.zeros((len(items), len(self.tasks)))
        for number, task in enumerate(self.tasks):
            mine = np.flatnonzero(self.open[items, number])
            found[mine, number] = task.gains(items[mine])
        return found

    def add(self, item: int, bundle: BoolArray) -> None:
        for number in np.flatnonzero(bundle).tolist():
            self.tasks[number].add(item)


class ItemGains(LabelGains):
    """The gain of an item for all of its open labels together: one column."""

    def of(self, items: IntArray) -> FloatArray:
        total: FloatArray = super().of(items).sum(axis=1, keepdims=True)
        return total

    def add(self, item: int, bundle: BoolArray) -> None:
        super().add(item, self.open[item])


def cover_items(
    pool: Candidates, tasks: Sequence[Coverage], budget: int, rng: np.random.Generator, power: float = PRICE_POWER
) -> Selection:
    """Buy items, each for all tasks it is open for, by gain / price ** power."""
    price = pool.prices.of(pool.open)[:, None]
    able = np.asarray(pool.open.any(axis=1))[:, None]
    account = Account(np.zeros(len(pool), dtype=np.int64), price, able, budget, pool.limits.together(pool.open))
    certificate = buy_greedily(ItemGains(tasks, pool.open), account, power, candidates_of(tasks, pool.open, rng))
    return Selection.of(pool, account.items, pool.open[account.items], certificate)


def cover_labels(
    pool: Candidates, tasks: Sequence[Coverage], budget: int, rng: np.random.Generator, power: float = PRICE_POWER
) -> Selection:
    """Buy items for any of their tasks, by gain / price ** power of a bundle; the first one also pays for reading."""
    account = Account(pool.prices.reading, pool.prices.own, pool.open, budget, pool.limits)
    certificate = buy_greedily(LabelGains(tasks, pool.open), account, power, candidates_of(tasks, pool.open, rng))
    return Selection.of(pool, account.items, account.bought[account.items], certificate)


def coverages_of(pool: Candidates, rng: np.random.Generator, value: FloatArray | None = None) -> list[Coverage]:
    """One ``Coverage`` per task; a ``value`` (items,) or (items, tasks), if given, replaces the doubt of the units."""
    units, known = dict(pool.features.require("units")), pool.features.labelled.units or {}
    for task in pool.tasks:
        _check(units[task], task, pool)
    if value is not None:
        values = np.broadcast_to(np.maximum(value, 0).reshape(len(pool), -1), pool.confidence.shape)
        for at, task in enumerate(pool.tasks):  # a doubt of 0 stays 0: such a label would teach nothing
            of_units = np.repeat(values[:, at], np.diff(units[task].offsets))
            units[task] = replace(units[task], doubt=np.where(units[task].doubt > 0, of_units, 0.0))
    weights = np.ones(len(pool.tasks)) if pool.weights is None else len(pool.tasks) * pool.weights
    return [
        Coverage(units[task], known[task].vectors if task in known else units[task].vectors[:0], rng, weight=weight)
        for task, weight in zip(pool.tasks, weights.tolist(), strict=True)
    ]


def _check(units: Units, task: str, pool: Candidates) -> None:
    """Reject doubts and vectors that are not finite. Summing all vectors first keeps the usual case fast."""
    if np.isfinite(units.vectors.sum(dtype=np.float64)) and (units.doubt >= 0).all() and np.isfinite(units.doubt).all():
        return
    wrong = ~(np.isfinite(units.vectors).all(axis=1) & np.isfinite(units.doubt) & (units.doubt >= 0))
    item = int(np.searchsorted(units.offsets, int(np.argmax(wrong)), side="right")) - 1
    raise SelectionError(
        f"item {pool.ids[item]!r}: a unit of task {task!r} has a negative doubt, or a value that is not a number",
        fix="check the learner",
    )


def candidates_of(tasks: Sequence[Coverage], open_: BoolArray, rng: np.random.Generator) -> IntArray:
    """The items to consider: all that can be bought, or a sample of ``CANDIDATES`` by their open doubt."""
    items = np.flatnonzero(open_.any(axis=1))
    if len(items) <= CANDIDATES:
        return items
    shares = np.stack([task.shares for task in tasks], axis=1)
    return items[systematic_sample((shares * open_).sum(axis=1)[items], CANDIDATES, rng)[0]]
