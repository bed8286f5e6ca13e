"""What a training step was worth: reward signals, one contract.

A signal is told each step and answers with its reward, for many runs at once. The paper's own (eq. 16) pays for
working on what goes badly, as long as it gets better.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from bursar.curriculum.policy import Course
from bursar.curriculum.states import TaskStates
from bursar.errors import ConfigError
from bursar.ragged import FloatArray, IntArray
from bursar.registry import Registry


class Reward(ABC):
    """A reward signal at work on a course."""

    needs_after: ClassVar[bool] = False  # whether it looks at the loss after the step

    def __init__(self, course: Course) -> None:
        self.course = course
        self.rows = np.arange(course.runs)

    @abstractmethod
    def __call__(self, task: IntArray, before: FloatArray, after: FloatArray | None) -> FloatArray:
        """The reward of every run's step: (runs,)."""


REWARDS: Registry[type[Reward]] = Registry("reward", "bursar.rewards")


class Improving(Reward):
    """How badly the task goes, if it goes better than when it was last sampled (paper 3, eq. 16).

    The first sample of a task has nothing to be compared with and earns nothing.
    """

    def __init__(self, course: Course) -> None:
        super().__init__(course)
        self.last = np.full((course.runs, len(course.tasks)), -np.inf)

    def __call__(self, task: IntArray, before: FloatArray, after: FloatArray | None) -> FloatArray:
        better = before < self.last[self.rows, task]
        self.last[self.rows, task] = before
        return np.where(better, -np.expm1(-before), 0.0)


class Trend(Reward):
    """Eq. 16 for noisy losses: likelihoods are averaged over the last samples of the task before they are compared.

    A batch of sixteen tells little of a task, so whether one batch went better than the one before is almost a coin's
    throw. Here a task improves while its recent average is above its longer one.
    """

    def __init__(self, course: Course) -> None:
        super().__init__(course)
        self.states = TaskStates(course)

    def __call__(self, task: IntArray, before: FloatArray, after: FloatArray | None) -> FloatArray:
        self.states.observe(0, task, before)
        at = self.rows, task
        return np.where(self.states.fast[at] > self.states.slow[at], self.states.shortfall[at], 0.0)


class Pace(Reward):
    """How fast the task gets better, as a share of the fastest that it ever did; nothing if it gets worse.

    It asks whether a step is well spent, not how badly the task goes: a task that cannot be learned any further earns
    nothing, however poor it is, and an easy one as much as a hard one while it is being learned.
    """

    def __init__(self, course: Course) -> None:
        super().__init__(course)
        self.states = TaskStates(course)

    def __call__(self, task: IntArray, before: FloatArray, after: FloatArray | None) -> FloatArray:
        self.states.observe(0, task, before)
        found: FloatArray = np.maximum(self.states.pace[self.rows, task], 0.0)
        return found


class _WithAfter(Reward):
    needs_after = True

    def __call__(self, task: IntArray, before: FloatArray, after: FloatArray | None) -> FloatArray:
        if after is None:
            raise ConfigError(
                "this reward needs the loss after every step, which was not measured",
                fix="use improving, trend or pace",
            )
        return self.of(before, after)

    @abstractmethod
    def of(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """From the two losses of the same batch."""


class BeforeAfter(_WithAfter):
    """How badly the task goes, if the step made it better: paper 3, section 4.1's words."""

    def of(self, before: FloatArray, after: FloatArray) -> FloatArray:
        return np.where(after < before, -np.expm1(-before), 0.0)


class PredictionGain(_WithAfter):
    """How much the loss of the batch fell (Graves et al. 2017; paper 3, section 3.2.1)."""

    def of(self, before: FloatArray, after: FloatArray) -> FloatArray:
        return before - after


class LikelihoodGain(_WithAfter):
    """How much likelier the batch's labels became: a gain of prediction that does not grow without end."""

    def of(self, before: FloatArray, after: FloatArray) -> FloatArray:
        gain: FloatArray = np.exp(-after) - np.exp(-before)
        return gain


_OURS: dict[str, type[Reward]] = {
    "improving": Improving,
    "trend": Trend,
    "pace": Pace,
    "before-after": BeforeAfter,
    "prediction-gain": PredictionGain,
    "likelihood-gain": LikelihoodGain,
}
for _name, _reward in _OURS.items():
    REWARDS.add(_name, _reward)
