"""What would another policy have earned? Estimates from the logs of trainings (paper 3, section 3.3.1).

The value of a policy is the mean reward of a step. A logged step counts for another policy by its weight: that policy's
chance of the task that was trained over the logged chance of it. Each estimator makes one number a step of weights and
rewards; the mean of these numbers is the estimate, and how the means of blocks of them differ is its error.

A reward is taken as it was logged: what another policy would have made of the *later* steps of a training is in no log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.special import stdtrit

from bursar.curriculum.logs import StepLog, check_logs, refuse, unlike_chances
from bursar.curriculum.rewards import REWARDS
from bursar.errors import BursarError, ConfigError, DataError
from bursar.ragged import FloatArray, IntArray, offsets_of
from bursar.registry import Registry

Target = FloatArray | Sequence[FloatArray]  # (tasks,), or for every log (steps, tasks)

WEIGHTINGS = ("balanced", "own")
BLOCKS = 20  # about so many blocks are compared for an interval: long ones, because rewards of near steps are alike
STRETCHES = 10  # at most so many parts of a training have a reward model of their own
STRETCH = 20  # and none is shorter than this many steps
WANTED = 1e-3  # a task with less of a policy than this is not missed where logs lack it
HARDLY = 1e-3  # a chance below this is almost none
FEW, FEW_SHARE = 50, 0.05  # an effective sample below this many steps, or this share of them, is too small
HEAVY = 0.1  # a single step should not carry more of the weight than this


@dataclass(frozen=True)
class Estimate:
    """The mean reward a step of a policy, with its confidence interval and what should make one doubt it."""

    value: float
    low: float
    high: float
    effective: float  # (Σw)² / Σw²: how many steps of the policy itself the logged ones are worth
    steps: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of several logs, one after another."""

    tasks: tuple[str, ...]
    offsets: IntArray  # (logs + 1,): where each log begins, and the end
    taken: IntArray  # (steps,)
    probabilities: FloatArray  # (steps, tasks): as logged
    rewards: FloatArray  # (steps,)
    divisors: FloatArray  # (steps, tasks): the chances that weights are divided by

    def __len__(self) -> int:
        return len(self.taken)

    def of_taken(self, table: FloatArray) -> FloatArray:
        """From (steps, tasks) the entries of the tasks that were trained: (steps,)."""
        found: FloatArray = table[np.arange(len(self)), self.taken]
        return found

    def weights(self, target: FloatArray) -> FloatArray:
        """What every step counts for a policy (steps, tasks)."""
        return self.of_taken(target) / self.of_taken(self.divisors)

    def place(self, step: int) -> str:
        """Logs are counted from 1, steps from 0 as in their files."""
        log = int(np.searchsorted(self.offsets, step, side="right"))
        return f"log {log}, step {step - self.offsets[log - 1]}"


# -- kernels: arrays over steps; the mean of what comes out is the estimate -------------------------------------------
def importance(weights: FloatArray, rewards: FloatArray) -> FloatArray:
    """Importance sampling (paper 3, eq. 10): unbiased, and of high variance where weights are large.

    >>> importance(np.array([0.5, 1.5, 2.0]), np.array([1.0, 1.0, 0.0])).mean().round(4).item()
    0.6667
    """
    return weights * rewards


def self_normalised(weights: FloatArray, rewards: FloatArray) -> FloatArray:
    """Weighted importance sampling (paper 3, eq. 11), linearised about its value: the delta method.

    >>> self_normalised(np.array([0.5, 1.5, 2.0]), np.array([1.0, 1.0, 0.0])).mean().round(4).item()
    0.5
    """
    value = weights @ rewards / weights.sum()
    linear: FloatArray = value + weights * (rewards - value) / weights.mean()
    return linear


def clipped(weights: FloatArray, rewards: FloatArray, cap: float | None = None) -> FloatArray:
    """Importance sampling with weights cut at a cap: too low for rewards above 0, but steadier.

    The default cap is the root of the number of steps: then the bias goes to 0 as logs grow (Ionides 2008).

    >>> clipped(np.array([0.5, 1.5, 4.0]), np.array([1.0, 1.0, 1.0]), cap=2.0).mean().round(4).item()
    1.3333
    """
    return np.minimum(weights, default_cap(len(weights)) if cap is None else cap) * rewards


def default_cap(steps: int) -> float:
    """The largest weight that a step keeps when weights are cut."""
    return float(np.sqrt(steps))


def doubly_robust(weights: FloatArray, rewards: FloatArray, predicted: FloatArray, expected: FloatArray) -> FloatArray:
    """What a reward model expects of the policy, corrected by weighting what it got wrong (Dudík et al. 2011).

    ``predicted`` is the model's reward of the task that was trained, ``expected`` the mean over the tasks that could
    have been of weight times prediction. A model that knows nothing of a step's own outcome leaves no bias.

    >>> doubly_robust(np.array([0.0, 2.0]), np.array([1.0, 4.0]), np.array([1.0, 3.0]), np.array([3.0, 3.0])).mean()
    np.float64(4.0)
    """
    return expected + weights * (rewards - predicted)


def predictions(rewards: FloatArray, taken: IntArray, offsets: IntArray, tasks: int) -> FloatArray:
    """Mean reward of every task in the stretch of training about each step, from other steps: (steps, tasks).

    Each stretch is cut in two; the steps of one half are predicted from those of the other, so that no step has a part
    in its own prediction. A mean of few steps is drawn towards the task's mean over the log, that towards its mean over
    all logs, and that towards the mean of all tasks, each as by one more step: where a task has no step in a stretch,
    the wider mean stands in.

    >>> rewards, taken = np.array([1.0, 5.0, 3.0, 7.0]), np.array([0, 0, 0, 0])
    >>> predictions(rewards, taken, np.array([0, 4]), tasks=1).ravel().tolist()
    [5.0, 5.0, 3.0, 3.0]
    """
    stretch, half, log = _stretches(offsets)
    shape = len(log), 2, tasks
    cell = (stretch * 2 + half) * tasks + taken
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
    found: FloatArray = mean[stretch, 1 - half]
    return found


def _stretches(offsets: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The stretch and the half of it that each step is in, and the log of every stretch."""
    lengths = np.diff(offsets)
    parts = np.clip(lengths // STRETCH, 1, STRETCHES)
    first = offsets_of(parts)
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    piece = within * np.repeat(2 * parts, lengths) // np.repeat(lengths, lengths)
    return np.repeat(first[:-1], lengths) + piece // 2, piece % 2, np.repeat(np.arange(len(parts)), parts)


def interval(contributions: FloatArray, offsets: IntArray, level: float) -> tuple[float, float]:
    """A confidence interval of the mean, from the means of contiguous blocks within each log.

    Blocks are compared with their own log only: what differs between logs because their policies do is no error. A
    trend along a log counts as error, so that the interval is rather too wide than too narrow. Without two blocks in
    any log there is none: it is infinite.

    >>> low, high = interval(np.tile([0.0, 1.0], 50), np.array([0, 100]), level=0.95)
    >>> round(low, 3), round(high, 3)
    (0.452, 0.548)
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
# Of steps and a policy (steps, tasks): a number a step whose mean is the estimate, and what to beware of.
Estimator = Callable[[Steps, FloatArray], tuple[FloatArray, tuple[str, ...]]]

ESTIMATORS: Registry[Estimator] = Registry("policy estimator", "bursar.policy_estimators")
ESTIMATORS.add("importance", lambda steps, target: (importance(steps.weights(target), steps.rewards), ()))
ESTIMATORS.add("self-normalised", lambda steps, target: (self_normalised(steps.weights(target), steps.rewards), ()))


def _clipped(steps: Steps, target: FloatArray) -> tuple[FloatArray, tuple[str, ...]]:
    weights, cap = steps.weights(target), default_cap(len(steps))
    cut = int((weights > cap).sum())
    lost = np.maximum(weights - cap, 0).sum() / weights.sum()
    said = f"{cut:,} of {len(steps):,} weights were cut at {cap:.1f}: {lost:.1%} of the weight is left out"
    return clipped(weights, steps.rewards, cap), (said,) if cut else ()


def _doubly_robust(steps: Steps, target: FloatArray) -> tuple[FloatArray, tuple[str, ...]]:
    predicted = predictions(steps.rewards, steps.taken, steps.offsets, len(steps.tasks))
    expected = (target * coverage(steps) * predicted).sum(axis=1)
    return doubly_robust(steps.weights(target), steps.rewards, steps.of_taken(predicted), expected), ()


ESTIMATORS.add("clipped", _clipped)
ESTIMATORS.add("doubly-robust", _doubly_robust)


def coverage(steps: Steps) -> FloatArray:
    """How often a step brings each task, over the chance that its weight is divided by: (steps, tasks).

    It is 1 when steps are weighted by their own chances. A balanced step stands for those of other logs too, so there
    it is 1 on average over logs. A task without any chance has only the reward model to speak for it: 1 as well.
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
    """What a policy would have earned a step, from the logs of other policies.

    ``target`` is a distribution over tasks, or for a policy that depends on its state the distributions at every step
    of every log: a list of (steps, tasks). ``weighting`` "own" divides by the chance that the step's own logger gave
    the task; "balanced" by the average chance over all logs (Agarwal et al. 2017), which has less variance and takes
    the logs to be trainings alike. That needs policies which do not change along a log: otherwise it is "own", and a
    warning says so.

    >>> log = StepLog(("a", "b"), (1, 1), planned=4, taken=np.array([0, 1, 0, 1]), probabilities=np.full((4, 2), 0.5),
    ...     before=np.array([1.0, 3.0, 1.0, 3.0]), after=np.zeros(4))
    >>> found = estimate([log], np.array([0.25, 0.75]), reward="prediction-gain")
    >>> found.value, found.effective, found.steps
    (2.5, 3.2, 4)
    """
    steps = gather(logs, reward)
    chances = spread(steps, target)
    steps, said = weighed(steps, weighting, fixed=bool((chances == chances[0]).all()))
    return assess(steps, chances, estimator, level, said)


def gather(logs: Sequence[StepLog], reward: str = "improving") -> Steps:
    """The steps of all logs together, each with its own logger's chances."""
    check_logs(logs)
    probabilities = np.concatenate([log.probabilities for log in logs], dtype=np.float64)
    rewards = np.concatenate([_rewards(log, number, reward) for number, log in enumerate(logs, start=1)])
    taken = np.concatenate([log.taken for log in logs])
    return Steps(logs[0].tasks, offsets_of([len(log) for log in logs]), taken, probabilities, rewards, probabilities)


def _rewards(log: StepLog, number: int, reward: str) -> FloatArray:
    REWARDS[reward]  # an unknown one is no fault of the log
    try:
        found = log.rewards(reward)
    except BursarError as wrong:
        raise ConfigError(f"log {number}: {wrong.message}", fix=wrong.fix) from None
    refuse(
        number,
        ~np.isfinite(found),
        lambda step: f"the reward {reward!r} of task {log.tasks[log.taken[step]]!r} is {found[step]}",
    )
    return found


def spread(steps: Steps, target: Target) -> FloatArray:
    """A policy's chances at every step: (steps, tasks). What are no chances is refused."""
    if isinstance(target, np.ndarray) and target.ndim == 2:
        target = [target]
    parts = [target] if isinstance(target, np.ndarray) else [np.asarray(part, dtype=float) for part in target]
    tasks = len(steps.tasks)
    if len(parts) == 1 and parts[0].shape == (tasks,):
        if unlike_chances(parts[0][None]).any():
            raise ConfigError(f"the policy asked for: {parts[0].tolist()} are no chances that sum to 1")
        return np.broadcast_to(parts[0], (len(steps), tasks))
    lengths = np.diff(steps.offsets).tolist()
    if [part.shape for part in parts] != [(length, tasks) for length in lengths]:
        raise ConfigError(
            f"the policy asked for has the shape {', '.join(str(part.shape) for part in parts)}",
            fix=f"give ({tasks},) or for every log (steps, tasks): {', '.join(f'({n}, {tasks})' for n in lengths)}",
        )
    chances = np.concatenate(parts)
    wrong = np.flatnonzero(unlike_chances(chances))
    if len(wrong):
        row = chances[wrong[0]].tolist()
        raise ConfigError(f"the policy asked for: {steps.place(int(wrong[0]))}: {row} are no chances that sum to 1")
    return chances


def weighed(steps: Steps, weighting: str, *, fixed: bool) -> tuple[Steps, tuple[str, ...]]:
    """The steps with the chances that their weights are divided by; ``fixed`` says that the policy asked for never
    changes. Where balancing would be wrong the steps stay as they are, and a warning says why.
    """
    if weighting not in WEIGHTINGS:
        raise ConfigError(f"there is no weighting {weighting!r}", fix=f"use {' or '.join(WEIGHTINGS)}")
    logs = len(steps.offsets) - 1
    if weighting == "own" or logs == 1:
        return steps, ()
    instead = "so every step is weighted by its own log's chances, not balanced between logs"
    for log, (begin, end) in enumerate(pairwise(steps.offsets.tolist()), start=1):
        if np.ptp(steps.probabilities[begin:end], axis=0).max() > 1e-9:
            return steps, (f"the policy of log {log} changes from step to step, {instead}",)
    if np.ptp(steps.probabilities, axis=0).max() <= 1e-9:
        return steps, ()  # all logs are of one policy: there is nothing to balance
    if not fixed:
        return steps, (f"the policy asked for changes from step to step, {instead}",)
    average = np.broadcast_to(steps.probabilities.mean(axis=0), steps.probabilities.shape)
    return replace(steps, divisors=average), ()


def assess(
    steps: Steps, target: FloatArray, estimator: str, level: float = 0.95, said: tuple[str, ...] = ()
) -> Estimate:
    """The estimate of a policy (steps, tasks) from steps that are ready to be weighted."""
    kind = ESTIMATORS[estimator]
    if not 0 < level < 1:
        raise ConfigError(f"level = {level}", fix="use a number between 0 and 1, such as 0.95")
    weights = steps.weights(target)
    if not weights.sum() > 0:
        raise DataError(
            "the logs say nothing of this policy: none of their steps trained a task that it wants",
            fix="train with a policy that gives every task a chance",
        )
    contributions, beware = kind(steps, target)
    low, high = interval(contributions, steps.offsets, level)
    short = () if np.isfinite(low) else ("no log has two steps, so there is no interval",)
    effective = float(weights.sum() ** 2 / (weights @ weights))
    warnings = (*said, *_unsupported(steps, target), *_uneven(steps, weights, effective), *beware, *short)
    return Estimate(float(contributions.mean()), low, high, effective, len(steps), warnings)


def mean_reward(steps: Steps, level: float = 0.95) -> Estimate:
    """What the logged policies earned themselves."""
    low, high = interval(steps.rewards, steps.offsets, level)
    return Estimate(float(steps.rewards.mean()), low, high, float(len(steps)), len(steps))


def _unsupported(steps: Steps, target: FloatArray) -> list[str]:
    """Tasks that the policy wants and the logs hardly know."""
    said = []
    share = target.mean(axis=0)
    hardly = steps.divisors < HARDLY
    missed = (target * hardly).mean(axis=0)
    taken = np.bincount(steps.taken, minlength=len(steps.tasks))
    for k, task in enumerate(steps.tasks):
        if share[k] > WANTED and not taken[k]:
            said.append(f"task {task!r} has {share[k]:.1%} of the policy, but no logged step trained it")
        elif missed[k] > WANTED:
            said.append(
                f"task {task!r} is wanted, but had almost no chance (below {HARDLY:.1%}) "
                f"at {int(hardly[:, k].sum()):,} of {len(steps):,} logged steps"
            )
    return said


def _uneven(steps: Steps, weights: FloatArray, effective: float) -> list[str]:
    """Too few steps that count."""
    said = []
    if effective < max(FEW, FEW_SHARE * len(steps)):
        said.append(
            f"the {len(steps):,} logged steps are worth {effective:,.1f} of this policy: too few to trust the estimate"
        )
    heaviest = int(weights.argmax())
    share = weights[heaviest] / weights.sum()
    if share > HEAVY:
        said.append(f"a single step ({steps.place(heaviest)}) carries {share:.0%} of the weight")
    return said
