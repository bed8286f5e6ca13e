"""Input-distribution matching (IDMR; paper 4, section 6.5, Algorithm 2): what is labelled should look like the pool.

Items go into bins, by length, cluster, label or anything else. The next item is taken from the bin that the labelled
items lack most beside the reference, all items together; when that bin is empty, from the next (errata 28).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bursar.errors import SelectionError
from bursar.ragged import FloatArray, IntArray
from bursar.selection.candidates import Candidates, Certificate, Selection
from bursar.selection.limits import GroupCap
from bursar.selection.pool_features import ItemFeatures, PoolFeatures

if TYPE_CHECKING:
    from bursar.selection.strategy import Strategy

BINS = 5
Binning = Callable[[ItemFeatures], IntArray]


@dataclass(frozen=True)
class Matching:
    """Matching around any strategy, with bins by length, cluster, label or a function of the user's."""

    by: str | Binning = "length"
    count: int = BINS

    def choose(self, strategy: Strategy, pool: Candidates, budget: int, rng: np.random.Generator) -> Selection:
        """One item at a time where a ranking is bought greedily, as in the paper; else so many a bin."""
        parts = bins_of(pool.features, self.by, pool.tasks, self.count)
        current, reference = counts_of(parts)
        price = pool.prices.joint()
        if strategy.value is None:
            return self._by_share(strategy, pool, parts[0], current, reference, budget, rng)
        value = strategy.value(pool)
        score = value if value.ndim == 1 else value.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ranked = score if strategy.spend == "greedy" else np.where(score > 0, score / price, 0.0)
        picked = matched(
            pool.ranking(-ranked), parts[0], current, reference, _usual_price(pool, strategy.mode, budget), budget
        )
        if strategy.mode == "joint" and strategy.spend == "greedy" and not pool.limits:
            return Selection.joint(pool, picked, Certificate(float(value[picked].sum())))
        if pool.limits.groups is not None:
            raise SelectionError(
                "matching keeps to so many items a bin, so there cannot be other groups", fix="leave one of them out"
            )
        quota = np.bincount(parts[0][picked], minlength=len(reference))
        capped = replace(pool, limits=replace(pool.limits, groups=GroupCap(parts[0], quota)))
        return strategy.unmatched(capped, budget, rng)

    def _by_share(
        self,
        strategy: Strategy,
        pool: Candidates,
        bins: IntArray,
        current: IntArray,
        reference: IntArray,
        budget: int,
        rng: np.random.Generator,
    ) -> Selection:
        """A strategy without scores spends in each bin what its items of the pool, taken as they come, would cost."""
        price = _usual_price(pool, strategy.mode, budget)
        likely = matched(np.arange(len(pool)), bins, current, reference, price, budget)
        money = np.bincount(bins[likely], price[likely], minlength=len(reference)).astype(np.int64)
        items, tasks, left = np.zeros(0, dtype=np.int64), np.zeros((0, len(pool.tasks)), dtype=bool), budget
        for number in [*np.argsort(lacking(current, reference), kind="stable").tolist(), None]:
            mine = np.setdiff1d(np.flatnonzero(bins == number) if number is not None else np.arange(len(pool)), items)
            share = left if number is None else min(left, int(money[number]))
            found = strategy.unmatched(pool.take(mine), share, rng) if len(mine) else None
            if found is not None:
                items, tasks = np.concatenate([items, mine[found.items]]), np.concatenate([tasks, found.tasks])
                left -= found.total
        return Selection.of(pool, items, tasks)


def _usual_price(pool: Candidates, mode: str, budget: int) -> IntArray:
    """What an item is likely to be bought for: all tasks; where labels are bought one by one, all that are open, or the
    cheapest if that is too much."""
    if mode == "joint":
        return np.where(pool.open.all(axis=1), pool.prices.joint(), budget + 1)
    cheapest = pool.prices.reading + np.where(pool.open, pool.prices.own, budget + 1).min(axis=1)
    whole = pool.prices.of(pool.open)
    return np.where(pool.open.any(axis=1) & (whole <= budget), whole, cheapest)


# -- into bins -------------------------------------------------------------------------------------------------------
def bins_of(
    features: PoolFeatures, by: str | Binning, tasks: Sequence[str], count: int = BINS
) -> tuple[IntArray, IntArray, IntArray]:
    """The bin of every item of the pool, of those labelled and of those aside.

    ``by`` is ``length``, ``cluster``, ``label:TASK`` (guessed where it is not known: output matching), or a function
    of features that gives whole numbers from 0.
    """
    parts = (features, features.labelled, features.aside)
    if callable(by):
        found = [np.asarray(by(part), dtype=np.int64) for part in parts]
    elif by == "length":
        found = by_length([_feature(part, "words", (0,), np.int64) for part in parts], count)
    elif by == "cluster":
        width = features.want("vectors").shape[1]
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
        raise SelectionError("bins are counted from 0", fix="mend the function that puts items into bins")
    return found[0], found[1], found[2]


def _feature(part: ItemFeatures, name: str, empty: tuple[int, ...], kind: Any) -> Any:
    """A feature that the pool must have; the items beside it may be none."""
    if isinstance(part, PoolFeatures):
        return part.want(name)
    found = getattr(part, name)
    return np.zeros(empty, dtype=kind) if found is None else found


def by_length(words: Sequence[IntArray], count: int = BINS) -> list[IntArray]:
    """Bins of about equally many items, all parts taken together; items of one length share a bin.

    >>> [part.tolist() for part in by_length([np.array([1, 2, 3, 9]), np.array([3])], count=2)]
    [[0, 0, 1, 1], [1]]
    """
    every = np.concatenate(words)
    edges = np.unique(np.quantile(every, np.arange(1, count) / count)) if len(every) else np.zeros(0)
    return [np.searchsorted(edges, part, side="right") for part in words]


def by_cluster(features: Sequence[FloatArray], count: int = BINS) -> list[IntArray]:
    """Bins by k-means, all parts taken together.

    The same items have the same bins in every round, whichever of them are labelled by then: Algorithm 2 has one way
    of putting items into bins.

    >>> [part.tolist() for part in by_cluster([np.array([[0.0], [9.0]]), np.array([[0.1], [9.1]])], count=2)]
    [[1, 0], [1, 0]]
    """
    from sklearn.cluster import MiniBatchKMeans

    every = np.concatenate(features)
    if not len(every):
        return [np.zeros(0, dtype=np.int64) for _ in features]
    order = np.lexsort(every.T)
    clusters = MiniBatchKMeans(min(count, len(every)), random_state=0, n_init=3, batch_size=4096).fit(every[order])
    found = np.empty(len(every), dtype=np.int64)
    found[order] = clusters.labels_
    return np.split(found, np.cumsum([len(part) for part in features])[:-1])


# -- taking from bins ------------------------------------------------------------------------------------------------
def lacking(current: IntArray, reference: IntArray) -> IntArray:
    """How far each bin's share of what is labelled is above its share of the reference; the lowest lacks most.

    In whole numbers, both shares times both totals, so that ties are ties.
    """
    short: IntArray = current * max(1, int(reference.sum())) - reference * max(1, int(current.sum()))
    return short


def matched(
    ranking: IntArray, bins: IntArray, current: IntArray, reference: IntArray, price: IntArray, budget: int
) -> IntArray:
    """One item at a time: the first affordable of the ranking in the bin that lacks most, ties to the first bin.

    >>> one = np.ones(5, dtype=np.int64)
    >>> matched(np.arange(5), np.array([0, 0, 0, 0, 1]), np.array([1, 0]), np.array([4, 1]), one, budget=3).tolist()
    [4, 0, 1]
    """
    queues = [ranking[bins[ranking] == number].tolist()[::-1] for number in range(len(reference))]
    prices, counts, left = price.tolist(), current.copy(), int(budget)
    picked: list[int] = []
    while True:
        for number in np.argsort(lacking(counts, reference), kind="stable").tolist():
            queue = queues[number]
            while queue and prices[queue[-1]] > left:  # what cannot be afforded now never can be
                queue.pop()
            if queue:
                break
        else:
            return np.array(picked, dtype=np.int64)
        picked.append(queue.pop())
        left -= prices[picked[-1]]
        counts[number] += 1


def counts_of(parts: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """How many items lie in each bin: of those labelled, and of all, given the bins of pool, labelled and aside."""
    size = 1 + max((int(part.max()) for part in parts if len(part)), default=0)
    current = np.bincount(parts[1], minlength=size)
    return current, sum((np.bincount(part, minlength=size) for part in parts), np.zeros(size, dtype=np.int64))
