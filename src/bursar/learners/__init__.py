"""Learners fit on annotated items and return beliefs. Anything with ``fit`` and ``believe`` is one."""

from bursar.learners.learner import LEARNERS, FitReport, Learner, make_learner

__all__ = ["LEARNERS", "FitReport", "Learner", "make_learner"]
