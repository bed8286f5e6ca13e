"""Numbers about labelling orders: quality, transfer to other models, and what they select (paper 4, section 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from bursar.errors import ConfigError
from bursar.learners.features import classes_of, one_thread
from bursar.oracle.judge import Judge
from bursar.oracle.problem import LabellingProblem, Order, quality
from bursar.ragged import FloatArray, IntArray, offsets_of
from bursar.tasks import Tagging

INTENT_LENGTHS = (4, 5, 6, 7, 8, 9, 10, 11, 13)  # lower bounds of the bins of Figure 8, without the first
ENTITY_LENGTHS = (6, 7, 8, 9, 10, 11, 13, 17)  # the same for Figure 9


# -- quality (section 6.1) ------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class OrderCurve:
    """Scores on one part: with the warm start alone, and after 1 to K batches.

    >>> curve = OrderCurve(0.4, np.array([0.5, 0.9]))
    >>> round(curve.quality, 3), round(curve.quality_with_warm_start, 3)
    (0.7, 0.6)
    """

    start: float
    scores: FloatArray  # (batches,)

    @property
    def quality(self) -> float:
        """As defined in the paper's text."""
        return float(quality(self.scores))

    @property
    def quality_with_warm_start(self) -> float:
        """As in the paper's table (errata 24)."""
        return quality_with_warm_start(self.start, self.scores)


def quality_with_warm_start(start: float, curve: FloatArray) -> float:
    """The mean over K + 1 points (errata 24)."""
    return float((start + np.sum(curve)) / (len(curve) + 1))


def curve_of(judge: Judge, order: Order, part: str = "test") -> OrderCurve:
    """The curve of an order."""
    return curves_of(judge, [order], part)[0]


def curves_of(judge: Judge, orders: Sequence[Order], part: str = "test") -> list[OrderCurve]:
    """The curves of several orders."""
    return curves_on(judge, orders, [part])[part]


def curves_on(judge: Judge, orders: Sequence[Order], parts: Sequence[str]) -> dict[str, list[OrderCurve]]:
    """The curves of several orders on several parts; each model is trained once."""
    sets = [found for order in orders for found in order.prefixes()]
    scores = judge.scores_on([np.zeros(0, dtype=np.int64), *sets], parts)
    ends = np.cumsum([len(order.batches) for order in orders])
    return {
        part: [OrderCurve(float(row[0]), found) for found in np.split(row[1:], ends[:-1])]
        for part, row in zip(parts, scores, strict=True)
    }


# -- transfer (sections 6.2 and 6.3) ----------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class SeedMismatch:
    """How good the order found for one seed is for the training of another (paper 4, Figure 4)."""

    seeds: tuple[int, ...]
    qualities: FloatArray  # (seeds of the training, seeds of the search)

    @property
    def gaps(self) -> FloatArray:
        """Loss compared with the order of the training's own seed; 0 on the diagonal."""
        found: FloatArray = np.diag(self.qualities)[:, None] - self.qualities
        return found

    @property
    def mean_gap(self) -> float:
        """The mean loss off the diagonal."""
        many = len(self.seeds)
        return float(self.gaps.sum() / (many * (many - 1))) if many > 1 else 0.0


@dataclass(frozen=True, eq=False)
class Transfer:
    """How good the order found for one architecture is for another (paper 4, Figure 5)."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    qualities: FloatArray  # (sources, targets)
    random: FloatArray  # (random orders, targets); nan if a target has fewer

    @property
    def gains(self) -> FloatArray:
        """Quality above the mean of the random orders on the same target: (sources, targets)."""
        found: FloatArray = self.qualities - np.nanmean(self.random, axis=0)
        return found

    @property
    def spread(self) -> FloatArray:
        """The standard deviation of the random orders on each target."""
        found: FloatArray = np.nanstd(self.random, axis=0, ddof=1)
        return found

    @property
    def by_luck(self) -> FloatArray:
        """The p-value of each gain: that a random order is as far from the mean of the others. (sources, targets)."""
        return self._by_luck(self.gains, 1 / np.isfinite(self.random).sum(axis=0))

    def by_luck_from(self, other: Transfer) -> FloatArray:
        """The p-value of the differences from another transfer: that two random orders are as far apart."""
        return self._by_luck(self.qualities - other.qualities, 1.0)

    def _by_luck(self, apart: FloatArray, more: float | FloatArray) -> FloatArray:
        """Two-sided t-test; ``more`` is the variance of the reference, as a share of that of random orders."""
        freedom = np.isfinite(self.random).sum(axis=0) - 1
        found: FloatArray = 2 * stdtr(freedom, -np.abs(apart) / (self.spread * np.sqrt(1 + more)))
        return found


@dataclass(frozen=True, eq=False)
class Shared:
    """The items that two orders have in common, and their ranks in both, from 0 (paper 4, Figure 6).

    A batch is a set, so ranks within it follow the positions of its items (errata 25).
    """

    items: IntArray  # (shared,)
    first: IntArray
    second: IntArray

    def __len__(self) -> int:
        return len(self.items)


def shared(first: Order, second: Order) -> Shared:
    """Find the items in both orders.

    >>> found = shared(Order.of(np.array([[4, 1], [2, 0]])), Order.of(np.array([[2, 3], [1, 9]])))
    >>> found.items.tolist(), found.first.tolist(), found.second.tolist()
    ([1, 2], [0, 3], [2, 0])
    """
    return Shared(*np.intersect1d(first.items, second.items, assume_unique=True, return_indices=True))


def shared_by_chance(first: Order, second: Order, pool: int) -> float:
    """The number of items that two random orders of these sizes share on average.

    >>> order = Order.random(pool=800, batches=8, size=20, seed=0)
    >>> shared_by_chance(order, order, pool=800)
    32.0
    """
    return len(first.items) * len(second.items) / pool


# -- what is selected (section 6.4) ----------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Shares:
    """The distribution of labelled items after 0 to K batches, and a reference distribution."""

    labelled: FloatArray  # (batches + 1, bins), rows add up to 1
    reference: FloatArray  # (bins,)

    @property
    def distances(self) -> FloatArray:
        """Total variation distance after 0 to K batches: (batches + 1,)."""
        found: FloatArray = np.abs(self.labelled - self.reference).sum(axis=1) / 2
        return found

    @property
    def distance(self) -> float:
        """The mean distance after 1 to K batches."""
        return float(self.distances[1:].mean())


def shares_of(order: Order, counts: Mapping[str, IntArray], reference: str = "test") -> Shares:
    """Compare what an order labels, with the warm start, to a reference part (paper 4, Figures 7 to 9).

    ``counts`` holds a matrix (items, bins) for the pool, the warm start and the reference.

    >>> counts = {"warm": np.eye(2)[[0]], "pool": np.eye(2)[[0, 1, 1]], "test": np.eye(2)[[0, 1]]}
    >>> found = shares_of(Order.of(np.array([[1], [2]])), counts)
    >>> found.labelled.round(2).tolist(), found.distances.round(2).tolist()
    ([[1.0, 0.0], [0.5, 0.5], [0.33, 0.67]], [0.5, 0.0, 0.17])
    """
    batches = counts["pool"][order.batches].sum(axis=1)
    totals = np.cumsum(np.concatenate([counts["warm"].sum(axis=0)[None], batches]), axis=0)
    return Shares(_normal(totals), _normal(counts[reference].sum(axis=0)))


def _normal(counts: NDArray[Any]) -> FloatArray:
    found: FloatArray = counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    return found


def length_counts(problem: LabellingProblem, bounds: Sequence[int]) -> dict[str, IntArray]:
    """The length bin of each item as an indicator row, by part; ``bounds`` are the lower bounds without the first."""
    lengths = {part: np.searchsorted(bounds, items.words, side="right") for part, items in problem.parts.items()}
    return bin_counts(lengths, len(bounds) + 1)


def bin_counts(bins: Mapping[str, IntArray], many: int) -> dict[str, IntArray]:
    """The bin of each item as an indicator row, by part: (items, bins)."""
    return {part: np.eye(many, dtype=np.int64)[numbers] for part, numbers in bins.items()}


def label_counts(problem: LabellingProblem, task: str) -> dict[str, IntArray]:
    """How often each item has each label, by part: (items, labels).

    For spans, words are counted; column 0 counts the words outside of all spans (Figure 9).
    """
    kind = problem.corpus.schema[task]
    spans = isinstance(kind, Tagging) and not kind.every_word
    many = 1 + classes_of(kind) // 2 if spans else classes_of(kind)
    found = {}
    for part, items in problem.parts.items():
        codes = kind.targets(items.labels[task].rows, items.words)
        codes = (codes + 1) // 2 if spans else codes
        ones = np.concatenate([np.zeros((1, many), dtype=np.int64), np.cumsum(np.eye(many, dtype=np.int64)[codes], 0)])
        found[part] = np.diff(ones[offsets_of(kind.units(items.words))], axis=0)
    return found


def tsne_places(
    vectors: Mapping[str, NDArray[np.floating[Any]]], *, width: int = 100, perplexity: float = 30.0, seed: int = 0
) -> dict[str, FloatArray]:
    """Coordinates of items in the plane, by part: (items, 2), from PCA and t-SNE of all items together.

    The first five batches of an order are at ``places["pool"][order.batches[:5]]`` (paper 4, Figure 7).
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    every = np.concatenate([np.asarray(part, dtype=np.float64) for part in vectors.values()])
    if len(every) < 3:
        raise ConfigError(f"{len(every)} items are too few for a map", fix="pass at least 3")
    with one_thread():
        if every.shape[1] > width:
            every = PCA(min(width, len(every)), svd_solver="full").fit_transform(every)
        near = min(perplexity, (len(every) - 1) / 3)
        init = "pca" if every.shape[1] > 1 else "random"
        found = TSNE(2, perplexity=near, init=init, random_state=seed, n_jobs=1).fit_transform(every)
    ends = np.cumsum([len(part) for part in vectors.values()])
    return dict(zip(vectors, np.split(found.astype(np.float64), ends[:-1]), strict=True))
