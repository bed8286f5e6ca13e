"""Informers measure what labels of one task are worth to another, on the seed items: those already labelled.

All divide them into three parts: some to train on, some whose labels are *fresh*, and some held out. A task's gain is
its improvement on the held-out items by fresh labels of another task, or by as many of its own. Informativeness is the
first divided by the second (errata 29).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from bursar.allocation.estimates import Informativeness
from bursar.corpus import Corpus
from bursar.errors import AllocationError, BursarError, ConfigError
from bursar.learners.learner import Learner, Progress, in_codes_of, no_progress
from bursar.ragged import FloatArray, IntArray
from bursar.random_streams import rng
from bursar.registry import Registry
from bursar.tasks import Task

HELD_OUT = 0.3  # share of the items to measure on
SHARES = (1 - 2 * HELD_OUT, HELD_OUT, HELD_OUT)  # of the items: trained on, fresh and held out
TINY = 1e-3  # lower bound of a task's own gain, relative to its largest gain from any task
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


def check_whole(name: str, setting: str, value: object, *, least: int = 1) -> None:
    """Refuse a setting that is not a whole number, or too small."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name!r}: {setting} = {value!r}", fix=f"use a whole number from {least} up")


def make_named(registry: Registry[Callable[..., T]], name: str, settings: Mapping[str, Any]) -> T:
    """Create a registered informer or rater; wrong settings are refused with a list of the known ones."""
    make = registry[name]
    try:
        return make(**settings)
    except TypeError as wrong:
        reason = str(wrong).partition("() ")[2] or str(wrong)  # without the name of the class
        try:
            fix = f"its settings are {', '.join(field.name for field in fields(make()))}"
        except (TypeError, BursarError):  # it cannot be made without any
            fix = None
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
        check_whole(self.name, "repetitions", self.repetitions, least=2)

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
INFORMERS.add_lazily("probe", "bursar.allocation.probing:Probing")


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
