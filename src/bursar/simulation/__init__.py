"""Synthetic corpora and environments for experiments with known ground truth."""

from bursar.simulation.assistant import assistant_corpus
from bursar.simulation.card import data_card

__all__ = ["assistant_corpus", "data_card"]
