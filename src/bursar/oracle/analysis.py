"""What can be said of orders: how good they are, for whom else, and what they choose (paper 4, section 6).

Numbers only. What is drawn of them is for whoever draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.errors import ConfigError
from bursar.learners.features import classes_of, one_thread
from bursar.oracle.judge import Judge
from bursar.oracle.orders import Order, quality, quality_with_warm_start
from bursar.oracle.problem import Problem
from bursar.ragged import FloatArray, IntArray, offsets_of
from bursar.tasks import Tagging

NOTHING: IntArray = np.zeros(0, dtype=np.int64)
INTENT_LENGTHS = (4, 5, 6, 7, 8, 9, 10, 11, 13)  # where the bins of Figure 8 begin, after the first
ENTITY_LENGTHS = (6, 7, 8, 9, 10, 11, 13, 17)  # and those of Figure 9


# -- how good (section 6.1) ------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Curve:
    """Scores on one part: with the warm start alone, and after 1 to K batches.

    >>> curve = Curve(0.4, np.array([0.5, 0.9]))
    >>> round(curve.quality, 3), round(curve.quality_with_warm_start, 3)
    (0.7, 0.6)
    """

    start: float
    scores: FloatArray  # (batches,)

    @property
    def quality(self) -> float:
        """As the paper's text has it."""
        return float(quality(self.scores))

    @property
    def quality_with_warm_start(self) -> float:
        """As the paper's table has it (errata 24)."""
        return quality_with_warm_start(self.start, self.scores)


def curve_of(judge: Judge, order: Order, part: str = "test") -> Curve:
    """The curve of an order."""
    return curves_of(judge, [order], part)[0]


def curves_of(judge: Judge, orders: Sequence[Order], part: str = "test") -> list[Curve]:
    """The curves of many orders, judged in one go."""
    return curves_on(judge, orders, [part])[part]


def curves_on(judge: Judge, orders: Sequence[Order], parts: Sequence[str]) -> dict[str, list[Curve]]:
    """The curves of many orders on several parts; every model is trained once."""
    sets = [judge.asked(order, k) for order in orders for k in range(1, len(order.batches) + 1)]
    scores = judge.scores_on([NOTHING, *sets], parts)
    ends = np.cumsum([len(order.batches) for order in orders])
    return {
        part: [Curve(float(row[0]), found) for found in np.split(row[1:], ends[:-1])]
        for part, row in zip(parts, scores, strict=True)
    }


def qualities_of(judge: Judge, orders: Sequence[Order], part: str = "test") -> FloatArray:
    """The quality of each order: (orders,)."""
    return np.array([curve.quality for curve in curves_of(judge, orders, part)])


# -- for whom else (sections 6.2 and 6.3) ----------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class SeedMismatch:
    """How good the order found for one seed is for the training of another (paper 4, Figure 4)."""

    seeds: tuple[int, ...]
    qualities: FloatArray  # (seeds of the training, seeds of the search)

    @property
    def gaps(self) -> FloatArray:
        """What is lost beside the order of the training's own seed; 0 on the diagonal."""
        found: FloatArray = np.diag(self.qualities)[:, None] - self.qualities
        return found

    @property
    def mean_gap(self) -> float:
        """The mean loss off the diagonal."""
        many = len(self.seeds)
        return float(self.gaps.sum() / (many * (many - 1))) if many > 1 else 0.0


def seed_mismatch(judges: Mapping[int, Judge], orders: Mapping[int, Order], part: str = "test") -> SeedMismatch:
    """Every seed's order judged with the training of every seed."""
    if set(judges) != set(orders):
        raise ConfigError("judges and orders are of different seeds", fix="give both for every seed")
    seeds = tuple(sorted(judges))
    return SeedMismatch(
        seeds, np.stack([qualities_of(judges[seed], [orders[other] for other in seeds], part) for seed in seeds])
    )


@dataclass(frozen=True, eq=False)
class Transfer:
    """How good the order found for one architecture is for another (paper 4, Figure 5)."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    qualities: FloatArray  # (sources, targets)
    random: FloatArray  # (random orders, targets); not a number where a target has fewer

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
        """How likely one more random order is as far from the mean of the others: (sources, targets)."""
        return self._by_luck(self.gains, 1 / np.isfinite(self.random).sum(axis=0))

    def by_luck_from(self, other: Transfer) -> FloatArray:
        """How likely two random orders are as far apart as the orders of each source are here and there."""
        return self._by_luck(self.qualities - other.qualities, 1.0)

    def _by_luck(self, apart: FloatArray, more: float | FloatArray) -> FloatArray:
        """Student's t on both sides, by how random orders differ; ``more`` is the variance of what is compared with."""
        from scipy.special import stdtr  # here: it takes half a second, and who looks for an order waits for it

        freedom = np.isfinite(self.random).sum(axis=0) - 1
        found: FloatArray = 2 * stdtr(freedom, -np.abs(apart) / (self.spread * np.sqrt(1 + more)))
        return found


def transfer(
    judges: Mapping[str, Judge], orders: Mapping[str, Order], random: Sequence[Order], part: str = "test"
) -> Transfer:
    """Every source's order judged with every target, beside several random orders."""
    if not random:
        raise ConfigError("there are no random orders to compare with", fix="give several")
    every = [*orders.values(), *random]
    found = np.stack([qualities_of(judge, every, part) for judge in judges.values()], axis=1)
    return Transfer(tuple(orders), tuple(judges), found[: len(orders)], found[len(orders) :])


@dataclass(frozen=True, eq=False)
class Shared:
    """The items that two orders have in common, and their ranks in both, from 0 (paper 4, Figure 6).

    Within a batch ranks follow the numbers of items, for a batch is a set (errata 25).
    """

    items: IntArray  # (shared,)
    first: IntArray
    second: IntArray

    def __len__(self) -> int:
        return len(self.items)


def shared(first: Order, second: Order) -> Shared:
    """What two orders share.

    >>> found = shared(Order.of(np.array([[4, 1], [2, 0]])), Order.of(np.array([[2, 3], [1, 9]])))
    >>> found.items.tolist(), found.first.tolist(), found.second.tolist()
    ([1, 2], [0, 3], [2, 0])
    """
    return Shared(*np.intersect1d(first.items, second.items, assume_unique=True, return_indices=True))


def shared_by_chance(first: Order, second: Order, pool: int) -> float:
    """How many items two such orders would share if both were random.

    >>> order = Order.random(pool=800, batches=8, size=20, seed=0)
    >>> shared_by_chance(order, order, pool=800)
    32.0
    """
    return len(first.items) * len(second.items) / pool


# -- what they choose (section 6.4) ----------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Shares:
    """The distribution of what is labelled after 0 to K batches, and the one that it is compared with."""

    labelled: FloatArray  # (batches + 1, bins), rows add up to 1
    reference: FloatArray  # (bins,)

    @property
    def distances(self) -> FloatArray:
        """Total variation between the two after 0 to K batches: (batches + 1,), from 0 (the same) to 1."""
        found: FloatArray = np.abs(self.labelled - self.reference).sum(axis=1) / 2
        return found

    @property
    def distance(self) -> float:
        """The mean after 1 to K batches, as quality is."""
        return float(self.distances[1:].mean())


def shares_of(order: Order, counts: Mapping[str, IntArray], reference: str = "test") -> Shares:
    """What an order labels, the warm start with it, beside a reference part (paper 4, Figures 7 to 9).

    ``counts`` say how much of each item lies in each bin, (items, bins), for pool, warm start and reference.

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


def length_counts(problem: Problem, bounds: Sequence[int]) -> dict[str, IntArray]:
    """One for the bin of each item's length, part by part; ``bounds`` are where bins begin, after the first."""
    lengths = {part: np.searchsorted(bounds, items.words, side="right") for part, items in problem.parts.items()}
    return bin_counts(lengths, len(bounds) + 1)


def bin_counts(bins: Mapping[str, IntArray], many: int) -> dict[str, IntArray]:
    """One for the bin of each item, whatever bins are made of: (items, bins), part by part."""
    return {part: np.eye(many, dtype=np.int64)[numbers] for part, numbers in bins.items()}


def label_counts(problem: Problem, task: str) -> dict[str, IntArray]:
    """How often each item has each label: (items, labels), part by part.

    Of spans, the words outside all of them come first, and a span's first word counts as its others do (Figure 9).
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


@dataclass(frozen=True)
class BesideRandom:
    """How far an order is from a distribution, and how far random orders of as many items are."""

    distance: float
    random: float  # their mean
    spread: float  # their standard deviation
    no_closer: float  # the share of random orders that are as far or farther

    @property
    def deviations(self) -> float:
        """How many standard deviations farther than random ones it is."""
        return (self.distance - self.random) / self.spread if self.spread else 0.0


def beside_random(order: Shares, random: Sequence[Shares]) -> BesideRandom:
    """Whether an order preserves a distribution, for which random ones are the measure: few items never match it."""
    if len(random) < 2:
        raise ConfigError("one random order has no spread", fix="give several")
    others = np.array([shares.distance for shares in random])
    return BesideRandom(
        order.distance, float(others.mean()), float(others.std(ddof=1)), float((others >= order.distance).mean())
    )


def tsne_places(
    vectors: Mapping[str, NDArray[np.floating[Any]]], *, width: int = 100, perplexity: float = 30.0, seed: int = 0
) -> dict[str, FloatArray]:
    """Places of items in the plane, part by part: (items, 2), by PCA and then t-SNE of all of them together.

    The first five batches of an order lie at ``places["pool"][order.batches[:5]]`` (paper 4, Figure 7).
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    every = np.concatenate([np.asarray(part, dtype=np.float64) for part in vectors.values()])
    if len(every) < 3:
        raise ConfigError(f"{len(every)} items have no map", fix="give more of them")
    with one_thread():
        if every.shape[1] > width:
            every = PCA(min(width, len(every)), svd_solver="full").fit_transform(every)
        near = min(perplexity, (len(every) - 1) / 3)
        init = "pca" if every.shape[1] > 1 else "random"
        found = TSNE(2, perplexity=near, init=init, random_state=seed, n_jobs=1).fit_transform(every)
    ends = np.cumsum([len(part) for part in vectors.values()])
    return dict(zip(vectors, np.split(found.astype(np.float64), ends[:-1]), strict=True))
