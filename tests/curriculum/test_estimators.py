"""What another policy would have earned, against logs whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.curriculum.estimators import (
    ESTIMATORS,
    clipped,
    coverage,
    gather,
    importance,
    interval,
    mean_reward,
    predictions,
    self_normalised,
    spread,
    weighed,
)
from bursar.ragged import offsets_of
from tests.curriculum.known import (
    EVEN,
    LEFT,
    LOGGERS,
    MEANS,
    RIGHT,
    TARGET,
    TRUTH,
    apart,
    chasing,
    covered,
    drawn,
    estimated,
    few,
    log_of,
    logged_by,
    long_logs,
    long_pairs,
    random_logs,
    seeds,
    simulated,
    steps_of,
    values,
)


# -- the formulas -----------------------------------------------------------------------------------------------------
def test_importance_sampling_is_equation_10_and_self_normalised_equation_11():
    (log, *_), target = random_logs(3)
    rewards = log.rewards("prediction-gain")
    weights = [target[k] / log.probabilities[t, k] for t, k in enumerate(log.taken)]
    eq_10 = sum(w * r for w, r in zip(weights, rewards, strict=True)) / len(log)
    z = sum(weights) / len(log)
    assert estimated([log], target, estimator="importance").value == pytest.approx(eq_10)
    assert estimated([log], target, estimator="self-normalised").value == pytest.approx(eq_10 / z)
    assert estimated([log], target).effective == pytest.approx(sum(weights) ** 2 / sum(w * w for w in weights))


def test_balanced_divides_by_the_average_chance_over_all_steps():
    first, second = log_of([0, 1], [0.5, 0.5], [1, 2], ("a", "b")), log_of([0], [0.8, 0.2], [3], ("a", "b"))
    average = (2 * np.array([0.5, 0.5]) + np.array([0.8, 0.2])) / 3
    expected = (0.4 / average[0] * 1 + 0.6 / average[1] * 2 + 0.4 / average[0] * 3) / 3
    found = estimated([first, second], np.array([0.4, 0.6]), estimator="importance")
    assert found.value == pytest.approx(expected)


@pytest.mark.parametrize("estimator", ["importance", "self-normalised", "clipped"])
def test_the_logged_policy_itself_is_worth_what_it_earned(estimator):
    log = log_of(*drawn(np.random.default_rng(0), 100, LEFT))
    found = estimated([log], LEFT, estimator=estimator)
    earned = mean_reward(gather([log], "prediction-gain"))
    assert found.value == pytest.approx(earned.value)
    assert (found.low, found.high) == pytest.approx((earned.low, earned.high))
    assert found.effective == pytest.approx(100)


# -- bias and variance ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("loggers", LOGGERS)
@pytest.mark.parametrize("estimator", ["importance", "doubly-robust"])
def test_importance_sampling_and_doubly_robust_are_unbiased_whoever_logged(estimator, loggers):
    assert apart(values(logged_by(loggers), estimator), TRUTH) < 4


def test_a_policy_that_depends_on_its_state_is_estimated_without_bias():
    # It spends half of its steps on the task after that of the step before.
    errors = []
    for taken, chances, rewards in chasing(np.random.default_rng(2), 40, 400):
        target = np.full((40, 3), 0.25)
        target[np.arange(40), (np.roll(taken, 1) + 1) % 3] = 0.5
        target[0] = EVEN
        steps = steps_of((taken, chances, rewards))
        errors.append(values([steps], "importance", [target])[0] - (target @ MEANS).mean())
    assert apart(np.array(errors), 0.0) < 4


def test_self_normalised_is_exact_for_a_constant_reward_and_importance_sampling_is_not():
    taken, chances, _ = drawn(np.random.default_rng(1), 50, LEFT)
    log = log_of(taken, chances, np.full(50, 0.7))
    exact = estimated([log], TARGET)
    assert (exact.value, exact.low, exact.high) == pytest.approx((0.7, 0.7, 0.7))
    assert abs(estimated([log], TARGET, estimator="importance").value - 0.7) > 0.01


def test_the_bias_of_self_normalised_goes_away_as_logs_grow():
    short = simulated(lambda rng: steps_of(drawn(rng, 5, LEFT)), 800)
    many = simulated(lambda rng: steps_of(drawn(rng, 500, LEFT)))
    short = [steps for steps in short if steps.weights(spread(steps, RIGHT)).sum() > 0]
    assert apart(values(short, "self-normalised", RIGHT), float(MEANS @ RIGHT)) > 4
    assert apart(values(many, "self-normalised", RIGHT), float(MEANS @ RIGHT)) < 4


@few
@given(seeds, st.floats(0.5, 4), st.floats(0, 4))
def test_a_lower_cap_never_gives_a_higher_value_where_rewards_are_not_negative(seed, cap, more):
    rng = np.random.default_rng(seed)
    weights, rewards = rng.exponential(size=20), rng.random(20)
    values = [clipped(weights, rewards, c).mean() for c in (cap, cap + more)] + [importance(weights, rewards).mean()]
    assert values == sorted(values)


def test_clipping_misses_by_what_it_cuts():
    cap = 2.0  # of weights 1/3, 1 and 5
    expected = LEFT @ (np.minimum(TARGET / LEFT, cap) * MEANS)
    cut = [clipped(steps.weights(spread(steps, TARGET)), steps.rewards, cap).mean() for steps in logged_by("one")]
    assert expected < TRUTH - 0.2
    assert apart(np.array(cut), expected) < 4


@pytest.mark.parametrize("loggers", LOGGERS)
def test_doubly_robust_has_less_variance_than_importance_sampling_where_tasks_differ(loggers):
    robust, plain = (values(logged_by(loggers), kind).std() for kind in ("doubly-robust", "importance"))
    assert robust < 0.97 * plain


def test_balanced_has_less_variance_than_own_where_loggers_complete_each_other():
    balanced, own = (values(logged_by(f"two, {how}"), "importance", EVEN).std() for how in ("balanced", "own"))
    assert balanced < 0.8 * own


@few
@given(seeds)
def test_balanced_importance_sampling_never_has_more_variance_than_own(seed):
    # Agarwal et al. 2017, from the variances themselves: Σ over logs of n_i Var(w r), without noise.
    rng = np.random.default_rng(seed)
    chances, target, means = rng.dirichlet(np.ones(4), size=3) * 0.96 + 0.01, rng.dirichlet(np.ones(4)), rng.random(4)
    lengths = rng.integers(1, 50, size=3)
    average = lengths @ chances / lengths.sum()

    def variance(divisors):
        worth = target / divisors * means
        return lengths @ ((chances * worth**2).sum(axis=1) - (chances * worth).sum(axis=1) ** 2)

    assert variance(average) <= variance(chances) * (1 + 1e-9)


# -- the reward model of doubly robust --------------------------------------------------------------------------------
@few
@given(seeds, st.integers(2, 100), st.integers(1, 60))
def test_no_step_has_a_part_in_its_own_prediction(seed, first, second):
    rng = np.random.default_rng(seed)
    offsets = offsets_of([first, second])
    taken, rewards = rng.integers(3, size=first + second), rng.random(first + second)
    step = rng.integers(first + second)
    before = predictions(rewards, taken, offsets, 3)
    rewards[step] += 100
    after = predictions(rewards, taken, offsets, 3)
    np.testing.assert_array_equal(before[step], after[step])


def test_predictions_follow_the_stretches_of_a_training():
    taken = np.tile([0, 1], 200)
    rewards = np.where(np.arange(400) < 200, 1.0, 0.0) * (taken == 0)
    found = predictions(rewards, taken, np.array([0, 400]), 2)
    assert found[:200, 0].min() > 0.9
    assert found[200:, 0].max() < 0.1
    assert found[:, 1].max() < 0.1


def test_where_a_stretch_lacks_a_task_its_mean_over_the_log_stands_in():
    taken = np.zeros(400, dtype=np.int64)
    taken[[5, 25, 45, 65]] = 1  # of a stretch of 40 steps each half has one; none after the second
    rewards = np.where(taken == 1, 3.0, 1.0)
    found = predictions(rewards, taken, np.array([0, 400]), 2)
    assert found[100:, 1].min() > 2
    assert found[100:, 1].max() <= 3


@pytest.mark.parametrize("estimator", ["self-normalised", "doubly-robust"])
@few
@given(seed=seeds, more=st.floats(-5, 5))
def test_paying_every_step_more_makes_a_policy_worth_just_that_more(estimator, seed, more):
    logs, target = random_logs(seed, constant=False)
    paid = [replace(log, before=log.before + more, earned={}) for log in logs]
    first, second = (estimated(some, target, estimator=estimator).value for some in (logs, paid))
    assert second - first == pytest.approx(more, abs=1e-9)


@few
@given(seeds)
def test_a_balanced_step_covers_its_tasks_once_on_average(seed):
    logs, _ = random_logs(seed, logs=3)
    steps, _ = weighed(gather(logs, "prediction-gain"), "balanced", fixed=True)
    np.testing.assert_allclose(coverage(steps).mean(axis=0), 1)


# -- intervals --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("estimator", ["importance", "self-normalised", "doubly-robust"])
@pytest.mark.parametrize("alike", [0.0, 0.8])
def test_intervals_cover_the_truth_about_as_often_as_they_say(estimator, alike):
    # 0.95 give or take what 400 tries and blocks of 50 steps allow
    assert 0.91 < covered(long_logs(alike), estimator) < 0.985


@pytest.mark.parametrize("estimator", ["importance", "self-normalised", "doubly-robust"])
def test_intervals_of_several_balanced_logs_cover_the_truth(estimator):
    assert 0.91 < covered(long_pairs(0.5), estimator) < 0.985


def test_step_by_step_errors_would_be_far_too_small_where_near_rewards_are_alike():
    naive = blocks = 0
    for seed in range(300):
        _, _, rewards = drawn(np.random.default_rng([seed, 3]), 1000, np.array([0.0, 1.0, 0.0]), 0.8)
        naive += abs(rewards.mean() - MEANS[1]) <= 1.96 * rewards.std() / np.sqrt(1000)
        low, high = interval(rewards, np.array([0, 1000]), 0.95)
        blocks += low <= MEANS[1] <= high
    assert naive / 300 < 0.7
    assert blocks / 300 > 0.9


def test_a_higher_level_gives_a_wider_interval_about_the_same_value():
    logs, target = random_logs(0)
    found = [estimated(logs, target, level=level) for level in (0.5, 0.9, 0.99)]
    widths = [one.high - one.low for one in found]
    assert widths == sorted(widths)
    assert all(one.value == pytest.approx((one.low + one.high) / 2) for one in found)


def test_what_differs_between_logs_only_because_their_policies_do_is_no_error():
    contributions = np.repeat([1.0, 5.0], 50)
    assert interval(contributions, np.array([0, 50, 100]), 0.95) == (3.0, 3.0)
    low, high = interval(contributions, np.array([0, 100]), 0.95)
    assert high - low > 1


def test_logs_of_one_step_have_no_interval():
    found = estimated([log_of([0], EVEN, [1.0]), log_of([1], EVEN, [1.0])], EVEN)
    assert (found.low, found.high) == (-np.inf, np.inf)
    assert "no log has two steps, so there is no interval" in found.warnings


# -- invariances ------------------------------------------------------------------------------------------------------
def same(first, second):
    numbers = [(one.value, one.low, one.high, one.effective) for one in (first, second)]
    np.testing.assert_allclose(*numbers, rtol=1e-9, atol=1e-12)
    assert first.steps == second.steps


@few
@given(seeds, st.permutations(range(4)), st.sampled_from(sorted(ESTIMATORS)), st.booleans())
def test_the_order_and_the_names_of_tasks_never_matter(seed, order, estimator, constant):
    logs, target = random_logs(seed, tasks=4, constant=constant)
    order, place = np.array(order), np.argsort(order)
    turned = [log_of(place[log.taken], log.probabilities[:, order], log.before, ("x", "y", "z", "w")) for log in logs]
    same(estimated(logs, target, estimator=estimator), estimated(turned, target[order], estimator=estimator))


@few
@given(seeds, st.permutations(range(3)), st.sampled_from(sorted(ESTIMATORS)), st.booleans())
def test_the_order_of_logs_never_matters(seed, order, estimator, constant):
    logs, target = random_logs(seed, logs=3, constant=constant)
    turned = [logs[i] for i in order]
    same(estimated(logs, target, estimator=estimator), estimated(turned, target, estimator=estimator))


@few
@given(seeds, st.sampled_from(sorted(ESTIMATORS)), st.floats(0.1, 10))
def test_paying_in_another_unit_changes_only_the_unit(seed, estimator, unit):
    logs, target = random_logs(seed)
    paid = [replace(log, before=log.before * unit, earned={}) for log in logs]
    first, second = (estimated(some, target, estimator=estimator) for some in (logs, paid))
    same(replace(first, value=first.value * unit, low=first.low * unit, high=first.high * unit), second)


@few
@given(seeds, st.sampled_from(sorted(ESTIMATORS)), st.sampled_from(["own", "balanced"]))
def test_a_fixed_policy_may_as_well_be_given_step_by_step(seed, estimator, weighting):
    logs, target = random_logs(seed)
    steps = [np.tile(target, (len(log), 1)) for log in logs]
    how = {"estimator": estimator, "weighting": weighting}
    assert estimated(logs, target, **how) == estimated(logs, steps, **how)


@few
@given(seeds, st.sampled_from(sorted(ESTIMATORS)))
def test_logs_of_one_policy_have_nothing_to_balance(seed, estimator):
    (log, _), target = random_logs(seed)
    own, balanced = (estimated([log, log], target, estimator=estimator, weighting=w) for w in ("own", "balanced"))
    assert own == balanced


@few
@given(seeds)
def test_the_effective_sample_is_between_one_and_all_steps(seed):
    logs, target = random_logs(seed)
    assert 1 - 1e-9 <= estimated(logs, target).effective <= 60 + 1e-9


def test_self_normalised_numbers_average_to_the_ratio():
    rng = np.random.default_rng(0)
    weights, rewards = rng.exponential(size=50), rng.random(50)
    assert self_normalised(weights, rewards).mean() == pytest.approx(weights @ rewards / weights.sum())
