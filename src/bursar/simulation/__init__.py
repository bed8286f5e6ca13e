"""The built-in corpus, with every label known."""

from bursar.simulation.assistant import assistant_corpus

__all__ = ["assistant_corpus"]
