"""A judge that fine-tunes an encoder for every set: too slow to search with, but it can score orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bursar.learners import make_learner
from bursar.learners.features import classes_of
from bursar.oracle.probe import score_of
from bursar.oracle.problem import LabellingProblem
from bursar.ragged import FloatArray, IntArray
from bursar.tasks import Beliefs
from experiments.studies.judge_models import ModelJudge

OPTIONS = {
    "layers": 3,
    "frozen_layers": 2,
    "learning_rate": 1e-3,
    "steps": 100,
    "patience": 8,
    "smoothing": 0.1,
    "tag_head": "linear",
    "precision": "float32",
}


class EncoderJudge(ModelJudge):
    """Fine-tunes the bundled encoder on the warm start and a set, with early stopping on the items set aside.

    It takes the place of RoBERTa among paper 4's architectures (errata 28).
    """

    def __init__(self, problem: LabellingProblem, seed: int = 0, options: Mapping[str, Any] = OPTIONS) -> None:
        self.problem, self.seed = problem, seed
        self.pool = len(problem.pool)
        self.learner = make_learner("transformer", problem.corpus.schema, dict(options))
        self._trained: bytes | None = None  # the set of the current model

    def scores_on(self, sets: Sequence[IntArray], parts: Sequence[str]) -> FloatArray:
        found = np.zeros((len(parts), len(sets)))
        for at, items in enumerate(sets):
            found[:, at] = [self._score(items, part) for part in parts]
        return found

    def predict_proba(self, items: IntArray, passes: int = 1, seed: int = 0) -> Mapping[str, Beliefs]:
        self._train(items)
        found = self.learner.predict_proba(self.problem.parts["pool"].unlabelled(), passes=passes, seed=seed)
        return {name: beliefs for name, beliefs in found.items() if isinstance(beliefs, Beliefs)}

    def _train(self, items: IntArray) -> None:
        """Train the model of this set, unless it is the current one."""
        key = items.tobytes()
        if self._trained != key:
            rows = np.concatenate([self.problem.warm, self.problem.pool[items]])
            self.learner.fit(self.problem.corpus.take(rows), dev=self.problem.parts["aside"], seed=self.seed)
            self._trained = key

    def _score(self, items: IntArray, part: str) -> float:
        """The mean over the tasks, unit by unit as in the other judges."""
        self._train(items)
        held = self.problem.parts[part]
        predicted = self.learner.predict_proba(held.unlabelled())
        found = []
        for name, task in held.schema.items():
            beliefs = predicted[name]
            assert isinstance(beliefs, Beliefs)
            codes = task.targets(held.labels[name].rows, held.words)
            found.append(score_of(codes, beliefs.dense()[0].argmax(axis=1), classes_of(task), self.problem.metric))
        return float(np.mean(found))
