"""Raters measure how fast labels of each task lose value, as a reduction rate.

A rate is fitted to the shape of a learning curve of one task (errata 30). The labels of the curve are real ones
(``curves``), guesses of a model (``pseudo``), or the curve comes from a scaling law. A curve that does not rise gives a
rate with an interval from nearly 0 to 1.
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
from bursar.allocation.informativeness import check_whole, make_named, seed_items
from bursar.corpus import Corpus
from bursar.errors import AllocationError, ConfigError
from bursar.learners.learner import Learner, Progress, no_progress
from bursar.ragged import FloatArray, IntArray
from bursar.registry import Registry
from bursar.tasks import Task

if TYPE_CHECKING:
    from bursar.laws.cards import Law  # imports sympy, which only rates from laws need


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
        tasks = tasks_of(learner, annotated)
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
        check_whole(self.name, "blocks", self.blocks, least=3)
        if not self.law:
            raise ConfigError(
                f"the rater {self.name!r} needs a law",
                fix="name its file: bursar laws fit TABLE --out LAW.json makes one",
            )

    def measure(self, learner: Learner | None, annotated: Corpus, how: RatingSettings = DEFAULTS) -> Rates:
        tasks = tasks_of(learner, annotated)
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


def tasks_of(learner: Learner | None, annotated: Corpus) -> Mapping[str, Task]:
    """The tasks of the learner, or all of the corpus."""
    return annotated.schema if learner is None else learner.tasks


def labels_of(items: Corpus, task: str) -> int:
    """The number of items labelled for a task."""
    return int(items.labels[task].present.sum())


RATERS.add_lazily("pseudo-labels", "bursar.allocation.curves:PseudoLabels")
RATERS.add_lazily("ledger", "bursar.allocation.curves:LabelCurve")
RATERS.add("law", LawRates)
RATERS.add("given", GivenRates)
