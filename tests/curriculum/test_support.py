"""What is said of logs that do not support a policy, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bursar.curriculum.estimators import (
    ESTIMATORS,
)
from bursar.errors import ConfigError, DataError
from tests.curriculum.known import (
    EVEN,
    LEFT,
    RIGHT,
    TARGET,
    estimated,
    log_of,
    random_logs,
)


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
    said = "task 'c' is part of the policy, but had a probability below 0.1% at 300 of 400 logged steps"
    assert estimated([log], EVEN).warnings == (said,)
    assert estimated([log], np.array([0.5, 0.5, 0.0])).warnings == ()


def test_a_log_that_left_nothing_to_chance_supports_no_other_policy():
    taken = np.arange(600) % 3
    found = estimated([log_of(taken, np.eye(3)[taken], np.ones(600))], EVEN)
    assert len(found.warnings) == 3
    assert all("a probability below" in said for said in found.warnings)


def test_too_few_effective_steps_are_said():
    said = "the effective sample size is 40.0 of 40 steps: too small to trust the estimate"
    assert estimated([full_log([0.5, 0.5], 40)], np.array([0.5, 0.5])).warnings == (said,)
    assert estimated([full_log([0.5, 0.5], 50)], np.array([0.5, 0.5])).warnings == ()
    rare = full_log([0.96, 0.04], 2000)  # 80 steps are more than 50, but less than 5 % of 2,000
    assert "the effective sample size is 80.0 of 2,000" in estimated([rare], np.array([0.0, 1.0])).warnings[0]


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
        "1 of 400 weights were capped at 20.0: 1.2% of the weight is lost",
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
    assert found.warnings[0].startswith("the target policy changes from step to step")
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
        ([broken("probabilities", 2, [0.5, 0.5, 0.5])], r"log 1, step 2: \[0.5, 0.5, 0.5\] are not probabilities"),
        ([broken("probabilities", 2, [1.5, -0.5, 0.0])], "log 1, step 2: .* are not probabilities"),
        (
            [full_log(), log_of([0, 1], [1.0, 0, 0], [1, 1])],
            "log 2, step 1: task 'b' was trained with a logged probability of 0",
        ),
        ([log_of([0, 0, 0], [0.5, 0.5], [1, 1, 1])], "log 1 has 3 steps of 3 tasks, but probabilities"),
    ],
)
def test_a_log_that_cannot_be_is_refused_by_its_number_and_step(logs, said):
    with pytest.raises(DataError, match=said):
        estimated(logs, EVEN)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (np.array([0.5, 0.5, 0.5]), r"the target policy: \[0.5, 0.5, 0.5\] are not probabilities that sum to 1"),
        (np.array([1.5, -0.5, 0.0]), "are not probabilities"),
        (np.array([np.nan, 0.5, 0.5]), "are not probabilities"),
        (np.array([0.5, 0.5]), r"has the shape \(2,\). Fix: give \(3,\) or for every log .*\(30, 3\), \(30, 3\)"),
        ([np.tile(EVEN, (30, 1))], r"has the shape \(30, 3\)"),
        ([np.tile(EVEN, (30, 1)), np.tile(EVEN, (29, 1))], r"has the shape \(30, 3\), \(29, 3\)"),
        (
            [np.tile(EVEN, (30, 1)), np.vstack([np.tile(EVEN, (29, 1)), [1, 1, 1]])],
            "log 2, step 29: .* are not probabilities",
        ),
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
    with pytest.raises(DataError, match="the logs do not cover this policy"):
        estimated([full_log([0.5, 0.5, 0.0])], np.array([0.0, 0.0, 1.0]), estimator=estimator)
