"""Learners: models that are fitted on annotated items and predict probabilities."""

from bursar.learners import catalog as catalog  # registers the learners
from bursar.learners.learner import LEARNERS, Embeddings, FitReport, Learner, make_learner

__all__ = ["LEARNERS", "Embeddings", "FitReport", "Learner", "make_learner"]
