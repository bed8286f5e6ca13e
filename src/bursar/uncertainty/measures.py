"""Confidence measures as pure functions of beliefs.

Each averages over the units of an item (words, not word-pieces: errata 1), so a score depends on nothing but the
item's own probabilities: not on padding, not on the batch, not on the order of prediction.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bursar.ragged import FloatArray, IntArray
from bursar.registry import Registry
from bursar.tasks import Beliefs

Measure = Callable[[Beliefs], FloatArray]
MEASURES: Registry[Measure] = Registry("confidence measure", "bursar.measures")


def entropy_confidence(beliefs: Beliefs) -> FloatArray:
    """1 − the mean over units of the entropy over the log of the number of choices (paper 1, eq. 1 and 2).

    A unit with a single choice is certain, and so is an item without units. Stochastic passes are averaged first.

    >>> entropy_confidence(Beliefs.of([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]], units=[2, 1])).tolist()
    [0.5, 0.0]
    """
    p = beliefs.values.mean(axis=0, dtype=np.float64)
    terms = -p * np.log(np.maximum(p, 1e-300))
    widths = np.diff(beliefs.choices)
    entropy = _segment_sums(terms, beliefs.choices)
    normal = np.divide(entropy, np.log(np.maximum(widths, 2)), out=np.zeros_like(entropy), where=widths > 1)
    confidence: FloatArray = np.clip(1 - _segment_means(normal, beliefs.offsets), 0, 1)
    return confidence


def dropout_agreement(beliefs: Beliefs) -> FloatArray:
    """The share of pairs of passes that predict the same label, averaged over units (paper 1, eq. 3).

    With n_c of k passes voting for c a unit's agreement is Σ n_c(n_c − 1) / (k(k − 1)): no loop over pairs (errata 4).

    >>> votes = np.eye(2)[[[0], [0], [1]]]  # three passes over one unit: two say 0, one says 1
    >>> dropout_agreement(Beliefs.of(votes, units=[1])).round(3).tolist()
    [0.333]
    """
    k, units = beliefs.passes, len(beliefs.choices) - 1
    if k < 2:
        raise ValueError("dropout agreement needs at least two stochastic passes")
    widths = np.diff(beliefs.choices)
    # The position of each unit's best choice, per pass; ties go to the first.
    best = np.maximum.reduceat(beliefs.values, beliefs.choices[:-1], axis=1) if units else beliefs.values[:, :0]
    is_best = beliefs.values == np.repeat(best, widths, axis=1)
    place = np.where(is_best, np.arange(beliefs.values.shape[1]), beliefs.values.shape[1])
    winner = np.minimum.reduceat(place, beliefs.choices[:-1], axis=1) if units else place[:, :0]
    votes = np.bincount(winner.ravel(), minlength=beliefs.values.shape[1]).astype(float)
    pairs = _segment_sums(votes * (votes - 1), beliefs.choices) / (k * (k - 1))
    confidence: FloatArray = 1 - _segment_means(1 - pairs, beliefs.offsets)
    return confidence


def _segment_sums(values: FloatArray, offsets: IntArray) -> FloatArray:
    """Sums of consecutive stretches, each stretch added up by itself so that its neighbours cannot touch its bits."""
    lengths = np.diff(offsets)
    sums = np.zeros(len(lengths))
    if len(values) and len(lengths):
        filled = np.flatnonzero(lengths > 0)
        sums[filled] = np.add.reduceat(values, offsets[:-1][filled])
    return sums


def _segment_means(values: FloatArray, offsets: IntArray) -> FloatArray:
    lengths = np.diff(offsets)
    means: FloatArray = _segment_sums(values, offsets) / np.maximum(lengths, 1)
    return means


MEASURES.add("entropy", entropy_confidence)
MEASURES.add("dropout-agreement", dropout_agreement)
