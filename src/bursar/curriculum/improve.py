"""Learn a fixed policy from logs: the one with the highest estimated value plus entropy.

Paper 3, section 3.3.2: max over π of V(π) + λ H(π) (eq. 14), π the softmax of one weight per task (eq. 12). For fixed
policies the steps of a log reduce to a few sums per task, so that the cost of a candidate does not grow with the log,
and a generation of candidates is one matrix product.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import entr

from bursar.curriculum.estimators import (
    ESTIMATORS,
    Estimate,
    LoggedSteps,
    assess,
    coverage,
    default_cap,
    gather,
    mean_reward,
    predictions,
    spread,
    weighed,
)
from bursar.curriculum.fixed import FixedPolicy
from bursar.curriculum.logs import StepLog
from bursar.curriculum.policy import Policy, softmax
from bursar.errors import ConfigError
from bursar.ragged import BoolArray, FloatArray

HARDLY = 1e-3  # share below which a task is hardly ever trained
SPREAD = 1.0  # standard deviation of the first generation's weights
SMALLEST_POPULATION = 4  # CMA-ES cannot estimate a covariance from fewer


@dataclass(frozen=True)
class CmaEs:
    """The settings of the search by CMA-ES."""

    iterations: int = 50
    population: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        if self.iterations < 1:
            raise ConfigError(f"iterations = {self.iterations}", fix="use at least 1")
        if self.population < SMALLEST_POPULATION:
            raise ConfigError(f"population = {self.population}", fix=f"use at least {SMALLEST_POPULATION}, such as 64")


@dataclass(frozen=True)
class Improvement:
    """A learned policy and its estimate, which is optimistic: the policy was chosen on the same logs."""

    policy: Policy
    objective: float  # the estimate plus λ times the entropy
    estimate: Estimate  # of the learned policy
    logged: Estimate  # mean reward of the logged policies
    entropy: float  # of the learned policy, in nats
    warnings: tuple[str, ...] = ()

    @property
    def gain(self) -> float:
        """The estimated increase of the reward per step."""
        return self.estimate.value - self.logged.value


def improve(
    logs: Sequence[StepLog],
    *,
    entropy: float = 0.5,
    estimator: str = "self-normalised",
    reward: str = "improving",
    weighting: str = "balanced",
    search: CmaEs | None = None,
    level: float = 0.95,
) -> Improvement:
    """The fixed policy with the highest estimated value by all logs (paper 3, eq. 14).

    ``entropy`` is λ: smaller values trust the logs more. The default is far above the paper's, which does worse than
    uniform (errata 22). CMA-ES comes within 1e-6 of the best objective for λ of 0.2 and more; for less it may give
    tasks 0 instead of some thousandths, because a softmax is flat there.
    """
    if not 0 <= entropy < np.inf:
        raise ConfigError(f"entropy = {entropy}", fix="use 0 or more, such as 0.5")
    steps, warnings = weighed(gather(logs, reward), weighting, fixed=True)
    value = objective_of(steps, estimator)
    corner = value.corner() if entropy == 0 else None
    if len(steps.tasks) == 1:
        policy: FloatArray = np.ones(1)
    elif corner is not None:
        policy = corner
        favoured = [task for task, share in zip(steps.tasks, policy, strict=True) if share > 0]
        warnings = (*warnings, f"without entropy the best policy is a corner: it trains only {', '.join(favoured)}")
    else:
        policy = evolve(value, entropy, len(steps.tasks), search or CmaEs())
    if corner is None:  # labels bought for such a task would be wasted
        starved = [task for task, share in zip(steps.tasks, policy.tolist(), strict=True) if share < HARDLY]
        warnings = (*warnings, *(f"task {task!r} would hardly ever be trained" for task in starved))
    found = assess(steps, spread(steps, policy), estimator, level, warnings)
    return Improvement(
        policy=FixedPolicy(dict(zip(steps.tasks, policy.tolist(), strict=True))),
        objective=float(regularised(value, policy[None], entropy)[0]),
        estimate=found,
        logged=mean_reward(steps, level),
        entropy=float(entr(policy).sum()),
        warnings=found.warnings,
    )


# -- values of many fixed policies at once ----------------------------------------------------------------------------
class PolicyValue(ABC):
    """An estimator as a function of fixed policies: (candidates, tasks) to (candidates,)."""

    @abstractmethod
    def __call__(self, policies: FloatArray) -> FloatArray:
        """The value of each."""

    def corner(self) -> FloatArray | None:
        """The best policy without entropy, if it is known to be one task (or several equally good ones)."""
        return None


@dataclass(frozen=True, eq=False)
class Linear(PolicyValue):
    """Σ_k π_k gain_k: for importance sampling, where gain is Σ r / p over the task's steps, and doubly robust."""

    gains: FloatArray  # (tasks,)
    known: BoolArray  # (tasks,): whether any step trained the task

    def __call__(self, policies: FloatArray) -> FloatArray:
        return policies @ self.gains

    def corner(self) -> FloatArray:
        return closed_form(np.where(self.known, self.gains, -np.inf), 0.0)


@dataclass(frozen=True, eq=False)
class Ratio(PolicyValue):
    """Σ_k π_k earned_k / Σ_k π_k weight_k: for self-normalised, where earned is Σ r / p and weight Σ 1 / p."""

    earned: FloatArray  # (tasks,)
    weight: FloatArray  # (tasks,)

    def __call__(self, policies: FloatArray) -> FloatArray:
        weight = policies @ self.weight
        known = weight > 0
        return np.where(known, policies @ self.earned / np.where(known, weight, 1.0), -np.inf)

    def corner(self) -> FloatArray:
        return closed_form(self(np.eye(len(self.weight))), 0.0)


class Capped(PolicyValue):
    """For clipped: a task's steps sorted by probability, so that those whose weight is capped come first."""

    def __init__(self, steps: LoggedSteps, cap: float) -> None:
        self.cap, self.steps = cap, len(steps)
        self.sorted: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        chances = steps.of_taken(steps.divisors)
        for k in range(len(steps.tasks)):
            mine = np.flatnonzero(steps.taken == k)
            mine = mine[np.argsort(chances[mine], kind="stable")]
            rewards, divisors = steps.rewards[mine], chances[mine]
            # Rewards of the first j, if these are capped, and of the others, over p.
            cut = np.append(0.0, np.cumsum(rewards))
            whole = np.append(np.cumsum((rewards / divisors)[::-1])[::-1], 0.0)
            self.sorted.append((divisors, cut, whole))

    def __call__(self, policies: FloatArray) -> FloatArray:
        total = np.zeros(len(policies))
        for share, (divisors, cut, whole) in zip(policies.T, self.sorted, strict=True):
            first = np.searchsorted(divisors, share / self.cap)
            total += self.cap * cut[first] + share * whole[first]
        return total / self.steps


@dataclass(frozen=True, eq=False)
class Stepwise(PolicyValue):
    """For any other estimator: policy by policy, over all steps."""

    steps: LoggedSteps
    estimator: str

    def __call__(self, policies: FloatArray) -> FloatArray:
        estimator = ESTIMATORS[self.estimator]
        return np.array([estimator(self.steps, spread(self.steps, policy))[0].mean() for policy in policies])


def objective_of(steps: LoggedSteps, estimator: str) -> PolicyValue:
    """An estimator's value as a function of fixed policies."""
    ESTIMATORS[estimator]
    tasks = len(steps.tasks)
    chances = steps.of_taken(steps.divisors)

    def per_task(numbers: FloatArray) -> FloatArray:
        return np.bincount(steps.taken, weights=numbers / chances, minlength=tasks) / len(steps)

    known = np.bincount(steps.taken, minlength=tasks) > 0
    if estimator == "importance":
        return Linear(per_task(steps.rewards), known)
    if estimator == "self-normalised":
        return Ratio(per_task(steps.rewards), per_task(np.ones(len(steps))))
    if estimator == "clipped":
        return Capped(steps, default_cap(len(steps)))
    if estimator == "doubly-robust":
        predicted = predictions(steps.rewards, steps.taken, steps.offsets, tasks)
        missed = per_task(steps.rewards - steps.of_taken(predicted))
        return Linear((coverage(steps) * predicted).mean(axis=0) + missed, known)
    return Stepwise(steps, estimator)


def regularised(value: PolicyValue, policies: FloatArray, entropy: float) -> FloatArray:
    """Eq. 14: V(π) + λ H(π)."""
    return np.asarray(value(policies) + entropy * entr(policies).sum(axis=1))


# -- solvers ----------------------------------------------------------------------------------------------------------
def evolve(value: PolicyValue, entropy: float, tasks: int, settings: CmaEs) -> FloatArray:
    """The best softmax of weights (eq. 12) by CMA-ES: the best candidate, or the final mean."""
    try:
        from cmaes import CMA  # type: ignore[import-untyped]  # here, because it imports all of scipy.stats
    except ImportError:
        raise ConfigError("cmaes is not installed", fix="install it: pip install 'bursar[policies]'") from None

    search = CMA(mean=np.zeros(tasks), sigma=SPREAD, population_size=settings.population, seed=settings.seed)
    best, highest = np.full(tasks, 1 / tasks), -np.inf
    for _ in range(settings.iterations):
        candidates = np.array([search.ask() for _ in range(settings.population)])
        policies = softmax(np.vstack([candidates, search.mean]))
        heights = regularised(value, policies, entropy)
        if heights.max() > highest:
            best, highest = policies[heights.argmax()], heights.max()
        search.tell([(candidate, -height) for candidate, height in zip(candidates, heights[:-1].tolist(), strict=True)])
        if search.should_stop():
            break
    centre: FloatArray = softmax(search.mean)
    return centre if regularised(value, centre[None], entropy)[0] >= highest else best


def closed_form(mean_rewards: FloatArray, entropy: float) -> FloatArray:
    """π_k ∝ exp(mean reward of k / λ): the optimum where the sum of weights is the same for all policies (errata 22).

    Without entropy the best task gets everything; equally good tasks share it.
    """
    if entropy == 0:
        best = mean_rewards == mean_rewards.max()
        return np.asarray(best / best.sum())
    return softmax(mean_rewards / entropy)
