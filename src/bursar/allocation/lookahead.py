"""Who informs whom, by look-aheads: a few training steps with another task's labels, and back again (paper 5).

At several moments of a training on the seed items its state is kept. From there some steps are made on a task's own
items alone; the same steps with fresh labels of the same task in each; and the same with fresh labels of another. The
batches are the same in all of them, and so is the dropout. What each leaves of the task's loss on held-out items, or
makes of its score there, is compared.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bursar.allocation.informativeness import Informer, Parts
from bursar.allocation.seeds import check_whole
from bursar.corpus import Corpus
from bursar.errors import AllocationError, ConfigError
from bursar.learners.learner import Learner, Progress
from bursar.learners.rehearsal import Rehearsal
from bursar.ragged import FloatArray, IntArray

GAINS = ("loss", "score")


@dataclass(frozen=True)
class StepInformer(Informer):
    """One that looks at moments of a training on the seed items."""

    moments: int = 4
    until: float = 0.8  # of the steps that a training has; the moments are spread evenly up to there

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self.name, "moments", self.moments)
        if not 0 < self.until <= 1:
            raise ConfigError(f"{self.name!r}: until = {self.until!r}", fix="use a share above 0 and up to 1")

    def check(self, learner: Learner) -> None:
        if type(learner).rehearse is Learner.rehearse:
            name = getattr(learner, "name", type(learner).__name__)
            raise AllocationError(
                f"the learner {name!r} has no training steps, and {self.name!r} looks at those",
                fix="use the informer 'probe', which needs none, or a learner such as transformer or bilstm",
            )

    def gains(self, learner: Learner, items: Corpus, parts: Parts, seed: int, progress: Progress) -> FloatArray:
        known = np.sort(np.concatenate([parts.trained, parts.fresh]))
        rehearsal = learner.rehearse(items, trained=parts.trained, known=known, seed=seed)
        stops = np.linspace(0, self.until * rehearsal.planned, self.moments + 1).round().astype(int)
        total = np.zeros((len(learner.tasks),) * 2)
        for number, steps in enumerate(np.diff(stops)):
            rehearsal.advance(int(steps))
            total += self.gains_at(rehearsal, list(learner.tasks), parts, np.random.default_rng([seed, number, 41]))
            progress("measuring", (number + 1) / self.moments)
        return total / self.moments

    @abstractmethod
    def gains_at(self, rehearsal: Rehearsal, tasks: list[str], parts: Parts, rng: np.random.Generator) -> FloatArray:
        """The gains at one moment, which must be left as it was found."""


@dataclass(frozen=True)
class LookAhead(StepInformer):
    """The paper's: train a little with another task's labels, and see.

    ``gain`` is what counts as better: a lower ``loss`` on held-out items, at the temperature that suits them, or a
    higher ``score``, which is the paper's measure and moves in jumps of one item.
    """

    name: ClassVar[str] = "lookahead"
    steps: int = 4
    batch: int = 16  # items of each task in a step
    gain: str = "loss"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self.name, "steps", self.steps)
        check_whole(self.name, "batch", self.batch)
        if self.gain not in GAINS:
            raise ConfigError(f"{self.name!r}: gain = {self.gain!r}", fix=f"use {' or '.join(GAINS)}")

    def gains_at(self, rehearsal: Rehearsal, tasks: list[str], parts: Parts, rng: np.random.Generator) -> FloatArray:
        here, order = rehearsal.snapshot(), Parts(*(rng.permutation(part) for part in parts))
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
        """(steps, batch): items that are labelled for the task in this order, over and over if there are too few."""
        return np.resize(labelled(rehearsal, order, task), (self.steps, self.batch))


def labelled(rehearsal: Rehearsal, items: IntArray, task: str) -> IntArray:
    """Those of the items that are labelled for a task."""
    found: IntArray = items[rehearsal.items.labels[task].present[items]]
    return found
