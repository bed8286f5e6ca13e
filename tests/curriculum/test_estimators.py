"""What another policy would have earned, against logs whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter
from scipy.special import softmax

from bursar.curriculum.estimators import (
    ESTIMATORS,
    Steps,
    clipped,
    coverage,
    estimate,
    gather,
    importance,
    interval,
    mean_reward,
    predictions,
    self_normalised,
    spread,
    weighed,
)
from bursar.curriculum.logs import StepLog
from bursar.curriculum.policy import draw
from bursar.errors import ConfigError, DataError
from bursar.ragged import offsets_of

MEANS = np.array([0.2, 0.5, 0.9])  # what the tasks earn
NOISE = 0.5
TARGET = np.array([0.2, 0.3, 0.5])
TRUTH = float(MEANS @ TARGET)
EVEN, LEFT, RIGHT = np.full(3, 1 / 3), np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.2, 0.7])

seeds = st.integers(0, 10**6)
few = settings(max_examples=25, deadline=None)


# -- logs with a known truth ------------------------------------------------------------------------------------------
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
    steps = Steps(("a", "b", "c"), offsets_of([len(part[0]) for part in parts]), taken, chances, rewards, chances)
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


# -- warnings ---------------------------------------------------------------------------------------------------------
def full_log(chances=EVEN, steps=1200):
    """Every task as often as its chance says."""
    taken = np.repeat(np.arange(len(chances)), np.round(np.asarray(chances) * steps).astype(int))
    return log_of(
        np.random.default_rng(0).permutation(taken), chances, np.ones(len(taken)), tuple("abc"[: len(chances)])
    )


@pytest.mark.parametrize("estimator", sorted(ESTIMATORS))
@pytest.mark.parametrize("weighting", ["own", "balanced"])
def test_nothing_is_said_of_a_log_that_supports_the_policy(estimator, weighting):
    logs = [full_log(), full_log(LEFT)]
    assert estimated(logs, TARGET, estimator=estimator, weighting=weighting).warnings == ()


def test_a_wanted_task_that_no_step_trained_is_named():
    log = full_log([0.5, 0.5, 0.0])
    said = "task 'c' has 50.0% of the policy, but no logged step trained it"
    assert estimated([log], TARGET).warnings == (said,)
    assert estimated([log], np.array([0.4, 0.6, 0.0])).warnings == ()
    assert estimated([log, full_log(RIGHT)], TARGET).warnings == ()  # the other log knows it


def test_a_wanted_task_that_had_almost_no_chance_is_named():
    chances = np.tile([0.5, 0.4995, 0.0005], (400, 1))
    chances[:100] = EVEN
    taken = np.concatenate([np.tile([0, 1, 2, 2], 25), np.tile([0, 1], 150)])
    log = log_of(taken, chances, np.ones(400))
    said = "task 'c' is wanted, but had almost no chance (below 0.1%) at 300 of 400 logged steps"
    assert estimated([log], EVEN).warnings == (said,)
    assert estimated([log], np.array([0.5, 0.5, 0.0])).warnings == ()


def test_a_log_that_left_nothing_to_chance_supports_no_other_policy():
    taken = np.arange(600) % 3
    found = estimated([log_of(taken, np.eye(3)[taken], np.ones(600))], EVEN)
    assert len(found.warnings) == 3
    assert all("almost no chance" in said for said in found.warnings)


def test_too_few_effective_steps_are_said():
    said = "the 40 logged steps are worth 40.0 of this policy: too few to trust the estimate"
    assert estimated([full_log([0.5, 0.5], 40)], np.array([0.5, 0.5])).warnings == (said,)
    assert estimated([full_log([0.5, 0.5], 50)], np.array([0.5, 0.5])).warnings == ()
    rare = full_log([0.96, 0.04], 2000)  # 80 steps are more than 50, but less than 5 % of 2,000
    assert "the 2,000 logged steps are worth 80.0 of this" in estimated([rare], np.array([0.0, 1.0])).warnings[0]


def test_a_step_that_carries_too_much_is_named_by_log_and_number():
    chances = np.tile([0.5, 0.5], (400, 1))
    chances[7] = [0.99, 0.01]
    taken = np.tile([0, 1], 200)  # step 7 trains b, at a chance of 1 in 100
    logs = [full_log([0.5, 0.5], 100), log_of(taken, chances, np.ones(400), ("a", "b"))]
    said = estimated(logs, np.array([0.5, 0.5]), weighting="own", estimator="importance").warnings
    assert said == ()  # 50 of 549: not yet
    chances[7] = [0.995, 0.005]
    logs[1] = log_of(taken, chances, np.ones(400), ("a", "b"))
    said = estimated(logs, np.array([0.5, 0.5]), weighting="own", estimator="importance").warnings
    assert said[-1] == "a single step (log 2, step 7) carries 17% of the weight"


def test_clipping_says_what_it_cut():
    chances = np.tile([0.5, 0.5], (400, 1))
    chances[7] = [0.98, 0.02]  # a weight of 25, where the cap is √400
    log = log_of(np.tile([0, 1], 200), chances, np.ones(400), ("a", "b"))
    target = np.array([0.5, 0.5])
    assert estimated([log], target, estimator="clipped").warnings == (
        "1 of 400 weights were cut at 20.0: 1.2% of the weight is left out",
    )
    assert estimated([log], target, estimator="importance").warnings == ()


def test_where_policies_change_from_step_to_step_balanced_falls_back_to_own_and_says_so():
    (changing,), target = random_logs(0, logs=1, steps=1200, constant=False)
    for logs, number in (([changing, full_log()], 1), ([full_log(), changing], 2)):
        found, own = (estimated(logs, target, weighting=w) for w in ("balanced", "own"))
        said = f"the policy of log {number} changes from step to step, so every step is weighted by its own"
        assert found.warnings[0].startswith(said)
        assert own.warnings == found.warnings[1:]
        assert (own.value, own.low, own.high) == (found.value, found.low, found.high)
    assert estimated([changing], target).warnings == ()  # one log has none to be balanced with


def test_where_the_wanted_policy_changes_balanced_falls_back_to_own_and_says_so():
    logs = [full_log(LEFT), full_log(RIGHT)]
    changing = np.linspace(LEFT, RIGHT, 1200)
    found = estimated(logs, [changing, changing])
    assert found.warnings[0].startswith("the policy asked for changes from step to step")
    assert found.value == estimated(logs, [changing, changing], weighting="own").value
    assert estimated([full_log(), full_log()], [changing, changing]).warnings == ()


# -- what is refused --------------------------------------------------------------------------------------------------
def broken(field, step, value):
    log = full_log(steps=30)
    array = getattr(log, field).copy()
    array[step] = value
    return replace(log, **{field: array})


@pytest.mark.parametrize(
    ("logs", "said"),
    [
        ([], "there are no logs"),
        ([full_log(), full_log([0.5, 0.5])], r"log 2 has the tasks a, b; log 1 has a, b, c. Fix: use logs of the same"),
        ([full_log(), log_of([0], EVEN, [1], ("b", "a", "c"))], r"log 2 has the tasks b, a, c; .* Fix: put them in"),
        ([full_log(), log_of([], np.ones((0, 3)), [])], "log 2 has no steps"),
        ([full_log(), broken("before", 4, np.nan)], "log 2, step 4: the loss of task '.' is nan"),
        ([broken("after", 9, np.nan)], "log 1, step 9: the reward 'prediction-gain' of task '.' is nan"),
        ([broken("taken", 3, 3)], "log 1, step 3: there is no task number 3"),
        ([broken("probabilities", 2, [0.5, 0.5, 0.5])], r"log 1, step 2: \[0.5, 0.5, 0.5\] are no chances"),
        ([broken("probabilities", 2, [1.5, -0.5, 0.0])], "log 1, step 2: .* are no chances"),
        (
            [full_log(), log_of([0, 1], [1.0, 0, 0], [1, 1])],
            "log 2, step 1: task 'b' was trained with a logged chance of 0",
        ),
        ([log_of([0, 0, 0], [0.5, 0.5], [1, 1, 1])], "log 1 has 3 steps of 3 tasks, but chances"),
    ],
)
def test_a_log_that_cannot_be_is_refused_by_its_number_and_step(logs, said):
    with pytest.raises(DataError, match=said):
        estimated(logs, EVEN)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (np.array([0.5, 0.5, 0.5]), r"the policy asked for: \[0.5, 0.5, 0.5\] are no chances that sum to 1"),
        (np.array([1.5, -0.5, 0.0]), "are no chances"),
        (np.array([np.nan, 0.5, 0.5]), "are no chances"),
        (np.array([0.5, 0.5]), r"has the shape \(2,\). Fix: give \(3,\) or for every log .*\(30, 3\), \(30, 3\)"),
        ([np.tile(EVEN, (30, 1))], r"has the shape \(30, 3\)"),
        ([np.tile(EVEN, (30, 1)), np.tile(EVEN, (29, 1))], r"has the shape \(30, 3\), \(29, 3\)"),
        ([np.tile(EVEN, (30, 1)), np.vstack([np.tile(EVEN, (29, 1)), [1, 1, 1]])], "log 2, step 29: .* are no chances"),
    ],
)
def test_a_policy_that_is_none_is_refused(target, said):
    with pytest.raises(ConfigError, match=said):
        estimated([full_log(steps=30), full_log(steps=30)], target)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"estimator": "self-normalized"}, "there is no policy estimator 'self-normalized'. Fix: did you mean"),
        ({"reward": "improved"}, "^there is no reward 'improved'"),
        ({"weighting": "fair"}, "there is no weighting 'fair'. Fix: use balanced or own"),
        ({"level": 95}, "level = 95"),
    ],
)
def test_settings_that_are_none_are_refused(how, said):
    with pytest.raises(ConfigError, match=said):
        estimated([full_log()], EVEN, **how)


def test_a_reward_that_the_log_cannot_give_is_refused_with_its_number():
    with pytest.raises(ConfigError, match="log 2: this reward needs the loss after every step"):
        estimated([full_log(), replace(full_log(), after=None)], EVEN)


@pytest.mark.parametrize("estimator", sorted(ESTIMATORS))
def test_a_policy_of_which_the_logs_say_nothing_is_refused(estimator):
    with pytest.raises(DataError, match="the logs say nothing of this policy"):
        estimated([full_log([0.5, 0.5, 0.0])], np.array([0.0, 0.0, 1.0]), estimator=estimator)


def test_self_normalised_numbers_average_to_the_ratio():
    rng = np.random.default_rng(0)
    weights, rewards = rng.exponential(size=50), rng.random(50)
    assert self_normalised(weights, rewards).mean() == pytest.approx(weights @ rewards / weights.sum())
