"""Reward signals: the value of a training step, for many runs at once; and the state of each task, from its losses.

The paper's signal (eq. 16) rewards steps on tasks that are still poor, as long as they improve.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from bursar.curriculum.policy import Course
from bursar.errors import ConfigError
from bursar.ragged import FloatArray, IntArray
from bursar.registry import Registry

RECENT, LONGER = 5.0, 25.0  # samples in the two averages that are compared
STILL = 1e-9  # initial value of the largest gain, above 0


class TaskStates:
    """Two running averages of every task's likelihood.

    Single batches are noisy, so likelihoods are averaged over about the ``recent`` last samples. Compared with the
    average over ``longer`` they show whether the task still improves.
    """

    def __init__(self, course: Course, recent: float = RECENT, longer: float = LONGER) -> None:
        self.recent, self.longer = recent, longer
        shape = course.runs, len(course.tasks)
        self.rows = np.arange(course.runs)
        self.fast, self.slow = np.zeros(shape), np.zeros(shape)  # likelihoods, 0 to 1
        self.fastest = np.full(shape, STILL)  # the largest gain so far
        self.seen = np.zeros(shape, dtype=np.int64)  # samples
        self.last = np.zeros(shape)  # step of the last sample

    def observe(self, step: int, task: IntArray, loss: FloatArray) -> None:
        """Add the loss of the task that each run trained."""
        at, now = (self.rows, task), np.exp(-loss)
        new = self.seen[at] == 0
        fast = np.where(new, now, self.fast[at] + (now - self.fast[at]) / self.recent)
        slow = np.where(new, now, self.slow[at] + (now - self.slow[at]) / self.longer)
        self.fast[at], self.slow[at], self.last[at] = fast, slow, step
        self.fastest[at] = np.maximum(self.fastest[at], fast - slow)
        self.seen[at] += 1

    @property
    def shortfall(self) -> FloatArray:
        """1 − the likelihood of each task: (runs, tasks), 1 before its first sample."""
        return 1 - self.fast

    @property
    def pace(self) -> FloatArray:
        """The rate of improvement of each task, as a share of its highest so far: (runs, tasks), -1 to 1."""
        return np.asarray(np.clip((self.fast - self.slow) / self.fastest, -1, 1))


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
    """1 − likelihood, if the task improved since its last sample; else, and at first, 0 (paper 3, eq. 16)."""

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

    Easy tasks earn as much as hard ones while they improve, and none earns for being poor.
    """

    def __init__(self, course: Course) -> None:
        super().__init__(course)
        self.states = TaskStates(course)

    def __call__(self, task: IntArray, before: FloatArray, after: FloatArray | None) -> FloatArray:
        self.states.observe(0, task, before)
        return np.asarray(np.maximum(self.states.pace[self.rows, task], 0.0))


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
        return np.asarray(np.exp(-after) - np.exp(-before))


REWARDS.add("improving", ImprovingReward)
REWARDS.add("trend", TrendReward)
REWARDS.add("pace", PaceReward)
REWARDS.add("before-after", BeforeAfter)
REWARDS.add("prediction-gain", PredictionGain)
REWARDS.add("likelihood-gain", LikelihoodGain)
