"""Exp3.S: a bandit that learns during training (Auer et al. 2002; Graves et al. 2017; paper 3, eq. 5 and 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bursar.curriculum.policy import Course, Policy, Steering, check_losses, named, softmax
from bursar.curriculum.rewards import REWARDS, Reward
from bursar.errors import ConfigError
from bursar.ragged import FloatArray, IntArray
from bursar.random_streams import rng

LEAST = 1e-9  # lower bound of a probability before exploration, for safety; mixing keeps them far above it


def mixed(weights: FloatArray, explore: float) -> FloatArray:
    """Softmax of the weights, mixed with the uniform distribution: π of eq. 5."""
    return (1 - explore) * softmax(weights) + explore / weights.shape[-1]


def updated(weights: FloatArray, task: IntArray, reward: FloatArray, rate: float, step: int) -> FloatArray:
    """The weights after a step (eq. 5): the task's rises by reward over probability; then weights are mixed.

    ``step`` is the number of the new weights, counted from 1: at step t each task gives 1/t of its weight to others.
    """
    rows, tasks = np.arange(len(weights)), weights.shape[1]
    raised = weights.copy()
    chance = softmax(weights)[rows, task]
    raised[rows, task] += rate * reward / np.maximum(chance, LEAST)
    if tasks == 1:
        return raised
    share = 1 / step
    largest = raised.max(axis=1, keepdims=True)
    powers = np.exp(raised - largest)
    mixture = (1 - share) * powers + share / (tasks - 1) * (powers.sum(axis=1, keepdims=True) - powers)
    return np.asarray(np.log(np.maximum(mixture, 1e-300)) + largest)


def _quantiles(sample: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The 20th and 80th percentile of every row, equal to numpy's ``quantile`` at a fraction of its cost."""
    last = sample.shape[1] - 1
    places = 0.2 * last, 0.8 * last
    below = [int(place) for place in places]
    wanted = sorted({at for floor in below for at in (floor, min(floor + 1, last))})
    ordered = np.partition(sample, wanted, axis=1)
    low, high = (
        ordered[:, floor] + (place - floor) * (ordered[:, min(floor + 1, last)] - ordered[:, floor])
        for place, floor in zip(places, below, strict=True)
    )
    return low, high


class Reservoir:
    """A uniform sample of all rewards so far, and rewards rescaled by its quantiles (eq. 6)."""

    def __init__(self, runs: int, size: int, seed: int) -> None:
        self.sample = np.empty((runs, size))
        self.seen = 0
        self._rng = rng(seed, "reward reservoir")

    def add(self, rewards: FloatArray) -> None:
        """Add rewards; each reward so far is in the sample with the same probability."""
        size = self.sample.shape[1]
        if self.seen < size:
            self.sample[:, self.seen] = rewards
        else:
            place = self._rng.integers(self.seen + 1, size=len(rewards))
            kept = np.flatnonzero(place < size)
            self.sample[kept, place[kept]] = rewards[kept]
        self.seen += 1

    def scaled(self, rewards: FloatArray) -> FloatArray:
        """Rescale the 20th to 80th percentile to -1 to 1, and clip beyond them."""
        low, high = _quantiles(self.sample[:, : min(self.seen, self.sample.shape[1])])
        with np.errstate(divide="ignore", invalid="ignore"):
            between = np.where(high > low, 2 * (rewards - low) / (high - low) - 1, 0.0)
        return np.where(rewards < low, -1.0, np.where(rewards > high, 1.0, between))


@named
@dataclass(frozen=True)
class Exp3SPolicy(Policy):
    """Learns from the reward of every step, and forgets, because rewards change as tasks are learned."""

    name: ClassVar[str] = "exp3s"
    rate: float = 1e-3  # η
    explore: float = 0.05  # ε
    reward: str = "prediction-gain"
    reservoir: int = 1000

    def __post_init__(self) -> None:
        REWARDS[self.reward]
        if not 0 < self.rate < np.inf:
            raise ConfigError(f"policy 'exp3s': rate = {self.rate}", fix="use a number above 0, such as 0.001")
        if not 0 < self.explore <= 1:
            raise ConfigError(
                f"policy 'exp3s': explore = {self.explore}", fix="use a number above 0 and up to 1, such as 0.05"
            )
        if self.reservoir < 2:
            raise ConfigError(f"policy 'exp3s': reservoir = {self.reservoir}", fix="use at least 2")

    def begin(self, course: Course) -> Steering:
        return _Exp3S(self, course, REWARDS[self.reward](course))


class _Exp3S(Steering):
    def __init__(self, policy: Exp3SPolicy, course: Course, reward: Reward) -> None:
        self.policy, self.course, self.reward = policy, course, reward
        self.needs_after = reward.needs_after  # type: ignore[misc]
        self.weights: FloatArray = np.zeros((course.runs, len(course.tasks)))
        self.reservoir = Reservoir(course.runs, policy.reservoir, course.seed)
        self.updates = 1

    def probabilities(self, step: int) -> FloatArray:
        return mixed(self.weights, self.policy.explore)

    def observe(self, step: int, task: IntArray, before: FloatArray, after: FloatArray | None) -> None:
        check_losses(self.course, step, task, before if after is None else before + after)
        rewards = self.reward(task, before, after)
        self.reservoir.add(rewards)
        self.updates += 1
        self.weights = updated(self.weights, task, self.reservoir.scaled(rewards), self.policy.rate, self.updates)
