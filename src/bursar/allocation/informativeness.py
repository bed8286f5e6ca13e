"""Informers measure what labels of one task are worth to another.

All divide the seed items into three parts: some to train on, some whose labels are *fresh*, and some held out. A task's
gain is its improvement on the held-out items by fresh labels of another task, or by as many of its own. Informativeness
is the first divided by the second (errata 29).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bursar.allocation.estimates import Informativeness
from bursar.allocation.seeds import HELD_OUT, check_whole, make_named, part_of, seed_items, seed_of, taken_apart
from bursar.corpus import Corpus
from bursar.learners.learner import Learner, Progress, no_progress
from bursar.ragged import FloatArray, IntArray
from bursar.random_streams import rng
from bursar.registry import Registry

SHARES = (1 - 2 * HELD_OUT, HELD_OUT, HELD_OUT)  # of the items: trained on, fresh and held out
TINY = 1e-3  # lower bound of a task's own gain, relative to its largest gain from any task


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
    """Create an informer by name.

    >>> make_informer("lookahed")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    bursar.errors.ConfigError: there is no informer 'lookahed'. Fix: did you mean 'lookahead'? Known: ...
    """
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
