"""Confidence: from a task's probabilities to one number per item, 0 (no idea) to 1 (certain); and its calibration."""

from bursar.uncertainty.calibration import (
    Reliability,
    calibration_summary,
    overconfidence_error,
    r_squared,
    reliability,
)
from bursar.uncertainty.confidence import confidences
from bursar.uncertainty.measures import (
    MEASURES,
    Measure,
    above_chance,
    bald,
    dropout_agreement,
    entropy_confidence,
    least_confidence,
    length_confidence,
    margin,
    normalised_sequence_confidence,
    sequence_confidence,
    variation_ratio,
)

__all__ = [
    "MEASURES",
    "Measure",
    "Reliability",
    "above_chance",
    "bald",
    "calibration_summary",
    "confidences",
    "dropout_agreement",
    "entropy_confidence",
    "least_confidence",
    "length_confidence",
    "margin",
    "normalised_sequence_confidence",
    "overconfidence_error",
    "r_squared",
    "reliability",
    "sequence_confidence",
    "variation_ratio",
]
