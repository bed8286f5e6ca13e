"""Learning curves: scores of models trained on increasing numbers of labels of one task, the other tasks unchanged."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bursar.allocation.informativeness import FEWEST, HELD_OUT, check_whole, part_of, seed_items, seed_of, taken_apart
from bursar.allocation.probing import probe_of
from bursar.allocation.rates import DEFAULTS, LearningCurve, Rater, Rates, RatingSettings, geometric_sizes, labels_of
from bursar.corpus import Corpus
from bursar.corpus.corpus import Labels, concatenate
from bursar.errors import AllocationError, ConfigError
from bursar.learners.features import FeatureLearner
from bursar.learners.learner import Learner, Progress
from bursar.ragged import BoolArray, FloatArray, IntArray, Ragged, offsets_of
from bursar.random_streams import rng

STUDENTS = ("learner", "probe")
STARTS = ("seed", "nothing")
SPAN = 4  # all labels, relative to the fewest of a curve


@dataclass(frozen=True, eq=False)
class LabelGrowth:
    """Training items, and which of their labels are used at each size of each task."""

    items: Corpus
    resting: Mapping[str, BoolArray]  # labels of a task while another one grows
    start: Mapping[str, BoolArray]  # labels of a task before it grows
    order: Mapping[str, IntArray]  # items whose labels are added, in order
    sizes: Mapping[str, IntArray]  # numbers of added labels

    def labels(self, growing: Mapping[str, int]) -> Corpus:
        """The labelled items where some tasks have grown to a size, given by its index."""
        present = dict(self.resting)
        for task, at in growing.items():
            mine = self.start[task].copy()
            mine[self.order[task][: int(self.sizes[task][at])]] = True
            present[task] = mine
        kept = self.items.with_labels({name: only(self.items.labels[name], there) for name, there in present.items()})
        return kept.take(np.flatnonzero(np.any(list(present.values()), axis=0)))


def only(column: Labels, there: BoolArray) -> Labels:
    """The labels of some items, without those of all others."""
    present = column.present & there
    kept = np.repeat(present, column.rows.lengths)
    return Labels(present, Ragged(column.rows.values[kept], offsets_of(column.rows.lengths * present)))


@dataclass(frozen=True)
class CurveRater(Rater):
    """Trains models on increasing numbers of labels and scores them on held-out seed items.

    ``student`` is the ``learner``, or a ``probe`` on frozen features, which takes a hundredth of a network's time.
    """

    repetitions: int = 3  # each holds out other items
    points: int = 5
    student: str = "learner"

    def __post_init__(self) -> None:
        check_whole(self.name, "repetitions", self.repetitions)
        check_whole(self.name, "points", self.points, least=3)
        if self.student not in STUDENTS:
            raise ConfigError(f"{self.name!r}: student = {self.student!r}", fix=f"use {' or '.join(STUDENTS)}")

    @abstractmethod
    def growth(self, learner: Learner, trained: Corpus, pool: Corpus | None, seed: int) -> LabelGrowth:
        """The trainings of one repetition, from the seed items that are not held out."""

    def measure(self, learner: Learner | None, annotated: Corpus, how: RatingSettings = DEFAULTS) -> Rates:
        labels = {name: labels_of(annotated, name) for name in annotated.schema}
        return {
            name: self.ahead(curve, labels[name]).rate(how.block or labels[name], self.name)
            for name, curve in self.curves(learner, annotated, how).items()
        }

    def ahead(self, curve: LearningCurve, labels: int) -> LearningCurve:
        """The curve that further labels would follow, if a task has this many."""
        return curve

    def curves(self, learner: Learner | None, annotated: Corpus, how: RatingSettings) -> dict[str, LearningCurve]:
        if learner is None:
            raise AllocationError(f"the rater {self.name!r} needs a learner to train", fix="name one, such as probe")
        items = seed_items(learner.tasks, annotated)
        pool = how.pool
        if pool is not None:  # without the seed items, sorted by id
            order, known = np.argsort(pool.id_ranks), set(items.ids.tolist())
            pool = pool.take(order[[pool.ids[int(at)] not in known for at in order]])
        student = learner if self.student == "learner" else probe_of(learner)
        scores: list[dict[str, FloatArray]] = []
        for repetition in range(self.repetitions):
            parts = taken_apart(items, (1 - HELD_OUT, HELD_OUT), rng(how.seed, "curve parts", repetition))
            trained, held = (items.take(part) for part in parts)
            mine = seed_of(how.seed, repetition)
            growth = self.growth(learner, trained, pool, mine)
            scores.append(scored(student, growth, held, mine, part_of(how.progress, repetition, self.repetitions)))
        how.progress("measuring", 1.0)
        return {
            name: LearningCurve(size, np.array([found[name] for found in scores]))
            for name, size in growth.sizes.items()
        }


def scored(student: Learner, growth: LabelGrowth, held: Corpus, seed: int, progress: Progress) -> dict[str, FloatArray]:
    """The main score of each task at each of its sizes. Tasks that share nothing grow at the same time."""
    tasks = student.tasks
    found: dict[str, FloatArray] = {name: np.zeros(len(growth.sizes[name])) for name in tasks}
    longest = max(len(sizes) for sizes in growth.sizes.values())
    if isinstance(student, FeatureLearner):
        runs = [{name: min(at, len(growth.sizes[name]) - 1) for name in tasks} for at in range(longest)]
    else:
        runs = [{name: at} for name in tasks for at in range(len(growth.sizes[name]))]
    for number, growing in enumerate(runs):
        student.fit(growth.labels(growing), seed=seed)
        scores = student.evaluate(held)
        for name, at in growing.items():
            found[name][at] = scores[name][tasks[name].metric]
        progress("training", (number + 1) / len(runs))
    return found


@dataclass(frozen=True)
class LabelCurve(CurveRater):
    """The curve of the existing labels, from a quarter of them to all, extrapolated to further labels.

    Learning curves are nearly power laws: what happens from a quarter of the labels to all happens again from these to
    four times as many. So the curve is stretched until it begins where it ends. Its lower part, where scores rise
    steeply, would make labels seem to lose value far too fast.
    """

    name: ClassVar[str] = "ledger"
    repetitions: int = 6

    def growth(self, learner: Learner, trained: Corpus, pool: Corpus | None, seed: int) -> LabelGrowth:
        present = {name: trained.labels[name].present for name in learner.tasks}
        factor = SPAN ** (1 / (self.points - 1))
        order, sizes = {}, {}
        for place, (name, there) in enumerate(present.items()):
            order[name] = rng(seed, "curve order", place).permutation(np.flatnonzero(there))
            sizes[name] = geometric_sizes(len(order[name]), self.points, factor, FEWEST)
        return LabelGrowth(trained, present, _nothing(present), order, sizes)

    def ahead(self, curve: LearningCurve, labels: int) -> LearningCurve:
        return LearningCurve(curve.sizes * (labels / curve.sizes[0]), curve.scores)


@dataclass(frozen=True)
class PseudoLabels(CurveRater):
    """The curve of guessed labels, up to ``reach`` times the number of real ones (paper 5; errata 30).

    A model of the seed items guesses the labels of a pool; then models are trained on increasing numbers of guesses
    for one task, besides its ``seed`` labels or ``nothing`` (``start``). From the seed the curve may be flat: a model
    of the seed and its own guesses is often no better. Guesses are less accurate, but only the shape is used.
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
            return LabelGrowth(items, resting, _nothing(resting), guesses, sizes)
        return LabelGrowth(items, resting, resting, guesses, {name: np.append(0, n) for name, n in sizes.items()})


def guessed(learner: Learner, pool: Corpus) -> Corpus:
    """Items with the labels that a learner predicts, and no others."""
    present = np.ones(len(pool), dtype=bool)
    labels = {name: Labels(present, rows) for name, rows in learner.predict(pool.with_labels({})).items()}
    return replace(pool, schema=dict(learner.tasks), labels=labels)


def _nothing(labels: Mapping[str, BoolArray]) -> dict[str, BoolArray]:
    """The same columns without any label."""
    return {name: np.zeros_like(there) for name, there in labels.items()}
