"""Off-policy estimates: the reward of another policy, from the logs of trainings (paper 3, section 3.3.1).

The value of a policy is the mean reward of a step. A logged step has a weight: the other policy's probability of the
task that was trained, over the logged one. Each estimator computes one number per step from weights and rewards; their
mean is the estimate, and the differences between means of blocks give its error.

Rewards are taken as logged: how another policy would have changed the *later* steps of a training is in no log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.special import stdtrit

from bursar.curriculum.logs import StepLog, check_logs, not_distributions, refuse
from bursar.curriculum.rewards import REWARDS
from bursar.errors import BursarError, ConfigError, DataError
from bursar.ragged import FloatArray, IntArray, offsets_of
from bursar.registry import Registry

Target = FloatArray | Sequence[FloatArray]  # (tasks,), or for every log (steps, tasks)

WEIGHTINGS = ("balanced", "own")
BLOCKS = 20  # number of blocks compared for an interval; long ones, because rewards of nearby steps are correlated
MOST_PARTS = 10  # most parts of a training with a reward model each
SHORTEST_PART = 20  # fewest steps of a part
WANTED = 1e-3  # smallest share of a policy for which a task missing in the logs matters
HARDLY = 1e-3  # smallest probability that supports an estimate
FEW, FEW_SHARE = 50, 0.05  # smallest effective sample, in steps and as a share of them
HEAVY = 0.1  # largest share of the weight for a single step


@dataclass(frozen=True)
class Estimate:
    """The mean reward per step of a policy, with its confidence interval and warnings."""

    value: float
    low: float
    high: float
    effective: float  # effective sample size (Σw)² / Σw²
    steps: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class LoggedSteps:
    """The steps of several logs, concatenated."""

    tasks: tuple[str, ...]
    offsets: IntArray  # (logs + 1,): start of each log, and the end
    taken: IntArray  # (steps,)
    probabilities: FloatArray  # (steps, tasks): as logged
    rewards: FloatArray  # (steps,)
    divisors: FloatArray  # (steps, tasks): denominators of the weights

    def __len__(self) -> int:
        return len(self.taken)

    def of_taken(self, table: FloatArray) -> FloatArray:
        """The entries of a (steps, tasks) table for the trained tasks: (steps,)."""
        return np.asarray(table[np.arange(len(self)), self.taken])

    def weights(self, target: FloatArray) -> FloatArray:
        """The weight of every step for a policy (steps, tasks)."""
        return self.of_taken(target) / self.of_taken(self.divisors)

    def place(self, step: int) -> str:
        """Names a step: logs are counted from 1, steps from 0 as in their files."""
        log = int(np.searchsorted(self.offsets, step, side="right"))
        return f"log {log}, step {step - self.offsets[log - 1]}"


# -- kernels: arrays over steps, whose mean is the estimate -----------------------------------------------------------
def importance(weights: FloatArray, rewards: FloatArray) -> FloatArray:
    """Importance sampling (paper 3, eq. 10): unbiased, with a high variance if weights are large."""
    return weights * rewards


def self_normalised(weights: FloatArray, rewards: FloatArray) -> FloatArray:
    """Weighted importance sampling (paper 3, eq. 11), linearised by the delta method."""
    value = weights @ rewards / weights.sum()
    return np.asarray(value + weights * (rewards - value) / weights.mean())


def clipped(weights: FloatArray, rewards: FloatArray, cap: float) -> FloatArray:
    """Importance sampling with capped weights: biased downwards for positive rewards, with less variance."""
    return np.minimum(weights, cap) * rewards


def default_cap(steps: int) -> float:
    """The square root of the number of steps: the bias vanishes as logs grow (Ionides 2008)."""
    return float(np.sqrt(steps))


def predictions(rewards: FloatArray, taken: IntArray, offsets: IntArray, tasks: int) -> FloatArray:
    """Mean reward of every task in the part of training around each step, from other steps: (steps, tasks).

    Each part is split in two; the steps of one half are predicted from those of the other, so that no step is used in
    its own prediction. Means are shrunk towards the task's mean over the log, that towards its mean over all logs, and
    that towards the mean of all tasks, each with the weight of one step. A task without steps gets the wider mean.
    """
    part, half, log = _parts(offsets)
    shape = len(log), 2, tasks
    cell = (part * 2 + half) * tasks + taken
    totals = np.bincount(cell, weights=rewards, minlength=np.prod(shape)).reshape(shape)
    counts = np.bincount(cell, minlength=np.prod(shape)).reshape(shape)
    of_log = np.zeros((2, len(offsets) - 1, 2, tasks))
    np.add.at(of_log[0], log, totals)
    np.add.at(of_log[1], log, counts)
    of_all = of_log.sum(axis=1)
    overall = of_all.sum(axis=2, keepdims=True)
    mean = overall[0] / np.maximum(overall[1], 1)
    mean = (of_all[0] + mean) / (of_all[1] + 1)
    mean = (of_log[0] + mean) / (of_log[1] + 1)
    mean = (totals + mean[log]) / (counts + 1)
    return np.asarray(mean[part, 1 - half])


def _parts(offsets: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The part and the half of it that each step is in, and the log of every part."""
    lengths = np.diff(offsets)
    parts = np.clip(lengths // SHORTEST_PART, 1, MOST_PARTS)
    first = offsets_of(parts)
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    piece = within * np.repeat(2 * parts, lengths) // np.repeat(lengths, lengths)
    return np.repeat(first[:-1], lengths) + piece // 2, piece % 2, np.repeat(np.arange(len(parts)), parts)


def interval(contributions: FloatArray, offsets: IntArray, level: float) -> tuple[float, float]:
    """A confidence interval of the mean, from the means of contiguous blocks within each log.

    Blocks are compared within their log only: differences between logs are due to their policies. A trend along a log
    counts as error, so the interval is conservative. It is infinite if no log has two blocks.
    """
    steps = len(contributions)
    value = float(contributions.mean())
    variances, freedoms = [], []
    for begin, end in pairwise(offsets.tolist()):
        blocks = min(end - begin, max(2, round((end - begin) * BLOCKS / steps)))
        if blocks < 2:
            continue
        starts = np.arange(blocks) * (end - begin) // blocks
        sizes = np.diff(starts, append=end - begin)
        sums = np.add.reduceat(contributions[begin:end], starts)
        apart = sums - sizes * contributions[begin:end].mean()
        variances.append(blocks / (blocks - 1) * float(apart @ apart) / steps**2)
        freedoms.append(blocks - 1)
    if not variances:
        return -np.inf, np.inf
    total = sum(variances)
    if total == 0:
        return value, value
    freedom = total**2 / sum(v * v / f for v, f in zip(variances, freedoms, strict=True))  # Satterthwaite
    reach = float(stdtrit(freedom, (1 + level) / 2)) * total**0.5
    return value - reach, value + reach


# -- estimators by name -----------------------------------------------------------------------------------------------
# From steps and a policy (steps, tasks): numbers per step whose mean is the estimate, and warnings.
Estimator = Callable[[LoggedSteps, FloatArray], tuple[FloatArray, tuple[str, ...]]]

ESTIMATORS: Registry[Estimator] = Registry("policy estimator", "bursar.policy_estimators")
ESTIMATORS.add("importance", lambda steps, target: (importance(steps.weights(target), steps.rewards), ()))
ESTIMATORS.add("self-normalised", lambda steps, target: (self_normalised(steps.weights(target), steps.rewards), ()))


def _clipped(steps: LoggedSteps, target: FloatArray) -> tuple[FloatArray, tuple[str, ...]]:
    weights, cap = steps.weights(target), default_cap(len(steps))
    cut = int((weights > cap).sum())
    lost = np.maximum(weights - cap, 0).sum() / weights.sum()
    warning = f"{cut:,} of {len(steps):,} weights were capped at {cap:.1f}: {lost:.1%} of the weight is lost"
    return clipped(weights, steps.rewards, cap), (warning,) if cut else ()


def _doubly_robust(steps: LoggedSteps, target: FloatArray) -> tuple[FloatArray, tuple[str, ...]]:
    """A reward model's expectation, corrected by its weighted errors: without bias (Dudík et al. 2011)."""
    predicted = predictions(steps.rewards, steps.taken, steps.offsets, len(steps.tasks))
    expected = (target * coverage(steps) * predicted).sum(axis=1)
    return expected + steps.weights(target) * (steps.rewards - steps.of_taken(predicted)), ()


ESTIMATORS.add("clipped", _clipped)
ESTIMATORS.add("doubly-robust", _doubly_robust)


def coverage(steps: LoggedSteps) -> FloatArray:
    """The logged probability of each task over the denominator of its weight: (steps, tasks).

    It is 1 if steps are weighted by their own log's probabilities, and 1 on average over logs if they are balanced. For
    a task with probability 0 there is only the reward model: 1 as well.
    """
    ones = np.ones_like(steps.probabilities)
    return np.divide(steps.probabilities, steps.divisors, out=ones, where=steps.divisors > 0)


# -- from logs to an estimate -----------------------------------------------------------------------------------------
def estimate(
    logs: Sequence[StepLog],
    target: Target,
    *,
    estimator: str = "self-normalised",
    reward: str = "improving",
    weighting: str = "balanced",
    level: float = 0.95,
) -> Estimate:
    """Estimate the mean reward per step of a policy from the logs of other policies.

    ``target`` is a distribution over tasks or, for a policy that depends on its state, the distributions at every step
    of every log: a list of (steps, tasks). ``weighting`` "own" divides by the step's own logged probability, "balanced"
    by the average probability over all logs (Agarwal et al. 2017), which has less variance and assumes that the logs
    are of similar trainings. It needs policies that do not change along a log; otherwise "own" is used, with a warning.
    """
    steps = gather(logs, reward)
    chances = spread(steps, target)
    steps, warnings = weighed(steps, weighting, fixed=bool((chances == chances[0]).all()))
    return assess(steps, chances, estimator, level, warnings)


def gather(logs: Sequence[StepLog], reward: str = "improving") -> LoggedSteps:
    """The steps of all logs, each with its own log's probabilities."""
    check_logs(logs)
    probabilities = np.concatenate([log.probabilities for log in logs], dtype=np.float64)
    rewards = np.concatenate([_rewards(log, number, reward) for number, log in enumerate(logs, start=1)])
    taken = np.concatenate([log.taken for log in logs])
    offsets = offsets_of([len(log) for log in logs])
    return LoggedSteps(logs[0].tasks, offsets, taken, probabilities, rewards, probabilities)


def _rewards(log: StepLog, number: int, reward: str) -> FloatArray:
    REWARDS[reward]  # an unknown name is not an error of the log
    try:
        found = log.rewards(reward)
    except BursarError as wrong:
        raise ConfigError(f"log {number}: {wrong.message}", fix=wrong.fix) from None
    refuse(number, ~np.isfinite(found), lambda step: f"the reward {reward!r} of {log.trained(step)} is {found[step]}")
    return found


def spread(steps: LoggedSteps, target: Target) -> FloatArray:
    """A policy's probabilities at every step: (steps, tasks). Invalid distributions are refused."""
    if isinstance(target, np.ndarray) and target.ndim == 2:
        target = [target]
    parts = [target] if isinstance(target, np.ndarray) else [np.asarray(part, dtype=float) for part in target]
    tasks = len(steps.tasks)
    if len(parts) == 1 and parts[0].shape == (tasks,):
        if not_distributions(parts[0][None]).any():
            raise ConfigError(f"the target policy: {parts[0].tolist()} are not probabilities that sum to 1")
        return np.broadcast_to(parts[0], (len(steps), tasks))
    lengths = np.diff(steps.offsets).tolist()
    if [part.shape for part in parts] != [(length, tasks) for length in lengths]:
        raise ConfigError(
            f"the target policy has the shape {', '.join(str(part.shape) for part in parts)}",
            fix=f"give ({tasks},) or for every log (steps, tasks): {', '.join(f'({n}, {tasks})' for n in lengths)}",
        )
    chances = np.concatenate(parts)
    wrong = np.flatnonzero(not_distributions(chances))
    if len(wrong):
        row = chances[wrong[0]].tolist()
        raise ConfigError(f"the target policy: {steps.place(int(wrong[0]))}: {row} are not probabilities that sum to 1")
    return chances


def weighed(steps: LoggedSteps, weighting: str, *, fixed: bool) -> tuple[LoggedSteps, tuple[str, ...]]:
    """The steps with the denominators of their weights; ``fixed`` means that the target policy never changes.

    If balancing would be wrong, the steps are returned unchanged, with a warning.
    """
    if weighting not in WEIGHTINGS:
        raise ConfigError(f"there is no weighting {weighting!r}", fix=f"use {' or '.join(WEIGHTINGS)}")
    logs = len(steps.offsets) - 1
    if weighting == "own" or logs == 1:
        return steps, ()
    instead = "so every step is weighted by its own log's probabilities, not balanced between logs"
    for log, (begin, end) in enumerate(pairwise(steps.offsets.tolist()), start=1):
        if np.ptp(steps.probabilities[begin:end], axis=0).max() > 1e-9:
            return steps, (f"the policy of log {log} changes from step to step, {instead}",)
    if np.ptp(steps.probabilities, axis=0).max() <= 1e-9:
        return steps, ()  # one policy in all logs: nothing to balance
    if not fixed:
        return steps, (f"the target policy changes from step to step, {instead}",)
    average = np.broadcast_to(steps.probabilities.mean(axis=0), steps.probabilities.shape)
    return replace(steps, divisors=average), ()


def assess(
    steps: LoggedSteps, target: FloatArray, estimator: str, level: float = 0.95, warnings: tuple[str, ...] = ()
) -> Estimate:
    """Estimate the value of a policy (steps, tasks) from weighed steps."""
    kind = ESTIMATORS[estimator]
    if not 0 < level < 1:
        raise ConfigError(f"level = {level}", fix="use a number between 0 and 1, such as 0.95")
    weights = steps.weights(target)
    if not weights.sum() > 0:
        raise DataError(
            "the logs do not cover this policy: none of their steps trained one of its tasks",
            fix="log a policy that gives every task a positive probability",
        )
    contributions, more = kind(steps, target)
    low, high = interval(contributions, steps.offsets, level)
    short = () if np.isfinite(low) else ("no log has two steps, so there is no interval",)
    effective = float(weights.sum() ** 2 / (weights @ weights))
    warnings = (*warnings, *_doubts(steps, target, weights, effective), *more, *short)
    return Estimate(float(contributions.mean()), low, high, effective, len(steps), warnings)


def mean_reward(steps: LoggedSteps, level: float = 0.95) -> Estimate:
    """The mean reward of the logged steps."""
    low, high = interval(steps.rewards, steps.offsets, level)
    return Estimate(float(steps.rewards.mean()), low, high, float(len(steps)), len(steps))


def _doubts(steps: LoggedSteps, target: FloatArray, weights: FloatArray, effective: float) -> Iterator[str]:
    """Warnings about tasks of the policy that the logs hardly cover, and about a small effective sample."""
    share = target.mean(axis=0)
    hardly = steps.divisors < HARDLY
    missed = (target * hardly).mean(axis=0)
    taken = np.bincount(steps.taken, minlength=len(steps.tasks))
    for k, task in enumerate(steps.tasks):
        if share[k] > WANTED and not taken[k]:
            yield f"task {task!r} has {share[k]:.1%} of the policy, but no logged step trained it"
        elif missed[k] > WANTED:
            yield (
                f"task {task!r} is part of the policy, but had a probability below {HARDLY:.1%} "
                f"at {int(hardly[:, k].sum()):,} of {len(steps):,} logged steps"
            )
    if effective < max(FEW, FEW_SHARE * len(steps)):
        yield f"the effective sample size is {effective:,.1f} of {len(steps):,} steps: too small to trust the estimate"
    heaviest = int(weights.argmax())
    if (part := weights[heaviest] / weights.sum()) > HEAVY:
        yield f"a single step ({steps.place(heaviest)}) carries {part:.0%} of the weight"
