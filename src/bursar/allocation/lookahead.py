"""Informativeness by look-aheads: a few training steps with another task's labels, then back again (paper 5).

At several moments of a training on the seed items, its state is saved. From there a task is trained for some steps
alone, with additional fresh labels of its own, and with fresh labels of another task instead, with the same batches and
dropout. The losses (or scores) on held-out items are compared.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from bursar.allocation.informativeness import Informer, Parts, check_whole
from bursar.corpus import Corpus
from bursar.errors import AllocationError, ConfigError
from bursar.learners.learner import Learner, Progress
from bursar.learners.rehearsal import Rehearsal
from bursar.ragged import FloatArray, IntArray
from bursar.random_streams import rng

GAINS = ("loss", "score")


@dataclass(frozen=True)
class StepInformer(Informer):
    """Measures at several moments of a training on the seed items."""

    moments: int = 4
    until: float = 0.8  # share of the training steps over which the moments are spread evenly

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, moments=1)
        if not 0 < self.until <= 1:
            raise ConfigError(f"{self.name!r}: until = {self.until!r}", fix="use a share above 0 and up to 1")

    def check(self, learner: Learner) -> None:
        if type(learner).rehearse is Learner.rehearse:
            name = getattr(learner, "name", type(learner).__name__)
            raise AllocationError(
                f"the learner {name!r} has no training steps, which {self.name!r} needs",
                fix="use the informer 'probe', which needs none, or a learner such as transformer or bilstm",
            )

    def gains(self, learner: Learner, items: Corpus, parts: Parts, seed: int, progress: Progress) -> FloatArray:
        known = np.sort(np.concatenate([parts.trained, parts.fresh]))
        rehearsal = learner.rehearse(items, trained=parts.trained, known=known, seed=seed)
        stops = np.linspace(0, self.until * rehearsal.planned, self.moments + 1).round().astype(int)
        total = np.zeros((len(learner.tasks),) * 2)
        for number, steps in enumerate(np.diff(stops)):
            rehearsal.advance(int(steps))
            total += self.gains_at(rehearsal, list(learner.tasks), parts, rng(seed, "look-ahead batches", number))
            progress("measuring", (number + 1) / self.moments)
        return total / self.moments

    @abstractmethod
    def gains_at(
        self, rehearsal: Rehearsal, tasks: list[str], parts: Parts, generator: np.random.Generator
    ) -> FloatArray:
        """The gains at one moment; the state of the training must be restored."""


@dataclass(frozen=True)
class LookAhead(StepInformer):
    """The paper's informer: train a few steps with another task's labels.

    ``gain`` is the decrease of the held-out ``loss`` at its best temperature, or the increase of the ``score``, the
    paper's measure, which changes in jumps of one item.
    """

    name: ClassVar[str] = "lookahead"
    steps: int = 4
    batch: int = 16  # items of each task in a step
    gain: str = "loss"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, steps=1, batch=1)
        if self.gain not in GAINS:
            raise ConfigError(f"{self.name!r}: gain = {self.gain!r}", fix=f"use {' or '.join(GAINS)}")

    def gains_at(
        self, rehearsal: Rehearsal, tasks: list[str], parts: Parts, generator: np.random.Generator
    ) -> FloatArray:
        here, order = rehearsal.snapshot(), Parts(*(generator.permutation(part) for part in parts))
        fresh = {task: self._batches(rehearsal, order.fresh, task) for task in tasks}
        found = np.zeros((len(tasks), len(tasks)))
        for to, target in enumerate(tasks):
            own = self._batches(rehearsal, order.trained, target)
            held = labelled(rehearsal, parts.held, target)

            def ahead(helper: str | None, target: str = target, own: IntArray = own, held: IntArray = held) -> float:
                rehearsal.rewind(here)
                for step, batch in enumerate(own):
                    more = [] if helper is None else [(fresh[helper][step], helper)]
                    rehearsal.step([(batch, target), *more])
                if self.gain == "score":
                    return rehearsal.score(held, target)
                return -rehearsal.loss(held, target)

            alone = ahead(None)
            found[:, to] = [ahead(helper) - alone for helper in tasks]
        rehearsal.rewind(here)
        return found

    def _batches(self, rehearsal: Rehearsal, order: IntArray, task: str) -> IntArray:
        """(steps, batch): the items labelled for the task in this order, repeated if there are too few."""
        return np.resize(labelled(rehearsal, order, task), (self.steps, self.batch))


@dataclass(frozen=True)
class Alignment(StepInformer):
    """The cosine of a task's gradient on held-out items with that of another's fresh labels, relative to its own.

    No steps are taken. Only shared parameters count, so the effect of labels on the task's own head is left out.
    """

    name: ClassVar[str] = "alignment"

    def gains_at(
        self, rehearsal: Rehearsal, tasks: list[str], parts: Parts, generator: np.random.Generator
    ) -> FloatArray:
        given, wanted = (
            torch.stack([rehearsal.gradient(labelled(rehearsal, part, task), task) for task in tasks])
            for part in (parts.fresh, parts.held)
        )
        cosines: FloatArray = (
            torch.nn.functional.cosine_similarity(given[:, None], wanted[None], dim=2).double().numpy()
        )
        return cosines


def labelled(rehearsal: Rehearsal, items: IntArray, task: str) -> IntArray:
    """The items that are labelled for a task."""
    return items[rehearsal.items.labels[task].present[items]]
