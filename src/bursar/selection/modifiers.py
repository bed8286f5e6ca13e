"""What two modifiers do to any strategy: match the distribution of the corpus (IDMR), and leave out outliers (GUARD).

Input-distribution matching (paper 4, section 6.5, Algorithm 2) keeps the labelled set similar to the corpus. Items are
put into bins by length, cluster, label or a function of yours. The next item comes from the bin whose share of the
labelled items is farthest below its share of all items; if that bin is empty, from the next (errata 28).

GUARD leaves out outliers, because the most uncertain items are often not learnable (Karamcheti et al. 2021). An item is
an outlier of a task if its uncertainty is among the highest 2 % and, if the pool has vectors, its nearest neighbour is
farther than that of three in four items. An uncertain item among many like it is worth a label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bursar.errors import SelectionError
from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.selection.candidates import Candidates, Certificate, GroupCap, ItemFeatures, PoolFeatures, Selection, Units

if TYPE_CHECKING:
    from bursar.selection.strategy import Strategy

BINS = 5
MOST_DOUBTFUL = 0.02  # share of a task's items
FAR = 0.75  # quantile of the distance to the nearest neighbour
NEIGHBOURS = 2000  # sample that distances are measured to
AT_ONCE = 2048

Binning = Callable[[ItemFeatures], IntArray]
Vectors = NDArray[np.floating]


@dataclass(frozen=True)
class Matching:
    """Matching around any strategy, with bins by length, cluster, label or a function of the features."""

    by: str | Binning = "length"
    count: int = BINS

    def choose(self, strategy: Strategy, pool: Candidates, budget: int, rng: np.random.Generator) -> Selection:
        """Pick one item at a time if a ranking is bought greedily (as in the paper), else cap the items per bin."""
        bins = Bins.of(*bins_of(pool.features, self.by, pool.tasks, self.count))
        price = pool.prices.joint()
        if strategy.value is None:
            return self._by_share(strategy, pool, bins, budget, rng)
        value = strategy.scores(pool)
        score = value if value.ndim == 1 else value.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ranked = score if strategy.spend == "greedy" else np.where(score > 0, score / price, 0.0)
        picked = bins.pick(pool.ranking(-ranked), _usual_price(pool, strategy.mode, budget), budget)
        if strategy.mode == "joint" and strategy.spend == "greedy" and not pool.limits:
            return Selection.joint(pool, picked, Certificate(float(value[picked].sum())))
        if pool.limits.groups is not None:
            raise SelectionError(
                "matching caps the items of each bin, so it cannot be combined with another group cap",
                fix="leave one of them out",
            )
        quota = np.bincount(bins.pool[picked], minlength=len(bins.total))
        capped = replace(pool, limits=replace(pool.limits, groups=GroupCap(bins.pool, quota)))
        return strategy.choose_without_matching(capped, budget, rng)

    def _by_share(
        self, strategy: Strategy, pool: Candidates, bins: Bins, budget: int, rng: np.random.Generator
    ) -> Selection:
        """For a strategy without scores: give each bin the budget that its items would cost if taken in pool order."""
        price = _usual_price(pool, strategy.mode, budget)
        likely = bins.pick(np.arange(len(pool)), price, budget)
        money = np.bincount(bins.pool[likely], price[likely], minlength=len(bins.total)).astype(np.int64)
        items, tasks, left = np.zeros(0, dtype=np.int64), np.zeros((0, len(pool.tasks)), dtype=bool), budget
        for number in [*np.argsort(bin_surplus(bins.labelled, bins.total), kind="stable").tolist(), None]:
            mine = np.setdiff1d(
                np.flatnonzero(bins.pool == number) if number is not None else np.arange(len(pool)), items
            )
            share = left if number is None else min(left, int(money[number]))
            found = strategy.choose_without_matching(pool.take(mine), share, rng) if len(mine) else None
            if found is not None:
                items, tasks = np.concatenate([items, mine[found.items]]), np.concatenate([tasks, found.tasks])
                left -= found.total
        return Selection.of(pool, items, tasks)


def _usual_price(pool: Candidates, mode: str, budget: int) -> IntArray:
    """The likely price of an item: all tasks if bought whole, else all open tasks, or the cheapest if over budget."""
    if mode == "joint":
        return pool.joint_price(budget)
    cheapest = pool.prices.reading + np.where(pool.open, pool.prices.own, budget + 1).min(axis=1)
    whole = pool.prices.of(pool.open)
    return np.where(pool.open.any(axis=1) & (whole <= budget), whole, cheapest)


# -- putting items into bins -----------------------------------------------------------------------------------------
def bins_of(
    features: PoolFeatures, by: str | Binning, tasks: Sequence[str], count: int = BINS
) -> tuple[IntArray, IntArray, IntArray]:
    """The bin of every item: in the pool, labelled, and kept aside.

    ``by`` is ``length``, ``cluster``, ``label:TASK`` (predicted where unknown), or a function from features to numbers.
    """
    parts = (features, features.labelled, features.aside)
    if callable(by):
        found = [np.asarray(by(part), dtype=np.int64) for part in parts]
    elif by == "length":
        found = by_length([_feature(part, "words", (0,), np.int64) for part in parts], count)
    elif by == "cluster":
        width = features.require("vectors").shape[1]
        found = by_cluster([_feature(part, "vectors", (0, width), np.float64) for part in parts], count)
    elif by.startswith("label:") and by.removeprefix("label:") in tasks:
        task = list(tasks).index(by.removeprefix("label:"))
        found = [_feature(part, "labels", (0, len(tasks)), np.int64)[:, task] + 1 for part in parts]
    else:
        raise SelectionError(
            f"items cannot be put into bins by {by!r}",
            fix=f"use length, cluster or {' or '.join(f'label:{task}' for task in tasks)}",
        )
    if any(len(part) and part.min() < 0 for part in found):
        raise SelectionError("a bin has a negative number", fix="fix the binning function")
    return found[0], found[1], found[2]


def _feature(part: ItemFeatures, name: str, empty: tuple[int, ...], kind: Any) -> Any:
    """A feature of one part: required of the pool, empty for other parts that lack it."""
    if isinstance(part, PoolFeatures):
        return part.require(name)
    found = getattr(part, name)
    return np.zeros(empty, dtype=kind) if found is None else found


def by_length(words: Sequence[IntArray], count: int = BINS) -> list[IntArray]:
    """Bins with about equally many items over all parts; items of equal length share a bin."""
    every = np.concatenate(words)
    edges = np.unique(np.quantile(every, np.arange(1, count) / count)) if len(every) else np.zeros(0)
    return [np.searchsorted(edges, part, side="right") for part in words]


def by_cluster(features: Sequence[FloatArray], count: int = BINS) -> list[IntArray]:
    """Bins by k-means over all parts, so that an item keeps its bin in every round, as Algorithm 2 requires."""
    from sklearn.cluster import MiniBatchKMeans

    every = np.concatenate(features)
    if not len(every):
        return [np.zeros(0, dtype=np.int64) for _ in features]
    order = np.lexsort(every.T)
    clusters = MiniBatchKMeans(min(count, len(every)), random_state=0, n_init=3, batch_size=4096).fit(every[order])
    found = np.empty(len(every), dtype=np.int64)
    found[order] = clusters.labels_
    return np.split(found, np.cumsum([len(part) for part in features])[:-1])


# -- picking from bins -----------------------------------------------------------------------------------------------
def bin_surplus(current: IntArray, reference: IntArray) -> IntArray:
    """How far each bin's share of the labelled items exceeds the reference, in whole numbers: ties are exact."""
    return current * max(1, int(reference.sum())) - reference * max(1, int(current.sum()))


@dataclass(frozen=True, eq=False)
class Bins:
    """The bin of every item of a pool, and the number of items in each bin."""

    pool: IntArray  # (items,)
    labelled: IntArray  # (bins,) labelled items
    total: IntArray  # (bins,) all items

    @classmethod
    def of(cls, pool: IntArray, labelled: IntArray, aside: IntArray) -> Bins:
        """Count the items, given the bin of each: in the pool, labelled, and kept aside."""
        parts = (pool, labelled, aside)
        size = 1 + max((int(part.max()) for part in parts if len(part)), default=0)
        counts = [np.bincount(part, minlength=size) for part in parts]
        return cls(pool, counts[1], counts[0] + counts[1] + counts[2])

    def pick(self, ranking: IntArray, price: IntArray, budget: int) -> IntArray:
        """Pick one item at a time: the best-ranked affordable one of the bin with the lowest surplus, ties first."""
        queues = [ranking[self.pool[ranking] == number].tolist()[::-1] for number in range(len(self.total))]
        prices, counts, left = price.tolist(), self.labelled.copy(), int(budget)
        picked: list[int] = []
        while True:
            for number in np.argsort(bin_surplus(counts, self.total), kind="stable").tolist():
                queue = queues[number]
                while queue and prices[queue[-1]] > left:  # never affordable again
                    queue.pop()
                if queue:
                    break
            else:
                return np.array(picked, dtype=np.int64)
            picked.append(queue.pop())
            left -= prices[picked[-1]]
            counts[number] += 1


# -- GUARD -----------------------------------------------------------------------------------------------------------
def outliers(pool: Candidates, task: str | None = None) -> BoolArray:
    """Which items are outliers of any task, or of one: (items,). A pool of fewer than fifty items has none."""
    found = np.zeros(len(pool), dtype=bool)
    for column, name in enumerate(pool.tasks):
        if task in (None, name):
            items = np.flatnonzero(pool.open[:, column])
            doubtful = items[most_doubtful(1 - pool.confidence[items, column])]
            vectors = _vectors(pool.features, name)
            found[doubtful if vectors is None else doubtful[far_from_others(vectors, doubtful)]] = True
    return found


def most_doubtful(doubt: FloatArray) -> BoolArray:
    """The most uncertain items, at most ``MOST_DOUBTFUL`` of them; items tied across the edge are left out."""
    count = int(MOST_DOUBTFUL * len(doubt))
    edge = np.partition(doubt, len(doubt) - count - 1)[len(doubt) - count - 1] if count else np.inf
    return doubt > edge


def far_from_others(vectors: Vectors, items: IntArray) -> BoolArray:
    """Which items are farther from their nearest neighbour in a sample than most; those without a vector are not."""
    placed = np.flatnonzero(np.isfinite(vectors).all(axis=1))
    sample = placed[np.unique(np.linspace(0, len(placed) - 1, min(len(placed), NEIGHBOURS)).astype(np.int64))]
    if len(sample) < 2:
        return np.zeros(len(items), dtype=bool)
    usual = float(np.quantile(_to_nearest(vectors, sample, sample), FAR))
    return _to_nearest(vectors, items, sample) > usual * (1 + 1e-5)  # allows for rounding


def _to_nearest(vectors: Vectors, items: IntArray, others: IntArray) -> FloatArray:
    """The squared distance of each item to the nearest of the others, itself excluded."""
    found, there = np.empty(len(items)), vectors[others]
    norms = np.einsum("ij,ij->i", there, there)
    for at in range(0, len(items), AT_ONCE):
        part = items[at : at + AT_ONCE]
        here = vectors[part]
        apart = norms - 2 * (here @ there.T) + np.einsum("ij,ij->i", here, here)[:, None]
        apart[part[:, None] == others] = np.inf
        found[at : at + AT_ONCE] = apart.min(axis=1)
    return np.maximum(found, 0)


def _vectors(features: PoolFeatures, task: str) -> Vectors | None:
    """The items' vectors, else the means of the task's units; ``None`` if the pool has neither."""
    if features.vectors is not None:
        return features.vectors
    return None if features.units is None else _means(features.units[task])


def _means(units: Units) -> Vectors:
    """The mean of each item's units; NaN for an item without units."""
    counts = np.diff(units.offsets)
    means = np.full((len(units), units.vectors.shape[1]), np.nan, dtype=units.vectors.dtype)
    filled = np.flatnonzero(counts)
    if len(filled):
        sums = np.add.reduceat(units.vectors, units.offsets[:-1][filled], axis=0)
        means[filled] = sums / counts[filled, None]
    return means
