"""Combine the confidences of several tasks into one number per item: (items, tasks) to (items,).

``average``, ``maximum`` and ``minimum`` return a confidence: label the lowest first. ``reciprocal_rank_fusion``
returns a score: label the highest first.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from bursar.ragged import FloatArray, IntArray

RANK_OFFSET = 60  # of reciprocal rank fusion, as in Cormack et al. (2009)


def average(confidence: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """MT-AVG (paper 1, eq. 4; with weights β section 6.1).

    >>> average(np.array([[0.2, 0.6]])).tolist(), average(np.array([[0.2, 0.6]]), np.array([1.0, 0.0])).tolist()
    ([0.4], [0.2])
    """
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
    """MT-RRF: Σ over tasks of weight / (k + rank), rank 1 being the least confident (paper 1, eq. 5).

    Equal confidences are ranked by position. High scores are labelled first.

    >>> reciprocal_rank_fusion(np.array([[0.1, 0.9], [0.5, 0.2]]), k=0).tolist()
    [1.5, 1.5]
    """
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
