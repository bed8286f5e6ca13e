"""How fast labels of each task lose worth: the contract of what measures it, and the ways that there are.

A rate is fitted to the shape of a curve: the scores of models that were trained on more and more labels of one task
(errata 30). These labels are those that there are (``curves``) or guesses of a model (``pseudo``); or a law is asked. A
curve that does not rise gives a rate with an interval from nearly 0 to 1.

>>> from bursar.learners import make_learner
>>> from bursar.simulation import assistant_corpus
>>> items = assistant_corpus(80, seed=1).with_tasks(["intent", "urgency"])
>>> found = make_rater("given", betas={"intent": 0.6, "urgency": (0.5, 0.4, 0.7)}).measure(None, items)
>>> found["urgency"]
ReductionRate(beta=0.5, low=0.4, high=0.7, block=80, source='given')
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bursar.allocation.estimates import ReductionRate
from bursar.allocation.returns import LEVEL, SMALLEST, fit_rate
from bursar.allocation.seeds import HELD_OUT, check_whole, reason_of, seed_items, settings_of
from bursar.corpus import Corpus
from bursar.errors import AllocationError, ConfigError
from bursar.learners.learner import Learner, Progress, no_progress
from bursar.ragged import FloatArray, IntArray
from bursar.registry import Registry
from bursar.tasks import Task

if TYPE_CHECKING:
    from bursar.laws.cards import Law  # brings a computer algebra system, which only rates from laws need


class Rater(ABC):
    """A way to tell how fast labels lose worth. A new one is a dataclass of its settings with ``measure``."""

    name: ClassVar[str]

    def check(self, pool: Corpus | None) -> None:  # noqa: B027 most need no pool
        """Refuse a pool that this cannot measure with, before anything is done."""

    def check_tasks(self, tasks: Iterable[str]) -> None:  # noqa: B027 most measure any task
        """Refuse tasks of which nothing is known that this needs, before anything is bought."""

    @abstractmethod
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
        """A rate for each task: of the learner, or of the corpus if the learner is not asked for anything.

        ``pool`` are items without labels, for those who guess some; ``block`` is how many labels a rate is the loss of,
        as many as each task has already if not given. A learner is fitted again and again, and forgets what it knew.
        """


RATERS: Registry[Callable[..., Rater]] = Registry("rater", "bursar.raters")


def make_rater(name: str, **settings: Any) -> Rater:
    """A rater by name."""
    try:
        return RATERS[name](**settings)
    except TypeError as wrong:
        raise ConfigError(f"rater {name!r}: {reason_of(wrong)}", fix=settings_of(RATERS[name])) from None


# -- curves ------------------------------------------------------------------------------------------------------------
class LearningCurve(NamedTuple):
    """Scores of models that were trained on more and more labels of a task."""

    sizes: NDArray[Any]  # (sizes,)
    scores: FloatArray  # (repetitions, sizes)

    @property
    def mean(self) -> FloatArray:
        found: FloatArray = self.scores.mean(axis=0)
        return found

    @property
    def error(self) -> float | None:
        """The standard error of a mean score, alike for all sizes; that repetitions lie at other levels is no part.

        >>> LearningCurve(np.array([0, 10]), np.array([[0.4, 0.6], [0.5, 0.7]])).error is None
        True
        """
        shapes = self.scores - self.scores.mean(axis=1, keepdims=True)
        left = float(((shapes - shapes.mean(axis=0)) ** 2).sum())
        spread = math.sqrt(left / self.freedom / len(self.scores)) if self.freedom else 0.0
        return spread if spread > 1e-12 else None

    @property
    def freedom(self) -> int:
        """How many degrees of freedom that error is estimated with."""
        many, sizes = self.scores.shape
        return (many - 1) * (sizes - 1)

    def rate(self, block: float, source: str, level: float = LEVEL) -> ReductionRate:
        """Fitted to the shape. The fewer repetitions there are, the less is known of their noise: that counts, too."""
        errors = None if self.error is None else np.full(len(self.sizes), self.error)
        return fit_rate(self.sizes, self.mean, errors, freedom=self.freedom, block=block, level=level, source=source)


def geometric_sizes(most: int, points: int, factor: float = 2.0, least: int = 1) -> IntArray:
    """So many numbers up to the most, each larger than the one before by a factor; fewer if some would be too small.

    >>> geometric_sizes(100, 4).tolist(), geometric_sizes(3, 4).tolist()
    ([12, 25, 50, 100], [1, 3])
    """
    found = np.floor(most / factor ** np.arange(points)[::-1] + 1e-9).astype(np.int64)
    return np.unique(found[found >= least])


# -- what is said, or known from elsewhere -----------------------------------------------------------------------------
@dataclass(frozen=True)
class GivenRates(Rater):
    """Rates that somebody says: ``betas`` has a number for each task, or three: the rate, and its interval.

    >>> GivenRates({"intent": [0.5, 0.6, 0.7]})
    Traceback (most recent call last):
        ...
    bursar.errors.ConfigError: betas.intent = [0.5, 0.6, 0.7]. Fix: give a rate from 1e-06 to 1, or a rate and the low \
and the high end of its interval
    """

    name: ClassVar[str] = "given"
    betas: Mapping[str, float | Sequence[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.betas, Mapping):
            raise ConfigError(f"betas = {self.betas!r}", fix="give a table with a rate for each task")
        for name, said in self.betas.items():
            try:
                beta, low, high = _three(said)
            except (TypeError, ValueError):
                beta = low = high = math.nan
            if not SMALLEST <= low <= beta <= high <= 1:
                raise ConfigError(
                    f"betas.{name} = {said!r}",
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
        tasks = tasks_of(learner, annotated)
        self.check_tasks(tasks)
        items = seed_items(tasks, annotated)
        found = {}
        for name in tasks:
            found[name] = ReductionRate(*_three(self.betas[name]), block or labels_of(items, name))
        progress("measuring", 1.0)
        return found


def _three(said: float | Sequence[float]) -> tuple[float, float, float]:
    """A rate and its interval, which is the rate itself where one number is given."""
    beta, low, high = (said, said, said) if isinstance(said, int | float) else said
    return float(beta), float(low), float(high)


@dataclass(frozen=True)
class LawRates(Rater):
    """What a law of the score says of more labels: one for all tasks, or one for each; a ``Law``, or its file.

    The law is asked at as many labels as the task has, and at ``blocks`` more blocks; ``values`` are those of its other
    variables, in the middle of their ranges if not given. Its scores count as wrong by what it was wrong on rows that
    it had not seen, each for itself: so the interval is rather too wide than too narrow.
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
        tasks = tasks_of(learner, annotated)
        items = seed_items(tasks, annotated)
        found = {}
        for name, task in tasks.items():
            labels = labels_of(items, name)
            size = block or labels
            added = size * np.arange(self.blocks + 1)
            law = self._law_of(name)
            scores = self._asked(law, (labels + added) * units_of_a_label(items, task))
            error = math.sqrt(law.held_out.mse)
            errors = np.full(len(added), error) if error > 0 else None
            found[name] = fit_rate(added, scores, errors, block=size, source=self.name)
        progress("measuring", 1.0)
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

    def _asked(self, law: Law, units: NDArray[Any]) -> list[float]:
        """The scores that a law predicts for these numbers of labelled units."""
        others = {name: r.middle for name, r in law.ranges.items() if name != "n"} | dict(self.values)
        return [law.predict(**(others | {"n": float(n)})).value for n in units]


def tasks_of(learner: Learner | None, annotated: Corpus) -> Mapping[str, Task]:
    """Those of the learner, or all of the corpus."""
    return annotated.schema if learner is None else learner.tasks


def labels_of(items: Corpus, task: str) -> int:
    """How many items are labelled for a task."""
    return int(items.labels[task].present.sum())


def units_of_a_label(items: Corpus, task: Task) -> float:
    """How many units a labelled item has on average, which is what laws count: words for tagging, else 1."""
    present = items.labels[task.name].present
    return float(task.units(items.words)[present].mean())


def _later(module: str, kind: str) -> Callable[..., Rater]:
    """One that trains, imported only when it is asked for."""

    def make(**settings: Any) -> Rater:
        made: Rater = getattr(import_module(f"bursar.allocation.{module}"), kind)(**settings)
        return made

    return make


RATERS.add("pseudo-labels", _later("pseudo", "PseudoLabels"))
RATERS.add("ledger", _later("curves", "LabelCurve"))
RATERS.add("law", LawRates)
RATERS.add("given", GivenRates)
