"""Who informs whom: the contract of what measures it, and what all of them do alike.

All take the seed items apart into three: some to train on, some whose labels are *fresh*, and some that are held out. A
task's gain is how much better it does on the held-out items with fresh labels than without: with those of another task,
or with as many of its own. Informativeness is the one gain over the other (errata 29).

>>> from bursar.learners import make_learner
>>> from bursar.simulation import assistant_corpus
>>> items = assistant_corpus(60, seed=1).with_tasks(["intent", "urgency"])
>>> found = make_informer("probe", repetitions=2).measure(make_learner("probe", items.schema), items)
>>> found.tasks, found.value.diagonal().tolist()
(('intent', 'urgency'), [1.0, 1.0])
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bursar.allocation.estimates import Informativeness
from bursar.allocation.seeds import (
    HELD_OUT,
    check_share,
    check_whole,
    reason_of,
    seed_items,
    seed_of,
    settings_of,
    taken_apart,
)
from bursar.corpus import Corpus
from bursar.errors import AllocationError, ConfigError
from bursar.learners.learner import Learner, Progress, no_progress
from bursar.ragged import FloatArray, IntArray
from bursar.registry import Registry

TINY = 1e-3  # of the largest gain of a task, by whomever: its own counts as no less


class Parts(NamedTuple):
    """The positions of seed items, taken apart."""

    trained: IntArray
    fresh: IntArray
    held: IntArray


@dataclass(frozen=True)
class Informer(ABC):
    """A way to measure who informs whom. A new one is a dataclass of its settings with ``gains``."""

    name: ClassVar[str]
    repetitions: int = 4  # each with items taken apart in another way

    def __post_init__(self) -> None:
        check_whole(self.name, "repetitions", self.repetitions, least=2)

    @abstractmethod
    def gains(self, learner: Learner, items: Corpus, parts: Parts, seed: int, progress: Progress) -> FloatArray:
        """How much better each task does with fresh labels of each other, and of its own: (from, to)."""

    def check(self, learner: Learner) -> None:  # noqa: B027 most learners can be measured with
        """Refuse a learner that this cannot measure with, before anything is done."""

    def measure(
        self,
        learner: Learner,
        annotated: Corpus,
        *,
        held_out: float = HELD_OUT,
        seed: int = 0,
        progress: Progress = no_progress,
    ) -> Informativeness:
        """What the labels of each of the learner's tasks are worth to the others, from the seed items.

        ``held_out`` is the share of items that gains are measured on; another such share is fresh, and the rest is
        trained on. The learner itself stays as it is.
        """
        check_share(held_out, 0.5)
        self.check(learner)
        items = seed_items(learner.tasks, annotated)
        found = []
        for repetition in range(self.repetitions):

            def part(what: str, done: float, repetition: int = repetition) -> None:
                progress(what, min((repetition + done) / self.repetitions, 0.999))

            rng = np.random.default_rng([seed, repetition, 31])
            parts = Parts(*taken_apart(items, (1 - 2 * held_out, held_out, held_out), rng))
            found.append(self.gains(learner, items, parts, seed_of(seed, repetition), part))
        progress("measuring", 1.0)
        about = {"informer": self.name, **asdict(self), "held_out": held_out, "seed": seed, "items": len(items)}
        return from_gains(tuple(learner.tasks), np.array(found), about)


INFORMERS: Registry[Callable[..., Informer]] = Registry("informer", "bursar.informers")


def make_informer(name: str, **settings: Any) -> Informer:
    """An informer by name.

    >>> make_informer("lookahed")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    bursar.errors.ConfigError: there is no informer 'lookahed'. Fix: did you mean 'lookahead'? Known: ...
    """
    try:
        return INFORMERS[name](**settings)
    except TypeError as wrong:
        raise ConfigError(f"informer {name!r}: {reason_of(wrong)}", fix=settings_of(INFORMERS[name])) from None


def _later(module: str, kind: str) -> Callable[..., Informer]:
    """One of our own, imported only when it is asked for: torch is slow to come."""

    def make(**settings: Any) -> Informer:
        made: Informer = getattr(import_module(f"bursar.allocation.{module}"), kind)(**settings)
        return made

    return make


INFORMERS.add("lookahead", _later("lookahead", "LookAhead"))
INFORMERS.add("alignment", _later("alignment", "Alignment"))
INFORMERS.add("probe", _later("probing", "Probing"))


# -- from gains ------------------------------------------------------------------------------------------------------
def from_gains(tasks: tuple[str, ...], gains: FloatArray, about: Mapping[str, Any] | None = None) -> Informativeness:
    """Mean gains over the mean gains by own labels, which count as at least their standard error (errata 29).

    ``gains`` are (repetitions, from, to). Standard errors are those of the jackknife, leaving out one repetition at a
    time. Where own labels never gained anything, all that is known is put as 0 ± 1.

    >>> gains = np.array([[[2.0, 1.0], [1.0, 4.0]], [[4.0, 2.0], [1.0, 4.0]]])
    >>> found = from_gains(("a", "b"), gains)
    >>> found.value.round(3).tolist(), found.error.round(3).tolist()
    ([[1.0, 0.375], [0.333, 1.0]], [[0.0, 0.125], [0.125, 0.0]])
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
    told = {
        "own_gains": dict(zip(tasks, mean.diagonal().tolist(), strict=True)),
        "own_errors": dict(zip(tasks, doubt.tolist(), strict=True)),
    }
    return Informativeness(tasks, value, error, {**(about or {}), **told})


def _ratios(mean: FloatArray, floor: FloatArray) -> FloatArray:
    """Each column over its own gain or the floor; 0 where both are nothing."""
    own = np.maximum(mean.diagonal(), floor)
    found: FloatArray = np.divide(mean, own, out=np.zeros_like(mean), where=own > 0)
    return found


# -- how alike measurements are --------------------------------------------------------------------------------------
def agreement(a: Informativeness, b: Informativeness) -> float:
    """Spearman's correlation of what two measurements say of all pairs of different tasks; 0 if one tells none apart.

    >>> one = Informativeness(("a", "b"), np.array([[1, 0.5], [0.2, 1]]), np.zeros((2, 2)))
    >>> other = Informativeness(("b", "a"), np.array([[1, 0.1], [0.9, 1]]), np.zeros((2, 2)))
    >>> round(agreement(one, other), 6)
    1.0
    """
    if set(a.tasks) != set(b.tasks):
        raise AllocationError(f"measurements of {', '.join(a.tasks)} and of {', '.join(b.tasks)} cannot be compared")
    if len(a.tasks) < 2:
        raise AllocationError("there is nobody to inform: this is one task alone", fix="measure two tasks or more")
    from scipy.stats import rankdata  # here: it takes half a second, and who reads a campaign's settings waits for it

    same = [b.tasks.index(task) for task in a.tasks]
    pairs = ~np.eye(len(a.tasks), dtype=bool)
    ranks = [rankdata(value[pairs]) for value in (a.value, b.value[np.ix_(same, same)])]
    centred = [rank - rank.mean() for rank in ranks]
    scale = math.sqrt(float((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float(centred[0] @ centred[1]) / scale if scale > 0 else 0.0
