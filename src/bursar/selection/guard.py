"""GUARD: leave out outliers, because the most uncertain items are often not learnable (Karamcheti et al. 2021).

An item is an outlier of a task if its uncertainty is among the highest 2 % and, if the pool has vectors, its nearest
neighbour is farther than that of three in four items. An uncertain item among many like it is worth a label.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.selection.candidates import Candidates, PoolFeatures, Units

MOST_DOUBTFUL = 0.02  # share of a task's items
FAR = 0.75  # quantile of the distance to the nearest neighbour
NEIGHBOURS = 2000  # sample that distances are measured to
AT_ONCE = 2048

Vectors = NDArray[np.floating]


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
