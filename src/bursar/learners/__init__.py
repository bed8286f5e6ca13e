"""Learners fit on annotated items and return beliefs. Anything with ``fit`` and ``predict_proba`` is one."""

from bursar.learners.learner import LEARNERS, Embeddings, FitReport, Learner, make_learner

__all__ = ["LEARNERS", "Embeddings", "FitReport", "Learner", "make_learner"]
