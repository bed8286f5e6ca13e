"""Reduction rates from pseudo-labels (paper 5; errata 30).

A model of the seed items guesses the labels of a pool; then models are trained on the seed and increasing numbers of
guesses for one task. They get less accurate than with real labels, but only the shape of their curve is used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bursar.allocation.curves import CurveRater, LabelGrowth
from bursar.allocation.rates import geometric_sizes
from bursar.allocation.seeds import FEWEST, check_whole
from bursar.corpus import Corpus
from bursar.corpus.corpus import Labels, concatenate
from bursar.errors import AllocationError, ConfigError
from bursar.learners.learner import Learner
from bursar.random_streams import rng

STARTS = ("seed", "nothing")


@dataclass(frozen=True)
class PseudoLabels(CurveRater):
    """The curve of guessed labels, up to ``reach`` times the number of real ones.

    Guesses are added to the task's ``seed`` labels, or to ``nothing``, by ``start``. A model of the seed labels and its
    own guesses is often no better than one of the seed labels, so the curve from the seed may be flat.
    """

    name: ClassVar[str] = "pseudo-labels"
    reach: int = 4
    start: str = "seed"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self.name, "reach", self.reach)
        if self.start not in STARTS:
            raise ConfigError(f"{self.name!r}: start = {self.start!r}", fix=f"use {' or '.join(STARTS)}")

    def check(self, pool: Corpus | None) -> None:
        if pool is None or not len(pool):
            raise AllocationError(
                "there are no unlabelled items to guess labels of",
                fix="add some, or use the rater 'ledger', which uses the existing labels",
            )

    def growth(self, learner: Learner, trained: Corpus, pool: Corpus | None, seed: int) -> LabelGrowth:
        self.check(pool)
        assert pool is not None
        labels = {name: int(trained.labels[name].present.sum()) for name in learner.tasks}
        most = min(len(pool), self.reach * max(labels.values()))
        some = rng(seed, "pseudo-labelled items").permutation(len(pool))[:most]
        learner.fit(trained, seed=seed)
        items = concatenate([trained, guessed(learner, pool.take(some))])
        first = np.arange(len(items)) < len(trained)
        resting = {name: items.labels[name].present & first for name in learner.tasks}
        sizes = {
            name: geometric_sizes(min(most, self.reach * n), self.points, least=FEWEST) for name, n in labels.items()
        }
        guesses = dict.fromkeys(resting, np.arange(len(trained), len(items)))
        if self.start == "nothing":
            return LabelGrowth(items, resting, dict.fromkeys(resting, np.zeros(len(items), dtype=bool)), guesses, sizes)
        return LabelGrowth(
            items, resting, resting, guesses, {name: np.append(0, found) for name, found in sizes.items()}
        )


def guessed(learner: Learner, pool: Corpus) -> Corpus:
    """Items with the labels that a learner predicts, and no others."""
    present = np.ones(len(pool), dtype=bool)
    labels = {name: Labels(present, rows) for name, rows in learner.predict(pool.with_labels({})).items()}
    return replace(pool, schema=dict(learner.tasks), labels=labels)
