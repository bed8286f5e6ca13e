"""Combine the confidences of several tasks: into one number per item, or into Pareto fronts.

``average``, ``maximum`` and ``minimum`` return a confidence: label the lowest first. ``reciprocal_rank_fusion``
returns a score: label the highest first. ``fronts`` are those of MT-PAR: no other item is less confident on all tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np

from bursar.ragged import BoolArray, FloatArray, IntArray

RANK_OFFSET = 60  # of reciprocal rank fusion, as in Cormack et al. (2009)


def average(confidence: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """MT-AVG (paper 1, eq. 4; with weights β section 6.1)."""
    combined: FloatArray = np.average(confidence, axis=1, weights=weights)
    return combined


def maximum(confidence: FloatArray) -> FloatArray:
    """MT-MAX: the confidence of the task the model is surest of (paper 1, section 4.2)."""
    combined: FloatArray = confidence.max(axis=1)
    return combined


def minimum(confidence: FloatArray) -> FloatArray:
    """MT-MIN: the confidence of the task the model is least sure of (paper 1, section 4.2)."""
    combined: FloatArray = confidence.min(axis=1)
    return combined


def reciprocal_rank_fusion(
    confidence: FloatArray, weights: FloatArray | None = None, k: int = RANK_OFFSET
) -> FloatArray:
    """MT-RRF: Σ over tasks of weight / (k + rank), the least confident first, ties by position (paper 1, eq. 5)."""
    fused = np.zeros(len(confidence))
    for column in range(confidence.shape[1]):
        weight = 1.0 if weights is None else float(weights[column])
        if weight:
            order = np.argsort(confidence[:, column], kind="stable")
            fused[order] += weight / (k + 1 + np.arange(len(order)))
    return fused


def shares(total: int, weights: FloatArray) -> IntArray:
    """Split a whole number by weights: the largest remainders are rounded up, ties by position (errata 7)."""
    exact = [total * weight / sum(map(Fraction, weights)) for weight in map(Fraction, weights.tolist())]
    parts = [math.floor(part) for part in exact]
    by_remainder = sorted(range(len(parts)), key=lambda task: parts[task] - exact[task])
    for task in by_remainder[: total - sum(parts)]:
        parts[task] += 1
    return np.array(parts, dtype=np.int64)


# -- Pareto fronts ---------------------------------------------------------------------------------------------------
FIRST_SHARE = 0.005  # of the pool that is ranked first
FEWEST_FRONTS = 8  # to find before the rest is ranked


def fronts(confidence: FloatArray, weights: FloatArray | None = None) -> Iterator[IntArray]:
    """Yield one front after another, each in the order of the items: the undominated items, then those of the rest.

    ``x`` dominates ``y`` if it is nowhere more confident and somewhere less; equal points share a front (errata 5).

    With weights, a lighter task counts by the quantile ``q`` of its confidence at its weight: ``x`` must have
    ``c(x) ≤ q·c(y)`` there (errata 6). A task of weight 0 is left out.
    """
    factor = factors(confidence, weights)
    points = confidence[:, factor > 0]
    factor = factor[factor > 0]
    if (factor == 1).all():
        yield from _plain_fronts(points)
        return
    rest: IntArray = np.arange(len(points))
    while len(rest):
        free = _undominated(points[rest], factor)
        yield rest[free]
        rest = rest[~free]


def factors(confidence: FloatArray, weights: FloatArray | None) -> FloatArray:
    """The factor on each task's confidence in a comparison: 1 for the largest weight, 0 for a task that is left out."""
    if weights is None or not len(confidence):
        return np.ones(confidence.shape[1])
    share = weights / weights.sum()
    factor = np.ones(len(share))
    for task in np.flatnonzero(share < share.max()):
        quantile = float(np.quantile(confidence[:, task], share[task]))
        factor[task] = max(quantile, np.finfo(float).tiny) if share[task] > 0 else 0.0  # tiny: something to compare
    return factor


def _undominated(points: FloatArray, factor: FloatArray) -> BoolArray:
    """Which points are undominated. Comparing with the plain front is enough: it dominates whatever others do."""
    import moocore

    leaders = np.unique(points[moocore.is_nondominated(points, keep_weakly=True)], axis=0)
    bars = np.ascontiguousarray((points * factor).T)  # (tasks, points)
    free = np.ones(len(points), dtype=bool)
    for leader in leaders:
        beaten = leader[0] <= bars[0]
        for bar, value in zip(bars[1:], leader[1:], strict=True):
            beaten &= value <= bar
        same = np.flatnonzero(beaten & (leader[0] == bars[0]))
        beaten[same[(leader == bars[:, same].T).all(axis=1)]] = False  # an equal point does not dominate
        free &= ~beaten
    return free


def _plain_fronts(points: FloatArray) -> Iterator[IntArray]:
    """Fronts without ranking the whole pool, since usually only the first few are used.

    A point above a threshold on every task is dominated by every point below it on every task. So if the points below
    have n fronts, the first n fronts of the points that are not above are fronts of the whole pool.
    """
    rest, share = np.arange(len(points)), FIRST_SHARE
    columns = np.ascontiguousarray(points.T)  # (tasks, rest)
    while len(rest):
        place = min(len(rest) - 1, int(share * len(rest)))
        under = np.array([column <= np.partition(column, place)[place] for column in columns])
        near, below = np.flatnonzero(under.any(axis=0)), np.flatnonzero(under.all(axis=0))
        known = int(_ranks(points[rest[below]]).max()) + 1 if len(below) else 0
        if known < FEWEST_FRONTS:
            share *= 2
            if len(near) < len(rest):
                continue
        rank = _ranks(points[rest[near]])
        known = max(known, int(rank.max()) + 1) if len(near) == len(rest) else known
        order = np.argsort(rank, kind="stable")
        edges = np.searchsorted(rank[order], np.arange(known + 1))
        for start, end in pairwise(edges.tolist()):
            yield rest[near[order[start:end]]]
        done = near[rank < known]
        rest, columns = np.delete(rest, done), np.delete(columns, done, axis=1)


def _ranks(points: FloatArray) -> IntArray:
    """The number of each point's front, from 0."""
    if points.shape[1] == 1:
        return np.unique(points, return_inverse=True)[1].reshape(-1)
    import moocore

    ranks: IntArray = moocore.pareto_rank(points)
    return ranks


def thin_front(front: IntArray, first_task: FloatArray, wanted: int) -> IntArray:
    """Order a front so that its first ``wanted`` points spread over it: every ⌊f/p⌋-th by the first task first."""
    ordered = front[np.argsort(first_task[front], kind="stable")]
    if not 0 < wanted < len(ordered):
        return ordered
    picked = np.arange(0, len(ordered), len(ordered) // wanted)[:wanted]
    return np.concatenate([ordered[picked], np.delete(ordered, picked)])
