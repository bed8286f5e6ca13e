"""Calibration: the confidence in items compared with the accuracy of their predictions (paper 1, section 5.5).

``confidence`` comes from a measure and ``accuracy`` from the task's ``accuracies``, both one number per item from 0 to
1. A model is calibrated if items with confidence 0.8 have a mean accuracy of 0.8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bursar.ragged import FloatArray, IntArray

BINS = 10


@dataclass(frozen=True, eq=False)
class Reliability:
    """Items in bins of similar confidence, with the mean confidence and accuracy of each bin.

    A bin includes its lower edge and excludes the upper one; the last includes 1. The means of an empty bin are NaN.
    """

    edges: FloatArray  # (bins + 1,)
    counts: IntArray  # (bins,)
    confidence: FloatArray  # (bins,), the mean of the bin's items
    accuracy: FloatArray  # (bins,), the mean of the bin's items

    @property
    def calibration_error(self) -> float:
        """The expected calibration error: |confidence − accuracy| of bins, averaged over items.

        Within a bin, over- and underconfidence cancel out. In a small bin, chance differences count as error.
        """
        filled = self.counts > 0
        gaps = np.abs(self.confidence - self.accuracy)[filled]
        return float(np.average(gaps, weights=self.counts[filled]))


def reliability(confidence: ArrayLike, accuracy: ArrayLike, bins: int = BINS) -> Reliability:
    """The reliability diagram: mean accuracy by confidence, in bins of equal width from 0 to 1."""
    sure, right = _checked(confidence, accuracy)
    if bins < 1:
        raise ValueError(f"bins = {bins}, but at least one is needed")
    edges = np.arange(bins + 1) / bins
    place = np.minimum(np.searchsorted(edges, sure, side="right") - 1, bins - 1)
    counts = np.bincount(place, minlength=bins)
    means = (
        np.divide(np.bincount(place, of, minlength=bins), counts, out=np.full(bins, np.nan), where=counts > 0)
        for of in (sure, right)
    )
    return Reliability(edges, counts, *means)


def overconfidence_error(confidence: ArrayLike, accuracy: ArrayLike) -> float:
    """The mean of confidence × max(confidence − accuracy, 0) over items: paper 1, section 5.5. 0 is best."""
    sure, right = _checked(confidence, accuracy)
    return float(np.mean(sure * np.maximum(sure - right, 0)))


def calibration_summary(confidence: ArrayLike, accuracy: ArrayLike, bins: int = BINS) -> dict[str, Any]:
    """The reliability diagram and its two errors as JSON, for the report; the means of empty bins are null."""
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
    """Both as arrays of one number per item; numbers outside 0 to 1 are refused."""
    sure, right = np.asarray(confidence, dtype=np.float64), np.asarray(accuracy, dtype=np.float64)
    if sure.ndim != 1 or sure.shape != right.shape:
        shapes = f"they have shapes {sure.shape} and {right.shape}"
        raise ValueError(f"confidence and accuracy must be one number per item: {shapes}")
    if not len(sure):
        raise ValueError("there are no items")
    for name, values in (("confidence", sure), ("accuracy", right)):
        wrong = ~((values >= 0) & (values <= 1))  # NaN is neither
        if wrong.any():
            at = int(wrong.argmax())
            raise ValueError(f"{name} must be between 0 and 1: that of item {at} is {values[at]}")
    return sure, right
