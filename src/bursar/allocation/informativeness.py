"""Informers measure what labels of one task are worth to another, on the seed items: those already labelled.

All divide them into three parts: some to train on, some whose labels are *fresh*, and some held out. A task's gain is
its improvement on the held-out items by fresh labels of another task, or by as many of its own. Informativeness is the
first divided by the second (errata 29).

The informer here trains no network. A task's probe learns from the training items; then also from the fresh ones; then
from the training items again, with the predictions of another task's probe as further features. That probe learned from
the fresh items alone, so it has seen neither the training nor the held-out items.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bursar.allocation.estimates import Informativeness
from bursar.corpus import Corpus
from bursar.errors import AllocationError, BursarError, ConfigError
from bursar.learners.features import can_train, one_thread
from bursar.learners.frozen import frozen_encoder
from bursar.learners.learner import Learner, Progress, in_codes_of, no_progress
from bursar.learners.probe import ProbeLearner
from bursar.ragged import FloatArray, IntArray, Ragged, flat_positions, offsets_of
from bursar.random_streams import rng
from bursar.registry import Registry
from bursar.tasks import Regression, Task

HELD_OUT = 0.3  # share of the items to measure on
SHARES = (1 - 2 * HELD_OUT, HELD_OUT, HELD_OUT)  # of the items: trained on, fresh and held out
TINY = 1e-3  # lower bound of a task's own gain, relative to its largest gain from any task
LEAST = 1e-6  # lower bound of a probability; that of a label never seen may be 0
FEWEST = 2  # labels of each task in a training
FEWEST_APART = 3  # labels of each task in each part of the seed items

T = TypeVar("T")


def seed_items(tasks: Mapping[str, Task], annotated: Corpus) -> Corpus:
    """The items labelled for any of the tasks, sorted by id, so that results depend on the set alone."""
    for name in tasks:
        if name not in annotated.schema or not annotated.labels[name].present.any():
            raise AllocationError(
                f"task {name!r} has no seed labels",
                fix="label some items for it, or leave it out: without labels their value cannot be measured",
            )
    items = in_codes_of(tasks, annotated).with_tasks(list(tasks))
    order = np.argsort(items.id_ranks)
    labelled = np.any([items.labels[name].present for name in tasks], axis=0)
    return items.take(order[labelled[order]])


def taken_apart(items: Corpus, shares: Sequence[float], generator: np.random.Generator) -> tuple[IntArray, ...]:
    """The positions of items in parts of these shares; each has its share of items labelled for the same tasks."""
    present = np.stack([items.labels[name].present for name in items.schema])
    kinds = np.unique(present.T, axis=0, return_inverse=True)[1].ravel()
    order = generator.permutation(len(items))
    order = order[np.argsort(kinds[order], kind="stable")]
    place = dealt(len(items), shares)
    parts = tuple(np.sort(order[place == part]) for part in range(len(shares)))
    labels = dict(zip(items.schema, present, strict=True))
    short = [name for name, there in labels.items() if min(int(there[part].sum()) for part in parts) < FEWEST_APART]
    if short:
        counts = ", ".join(f"task {name!r} has {int(labels[name].sum())} seed labels" for name in short)
        raise AllocationError(
            f"{counts}: too few to hold any out",
            fix=f"label at least {math.ceil(FEWEST_APART / min(shares)) + len(shares)} items for each",
        )
    return parts


def dealt(items: int, shares: Sequence[float]) -> IntArray:
    """The part of each item in turn, the one furthest behind its share: any range of items is divided evenly."""
    due, share, found = np.zeros(len(shares)), np.array(shares), np.zeros(items, dtype=np.int64)
    for at in range(items):
        due += share
        found[at] = int(due.argmax())
        due[found[at]] -= 1
    return found


def seed_of(seed: int, repetition: int) -> int:
    """The seed of a repetition's trainings."""
    return int(rng(seed, "training seeds", repetition).integers(2**31))


def part_of(progress: Progress, repetition: int, repetitions: int) -> Progress:
    """The callback for the progress of one repetition; 1 is reported only when all are done."""
    return lambda what, done: progress(what, min((repetition + done) / repetitions, 0.999))


def check_whole(tool: Any, **fewest: int) -> None:
    """Refuse settings that are not whole numbers, or too small."""
    for setting, least in fewest.items():
        value = getattr(tool, setting)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigError(f"{tool.name!r}: {setting} = {value!r}", fix=f"use a whole number from {least} up")


def make_named(registry: Registry[Callable[..., T]], name: str, settings: Mapping[str, Any]) -> T:
    """Create a registered informer or rater; wrong settings are refused with a list of the known ones."""
    make = registry[name]
    try:
        return make(**settings)
    except TypeError as wrong:
        reason = str(wrong).partition("() ")[2] or str(wrong)  # without the name of the class
        fix = None
        with suppress(TypeError, BursarError):  # it may need some to be made
            usual: Any = make()
            fix = f"its settings are {', '.join(field.name for field in fields(usual))}"
        raise ConfigError(f"{registry.noun} {name!r}: {reason}", fix=fix) from None


# -- informers -------------------------------------------------------------------------------------------------------
class Parts(NamedTuple):
    """The positions of seed items in each part."""

    trained: IntArray
    fresh: IntArray
    held: IntArray


@dataclass(frozen=True)
class Informer(ABC):
    """Measures informativeness. Subclasses are dataclasses of their settings with ``gains``."""

    name: ClassVar[str]
    repetitions: int = 4  # each divides the items differently

    def __post_init__(self) -> None:
        check_whole(self, repetitions=2)

    @abstractmethod
    def gains(self, learner: Learner, items: Corpus, parts: Parts, seed: int, progress: Progress) -> FloatArray:
        """The gain of each task by fresh labels of each task: (from, to)."""

    def check(self, learner: Learner) -> None:  # noqa: B027 most learners can be measured with
        """Refuse an unsuitable learner before anything is measured."""

    def measure(
        self, learner: Learner, annotated: Corpus, *, seed: int = 0, progress: Progress = no_progress
    ) -> Informativeness:
        """The informativeness between the learner's tasks, from the seed items. The learner itself is not changed."""
        self.check(learner)
        items = seed_items(learner.tasks, annotated)
        found = []
        for repetition in range(self.repetitions):
            parts = Parts(*taken_apart(items, SHARES, rng(seed, "informativeness parts", repetition)))
            part = part_of(progress, repetition, self.repetitions)
            found.append(self.gains(learner, items, parts, seed_of(seed, repetition), part))
        progress("measuring", 1.0)
        about = {"informer": self.name, **asdict(self), "held_out": HELD_OUT, "seed": seed, "items": len(items)}
        return from_gains(tuple(learner.tasks), np.array(found), about)


INFORMERS: Registry[Callable[..., Informer]] = Registry("informer", "bursar.informers")


def make_informer(name: str, **settings: Any) -> Informer:
    """Create an informer by name."""
    return make_named(INFORMERS, name, settings)


INFORMERS.add_lazily("lookahead", "bursar.allocation.lookahead:LookAhead")
INFORMERS.add_lazily("alignment", "bursar.allocation.lookahead:Alignment")


def from_gains(tasks: tuple[str, ...], gains: FloatArray, about: Mapping[str, Any] | None = None) -> Informativeness:
    """Mean gains divided by the mean gains from own labels, which count as at least their standard error (errata 29).

    ``gains`` are (repetitions, from, to); errors are jackknifed. A task that gained nothing from its own has 0 ± 1.
    """
    many, mean = len(gains), gains.mean(axis=0)
    own = gains.diagonal(axis1=1, axis2=2)  # (repetitions, tasks)
    doubt = own.std(axis=0, ddof=1) / math.sqrt(many)
    floor = np.maximum(doubt, TINY * np.abs(mean).max(axis=0))
    value = _ratios(mean, floor)
    others = np.array([_ratios((many * mean - one) / (many - 1), floor) for one in gains])
    error = np.sqrt((many - 1) / many * ((others - others.mean(axis=0)) ** 2).sum(axis=0))
    nothing = np.maximum(mean.diagonal(), floor) <= 0
    error[:, nothing] = 1.0
    np.fill_diagonal(value, 1.0)
    np.fill_diagonal(error, 0.0)
    own_gains = {
        "own_gains": dict(zip(tasks, mean.diagonal().tolist(), strict=True)),
        "own_errors": dict(zip(tasks, doubt.tolist(), strict=True)),
    }
    return Informativeness(tasks, value, error, {**(about or {}), **own_gains})


def _ratios(mean: FloatArray, floor: FloatArray) -> FloatArray:
    """Each column divided by its own gain or the floor; 0 where both are 0."""
    own = np.maximum(mean.diagonal(), floor)
    found: FloatArray = np.divide(mean, own, out=np.zeros_like(mean), where=own > 0)
    return found


# -- by linear models on frozen features -----------------------------------------------------------------------------
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


INFORMERS.add("probe", Probing)
