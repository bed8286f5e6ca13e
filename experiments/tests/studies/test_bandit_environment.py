"""The multi-task bandit against paper 3's rules, played by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.curriculum import FixedPolicy, make_policy
from bursar.curriculum.fixed import Constant
from experiments.studies.bandit_environment import Bandits, play


def by_hand(bandits, environment, taken):
    """Section 4.1, arm by arm: the average score after each step, and the losses of the arm that was taken."""
    arms = range(bandits.wanted.shape[1])
    gain = [bandits.most[environment, k] / (bandits.steps * bandits.wanted[environment, k]) for k in arms]
    score, average, losses = [0.0] * len(gain), [], []
    for arm in taken:
        before = -np.log(max(score[arm], 1e-3))
        score[arm] = min(score[arm] + gain[arm], bandits.most[environment, arm])
        score = [max(score[k] - bandits.forgets[environment, k] * gain[k], 0.0) for k in arms]
        losses.append((before, -np.log(max(score[arm], 1e-3))))
        average.append(sum(score) / len(score))
    return average, losses


def test_every_run_is_what_the_rules_say_step_by_step():
    bandits = Bandits.sample(3, arms=4, steps=120, seed=5)
    played = play(bandits, make_policy("uniform").begin, runs=2, seed=1, points=120)
    for run in range(6):
        average, losses = by_hand(bandits, run // 2, played.taken[:, run])
        assert played.scores[:, run].tolist() == pytest.approx(average)
        assert np.stack([played.before[:, run], played.after[:, run]], axis=1) == pytest.approx(np.array(losses))


def test_environments_are_drawn_as_the_paper_describes():
    bandits = Bandits.sample(500, seed=1)
    assert bandits.wanted.sum(axis=1) == pytest.approx(1)
    assert bandits.most.min() >= 0.5
    assert bandits.most.max() <= 1
    assert bandits.forgets.max() <= 0.01
    # A Dirichlet with eight parameters of 2: variance of a share is (1/8)(7/8)/17.
    assert bandits.wanted.var() == pytest.approx(1 / 8 * 7 / 8 / 17, rel=0.1)


def test_a_policy_that_trains_an_arm_just_as_often_as_it_wants_fills_it():
    bandits = Bandits(np.array([[0.25, 0.75]]), np.array([[0.8, 0.6]]), np.zeros((1, 2)), steps=400)
    shares = np.array([0.25, 0.75])
    played = play(bandits, lambda course: Constant(shares, course.runs), runs=400)
    assert played.final.mean() == pytest.approx(0.7, abs=0.03)
    starved = play(bandits, FixedPolicy({"arm 1": 1, "arm 2": 0}).begin, runs=2)
    assert starved.final.tolist() == pytest.approx([0.4, 0.4])


def test_the_same_seed_plays_the_same_and_another_does_not():
    bandits = Bandits.sample(2, steps=50)
    one, again, other = (play(bandits, make_policy("exp3s").begin, runs=3, seed=s) for s in (7, 7, 8))
    assert np.array_equal(one.taken, again.taken)
    assert not np.array_equal(one.taken, other.taken)


def test_arms_are_taken_as_often_as_the_policy_says():
    bandits = Bandits.sample(1, arms=3, steps=1000)
    played = play(bandits, FixedPolicy({"arm 1": 5, "arm 2": 3, "arm 3": 2}).begin, runs=40)
    shares = np.bincount(played.taken.ravel(), minlength=3) / played.taken.size
    assert shares == pytest.approx([0.5, 0.3, 0.2], abs=4 * np.sqrt(0.25 / played.taken.size))


def test_the_logs_of_a_play_are_the_logs_of_its_runs():
    played = play(Bandits.sample(2, steps=60), make_policy("uniform").begin, runs=2)
    logs = played.logs(rewards=["improving", "prediction-gain"])
    plain = played.logs()
    assert len(logs) == 4
    for log, bare in zip(logs, plain, strict=True):
        assert log.probability == pytest.approx(1 / 8)
        for name in ("improving", "prediction-gain"):
            assert log.rewards(name) == pytest.approx(bare.rewards(name))
