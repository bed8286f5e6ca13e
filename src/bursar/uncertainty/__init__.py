"""Confidence measures: beliefs of one task to one number an item, 0 (no idea) to 1 (certain)."""

from bursar.uncertainty.measures import MEASURES, Measure, dropout_agreement, entropy_confidence

__all__ = ["MEASURES", "Measure", "dropout_agreement", "entropy_confidence"]
