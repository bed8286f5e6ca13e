"""Confidences of several tasks to one: (items, tasks) to (items,). Low means: ask about this one."""

from __future__ import annotations

import numpy as np

from bursar.ragged import FloatArray


def average(confidence: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """MT-AVG (paper 1, eq. 4; with weights β section 6.1).

    >>> average(np.array([[0.2, 0.6]])).tolist(), average(np.array([[0.2, 0.6]]), np.array([1.0, 0.0])).tolist()
    ([0.4], [0.2])
    """
    combined: FloatArray = np.average(confidence, axis=1, weights=weights)
    return combined


def maximum(confidence: FloatArray) -> FloatArray:
    """MT-MAX: an item counts as sure if the model is sure of any of its tasks (paper 1, section 4.2)."""
    combined: FloatArray = confidence.max(axis=1)
    return combined


def minimum(confidence: FloatArray) -> FloatArray:
    """MT-MIN: an item counts as unsure if the model is unsure of any of its tasks (paper 1, section 4.2)."""
    combined: FloatArray = confidence.min(axis=1)
    return combined
