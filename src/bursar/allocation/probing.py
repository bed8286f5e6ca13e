"""Informativeness by linear models on frozen features: no network is trained.

A task's probe learns from the training items; then also from the fresh ones; then from the training items again, with
the predictions of another task's probe as further features. That probe learned from the fresh items alone, so it has
seen neither the training nor the held-out items.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bursar.allocation.informativeness import Informer, Parts
from bursar.corpus import Corpus
from bursar.errors import AllocationError, ConfigError
from bursar.learners.features import can_train, one_thread
from bursar.learners.frozen import frozen_encoder
from bursar.learners.learner import Learner, Progress, no_progress
from bursar.learners.probe import ProbeLearner
from bursar.ragged import FloatArray, IntArray, Ragged, flat_positions, offsets_of
from bursar.tasks import Regression, Task

LEAST = 1e-6  # lower bound of a probability; that of a label never seen may be 0


@dataclass(frozen=True)
class Probing(Informer):
    """The gain of a task's probe from another task's predictions, relative to its gain from more labels.

    The features are the learner's own if it is a probe, else those of the bundled encoder, or pixels.
    """

    name: ClassVar[str] = "probe"
    repetitions: int = 8
    weight: float = 0.1  # variance of the predictions, relative to that of all other features

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.weight < math.inf:
            raise ConfigError(f"{self.name!r}: weight = {self.weight!r}", fix="use a number above 0, such as 0.1")

    def check(self, learner: Learner) -> None:
        for name, task in learner.tasks.items():
            if not can_train(task):
                raise AllocationError(
                    f"no probe can be fitted to task {name!r} ({task.kind})",
                    fix="use the informer 'lookahead' or 'alignment', with a learner that trains step by step",
                )

    def gains(self, learner: Learner, items: Corpus, parts: Parts, seed: int, progress: Progress) -> FloatArray:
        probe = probe_of(learner)
        probe.settle(items.take(np.sort(np.concatenate([parts.trained, parts.fresh]))))
        sheets = [_Sheet.of(probe, task, items) for task in learner.tasks.values()]
        found = np.zeros((len(sheets), len(sheets)))
        with one_thread():
            predicted = [sheet.predictions(parts.fresh) for sheet in sheets]  # for all items, from the fresh labels
            for to, sheet in enumerate(sheets):
                alone = sheet.loss(parts.trained, parts.held)
                more = sheet.loss(np.concatenate([parts.trained, parts.fresh]), parts.held)
                for at, other in enumerate(sheets):
                    informed = more if at == to else self._informed(sheet, other, predicted[at], parts)
                    found[at, to] = alone - informed
                progress("measuring", (to + 1) / len(sheets))
        return found

    def _informed(self, sheet: _Sheet, other: _Sheet, predicted: FloatArray, parts: Parts) -> float:
        """The loss of a task whose probe also has another probe's predictions as features."""
        added = carried(predicted, other.offsets, sheet.offsets)
        units = sheet.units(parts.trained)
        variance, spread = (float(features[units].var(axis=0).sum()) for features in (added, sheet.rows))
        scale = math.sqrt(self.weight * spread / variance) if variance > 0 else 0.0
        wider = np.concatenate([sheet.rows, added * scale], axis=1)
        return sheet.loss(parts.trained, parts.held, wider)


def probe_of(learner: Learner) -> ProbeLearner:
    """A probe of the same tasks, with the same features if the learner is a probe."""
    if not isinstance(learner, ProbeLearner):
        return ProbeLearner(learner.tasks, encoder=frozen_encoder())
    return ProbeLearner(
        learner.tasks,
        encoder=learner.encoder,
        kind=learner.kind,
        penalty=learner.penalty,
        components=learner.components,
    )


@dataclass(frozen=True, eq=False)
class _Sheet:
    """The units of all items for one task: their features, and the targets of the labelled ones."""

    probe: ProbeLearner
    task: Task
    rows: NDArray[Any]  # (units, width)
    targets: Ragged  # one row per item, empty if it has no label
    offsets: IntArray  # (items + 1,): where the units of each item start

    @classmethod
    def of(cls, probe: ProbeLearner, task: Task, items: Corpus) -> _Sheet:
        labels = items.labels[task.name]
        known = np.flatnonzero(labels.present)
        rows = labels.rows.take(known)
        values = task.targets(rows, items.words[known])
        units = task.units(items.words)
        targets = Ragged(values, offsets_of(units * labels.present))
        return cls(probe, task, probe.rows(task, items, no_progress), targets, offsets_of(units))

    def units(self, items: IntArray) -> IntArray:
        return flat_positions(self.offsets, items[self.targets.lengths[items] > 0])

    def predictions(self, learned: IntArray) -> FloatArray:
        """The predictions for all units of a probe trained on some items: (units, labels), or (units, 1) numbers."""
        predicted = self._model(learned, self.rows).predict_proba(self.rows)[0]
        return np.asarray(predicted, dtype=np.float64).reshape(len(self.rows), -1)

    def loss(self, learned: IntArray, held: IntArray, rows: NDArray[Any] | None = None) -> float:
        """The mean negative log-likelihood of held-out labels by a probe trained on other items."""
        rows = self.rows if rows is None else rows
        predicted = self._model(learned, rows).predict_proba(rows[self.units(held)])
        gold = self.targets.take(held).values
        if isinstance(self.task, Regression):
            mean, variance = predicted
            return float((0.5 * ((gold - mean) ** 2 / variance + np.log(variance))).mean())
        chances: FloatArray = predicted[0][np.arange(len(gold)), gold].astype(np.float64)
        return float(-np.log(np.maximum(chances, LEAST)).mean())

    def _model(self, learned: IntArray, rows: NDArray[Any]) -> Any:
        return self.probe.model(self.task, rows[self.units(learned)], self.targets.take(learned).values, seed=0)


def carried(values: FloatArray, units: IntArray, wanted: IntArray) -> FloatArray:
    """Predictions for the units of one task, for those of another: an item's go to its words, words' as means.

    ``units`` and ``wanted`` are the offsets of each item's units. An item without units gets 0.
    """
    if np.array_equal(units, wanted):
        return values
    counts = np.diff(units)
    sums = np.zeros((len(counts), values.shape[1]))
    np.add.at(sums, np.repeat(np.arange(len(counts)), counts), values)
    means = sums / np.maximum(counts, 1)[:, None]
    return np.repeat(means, np.diff(wanted), axis=0)
