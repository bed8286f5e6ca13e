"""Reward signals: the value of a training step, for many runs at once.

The paper's signal (eq. 16) rewards steps on tasks that are still poor, as long as they improve.
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
    """The state of a reward signal in a training."""

    needs_after: ClassVar[bool] = False  # whether it needs the loss after the step

    def __init__(self, course: Course) -> None:
        self.course = course
        self.rows = np.arange(course.runs)

    @abstractmethod
    def __call__(self, task: IntArray, before: FloatArray, after: FloatArray | None) -> FloatArray:
        """The reward of every run's step: (runs,)."""


REWARDS: Registry[type[Reward]] = Registry("reward", "bursar.rewards")


class ImprovingReward(Reward):
    """1 − likelihood, if the task improved since its last sample; else 0 (paper 3, eq. 16).

    The first sample of a task earns 0.
    """

    def __init__(self, course: Course) -> None:
        super().__init__(course)
        self.last = np.full((course.runs, len(course.tasks)), -np.inf)

    def __call__(self, task: IntArray, before: FloatArray, after: FloatArray | None) -> FloatArray:
        better = before < self.last[self.rows, task]
        self.last[self.rows, task] = before
        return np.where(better, -np.expm1(-before), 0.0)


class TrendReward(Reward):
    """Eq. 16 for noisy losses: likelihoods are averaged over the last samples of the task before they are compared.

    The losses of single batches of sixteen are too noisy to compare. Here a task improves while its recent average is
    above its longer one.
    """

    def __init__(self, course: Course) -> None:
        super().__init__(course)
        self.states = TaskStates(course)

    def __call__(self, task: IntArray, before: FloatArray, after: FloatArray | None) -> FloatArray:
        self.states.observe(0, task, before)
        at = self.rows, task
        return np.where(self.states.fast[at] > self.states.slow[at], self.states.shortfall[at], 0.0)


class PaceReward(Reward):
    """The rate of improvement of the task, as a share of its highest rate so far; 0 if it gets worse.

    A task that no longer improves earns 0, however poor it is, and easy tasks earn as much as hard ones while they
    improve.
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
        """The reward from the two losses of a batch."""


class BeforeAfter(_WithAfter):
    """1 − likelihood, if the step improved the task; else 0: the words of paper 3, section 4.1."""

    def of(self, before: FloatArray, after: FloatArray) -> FloatArray:
        return np.where(after < before, -np.expm1(-before), 0.0)


class PredictionGain(_WithAfter):
    """The decrease of the batch's loss (Graves et al. 2017; paper 3, section 3.2.1)."""

    def of(self, before: FloatArray, after: FloatArray) -> FloatArray:
        return before - after


class LikelihoodGain(_WithAfter):
    """The increase of the likelihood of the batch's labels: a bounded prediction gain."""

    def of(self, before: FloatArray, after: FloatArray) -> FloatArray:
        gain: FloatArray = np.exp(-after) - np.exp(-before)
        return gain


_OURS: dict[str, type[Reward]] = {
    "improving": ImprovingReward,
    "trend": TrendReward,
    "pace": PaceReward,
    "before-after": BeforeAfter,
    "prediction-gain": PredictionGain,
    "likelihood-gain": LikelihoodGain,
}
for _name, _reward in _OURS.items():
    REWARDS.add(_name, _reward)
