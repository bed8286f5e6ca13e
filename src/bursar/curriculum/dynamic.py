"""A policy that depends on the state of each task: paper 3's future work.

A fixed policy learned from a log needs a carefully chosen entropy weight, because it favours a task long after that
task has been learned. Here a task's probability depends on its *state*: the distance from a perfect likelihood, whether
it still improves, how long it has waited, and how much of the training is over. The weights are the same for all tasks,
so a policy learned on some tasks works for others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import entr

from bursar.curriculum.estimators import estimate, gather, mean_reward
from bursar.curriculum.improve import Improvement
from bursar.curriculum.logs import StepLog, check_logs
from bursar.curriculum.policy import Course, Policy, Steering, check_losses, named, softmax
from bursar.curriculum.rewards import LONGER, RECENT, TaskStates
from bursar.errors import ConfigError
from bursar.ragged import FloatArray, IntArray

FEATURES = ("shortfall", "pace", "shortfall x pace", "waiting", "shortfall x progress", "pace x progress")
EXPLORE = 0.05  # share of the steps spread evenly: no task is given up, and logs support learning
RIDGE = 1e-4  # keeps the weight of a feature that never varied at 0


def features_of(states: TaskStates, step: int, steps: int) -> FloatArray:
    """The features of every task: (runs, tasks, features), in the order of ``FEATURES``, mostly from 0 to 1.

    A task with fewer than three samples counts as one that improves fast.
    """
    progress = step / steps
    shortfall, pace = states.shortfall, np.where(states.seen < 3, 1.0, states.pace)
    waiting = np.log1p((step - states.last) / states.last.shape[1])
    return np.stack([shortfall, pace, shortfall * pace, waiting, shortfall * progress, pace * progress], axis=-1)


@named
@dataclass(frozen=True)
class DynamicPolicy(Policy):
    """A softmax of weighted features of each task's state, with the same weights for all tasks."""

    name: ClassVar[str] = "dynamic"
    weights: Mapping[str, float] = field(default_factory=lambda: {"pace": 4.0, "shortfall x pace": 0.5})
    recent: float = RECENT
    longer: float = LONGER
    explore: float = EXPLORE

    def __post_init__(self) -> None:
        for feature, weight in dict(self.weights).items():
            if feature not in FEATURES:
                raise ConfigError(f"policy 'dynamic' has no feature {feature!r}", fix=f"it has {', '.join(FEATURES)}")
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not np.isfinite(weight):
                raise ConfigError(f"policy 'dynamic': the weight of {feature!r} is {weight!r}", fix="use a number")
        if not 1 <= self.recent < self.longer:
            raise ConfigError(
                f"policy 'dynamic': recent = {self.recent}, longer = {self.longer}",
                fix="use recent of at least 1, and longer above recent",
            )
        if not 0 <= self.explore <= 1:
            raise ConfigError(f"policy 'dynamic': explore = {self.explore}", fix="use a share from 0 to 1")

    def begin(self, course: Course) -> Steering:
        weights = np.array([self.weights.get(feature, 0.0) for feature in FEATURES])
        return DynamicSteering(course, weights, self.recent, self.longer, self.explore)


class DynamicSteering(Steering):
    """Probabilities from states. ``weights`` are for all runs, (features,), or for each, (runs, features)."""

    def __init__(
        self, course: Course, weights: FloatArray, recent: float, longer: float, explore: float = EXPLORE
    ) -> None:
        self.course, self.explore = course, explore
        self.states = TaskStates(course, recent, longer)
        self.weights = np.broadcast_to(weights, (course.runs, len(FEATURES)))[:, :, None]

    def probabilities(self, step: int) -> FloatArray:
        chances = softmax((features_of(self.states, step, self.course.steps) @ self.weights)[:, :, 0])
        return (1 - self.explore) * chances + self.explore / chances.shape[1]

    def observe(self, step: int, task: IntArray, before: FloatArray, after: FloatArray | None) -> None:
        check_losses(self.course, step, task, before)
        self.states.observe(step, task, before)


def features_seen(
    course: Course, taken: IntArray, losses: FloatArray, recent: float = RECENT, longer: float = LONGER
) -> FloatArray:
    """The features at every step of logged trainings (steps, runs): (steps, runs, tasks, features)."""
    states = TaskStates(course, recent, longer)
    found = np.empty((*taken.shape, len(course.tasks), len(FEATURES)))
    for step in range(len(taken)):
        found[step] = features_of(states, step, course.steps)
        states.observe(step, taken[step], losses[step])
    return found


def learn_dynamic(
    logs: Sequence[StepLog], *, entropy: float = 0.1, reward: str = "pace", explore: float = EXPLORE
) -> Improvement:
    """The weights with the highest estimated reward, by self-normalised importance sampling over all logs.

    The objective is eq. 14's, with the mean entropy over the logged states. Rewards are in units of their standard
    deviation, so that one λ suits all signals. L-BFGS maximises it in a fraction of a second for thousands of steps.
    """
    check_logs(logs)
    if not 0 <= entropy < np.inf:
        raise ConfigError(f"entropy = {entropy}", fix="use 0 or more, such as 0.1")
    seen = [features_seen(log.course, log.taken[:, None], log.before[:, None])[:, 0] for log in logs]
    features = np.concatenate(seen)
    weights = best_weights(
        features,
        np.concatenate([log.taken for log in logs]),
        np.concatenate([log.probability for log in logs]),
        earned := np.concatenate([log.rewards(reward) for log in logs]),
        entropy,
    )
    learned = {feature: round(float(w), 6) for feature, w in zip(FEATURES, weights, strict=True)}
    policy = DynamicPolicy(learned, explore=explore)
    even = explore / len(logs[0].tasks)
    chances = [(1 - explore) * softmax(part @ weights) + even for part in seen]
    found = estimate(logs, chances, reward=reward)
    together = np.concatenate(chances)
    spread = float(entr(together).sum(axis=1).mean())
    return Improvement(
        policy=policy,
        estimate=found,
        logged=mean_reward(gather(logs, reward)),
        objective=found.value / (earned.std() or 1.0) + entropy * spread,
        entropy=spread,
        warnings=found.warnings,
    )


def best_weights(
    features: FloatArray, taken: IntArray, logged: FloatArray, rewards: FloatArray, entropy: float
) -> FloatArray:
    """The weights of features (steps, tasks, features) that maximise eq. 14 on logged steps."""
    steps = np.arange(len(taken))
    chosen = features[steps, taken]
    rewards = rewards / (rewards.std() or 1.0)

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        chances = softmax(features @ weights)
        parts = -entr(chances)
        ratios = chances[steps, taken] / logged
        value = float(ratios @ rewards / ratios.sum())
        mean = np.einsum("tk,tkf->tf", chances, features)
        slope = (ratios * (rewards - value)) @ (chosen - mean) / ratios.sum()
        spread_slope = (parts.sum(axis=1) @ mean - np.einsum("tk,tkf->f", parts, features)) / len(steps)
        objective = value - entropy * parts.sum() / len(steps) - RIDGE * float(weights @ weights)
        return -objective, -(slope + entropy * spread_slope - 2 * RIDGE * weights)

    options = {"maxiter": 100, "ftol": 1e-8}
    return np.asarray(minimize(loss, np.zeros(features.shape[2]), jac=True, method="L-BFGS-B", options=options).x)
