"""Confidence measures as pure functions of beliefs.

Each averages over the units of an item (words, not word-pieces: errata 1), so a score depends on nothing but the
item's own probabilities: not on padding, not on the batch, not on the order of prediction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.errors import SelectionError
from bursar.ragged import FloatArray, IntArray
from bursar.registry import Registry
from bursar.tasks import AnyBeliefs, Beliefs, Estimates


@dataclass(frozen=True)
class Measure:
    """A way to read confidence off beliefs, and how many stochastic passes it wants: one is the model itself.

    >>> MEASURES["entropy"](Beliefs.of([[1.0, 0.0]], units=[1])).tolist()
    [1.0]
    >>> MEASURES["dropout-agreement"].passes
    10
    """

    name: str
    kernel: Callable[[AnyBeliefs], FloatArray]
    passes: int = 1

    def __call__(self, beliefs: AnyBeliefs) -> FloatArray:
        return self.kernel(beliefs)


MEASURES: Registry[Measure] = Registry("confidence measure", "bursar.measures")


# -- how sure a pass is ----------------------------------------------------------------------------------------------
def entropy_confidence(beliefs: AnyBeliefs) -> FloatArray:
    """1 − the mean over units of the entropy over the log of the number of choices (paper 1, eq. 1 and 2).

    A unit with a single choice is certain, and so is an item without units. Stochastic passes are averaged first.

    >>> entropy_confidence(Beliefs.of([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]], units=[2, 1])).tolist()
    [0.5, 0.0]

    A number has its predicted spread instead (errata 4): 1 − its standard deviation over the one of a number that may
    lie anywhere in the range, and 0 beyond that. Several passes are one mixture.

    >>> entropy_confidence(Estimates(np.array([[2.0, 2.0]]), np.array([[0.0, 3.0]]), low=0, high=12)).tolist()
    [1.0, 0.5]
    """
    if isinstance(beliefs, Estimates):
        return _narrowness(beliefs)
    p = _pass_mean(beliefs.values)
    terms = -p * np.log(np.maximum(p, 1e-300))
    widths = np.diff(beliefs.choices)
    entropy = _segment_sums(terms, beliefs.choices)
    normal = np.divide(entropy, np.log(np.maximum(widths, 2)), out=np.zeros_like(entropy), where=widths > 1)
    confidence: FloatArray = np.clip(1 - _segment_means(normal, beliefs.offsets), 0, 1)
    return confidence


def _narrowness(estimates: Estimates) -> FloatArray:
    mean = _pass_mean(estimates.means)
    variance = _pass_mean(estimates.variances) + _pass_mean((estimates.means - mean) ** 2)
    widest = (estimates.high - estimates.low) / math.sqrt(12)  # of the uniform distribution
    confidence: FloatArray = np.clip(1 - np.sqrt(variance) / widest, 0, 1)
    return confidence


# -- how far passes agree --------------------------------------------------------------------------------------------
def dropout_agreement(beliefs: AnyBeliefs) -> FloatArray:
    """The share of pairs of passes that predict the same label, averaged over units (paper 1, eq. 3).

    With n_c of k passes voting for c a unit's agreement is Σ n_c(n_c − 1) / (k(k − 1)): no loop over pairs (errata 4).

    >>> votes = np.eye(2)[[[0], [0], [1]]]  # three passes over one unit: two say 0, one says 1
    >>> dropout_agreement(Beliefs.of(votes, units=[1])).round(3).tolist()
    [0.333]

    Of numbers it is 1 − the mean difference between two passes over the range.

    >>> dropout_agreement(Estimates(np.array([[1.0], [2.0], [4.0]]), np.zeros((3, 1)), low=0, high=4)).tolist()
    [0.5]
    """
    if beliefs.passes < 2:
        raise SelectionError(
            "agreement needs at least two stochastic passes, and the model was asked once",
            fix="ask for more, as believe(items, passes=10) does, or measure confidence by entropy",
        )
    return _nearness(beliefs) if isinstance(beliefs, Estimates) else _shared_votes(beliefs)


def _shared_votes(beliefs: Beliefs) -> FloatArray:
    k, units = beliefs.passes, len(beliefs.choices) - 1
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


def _nearness(estimates: Estimates) -> FloatArray:
    """In order of size, the step from the i-th mean to the next is part of the difference of i(k − i) pairs."""
    k = estimates.passes
    steps = np.diff(np.sort(estimates.means.astype(np.float64), axis=0), axis=0)  # (k - 1, items)
    pairs = np.arange(1, k) * np.arange(k - 1, 0, -1)
    difference = _pass_mean(pairs[:, None] * steps) / (k / 2)  # of k - 1 steps and k(k - 1) / 2 pairs
    confidence: FloatArray = np.clip(1 - difference / (estimates.high - estimates.low), 0, 1)
    return confidence


# -- sums whose bits depend on nothing else --------------------------------------------------------------------------
def _pass_mean(values: NDArray[Any]) -> FloatArray:
    """The mean over passes, added up pass after pass whatever lies beside them in memory."""
    total = np.zeros(values.shape[1:])
    for one in values:
        total += one
    return total / len(values)


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


MEASURES.add("entropy", Measure("entropy", entropy_confidence))
MEASURES.add("dropout-agreement", Measure("dropout-agreement", dropout_agreement, passes=10))
