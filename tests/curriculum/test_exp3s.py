"""Exp3.S against its equations written out in plain loops, and what its reservoir keeps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.curriculum import Course, make_policy
from bursar.curriculum.exp3s import Reservoir, mixed, updated
from bursar.errors import ConfigError
from experiments.studies.bandit_environment import draw


def equation_5(weights, task, reward, rate, step):
    """Paper 3, eq. 5, number by number."""
    total = sum(math.exp(w) for w in weights)
    raised = [w + (rate * reward / (math.exp(w) / total) if k == task else 0.0) for k, w in enumerate(weights)]
    share = 1 / step
    return [
        math.log(
            (1 - share) * math.exp(raised[k])
            + share / (len(weights) - 1) * sum(math.exp(raised[j]) for j in range(len(weights)) if j != k)
        )
        for k in range(len(weights))
    ]


@given(
    weights=st.lists(st.floats(-3, 3), min_size=2, max_size=6),
    pick=st.integers(0, 100),
    reward=st.floats(-1, 1),
    rate=st.floats(1e-4, 1),
    step=st.integers(2, 5000),
)
@settings(max_examples=200, deadline=None)
def test_an_update_is_equation_5(weights, pick, reward, rate, step):
    task = pick % len(weights)
    found = updated(np.array([weights]), np.array([task]), np.array([reward]), rate, step)
    assert found[0] == pytest.approx(equation_5(weights, task, reward, rate, step), abs=1e-9)


def test_runs_side_by_side_are_updated_as_if_they_were_alone():
    rng = np.random.default_rng(0)
    weights, task, reward = rng.normal(size=(5, 4)), rng.integers(4, size=5), rng.uniform(-1, 1, 5)
    together = updated(weights, task, reward, 0.1, 7)
    alone = [updated(weights[i : i + 1], task[i : i + 1], reward[i : i + 1], 0.1, 7)[0] for i in range(5)]
    assert np.array_equal(together, alone)


def test_weights_that_lie_far_apart_stay_numbers():
    found = updated(np.array([[900.0, -900.0]]), np.array([1]), np.array([1.0]), 0.5, 3)
    assert not np.isnan(found).any()
    assert mixed(found, 0.05).sum() == pytest.approx(1)


def test_every_task_keeps_its_share_of_exploration():
    assert mixed(np.array([[50.0, 0.0, 0.0, 0.0]]), 0.05).min() == pytest.approx(0.05 / 4)


@pytest.mark.parametrize("reward", [1.0, -1.0])
def test_a_reward_moves_the_chances_its_way(reward):
    weights = updated(np.zeros((1, 3)), np.array([1]), np.array([reward]), 0.3, 50)
    chances = mixed(weights, 0.05)[0]
    assert (chances[1] > chances[0]) == (reward > 0)
    assert chances[0] == chances[2]


def test_the_reservoir_keeps_every_reward_with_the_same_chance():
    """200 rewards through a reservoir of 20, in 4,000 runs: each is in it a tenth of the time."""
    reservoir = Reservoir(runs=4000, size=20, seed=3)
    for reward in range(200):
        reservoir.add(np.full(4000, float(reward)))
    kept = np.bincount(reservoir.sample.astype(int).ravel(), minlength=200) / 4000
    error = math.sqrt(0.1 * 0.9 / 4000)
    assert abs(kept - 0.1).max() < 4.5 * error
    assert kept.sum() == pytest.approx(20)


def test_rewards_that_are_all_alike_count_as_nothing():
    reservoir = Reservoir(runs=2, size=10, seed=0)
    for _ in range(5):
        reservoir.add(np.array([0.3, 0.3]))
    assert reservoir.scaled(np.array([0.3, 0.3])).tolist() == [0.0, 0.0]
    assert reservoir.scaled(np.array([0.4, 0.2])).tolist() == [1.0, -1.0]


def test_it_finds_the_task_that_pays_and_follows_when_another_one_does():
    """Task 0 falls fast for a while, then task 2 does; the chances follow."""
    policy = make_policy("exp3s", rate=0.05)
    steering = policy.begin(Course(("a", "b", "c"), (9, 9, 9), steps=2400, runs=8))
    rng = np.random.default_rng(1)
    chances = []
    for step in range(2400):
        now = steering.probabilities(step)
        task = draw(now, rng.random(8))
        paying = 0 if step < 1200 else 2
        before = np.ones(8)
        after = before - np.where(task == paying, 0.5, 0.0) - rng.uniform(0, 0.01, 8)
        steering.observe(step, task, before, after)
        chances.append(now.mean(axis=0))
    assert chances[1199][0] > 0.6
    assert chances[2399][2] > 0.6


def test_a_loss_that_is_no_number_is_refused_by_name_and_nothing_is_learned_from_it():
    steering = make_policy("exp3s").begin(Course(("cola", "rte"), (9, 9), steps=10))
    before = steering.probabilities(0)
    with pytest.raises(ConfigError, match="step 3: the loss of task 'rte' is nan"):
        steering.observe(3, np.array([1]), np.array([np.nan]), np.array([1.0]))
    assert np.array_equal(steering.probabilities(0), before)


@pytest.mark.parametrize("settings", [{"rate": 0}, {"explore": 0}, {"explore": 2}, {"reservoir": 1}, {"reward": "joy"}])
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ConfigError):
        make_policy("exp3s", **settings)
