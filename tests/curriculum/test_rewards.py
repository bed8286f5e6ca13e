"""What a step was worth, by each signal."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.curriculum import REWARDS, Course
from bursar.curriculum.rewards import TaskStates
from bursar.errors import ConfigError


def earned(name, steps, tasks=2):
    """The rewards of (task, before, after) one after the other."""
    reward = REWARDS[name](Course(tuple("abcd"[:tasks]), (1,) * tasks, len(steps)))
    return [
        reward(np.array([task]), np.array([before]), None if after is None else np.array([after]))[0].item()
        for task, before, after in steps
    ]


def test_equation_16_pays_for_what_goes_badly_as_long_as_it_gets_better():
    steps = [(0, 2.0, None), (1, 0.1, None), (0, 1.0, None), (0, 1.0, None), (1, 0.05, None), (0, 1.5, None)]
    #        first: 0        first: 0        better: 1-1/e    as before: 0    better             worse: 0
    assert earned("improving", steps) == pytest.approx([0, 0, 1 - np.exp(-1.0), 0, 1 - np.exp(-0.05), 0])


def test_equation_16_compares_a_task_with_its_own_last_sample_only():
    steps = [(0, 1.0, None), (1, 5.0, None), (1, 4.0, None), (0, 2.0, None)]
    assert earned("improving", steps)[3] == 0


def test_before_and_after_look_at_one_step():
    steps = [(0, 2.0, 1.0), (0, 1.0, 1.5)]
    assert earned("before-after", steps) == pytest.approx([1 - np.exp(-2.0), 0])
    assert earned("prediction-gain", steps) == pytest.approx([1.0, -0.5])
    assert earned("likelihood-gain", steps) == pytest.approx([np.exp(-1) - np.exp(-2), np.exp(-1.5) - np.exp(-1)])


@pytest.mark.parametrize("name", ["before-after", "prediction-gain", "likelihood-gain"])
def test_a_reward_that_needs_the_loss_after_says_so(name):
    assert REWARDS[name].needs_after
    with pytest.raises(ConfigError, match="loss after every step"):
        earned(name, [(0, 1.0, None)])


def test_the_trend_of_a_noisy_loss_that_falls_pays_nearly_always_where_equation_16_pays_half_the_time():
    rng = np.random.default_rng(0)
    steps = [(0, float(loss), None) for loss in np.linspace(2, 1, 400) + rng.normal(0, 0.5, 400) if loss > 0]
    paid = {name: np.mean(np.array(earned(name, steps)) > 0) for name in ("improving", "trend")}
    assert 0.4 < paid["improving"] < 0.6
    assert paid["trend"] > 0.65


@pytest.mark.parametrize("name", REWARDS.names())
def test_runs_side_by_side_earn_what_they_would_alone(name):
    rng = np.random.default_rng(2)
    task, before, after = rng.integers(3, size=(40, 6)), rng.exponential(size=(40, 6)), rng.exponential(size=(40, 6))
    side = REWARDS[name](Course(("a", "b", "c"), (1, 1, 1), 40, runs=6))
    together = np.array([side(*step) for step in zip(task, before, after, strict=True)])
    for run in range(6):
        alone = REWARDS[name](Course(("a", "b", "c"), (1, 1, 1), 40))
        found = [alone(task[t, run : run + 1], before[t, run : run + 1], after[t, run : run + 1])[0] for t in range(40)]
        assert together[:, run].tolist() == pytest.approx(found)


def test_the_pace_of_a_task_falls_as_it_stops_improving():
    states, paces = TaskStates(Course(("a",), (1,), steps=9), recent=1, longer=4), []
    for step, loss in enumerate([2.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]):
        states.observe(step, np.array([0]), np.array([loss]))
        paces.append(round(states.pace[0, 0], 2))
    assert [paces[at] for at in (1, 2, 4, 7)] == [1.0, 1.0, 0.56, 0.24]  # slow gains a quarter of the gap each time
