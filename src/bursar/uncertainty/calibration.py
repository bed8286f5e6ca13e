"""Whether confidence can be trusted: the confidence of items beside how right their guesses turned out (paper 1, 5.5).

``confidence`` is what a measure gave and ``accuracy`` what the task's ``accuracies`` found, both one number an item
from 0 to 1. A model is calibrated if the items it is 0.8 sure of are 0.8 right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bursar.ragged import FloatArray, IntArray

BINS = 10
ROUNDING = 1e-12  # values that are nearer than this are the same value


@dataclass(frozen=True, eq=False)
class Reliability:
    """Items in bins of like confidence: how sure the model was of those in a bin, and how right.

    A bin holds the confidences from its edge up to the next, the last one also 1. The means of an empty bin are NaN.
    """

    edges: FloatArray  # (bins + 1,)
    counts: IntArray  # (bins,)
    confidence: FloatArray  # (bins,), the mean of the bin's items
    accuracy: FloatArray  # (bins,), the mean of the bin's items

    @property
    def calibration_error(self) -> float:
        """How far confidence is from accuracy in an item's bin, on average over items."""
        filled = self.counts > 0
        gaps = np.abs(self.confidence - self.accuracy)[filled]
        return float(np.average(gaps, weights=self.counts[filled]))


def reliability(confidence: ArrayLike, accuracy: ArrayLike, bins: int = BINS) -> Reliability:
    """What a reliability diagram shows: mean accuracy by confidence, in bins of equal width from 0 to 1.

    >>> found = reliability([0.1, 0.2, 0.9, 1.0], [0.0, 0.5, 0.5, 1.0], bins=4)
    >>> found.counts.tolist(), found.confidence.round(2).tolist(), found.accuracy.tolist()
    ([2, 0, 0, 2], [0.15, nan, nan, 0.95], [0.25, nan, nan, 0.75])
    """
    sure, right = _checked(confidence, accuracy)
    if bins < 1:
        raise ValueError(f"confidences go into at least one bin, not {bins}")
    edges = np.arange(bins + 1) / bins
    place = np.minimum(np.searchsorted(edges, sure, side="right") - 1, bins - 1)
    counts = np.bincount(place, minlength=bins)
    means = (
        np.divide(np.bincount(place, of, minlength=bins), counts, out=np.full(bins, np.nan), where=counts > 0)
        for of in (sure, right)
    )
    return Reliability(edges, counts, *means)


def calibration_error(confidence: ArrayLike, accuracy: ArrayLike, bins: int = BINS) -> float:
    """The expected calibration error: |confidence − accuracy| by bins of equal width, averaged over items.

    Within a bin, too sure and not sure enough cancel out; a bin of few items shows a chance difference as error.

    >>> round(calibration_error([0.1, 0.2, 0.9, 1.0], [0.0, 0.5, 0.5, 1.0], bins=4), 6)
    0.15
    """
    return reliability(confidence, accuracy, bins).calibration_error


def overconfidence_error(confidence: ArrayLike, accuracy: ArrayLike) -> float:
    """The mean over items of confidence × max(confidence − accuracy, 0): paper 1, section 5.5.

    It grows with the gap, but only where confidence is the higher of the two; 0 is the best.

    >>> overconfidence_error([0.5, 1.0], [1.0, 0.75])
    0.125
    """
    sure, right = _checked(confidence, accuracy)
    return float(np.mean(sure * np.maximum(sure - right, 0)))


def r_squared(confidence: ArrayLike, accuracy: ArrayLike) -> float:
    """The share of the variance of accuracy that a straight line of confidence explains: paper 1, Figure 5.

    It is the square of their correlation, and 0 where either is the same for all items.

    >>> round(r_squared([0.2, 0.4, 0.6], [0.1, 0.5, 0.9]), 6), r_squared([0.5, 0.5], [0.0, 1.0])
    (1.0, 0.0)
    """
    sure, right = _checked(confidence, accuracy)
    if min(np.ptp(sure), np.ptp(right)) <= ROUNDING:
        return 0.0
    x, y = sure - sure.mean(), right - right.mean()
    return float(min(1.0, (x @ y) ** 2 / ((x @ x) * (y @ y))))


def proportionate_reduction(before: float, after: float) -> float:
    """Which share of an error is gone, below 0 if it has grown: paper 1's proportionate reduction of error.

    >>> round(proportionate_reduction(before=0.1051, after=0.0450), 3)  # paper 1, Table 6, DP: 57.2 %
    0.572
    """
    if not (before > 0 and after >= 0 and np.isfinite([before, after]).all()):
        raise ValueError(f"an error above 0 can be reduced to one of 0 or more, not {before} to {after}")
    return (before - after) / before


def calibration_summary(confidence: ArrayLike, accuracy: ArrayLike, bins: int = BINS) -> dict[str, Any]:
    """The reliability diagram and its two errors as JSON, such as the report reads; an empty bin has no means.

    >>> calibration_summary([0.2, 1.0], [0.5, 0.75], bins=3)  # doctest: +NORMALIZE_WHITESPACE
    {'edges': [0.0, 0.333333, 0.666667, 1.0], 'counts': [1, 0, 1], 'confidence': [0.2, None, 1.0],
     'accuracy': [0.5, None, 0.75], 'overconfidence': 0.125, 'calibration': 0.275}
    """
    found = reliability(confidence, accuracy, bins)
    return {
        "edges": _brief(found.edges),
        "counts": found.counts.tolist(),
        "confidence": _brief(found.confidence),
        "accuracy": _brief(found.accuracy),
        "overconfidence": round(overconfidence_error(confidence, accuracy), 6),
        "calibration": round(found.calibration_error, 6),
    }


def _brief(values: FloatArray) -> list[float | None]:
    return [None if np.isnan(value) else round(value, 6) for value in values.tolist()]


def _checked(confidence: ArrayLike, accuracy: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both as arrays of one number an item, none outside 0 to 1."""
    sure, right = np.asarray(confidence, dtype=np.float64), np.asarray(accuracy, dtype=np.float64)
    if sure.ndim != 1 or sure.shape != right.shape:
        raise ValueError(
            f"confidence and accuracy must be one number an item: they have shapes {sure.shape} and {right.shape}"
        )
    if not len(sure):
        raise ValueError("there is no item to compare confidence with accuracy on")
    for name, values in (("confidence", sure), ("accuracy", right)):
        wrong = ~((values >= 0) & (values <= 1))  # NaN is neither
        if wrong.any():
            at = int(wrong.argmax())
            raise ValueError(f"{name} must lie between 0 and 1: that of item {at} is {values[at]}")
    return sure, right
