"""Raters measure how fast labels of each task lose value, as a reduction rate.

A rate is fitted to the shape of a learning curve of one task (errata 30): scores of models trained on increasing
numbers of its labels, the other tasks unchanged. The labels of the curve are real ones or guesses of a model, or the
curve comes from a scaling law. A curve that does not rise gives a rate with an interval from nearly 0 to 1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bursar.allocation.estimates import SMALLEST, ReductionRate, fit_rate
from bursar.allocation.informativeness import (
    FEWEST,
    HELD_OUT,
    check_whole,
    make_named,
    part_of,
    probe_of,
    seed_items,
    seed_of,
    taken_apart,
)
from bursar.corpus import Corpus
from bursar.corpus.corpus import Labels, concatenate
from bursar.errors import AllocationError, ConfigError
from bursar.learners.features import FeatureLearner
from bursar.learners.learner import Learner, Progress, no_progress
from bursar.ragged import BoolArray, FloatArray, IntArray, Ragged, offsets_of
from bursar.random_streams import rng
from bursar.registry import Registry

if TYPE_CHECKING:
    from bursar.laws.cards import Law  # imports sympy, which only rates from laws need

STUDENTS = ("learner", "probe")
STARTS = ("seed", "nothing")
SPAN = 4  # all labels, relative to the fewest of a curve

Rates = dict[str, ReductionRate]  # by task


@dataclass(frozen=True)
class RatingSettings:
    """How rates are measured."""

    pool: Corpus | None = None  # unlabelled items, for raters that guess labels
    block: float | None = None  # labels that a rate refers to; default: those that the task has
    seed: int = 0
    progress: Progress = no_progress


DEFAULTS = RatingSettings()


class Rater(ABC):
    """Measures reduction rates. Subclasses are dataclasses of their settings with ``measure``."""

    name: ClassVar[str]

    def check(self, pool: Corpus | None) -> None:  # noqa: B027 most need no pool
        """Refuse an unsuitable pool before anything is measured."""

    def check_tasks(self, tasks: Iterable[str]) -> None:  # noqa: B027 most measure any task
        """Refuse unsuitable tasks before any label is bought."""

    @abstractmethod
    def measure(self, learner: Learner | None, annotated: Corpus, how: RatingSettings = DEFAULTS) -> Rates:
        """The rate of each task of the learner, which is refitted, or of the corpus if there is no learner."""


RATERS: Registry[Callable[..., Rater]] = Registry("rater", "bursar.raters")


def make_rater(name: str, **settings: Any) -> Rater:
    """Create a rater by name."""
    return make_named(RATERS, name, settings)


class LearningCurve(NamedTuple):
    """Scores of models trained on increasing numbers of labels of a task."""

    sizes: NDArray[Any]  # (sizes,)
    scores: FloatArray  # (repetitions, sizes)

    @property
    def mean(self) -> FloatArray:
        found: FloatArray = self.scores.mean(axis=0)
        return found

    @property
    def freedom(self) -> int:
        """The degrees of freedom of ``error``."""
        many, sizes = self.scores.shape
        return (many - 1) * (sizes - 1)

    @property
    def error(self) -> float | None:
        """The standard error of a mean score, pooled over sizes, whatever the level of each repetition."""
        shapes = self.scores - self.scores.mean(axis=1, keepdims=True)
        left = float(((shapes - shapes.mean(axis=0)) ** 2).sum())
        spread = math.sqrt(left / self.freedom / len(self.scores)) if self.freedom else 0.0
        return spread if spread > 1e-12 else None

    def rate(self, block: float, source: str) -> ReductionRate:
        """The reduction rate of the curve's shape; with few repetitions its interval is wider."""
        errors = None if self.error is None else np.full(len(self.sizes), self.error)
        return replace(fit_rate(self.sizes, self.mean, errors, freedom=self.freedom, block=block), source=source)


def geometric_sizes(most: int, points: int, factor: float = 2.0, least: int = 1) -> IntArray:
    """Up to ``points`` sizes that end with ``most`` and grow by a factor, without those below ``least``."""
    found = np.floor(most / factor ** np.arange(points)[::-1] + 1e-9).astype(np.int64)
    return np.unique(found[found >= least])


@dataclass(frozen=True)
class GivenRates(Rater):
    """Rates given by the user: ``betas`` has for each task a rate, or a rate and its interval."""

    name: ClassVar[str] = "given"
    betas: Mapping[str, float | Sequence[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.betas, Mapping):
            raise ConfigError(f"betas = {self.betas!r}", fix="give a table with a rate for each task")
        for name, given in self.betas.items():
            try:
                beta, low, high = _with_interval(given)
            except (TypeError, ValueError):
                beta = low = high = math.nan
            if not SMALLEST <= low <= beta <= high <= 1:
                raise ConfigError(
                    f"betas.{name} = {given!r}",
                    fix=f"give a rate from {SMALLEST:g} to 1, or a rate and the low and the high end of its interval",
                )

    def check_tasks(self, tasks: Iterable[str]) -> None:
        for name in tasks:
            if name not in self.betas:
                raise AllocationError(
                    f"no reduction rate is given for task {name!r}"
                    + (f", only for {', '.join(map(repr, self.betas))}" if self.betas else ""),
                    fix="give each task one from 0 to 1 (rater_settings.betas of the campaign)",
                )

    def measure(self, learner: Learner | None, annotated: Corpus, how: RatingSettings = DEFAULTS) -> Rates:
        tasks = annotated.schema if learner is None else learner.tasks
        self.check_tasks(tasks)
        items = seed_items(tasks, annotated)
        how.progress("measuring", 1.0)
        return {
            name: ReductionRate(*_with_interval(self.betas[name]), how.block or labels_of(items, name))
            for name in tasks
        }


def _with_interval(given: float | Sequence[float]) -> tuple[float, float, float]:
    """A rate and its interval; of a single number, the interval is the number itself."""
    beta, low, high = (given, given, given) if isinstance(given, int | float) else given
    return float(beta), float(low), float(high)


@dataclass(frozen=True)
class LawRates(Rater):
    """Rates from scaling laws of the score: one ``Law`` (or its file) for all tasks, or one for each.

    A law is evaluated at the task's number of labels and at ``blocks`` more blocks; ``values`` sets its other variables
    (default: the middle of their ranges). Errors are the law's on held-out rows, so intervals tend to be too wide.
    """

    name: ClassVar[str] = "law"
    law: Law | str | Path | Mapping[str, Law | str | Path] = ""
    values: Mapping[str, float] = field(default_factory=dict)
    blocks: int = 6

    def __post_init__(self) -> None:
        check_whole(self, blocks=3)
        if not self.law:
            raise ConfigError(
                f"the rater {self.name!r} needs a law",
                fix="name its file: bursar laws fit TABLE --out LAW.json makes one",
            )

    def measure(self, learner: Learner | None, annotated: Corpus, how: RatingSettings = DEFAULTS) -> Rates:
        tasks = annotated.schema if learner is None else learner.tasks
        items = seed_items(tasks, annotated)
        found = {}
        for name, task in tasks.items():
            labels = labels_of(items, name)
            size = how.block or labels
            added = size * np.arange(self.blocks + 1)
            law = self._law_of(name)
            others = {other: r.middle for other, r in law.ranges.items()} | dict(self.values)
            present = items.labels[name].present  # laws count words for tagging, else items
            units = (labels + added) * float(task.units(items.words)[present].mean())
            scores = [law.predict(**(others | {"n": float(n)})).value for n in units]
            error = math.sqrt(law.held_out.mse)
            errors = np.full(len(added), error) if error > 0 else None
            found[name] = replace(fit_rate(added, scores, errors, block=size), source=self.name)
        how.progress("measuring", 1.0)
        return found

    def check_tasks(self, tasks: Iterable[str]) -> None:
        for name in tasks:
            self._law_of(name)

    def _law_of(self, task: str) -> Law:
        from bursar.laws.cards import Law

        law = self.law
        if isinstance(law, Mapping):
            if task not in law:
                raise AllocationError(f"there is no law of task {task!r}", fix="give one for each task, or one for all")
            law = law[task]
        law = law if isinstance(law, Law) else Law.load(law)
        if "n" not in law.variables:
            raise AllocationError(
                "the law says nothing of more labels: it has no n", fix=f"it has {', '.join(law.variables)}"
            )
        return law


def labels_of(items: Corpus, task: str) -> int:
    """The number of items labelled for a task."""
    return int(items.labels[task].present.sum())


# -- raters that train models ----------------------------------------------------------------------------------------
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
        check_whole(self, repetitions=1, points=3)
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
        check_whole(self, reach=1)
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


RATERS.add("pseudo-labels", PseudoLabels)
RATERS.add("ledger", LabelCurve)
RATERS.add("law", LawRates)
RATERS.add("given", GivenRates)
