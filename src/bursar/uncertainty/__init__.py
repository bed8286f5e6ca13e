"""Confidence: from a task's probabilities to one number per item, 0 (no idea) to 1 (certain); and its calibration."""

from bursar.uncertainty.measures import (
    MEASURES,
    Measure,
    bald,
    confidence_of,
    confidences,
    entropy_confidence,
    length_confidence,
    margin,
)

__all__ = [
    "MEASURES",
    "Measure",
    "bald",
    "confidence_of",
    "confidences",
    "entropy_confidence",
    "length_confidence",
    "margin",
]
