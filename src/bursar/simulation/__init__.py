"""Corpora and annotators that are made rather than found, for trials whose truth is known."""

from bursar.simulation.assistant import assistant_corpus
from bursar.simulation.card import data_card

__all__ = ["assistant_corpus", "data_card"]
