"""Covering doubt: buy the items whose units lie nearest to what the model doubts and no label is near to yet.

A *unit* is what a model decides at once (a sentence, a word, a head, a pair of spans). Units of the pool are drawn as
*targets*, in proportion to the root of their doubt. A target is covered as far as its nearest labelled unit is near:
exp(−d² / s²), with s² the median of d² over the targets. What an item adds is the share of each task's uncovered doubt
that its units cover, summed over the tasks.

Shares add up over units, so long items are worth more than short ones; doubts count by their mass, so that what is
bought keeps to the pool's distribution. The sum is submodular: an item's gain only shrinks as others are bought, so
that ``submodular`` can spend on it.

Of a pool of more than ``CANDIDATES`` items that many are drawn as candidates, in proportion to the same doubt. Others
are bought only when no candidate can be, and the certificate compares with selections of candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bursar.errors import SelectionError
from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.selection.candidates import Candidates, Selection
from bursar.selection.pool_features import Units
from bursar.selection.submodular import Account, buy_greedily

Vectors = NDArray[np.float32]

PRICE_POWER = 0.5  # gains are divided by the price to this power: at 1 cheap items are bought again and again
TARGETS = 2000  # of each task
UNITS_AT_ONCE = 2048  # whose distances to all targets are computed together: they fit the cache
ITEMS_AT_ONCE = 1024
CANDIDATES = 50_000  # items that are looked at in a larger pool: the coverages of all of them are kept
KEPT_BYTES = 400_000_000  # of each task's coverages that are kept: of all items of a small pool, else of the best


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
        near = _nearest(known, self.targets)
        usual = np.median(np.repeat(near, counts)) if len(known) and len(near) else self._usual()
        self.scale = max(float(usual), 1e-6)
        self.covered: Vectors = np.exp(-near / self.scale)
        self.open = max(float((1 - self.covered) @ self.weights), 1e-9)  # what may still be covered
        self._scaled = np.ascontiguousarray(_as_target(self.targets).T / np.float32(self.scale))
        self._counts = np.diff(units.offsets)
        room = min(len(units), KEPT_BYTES // (4 * max(1, len(places))))
        self._kept: Vectors = np.empty((room, len(places)), dtype=np.float32)
        self._kept_at, self._filled = np.full(len(units), -1), 0  # where an item's coverages are kept, if they are

    @property
    def shares(self) -> FloatArray:
        """Each item's share of what targets are drawn in proportion to, times the task's weight: (items,)."""
        running = np.concatenate([[0.0], np.cumsum(np.sqrt(self.units.doubt))])[self.units.offsets]
        found: FloatArray = self.weight * np.diff(running) / max(float(running[-1]), 1e-300)
        return found

    def rows(self, items: IntArray) -> Vectors:
        """How far each item covers each target: (items, targets). Computed once for what there is room to keep."""
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
        """The share of the doubt that each item would cover beyond what is covered: (items,)."""
        found = np.zeros(len(items))
        rows = self.rows if len(items) <= len(self._kept) else self._rows
        order = np.argsort(self._counts[items], kind="stable")  # items with equally many units are computed together
        for start in range(0, len(items), ITEMS_AT_ONCE):
            part = order[start : start + ITEMS_AT_ONCE]
            more = rows(items[part])
            more -= self.covered
            found[part] = np.maximum(more, 0, out=more) @ self.weights
        return self.weight / self.open * found

    def add(self, item: int) -> None:
        """The item is bought: what it covers is covered."""
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
        if self._filled + len(items) > len(self._kept):  # start again: what is looked at is soon looked at again
            self._kept_at[:], self._filled = -1, 0
        places = np.arange(self._filled, self._filled + len(items))
        self._kept[places], self._kept_at[items] = rows, places
        self._filled += len(items)

    def _usual(self) -> float:
        """Where nothing is labelled: the median squared distance between targets."""
        some = self.targets[:: max(1, len(self.targets) // 200)]
        if len(some) < 2:
            return 1.0
        apart = ((some[:, None] - some[None]) ** 2).sum(axis=2)
        return float(np.median(apart[~np.eye(len(some), dtype=bool)])) / 2


def _nearest(vectors: Vectors, targets: Vectors) -> Vectors:
    """The squared distance of each target to the nearest vector: infinite where there is none."""
    found = np.full(len(targets), -np.inf, dtype=np.float32)
    scaled = np.ascontiguousarray(_as_target(targets).T)
    for at in range(0, len(vectors), UNITS_AT_ONCE):
        np.maximum(found, (_as_unit(vectors[at : at + UNITS_AT_ONCE]) @ scaled).max(axis=0), out=found)
    return np.maximum(-found, 0)


def _as_unit(vectors: Vectors) -> Vectors:
    """Times ``_as_target`` of other vectors this is −d², in one product: −|u|² + 2ut − |t|²."""
    return np.concatenate([vectors, -_norms(vectors), np.ones((len(vectors), 1), dtype=np.float32)], axis=1)


def _as_target(vectors: Vectors) -> Vectors:
    return np.concatenate([2 * vectors, np.ones((len(vectors), 1), dtype=np.float32), -_norms(vectors)], axis=1)


def _norms(vectors: Vectors) -> Vectors:
    found: Vectors = np.einsum("ij,ij->i", vectors, vectors)[:, None]
    return found


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
class Labels:
    """What the labels of items add, each by itself."""

    def __init__(self, tasks: Sequence[Coverage], open_: BoolArray) -> None:
        self.tasks, self.open = tasks, open_  # (items, tasks)
        self.most = sum(task.weight for task in tasks)

    def of(self, items: IntArray) -> FloatArray:
        """0 where a label cannot be bought: (items, tasks)."""
        found = np.zeros((len(items), len(self.tasks)))
        for number, task in enumerate(self.tasks):
            mine = np.flatnonzero(self.open[items, number])
            found[mine, number] = task.gains(items[mine])
        return found

    def add(self, item: int, bundle: BoolArray) -> None:
        for number in np.flatnonzero(bundle).tolist():
            self.tasks[number].add(item)


class WholeItems(Labels):
    """What items add, each for all of its open labels at once: one column."""

    def of(self, items: IntArray) -> FloatArray:
        total: FloatArray = super().of(items).sum(axis=1, keepdims=True)
        return total

    def add(self, item: int, bundle: BoolArray) -> None:
        super().add(item, self.open[item])


def cover_items(
    pool: Candidates, tasks: Sequence[Coverage], budget: int, rng: np.random.Generator, power: float = PRICE_POWER
) -> Selection:
    """Buy whole items: each for all tasks that it is open for, by gain over price to this power."""
    price = pool.prices.of(pool.open)[:, None]
    able = np.asarray(pool.open.any(axis=1))[:, None]
    account = Account(np.zeros(len(pool), dtype=np.int64), price, able, budget, pool.limits.together(pool.open))
    gains, candidates = WholeItems(tasks, pool.open), candidates_of(tasks, pool.open, rng)
    certificate = buy_greedily(gains, account, power, candidates)
    items = np.array(account.order, dtype=np.int64)
    return Selection.of(pool, items, pool.open[items], certificate)


def cover_labels(
    pool: Candidates, tasks: Sequence[Coverage], budget: int, rng: np.random.Generator, power: float = PRICE_POWER
) -> Selection:
    """Buy items for some of their tasks: by the gain of a bundle of labels over its price to this power.

    Reading is paid with an item's first bundle, so that its further labels are cheaper.
    """
    account = Account(pool.prices.reading, pool.prices.own, pool.open, budget, pool.limits)
    gains, candidates = Labels(tasks, pool.open), candidates_of(tasks, pool.open, rng)
    certificate = buy_greedily(gains, account, power, candidates)
    items = np.array(account.order, dtype=np.int64)
    return Selection.of(pool, items, account.bought[items], certificate)


def coverages_of(pool: Candidates, rng: np.random.Generator, value: FloatArray | None = None) -> list[Coverage]:
    """How far the doubt of each task is covered by what is labelled.

    If values of items, or of their labels, are given, they take the place of the doubts of their units.
    """
    units, known = pool.features.want("units"), pool.features.labelled.units or {}
    for task in pool.tasks:
        _check(units[task], task, pool)
    if value is not None:
        values = np.broadcast_to(np.maximum(value, 0).reshape(len(pool), -1), pool.confidence.shape)
        units = {task: _valued(units[task], values[:, at]) for at, task in enumerate(pool.tasks)}
    weights = np.ones(len(pool.tasks)) if pool.weights is None else len(pool.tasks) * pool.weights
    return [
        Coverage(units[task], known[task].vectors if task in known else units[task].vectors[:0], rng, weight=weight)
        for task, weight in zip(pool.tasks, weights.tolist(), strict=True)
    ]


def _check(units: Units, task: str, pool: Candidates) -> None:
    """Refuse doubts and vectors that are no numbers; one sum over all of them tells whether any is."""
    if np.isfinite(units.vectors.sum(dtype=np.float64)) and (units.doubt >= 0).all() and np.isfinite(units.doubt).all():
        return
    wrong = ~(np.isfinite(units.vectors).all(axis=1) & np.isfinite(units.doubt) & (units.doubt >= 0))
    item = int(np.searchsorted(units.offsets, int(np.argmax(wrong)), side="right")) - 1
    raise SelectionError(
        f"item {pool.ids[item]!r}: a unit of task {task!r} has a doubt below 0 or a place that is not a number",
        fix="look at the learner that gave it",
    )


def _valued(units: Units, value: FloatArray) -> Units:
    """Units with their items' values as doubts. What is certain stays so: a label would teach nothing."""
    return replace(units, doubt=np.where(units.doubt > 0, np.repeat(value, np.diff(units.offsets)), 0.0))


def candidates_of(tasks: Sequence[Coverage], open_: BoolArray, rng: np.random.Generator) -> IntArray:
    """The items that are looked at: all that can be bought, or as many as there may be, drawn by their open doubt."""
    items = np.flatnonzero(open_.any(axis=1))
    if len(items) <= CANDIDATES:
        return items
    shares = np.stack([task.shares for task in tasks], axis=1)
    return items[drawn((shares * open_).sum(axis=1)[items], CANDIDATES, rng)[0]]
