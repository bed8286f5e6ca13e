"""Policies that do not learn: the heuristics of paper 3, section 3.1, and common others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bursar.curriculum.policy import Course, Policy, Steering, named
from bursar.errors import ConfigError
from bursar.ragged import FloatArray


class Constant(Steering):
    """The same distribution at every step."""

    def __init__(self, shares: FloatArray, runs: int) -> None:
        self._shares: FloatArray = np.broadcast_to(shares, (runs, shares.shape[-1]))

    def probabilities(self, step: int) -> FloatArray:
        return self._shares


@named
@dataclass(frozen=True)
class UniformPolicy(Policy):
    """The same probability for every task (paper 3, eq. 3)."""

    name: ClassVar[str] = "uniform"

    def begin(self, course: Course) -> Steering:
        tasks = len(course.tasks)
        return Constant(np.full(tasks, 1 / tasks), course.runs)


@named
@dataclass(frozen=True)
class SizePolicy(Policy):
    """In proportion to the number of labelled items (paper 3, eq. 4), or to a root of it.

    ``temperature`` 1 is proportional; 2 takes square roots; larger values are closer to uniform.
    """

    name: ClassVar[str] = "size"
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.temperature < np.inf:
            raise ConfigError(f"policy 'size': temperature = {self.temperature}", fix="use a number above 0")

    def begin(self, course: Course) -> Steering:
        sizes = np.asarray(course.sizes, dtype=float)
        powers = (sizes / sizes.max()) ** (1 / self.temperature)
        return Constant(powers / powers.sum(), course.runs)


@named
@dataclass(frozen=True)
class FixedPolicy(Policy):
    """Given weights, the same at every step.

    If only some of its tasks are trained, those share the steps. Unknown tasks are refused.
    """

    name: ClassVar[str] = "fixed"
    weights: Mapping[str, float]

    def __post_init__(self) -> None:
        for task, weight in dict(self.weights).items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < np.inf:
                raise ConfigError(
                    f"policy 'fixed': the weight of {task!r} is {weight!r}", fix="use numbers of 0 or more"
                )

    def begin(self, course: Course) -> Steering:
        for task in course.tasks:
            if task not in self.weights:
                raise ConfigError(
                    f"the policy {self.name!r} does not know task {task!r}",
                    fix=f"its tasks are {', '.join(self.weights)}: learn one from logs of these tasks",
                )
        weights = np.array([self.weights[task] for task in course.tasks], dtype=float)
        if not weights.sum() > 0:
            raise ConfigError(f"the policy gives no weight to any of {', '.join(course.tasks)}")
        return Constant(weights / weights.sum(), course.runs)


@named
@dataclass(frozen=True)
class RoundRobinPolicy(Policy):
    """One task after the other. No other policy can be learned from its log, because nothing is random."""

    name: ClassVar[str] = "round-robin"

    def begin(self, course: Course) -> Steering:
        return _RoundRobin(course)


class _RoundRobin(Steering):
    def __init__(self, course: Course) -> None:
        self._turns = np.eye(len(course.tasks))
        self._runs = course.runs

    def probabilities(self, step: int) -> FloatArray:
        turn = self._turns[step % len(self._turns)]
        return np.broadcast_to(turn, (self._runs, len(turn)))
