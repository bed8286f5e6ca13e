"""The best fixed policy by a log, against closed forms and brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import entr

from bursar.curriculum.estimators import ESTIMATORS, estimate, gather, mean_reward, spread, weighed
from bursar.curriculum.improve import (
    CmaEs,
    Ratio,
    closed_form,
    evolve,
    improve,
    objective_of,
    regularised,
)
from bursar.curriculum.logs import StepLog
from bursar.curriculum.policy import Course
from bursar.errors import ConfigError, DataError
from experiments.studies.bandit_environment import draw
from experiments.studies.exact_policies import best_policy, best_ratio

seeds = st.integers(0, 10**6)
few = settings(max_examples=12, deadline=None)
LINEAR = ("importance", "doubly-robust")


def log_of(taken, chances, rewards, tasks):
    """A log whose prediction gain is the reward."""
    taken = np.asarray(taken)
    return StepLog(
        tuple(tasks), (1,) * len(tasks), len(taken), taken, chances, np.asarray(rewards), np.zeros(len(taken))
    )


def random_logs(seed, logs=2, steps=120, tasks=3, constant=True):
    """Tasks differ in what they earn; every one has a chance of at least a thirtieth."""
    rng = np.random.default_rng(seed)
    means, made = rng.random(tasks), []
    for _ in range(logs):
        chances = rng.dirichlet(np.full(tasks, 2.0), size=1 if constant else steps) * 0.9 + 0.1 / tasks
        chances = np.broadcast_to(chances, (steps, tasks)).copy()
        taken = draw(chances, rng.random(steps))
        made.append(log_of(taken, chances, means[taken] + 0.1 * rng.normal(size=steps), "abcdefgh"[:tasks]))
    return made


def even_log(rewards):
    """Every task a hundred times, at even chances: the sum of weights is the same for all policies."""
    tasks = len(rewards)
    taken = np.tile(np.arange(tasks), 100)
    return log_of(taken, np.full((len(taken), tasks), 1 / tasks), np.asarray(rewards)[taken], "abcdefgh"[:tasks])


def improved(logs, **how):
    return improve(logs, **{"reward": "prediction-gain", **how})


def chances_of(found):
    return np.array(list(found.policy.weights.values()))


def grid(parts):
    """All policies over three tasks in whole parts of 1."""
    first, second = np.meshgrid(np.arange(parts + 1), np.arange(parts + 1), indexing="ij")
    inside = first + second <= parts
    return np.stack([first, second, parts - first - second], axis=-1)[inside] / parts


# -- what is maximised ------------------------------------------------------------------------------------------------
@few
@given(seeds, st.sampled_from(sorted(ESTIMATORS)), st.sampled_from(["own", "balanced"]), st.booleans())
def test_sums_a_task_give_the_value_that_all_steps_give(seed, estimator, weighting, constant):
    steps, _ = weighed(gather(random_logs(seed, constant=constant), "prediction-gain"), weighting, fixed=True)
    policies = np.random.default_rng(seed).dirichlet(np.full(3, 0.5), size=8)
    found = objective_of(steps, estimator)(policies)
    expected = [ESTIMATORS[estimator](steps, spread(steps, policy))[0].mean() for policy in policies]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_clipping_is_the_same_from_sums_where_it_cuts():
    rng = np.random.default_rng(0)
    chances = np.array([[0.985, 0.01, 0.005], [0.1, 0.5, 0.4]])[rng.integers(2, size=300)]
    steps = gather([log_of(draw(chances, rng.random(300)), chances, rng.normal(size=300), "abc")], "prediction-gain")
    policies = rng.dirichlet(np.ones(3), size=50)
    cut = [(steps.weights(spread(steps, policy)) > 300**0.5).any() for policy in policies]
    expected = [ESTIMATORS["clipped"](steps, spread(steps, policy))[0].mean() for policy in policies]
    assert sum(cut) > 25
    np.testing.assert_allclose(objective_of(steps, "clipped")(policies), expected)


@pytest.mark.parametrize("estimator", sorted(ESTIMATORS))
def test_the_objective_is_the_estimate_with_the_weighted_entropy(estimator):
    logs = random_logs(1)
    found = improved(logs, estimator=estimator, entropy=0.3)
    chances = chances_of(found)
    assert found.entropy == pytest.approx(entr(chances).sum())
    assert found.objective == pytest.approx(found.estimate.value + 0.3 * found.entropy)
    assert found.estimate == estimate(logs, chances, estimator=estimator, reward="prediction-gain")


# -- solvers ----------------------------------------------------------------------------------------------------------
@few
@given(seeds, st.sampled_from([0.02, 0.1, 0.5, 2.0]), st.floats(0, 1.5))
def test_the_exact_solver_is_never_beaten_by_any_policy_of_a_grid(seed, entropy, uneven):
    rng = np.random.default_rng(seed)
    weight = np.exp(uneven * rng.normal(size=3))
    value = Ratio(weight * rng.normal(size=3), weight)
    best = best_ratio(value.earned, value.weight, entropy)
    assert best.sum() == pytest.approx(1)
    assert regularised(value, best[None], entropy)[0] >= regularised(value, grid(60), entropy).max() - 1e-9


@few
@given(seeds, st.integers(2, 8), st.sampled_from([0.05, 0.2, 1.0]))
def test_the_exact_solver_stands_where_the_slope_is_nothing(seed, tasks, entropy):
    rng = np.random.default_rng(seed)
    weight = 1 + 0.5 * rng.random(tasks)
    earned = rng.random(tasks)
    best = best_ratio(earned, weight, entropy)
    total = best @ weight
    slope = (earned - best @ earned / total * weight) / total - entropy * (np.log(best) + 1)
    large = best > 1e-6
    assert np.ptp(slope[large]) < 1e-4 * max(1, np.abs(slope).max())


@pytest.mark.parametrize("estimator", sorted(ESTIMATORS))
@pytest.mark.parametrize("seed", [0, 1])
def test_cma_es_finds_what_a_fine_grid_finds(estimator, seed):
    logs = random_logs(seed)
    steps, _ = weighed(gather(logs, "prediction-gain"), "balanced", fixed=True)
    value = objective_of(steps, estimator)
    policies = grid(200)
    policies = policies[(policies > 0).all(axis=1)]
    heights = regularised(value, policies, 0.4)
    found = improved(logs, estimator=estimator, entropy=0.4)
    assert heights.max() <= found.objective + 1e-9
    np.testing.assert_allclose(chances_of(found), policies[heights.argmax()], atol=0.01)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("entropy", "slack"), [(0.1, 1e-3), (0.5, 1e-6)])  # tasks with hardly a chance get lost
def test_cma_es_finds_what_the_exact_solver_finds(seed, entropy, slack):
    logs = random_logs(seed, tasks=2 + seed, constant=seed % 2 == 0)
    searched, (best, highest) = improved(logs, entropy=entropy), best_policy(logs, entropy)
    assert highest - slack <= searched.objective <= highest + 1e-9
    np.testing.assert_allclose(chances_of(searched), best, atol=10 * slack**0.75)


@pytest.mark.parametrize("estimator", ["importance", "self-normalised", "doubly-robust"])
def test_where_all_policies_have_one_sum_of_weights_the_best_is_the_closed_form(estimator):
    # errata 22: π_k ∝ exp(mean reward of k / λ)
    rewards = np.array([0.1, 0.35, 0.2, 0.8])
    found = improved([even_log(rewards)], entropy=0.3, estimator=estimator)
    powers = np.exp(rewards / 0.3)
    np.testing.assert_allclose(chances_of(found), powers / powers.sum(), atol=1e-3)
    best, _ = best_policy([even_log(rewards)], 0.3, estimator)
    np.testing.assert_allclose(best, powers / powers.sum(), atol=1e-3)


@pytest.mark.parametrize("estimator", LINEAR)
def test_estimators_that_are_linear_in_the_policy_have_a_closed_form_on_any_log(estimator):
    logs = random_logs(5)
    searched, (best, highest) = improved(logs, estimator=estimator), best_policy(logs, estimator=estimator)
    assert searched.objective == pytest.approx(highest, abs=1e-6)
    np.testing.assert_allclose(chances_of(searched), best, atol=1e-3)


def test_the_closed_form_is_best_among_all_policies_of_a_grid():
    rewards, policies = np.array([0.3, 0.9, 0.5]), grid(100)
    heights = policies @ rewards + 0.2 * entr(policies).sum(axis=1)
    best = closed_form(rewards, 0.2)
    assert best @ rewards + 0.2 * entr(best).sum() >= heights.max()
    np.testing.assert_allclose(best, policies[heights.argmax()], atol=0.01)


def test_an_estimator_of_another_hand_is_searched_step_by_step(monkeypatch):
    monkeypatch.setitem(
        ESTIMATORS._entries, "halved", lambda steps, target: (steps.weights(target) * steps.rewards / 2, ())
    )
    logs = random_logs(2, steps=60)
    halved = improved(logs, estimator="halved", entropy=0.25, search=CmaEs(20, 16))
    _, highest = best_policy(logs, 0.5, "importance")
    assert 2 * halved.objective == pytest.approx(highest, abs=1e-3)


# -- what the policy is like ------------------------------------------------------------------------------------------
@few
@given(seeds)
def test_more_weight_on_entropy_never_gives_a_less_even_policy(seed):
    rng = np.random.default_rng(seed)
    earned, weight = rng.random(5), 0.5 + rng.random(5)
    found = [entr(best_ratio(earned, weight, entropy)).sum() for entropy in (0.02, 0.1, 0.5)]
    assert all(first <= second + 1e-6 for first, second in pairwise(found))


def test_with_much_weight_on_entropy_the_policy_is_even():
    for chances in (chances_of(improved(random_logs(0), entropy=1e4)), best_policy(random_logs(0), 1e4)[0]):
        np.testing.assert_allclose(chances, 1 / 3, atol=1e-3)


def test_where_nothing_was_earned_the_policy_is_even():
    log = random_logs(0)[0]
    nothing = replace(log, before=np.zeros(len(log)), earned={})
    for chances in (chances_of(improved([nothing])), best_policy([nothing])[0]):
        np.testing.assert_allclose(chances, 1 / 3, atol=1e-3)


@few
@given(seeds, st.permutations(range(4)), st.sampled_from(["self-normalised", *LINEAR]))
def test_the_order_of_tasks_never_matters(seed, order, estimator):
    logs = random_logs(seed, tasks=4)
    turned = [log.in_order_of(["abcd"[k] for k in order]) for log in logs]
    first, second = (best_policy(some, estimator=estimator)[0] for some in (logs, turned))
    np.testing.assert_allclose(second, first[list(order)], atol=1e-6)


@pytest.mark.parametrize("estimator", ["importance", "self-normalised", "clipped"])
def test_logs_are_used_together_as_if_they_were_one(estimator):
    first, second = random_logs(3)
    both = log_of(
        *(
            np.concatenate([getattr(log, name) for log in (first, second)])
            for name in ("taken", "probabilities", "before")
        ),
        "abc",
    )
    apart, together = (improved(logs, estimator=estimator, weighting="own") for logs in ([first, second], [both]))
    np.testing.assert_allclose(chances_of(apart), chances_of(together), atol=1e-6)


def test_the_learned_policy_steers_a_training():
    found = improved([even_log([0.1, 0.9])], entropy=0.5)
    steering = found.policy.begin(Course(("b", "a"), (5, 5), steps=10))
    np.testing.assert_allclose(steering.probabilities(0)[0], chances_of(found)[::-1])


def test_the_same_seed_finds_the_same_policy():
    logs = random_logs(0)
    first, second = (improved(logs, search=CmaEs(3, seed=4)) for _ in range(2))
    assert first == second
    assert chances_of(improved(logs, search=CmaEs(3, seed=5))).tolist() != chances_of(first).tolist()


def test_the_predicted_gain_is_over_what_was_logged():
    logs = random_logs(4)
    found = improved(logs, entropy=0.1)
    assert found.logged == mean_reward(gather(logs, "prediction-gain"))
    assert found.logged.value == pytest.approx(np.concatenate([log.before for log in logs]).mean())
    assert found.gain == pytest.approx(found.estimate.value - found.logged.value)
    assert found.gain > 0


# -- edges ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("estimator", ["importance", "self-normalised", "doubly-robust"])
def test_without_entropy_the_best_policy_is_a_corner_and_a_warning_says_so(estimator):
    found = improved([even_log([0.2, 0.9, 0.4])], entropy=0, estimator=estimator)
    assert found.policy.weights == {"a": 0.0, "b": 1.0, "c": 0.0}
    assert "without entropy the best policy is a corner: it trains only b" in found.warnings
    assert found.entropy == 0
    assert found.estimate.value == pytest.approx(0.9)


def test_corners_that_are_equally_good_share_the_steps():
    found = improved([even_log([0.9, 0.2, 0.9])], entropy=0)
    assert found.policy.weights == {"a": 0.5, "b": 0.0, "c": 0.5}
    assert "without entropy the best policy is a corner: it trains only a, c" in found.warnings


@pytest.mark.parametrize("estimator", ["importance", "self-normalised", "doubly-robust"])
def test_a_task_that_was_never_trained_is_no_corner_even_if_all_others_lose(estimator):
    taken = np.tile([0, 1], 100)
    log = log_of(taken, np.tile([0.5, 0.5, 0.0], (200, 1)), np.where(taken == 0, -1.0, -2.0), "abc")
    assert improved([log], entropy=0, estimator=estimator).policy.weights == {"a": 1.0, "b": 0.0, "c": 0.0}


def test_a_task_that_was_never_trained_is_warned_of():
    taken = np.tile([0, 1], 100)
    log = log_of(taken, np.tile([0.5, 0.5, 0.0], (200, 1)), np.where(taken == 0, 1.0, 2.0), "abc")
    found = improved([log])
    assert any(
        said.startswith("task 'c' has ") and said.endswith("no logged step trained it") for said in found.warnings
    )


def test_clipping_without_entropy_may_be_best_between_corners():
    # 100 steps, cap 10. Task a was trained at a chance of 0.01: more than a tenth of the policy earns nothing more.
    chances = np.where(np.arange(100)[:, None] < 10, [[0.01, 0.99]], [[0.5, 0.5]])
    taken = np.where(np.arange(100) < 10, 0, 1)
    found = improved([log_of(taken, chances, np.ones(100), "ab")], entropy=0, estimator="clipped")
    assert found.policy.weights["a"] == pytest.approx(0.1, abs=1e-3)
    assert not any("corner" in said for said in found.warnings)


@pytest.mark.parametrize("estimator", sorted(ESTIMATORS))
@pytest.mark.parametrize("entropy", [0.0, 0.5])
def test_of_one_task_there_is_one_policy(estimator, entropy):
    found = improved([even_log([0.3])], estimator=estimator, entropy=entropy)
    assert found.policy.weights == {"a": 1.0}
    assert found.estimate.value == pytest.approx(0.3)
    assert found.warnings == ()


@pytest.mark.parametrize("entropy", [1e-3, 1e-6])
def test_with_almost_no_entropy_the_exact_solver_comes_to_the_corner(entropy):
    logs = random_logs(6)
    corner = improved(logs, entropy=0)
    np.testing.assert_allclose(best_policy(logs, entropy)[0], chances_of(corner), atol=1e-6)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"entropy": -0.1}, "entropy = -0.1. Fix: use 0 or more"),
        ({"entropy": np.nan}, "entropy = nan"),
        ({"estimator": "clipd"}, "there is no policy estimator 'clipd'. Fix: did you mean 'clipped'"),
        ({"weighting": "fair"}, "there is no weighting 'fair'"),
    ],
)
def test_settings_that_are_none_are_refused(how, said):
    with pytest.raises(ConfigError, match=said):
        improved(random_logs(0), **how)


def test_no_logs_are_refused():
    with pytest.raises(DataError, match="there are no logs"):
        improved([])


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"iterations": 0}, "iterations = 0"), ({"population": 3}, "population = 3. Fix: use at least 4")],
)
def test_a_search_that_cannot_work_is_refused(settings, said):
    with pytest.raises(ConfigError, match=said):
        CmaEs(**settings)


def test_the_smallest_population_searches():
    value = Ratio(np.array([0.2, 0.6, 0.4]), np.ones(3))
    found = evolve(value, 0.5, 3, CmaEs(200, 4, seed=1))
    np.testing.assert_allclose(found, closed_form(value.earned, 0.5), atol=1e-2)


def test_the_exact_solver_finds_a_top_in_a_corner_beside_a_broad_one():
    earned, weight = np.array([-3.93562388, 0.40278142, -52.59449759]), np.array([7.36199934, 0.30607817, 52.42536876])
    value = Ratio(earned, weight)
    best = best_ratio(earned, weight, 2.0)
    assert best[1] == pytest.approx(1)
    assert regularised(value, best[None], 2.0)[0] >= regularised(value, grid(60), 2.0).max() - 1e-9
