"""Logs whose truth is known."""

from __future__ import annotations

from functools import cache

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from scipy.signal import lfilter
from scipy.special import softmax

from bursar.curriculum.estimators import (
    ESTIMATORS,
    LoggedSteps,
    estimate,
    interval,
    spread,
    weighed,
)
from bursar.curriculum.logs import StepLog
from bursar.ragged import offsets_of
from experiments.studies.bandit_environment import draw

MEANS = np.array([0.2, 0.5, 0.9])  # what the tasks earn
NOISE = 0.5
TARGET = np.array([0.2, 0.3, 0.5])
TRUTH = float(MEANS @ TARGET)
EVEN, LEFT, RIGHT = np.full(3, 1 / 3), np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.2, 0.7])

seeds = st.integers(0, 10**6)
few = settings(max_examples=25, deadline=None)


def drawn(rng, steps, chances, alike=0.0):
    """Tasks, chances and rewards of a logger that never changes; noise of near steps may be alike."""
    taken = rng.choice(3, size=steps, p=chances)
    noise = lfilter([np.sqrt(1 - alike**2)], [1, -alike], rng.normal(size=steps + 100))[100:]
    return taken, np.tile(chances, (steps, 1)), MEANS[taken] + NOISE * noise


def chasing(rng, steps, runs):
    """Loggers that go where they earned, many runs at once: their chances depend on everything before."""
    taken, chances, rewards = (
        np.empty((runs, steps), dtype=np.int64),
        np.empty((runs, steps, 3)),
        np.empty((runs, steps)),
    )
    standing, rows = np.zeros((runs, 3)), np.arange(runs)
    for step in range(steps):
        chances[:, step] = 0.7 * softmax(standing, axis=1) + 0.1
        arm = taken[:, step] = draw(chances[:, step], rng.random(runs))
        rewards[:, step] = MEANS[arm] + NOISE * rng.normal(size=runs)
        standing[rows, arm] += rewards[:, step]
        standing *= 0.8
    return list(zip(taken, chances, rewards, strict=True))


def steps_of(*parts, weighting="balanced"):
    taken, chances, rewards = (np.concatenate(column) for column in zip(*parts, strict=True))
    steps = LoggedSteps(("a", "b", "c"), offsets_of([len(part[0]) for part in parts]), taken, chances, rewards, chances)
    return weighed(steps, weighting, fixed=True)[0]


def log_of(taken, chances, rewards, tasks=("a", "b", "c"), **fields):
    """A log whose prediction gain is the reward."""
    taken, rewards = np.asarray(taken), np.asarray(rewards, dtype=float)
    chances = np.asarray(chances, dtype=float)
    chances = np.tile(chances, (len(taken), 1)) if chances.ndim == 1 else chances
    return StepLog(tasks, (1,) * len(tasks), len(taken), taken, chances, rewards, np.zeros(len(taken)), **fields)


def estimated(logs, target, **how):
    return estimate(logs, target, **{"reward": "prediction-gain", **how})


def values(steps, estimator, target=TARGET):
    """The estimates of many simulated logs."""
    return np.array([ESTIMATORS[estimator](one, spread(one, target))[0].mean() for one in steps])


def covered(steps, estimator, target=TARGET):
    """How often the interval of an estimate holds the truth."""
    truth, hits = MEANS @ target, 0
    for one in steps:
        low, high = interval(ESTIMATORS[estimator](one, spread(one, target))[0], one.offsets, 0.95)
        hits += low <= truth <= high
    return hits / len(steps)


def simulated(make, times=400):
    return [make(np.random.default_rng([seed, 5])) for seed in range(times)]


def apart(values, truth):
    """How far a mean of simulations is from the truth, in its standard errors."""
    return abs(values.mean() - truth) / (values.std(ddof=1) / np.sqrt(len(values)))


def random_logs(seed, logs=2, steps=30, tasks=3, constant=True):
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(logs):
        chances = rng.dirichlet(np.full(tasks, 2.0), size=1 if constant else steps) * 0.9 + 0.1 / tasks
        chances = np.broadcast_to(chances, (steps, tasks)).copy()
        taken = draw(chances, rng.random(steps))
        made.append(log_of(taken, chances, rng.normal(size=steps), tuple("abcdefgh"[:tasks])))
    return made, rng.dirichlet(np.full(tasks, 2.0))


@cache
def logged_by(loggers):
    """Many logs of loggers of a kind, simulated once."""
    if loggers == "one":
        return simulated(lambda rng: steps_of(drawn(rng, 60, LEFT)))
    if loggers == "one that learns":
        return [steps_of(run) for run in chasing(np.random.default_rng(0), 60, 400)]
    if loggers == "two that learn":
        runs = chasing(np.random.default_rng(1), 30, 800)
        return [steps_of(*pair) for pair in zip(runs[::2], runs[1::2], strict=True)]
    weighting = loggers.removeprefix("two, ")
    return simulated(lambda rng: steps_of(drawn(rng, 60, LEFT), drawn(rng, 30, RIGHT), weighting=weighting))


@cache
def long_logs(alike):
    return simulated(lambda rng: steps_of(drawn(rng, 1000, LEFT, alike)))


@cache
def long_pairs(alike):
    return simulated(lambda rng: steps_of(drawn(rng, 400, LEFT, alike), drawn(rng, 200, RIGHT, alike)))


LOGGERS = ("one", "two, own", "two, balanced", "one that learns", "two that learn")
