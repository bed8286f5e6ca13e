"""The policy that looks at the state of the tasks: its states, its gradient, and what it learns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import entr, softmax

from bursar.curriculum import Course, DynamicPolicy, StepLog, learn_dynamic, make_policy
from bursar.curriculum.dynamic import FEATURES, RIDGE, best_weights, features_of, features_seen
from bursar.curriculum.rewards import TaskStates
from bursar.errors import ConfigError
from experiments.studies.bandit_environment import Bandits, play


def random_log(steps=300, tasks=3, seed=0):
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.ones(tasks) * 5, size=steps)
    taken = np.array([rng.choice(tasks, p=row) for row in chances])
    return StepLog(tuple("abcdef"[:tasks]), (9,) * tasks, steps, taken, chances, rng.exponential(size=steps))


def objective(weights, features, taken, logged, rewards, entropy):
    """Eq. 14 with the mean entropy over the states, step by step."""
    value, weight, spread = 0.0, 0.0, 0.0
    rewards = rewards / rewards.std()
    for t in range(len(taken)):
        chances = softmax(features[t] @ weights)
        ratio = chances[taken[t]] / logged[t]
        value, weight, spread = value + ratio * rewards[t], weight + ratio, spread + entr(chances).sum()
    return value / weight + entropy * spread / len(taken) - RIDGE * weights @ weights


def test_states_are_the_averages_of_each_tasks_own_likelihoods():
    states = TaskStates(Course(("a", "b"), (1, 1), steps=10), recent=2, longer=4)
    for step, (task, loss) in enumerate([(0, 1.0), (1, 0.2), (0, 0.5), (0, 0.4)]):
        states.observe(step, np.array([task]), np.array([loss]))
    fast, slow, fastest = np.exp(-1.0), np.exp(-1.0), 1e-9
    for loss in (0.5, 0.4):
        fast, slow = fast + (np.exp(-loss) - fast) / 2, slow + (np.exp(-loss) - slow) / 4
        fastest = max(fastest, fast - slow)
    found = dict(zip(FEATURES, features_of(states, 4, 10)[0].T, strict=True))
    assert found["shortfall"].tolist() == pytest.approx([1 - fast, 1 - np.exp(-0.2)])
    assert found["pace"].tolist() == pytest.approx([(fast - slow) / fastest, 1.0])
    assert found["waiting"].tolist() == pytest.approx([np.log1p(1 / 2), np.log1p(3 / 2)])
    assert found["shortfall x progress"].tolist() == pytest.approx([0.4 * (1 - fast), 0.4 * (1 - np.exp(-0.2))])


def test_a_task_that_stands_loses_its_pace_and_one_that_learns_keeps_it():
    states = TaskStates(Course(("stands", "learns"), (1, 1), steps=200), recent=2, longer=10)
    for step in range(100):
        states.observe(step, np.array([0]), np.array([2.0 - min(step, 40) / 40]))
        states.observe(step, np.array([1]), np.array([-np.log(0.1 + step / 200)]))
    stands, learns = states.pace[0]
    assert abs(stands) < 0.05
    assert learns > 0.9


def test_the_gradient_is_that_of_the_objective():
    log = random_log()
    features = features_seen(log.course, log.taken[:, None], log.before[:, None], 2, 10)[:, 0]
    rewards = log.rewards()
    at = (features, log.taken, log.probability, rewards, 0.1)
    best = best_weights(*at)
    slope = approx_fprime(best, lambda w: objective(w, *at), 1e-6)
    assert np.abs(slope).max() < 1e-4  # a top
    rng = np.random.default_rng(1)
    assert all(objective(best + rng.normal(0, 0.3, len(best)), *at) < objective(best, *at) for _ in range(20))


def test_it_learns_the_feature_that_the_reward_follows():
    """Steps on a task pay what the task still lacks: the weight of the shortfall has to come out on top."""
    rng = np.random.default_rng(3)
    features = rng.uniform(0, 1, size=(4000, 4, len(FEATURES)))
    taken = rng.integers(4, size=4000)
    rewards = features[np.arange(4000), taken, FEATURES.index("shortfall")]
    weights = best_weights(features, taken, np.full(4000, 0.25), rewards, 0.1)
    assert weights[FEATURES.index("shortfall")] > 4
    assert np.abs(np.delete(weights, FEATURES.index("shortfall"))).max() < 1.5


def test_learned_in_one_environment_it_beats_random_in_others_with_other_arms():
    logs = play(Bandits.sample(4, arms=8, seed=50), make_policy("uniform").begin, runs=1).logs()
    learned = learn_dynamic(logs, entropy=0.1).policy
    elsewhere = Bandits.sample(10, arms=5, seed=51)
    steered, random = (play(elsewhere, p.begin, runs=4, seed=2).final for p in (learned, make_policy("uniform")))
    assert steered.mean() > random.mean() + 0.02


def test_a_large_entropy_weight_makes_it_even_and_a_small_one_does_not():
    log = random_log(steps=1000)
    even, keen = (learn_dynamic([log], entropy=entropy) for entropy in (50.0, 0.01))
    assert even.entropy == pytest.approx(np.log(3), abs=1e-3)
    assert keen.entropy < even.entropy
    assert keen.estimate.value > even.estimate.value


def test_what_it_promises_is_said_beside_what_was_earned():
    found = learn_dynamic([random_log()], entropy=0.05)
    assert found.logged.value == pytest.approx(random_log().rewards("pace").mean())
    assert found.estimate.value > found.logged.value


def test_it_is_the_same_after_saving_and_loading(tmp_path):
    learned = learn_dynamic([random_log()], explore=0.1).policy
    learned.save(tmp_path / "policy.json")
    again = make_policy(str(tmp_path / "policy.json"))
    assert again == learned


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"weights": {"joy": 1.0}}, "no feature 'joy'"),
        ({"weights": {"pace": float("nan")}}, "weight of 'pace'"),
        ({"recent": 5.0, "longer": 5.0}, "recent = 5.0"),
        ({"explore": 1.5}, "explore = 1.5"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        DynamicPolicy(**settings)
