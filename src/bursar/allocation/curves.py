"""Curves: scores of models that are trained on more and more labels of one task, while those of the others stay."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bursar.allocation.estimates import ReductionRate
from bursar.allocation.probing import probe_of
from bursar.allocation.rates import LearningCurve, Rater, geometric_sizes, labels_of
from bursar.allocation.seeds import FEWEST, HELD_OUT, check_share, check_whole, seed_items, seed_of, taken_apart
from bursar.corpus import Corpus
from bursar.corpus.corpus import Labels
from bursar.errors import AllocationError, ConfigError
from bursar.learners.features import FeatureLearner
from bursar.learners.learner import Learner, Progress, no_progress
from bursar.ragged import BoolArray, FloatArray, IntArray, Ragged, offsets_of

STUDENTS = ("learner", "probe")
SPAN = 4  # all labels over the fewest that a curve of them begins with


@dataclass(frozen=True, eq=False)
class LabelGrowth:
    """Items to train on, and which of their labels at each size of each task."""

    items: Corpus
    resting: Mapping[str, BoolArray]  # labels of a task while another grows
    start: Mapping[str, BoolArray]  # labels of a task that it begins to grow from
    order: Mapping[str, IntArray]  # items whose labels are then added, one after the other
    sizes: Mapping[str, IntArray]  # how many of them

    def labels(self, growing: Mapping[str, int]) -> Corpus:
        """The items that are labelled where some tasks have come to a size, by its place among their sizes."""
        present = dict(self.resting)
        for task, at in growing.items():
            mine = self.start[task].copy()
            mine[self.order[task][: int(self.sizes[task][at])]] = True
            present[task] = mine
        kept = self.items.with_labels({name: only(self.items.labels[name], there) for name, there in present.items()})
        return kept.take(np.flatnonzero(np.any(list(present.values()), axis=0)))


def only(column: Labels, there: BoolArray) -> Labels:
    """Labels of some items; those of all others are taken away."""
    present = column.present & there
    kept = np.repeat(present, column.rows.lengths)
    return Labels(present, Ragged(column.rows.values[kept], offsets_of(column.rows.lengths * present)))


@dataclass(frozen=True)
class CurveRater(Rater):
    """Trains models on more and more labels, and scores them on held-out seed items.

    ``student`` is who is trained: the ``learner``, or a ``probe`` on frozen features, which takes a hundredth of the
    time where the learner is a network. The ``points`` of a curve are equally far apart by the factor between them.
    """

    repetitions: int = 3  # each with other items held out
    points: int = 5
    student: str = "learner"

    def __post_init__(self) -> None:
        check_whole(self.name, "repetitions", self.repetitions)
        check_whole(self.name, "points", self.points, least=3)
        if self.student not in STUDENTS:
            raise ConfigError(f"{self.name!r}: student = {self.student!r}", fix=f"use {' or '.join(STUDENTS)}")

    @abstractmethod
    def growth(
        self, learner: Learner, trained: Corpus, pool: Corpus | None, seed: int, progress: Progress
    ) -> LabelGrowth:
        """What one repetition trains on, from the seed items that are not held out."""

    def measure(
        self,
        learner: Learner | None,
        annotated: Corpus,
        *,
        pool: Corpus | None = None,
        block: float | None = None,
        held_out: float = HELD_OUT,
        seed: int = 0,
        progress: Progress = no_progress,
    ) -> dict[str, ReductionRate]:
        curves = self.curves(learner, annotated, pool=pool, held_out=held_out, seed=seed, progress=progress)
        labels = {name: labels_of(annotated, name) for name in curves}
        return {
            name: self.ahead(curve, labels[name]).rate(block or labels[name], self.name)
            for name, curve in curves.items()
        }

    def ahead(self, curve: LearningCurve, labels: int) -> LearningCurve:
        """The curve that more labels would follow, of a task that has so many."""
        return curve

    def curves(
        self,
        learner: Learner | None,
        annotated: Corpus,
        *,
        pool: Corpus | None = None,
        held_out: float = HELD_OUT,
        seed: int = 0,
        progress: Progress = no_progress,
    ) -> dict[str, LearningCurve]:
        """The curve of each task."""
        teacher = _needed(self.name, learner)
        check_share(held_out, 1.0)
        items = seed_items(teacher.tasks, annotated)
        pool = None if pool is None else _others(pool, items)
        student = teacher if self.student == "learner" else probe_of(teacher)
        scores: list[dict[str, FloatArray]] = []
        sizes: Mapping[str, IntArray] = {}
        for repetition in range(self.repetitions):

            def part(what: str, done: float, repetition: int = repetition) -> None:
                progress(what, min((repetition + done) / self.repetitions, 0.999))

            rng = np.random.default_rng([seed, repetition, 43])
            trained, held = (items.take(part) for part in taken_apart(items, (1 - held_out, held_out), rng))
            mine = seed_of(seed, repetition)
            growth = self.growth(teacher, trained, pool, mine, part)
            scores.append(scored(student, growth, held, mine, part))
            sizes = growth.sizes
        progress("measuring", 1.0)
        return {name: LearningCurve(sizes[name], np.array([found[name] for found in scores])) for name in teacher.tasks}


def scored(student: Learner, growth: LabelGrowth, held: Corpus, seed: int, progress: Progress) -> dict[str, FloatArray]:
    """The main score of each task at each of its sizes. Tasks that share nothing grow side by side."""
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
    """The curve of labels that there are: models of a quarter of them up to all, ahead of which lies what is asked for.

    Learning curves look much alike at every scale, as power laws do: what happens from a quarter of the labels to all
    of them happens again from these to four times as many. So the curve is stretched until it begins where it ends. Its
    lower part, where scores shoot up, would make labels seem to lose their worth far too fast.
    """

    name: ClassVar[str] = "ledger"
    repetitions: int = 6

    def growth(
        self, learner: Learner, trained: Corpus, pool: Corpus | None, seed: int, progress: Progress
    ) -> LabelGrowth:
        present = {name: trained.labels[name].present for name in learner.tasks}
        order, sizes = {}, {}
        for place, (name, there) in enumerate(present.items()):
            order[name] = np.random.default_rng([seed, place, 47]).permutation(np.flatnonzero(there))
            factor = SPAN ** (1 / (self.points - 1))
            sizes[name] = geometric_sizes(len(order[name]), self.points, factor, FEWEST)
        nothing = np.zeros(len(trained), dtype=bool)
        return LabelGrowth(trained, present, dict.fromkeys(present, nothing), order, sizes)

    def ahead(self, curve: LearningCurve, labels: int) -> LearningCurve:
        return LearningCurve(curve.sizes * (labels / curve.sizes[0]), curve.scores)


def _needed(name: str, learner: Learner | None) -> Learner:
    if learner is None:
        raise AllocationError(f"the rater {name!r} needs a learner to train", fix="name one, such as probe")
    return learner


def _others(pool: Corpus, seeds: Corpus) -> Corpus:
    """Those of a pool that are no seed items, in the order of ids."""
    known = set(seeds.ids.tolist())
    order = np.argsort(pool.id_ranks)
    return pool.take(order[[pool.ids[int(at)] not in known for at in order]])
