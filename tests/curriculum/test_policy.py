"""Policies by name and from files, and what is said of those that cannot be."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.curriculum import (
    POLICIES,
    Course,
    FixedPolicy,
    RoundRobinPolicy,
    SizePolicy,
    UniformPolicy,
    load_policy,
    make_policy,
)
from bursar.curriculum.policy import read_policy
from bursar.errors import ConfigError
from experiments.studies.bandit_environment import draw

COURSE = Course(("intent", "slots", "urgency"), (900, 100, 400), steps=10)


def shares(policy, step=0, course=COURSE):
    return policy.begin(course).probabilities(step)[0].tolist()


# -- what they say ---
def test_uniform_treats_all_tasks_alike():
    assert shares(UniformPolicy()) == [1 / 3] * 3


@pytest.mark.parametrize("temperature", [1, 2, 5])
def test_size_takes_roots_of_the_sizes(temperature):
    powers = np.array(COURSE.sizes) ** (1 / temperature)
    np.testing.assert_allclose(shares(SizePolicy(temperature)), powers / powers.sum())


def test_fixed_weights_are_shares_of_the_tasks_that_are_trained():
    policy = FixedPolicy({"urgency": 1, "mood": 5, "intent": 2, "slots": 1})
    assert shares(policy) == [0.5, 0.25, 0.25]


def test_round_robin_gives_every_task_its_turn():
    assert [shares(RoundRobinPolicy(), step).index(1.0) for step in range(7)] == [0, 1, 2, 0, 1, 2, 0]


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda w: sum(w) > 1e-6), st.floats(0, 1, exclude_max=True)
)
def test_a_task_is_drawn_where_the_number_falls_and_never_one_without_a_chance(weights, uniform):
    chances = np.array([weights]) / sum(weights)
    task = int(draw(chances, np.array([uniform]))[0])
    assert chances[0, task] > 0
    assert chances[0, :task].sum() <= uniform + 1e-9
    assert uniform <= chances[0, : task + 1].sum() + 1e-9


# -- names and files ---
def test_a_policy_is_found_by_its_name_and_its_settings():
    assert make_policy("size", temperature=3) == SizePolicy(temperature=3)
    assert all(POLICIES[name].name == name for name in POLICIES)
    assert all(POLICIES[name].__doc__ for name in POLICIES)


def test_a_policy_is_found_by_the_file_that_it_was_saved_to(tmp_path):
    policy = FixedPolicy({"intent": 0.25, "slots": 0.75})
    policy.save(tmp_path / "p.json", learned={"logs": ["a.parquet"], "steps": 3})
    assert load_policy(tmp_path / "p.json") == make_policy(str(tmp_path / "p.json")) == policy
    stored = json.loads((tmp_path / "p.json").read_text())
    assert stored == {**policy.describe(), "learned": {"logs": ["a.parquet"], "steps": 3}}


def test_a_policy_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        SizePolicy().temperature = 2


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("unifrom", {}, "did you mean 'uniform'"),
        ("uniform", {"temperature": 2}, "'uniform' has no setting 'temperature'. Fix: it has none"),
        ("size", {"temprature": 2}, "has no setting 'temprature'. Fix: it has temperature"),
        ("size", {"temperature": 0}, "temperature = 0"),
        ("size", {"temperature": float("nan")}, "temperature = nan"),
        ("size", {"temperature": "hot"}, "temperature = 'hot'. Fix: use a number"),
        ("size", {"temperature": True}, "temperature = True. Fix: use a number"),
        ("fixed", {}, "weights"),
        ("fixed", {"weights": {"a": -1}}, "the weight of 'a' is -1"),
        ("fixed", {"weights": {"a": float("inf")}}, "the weight of 'a' is inf"),
        ("fixed", {"weights": {"a": "much"}}, "the weight of 'a' is 'much'"),
        ("fixed", {"weights": ["a"]}, "weights = .'a'.. Fix: use a table"),
        ("exp3s", {"rate": 0}, "rate = 0"),
        ("exp3s", {"explore": 0}, "explore = 0"),
        ("exp3s", {"explore": 1.5}, "explore = 1.5"),
        ("exp3s", {"reservoir": 1}, "reservoir = 1"),
        ("exp3s", {"reservoir": 2.5}, "reservoir = 2.5. Fix: use a whole number"),
        ("exp3s", {"reward": "praise"}, "there is no reward 'praise'"),
        ("exp3s", {"reward": 5}, "reward = 5. Fix: use a name"),
        ("dynamic", {"weights": {"mood": 1.0}}, "no feature 'mood'"),
        ("dynamic", {"recent": 30.0}, "recent = 30.0"),
    ],
)
def test_what_is_no_setting_is_refused_by_name(name, settings, said):
    with pytest.raises(ConfigError, match=said):
        make_policy(name, **settings)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not a task policy"),
        ("{", "is not a task policy"),
        ("[]", "it is not a table"),
        ("{}", "it has no name"),
        ('{"policy": 3}', "it has no name"),
        ('{"policy": "unifrom"}', "did you mean 'uniform'"),
        ('{"policy": "fixed"}', "weights"),
        ('{"policy": "fixed", "weights": {"a": null}}', "the weight of 'a' is None"),
        ('{"policy": "fixed", "weights": {"a": NaN}}', "the weight of 'a' is nan"),
        ('{"policy": "uniform", "mood": 1}', "no setting 'mood'"),
        (b"\xff\xfe", "is not a task policy"),
    ],
)
def test_what_is_no_policy_file_is_refused_by_name(content, said, tmp_path):
    file = tmp_path / "bad.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match=rf"bad\.json.*{said}"):
        load_policy(file)


def test_a_file_that_is_not_there_or_a_folder_is_refused_by_name(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.json: there is no such policy file"):
        make_policy(str(tmp_path / "none.json"))
    with pytest.raises(ConfigError, match="is not a task policy"):
        load_policy(tmp_path)
    with pytest.raises(ConfigError, match="takes no settings"):
        make_policy("p.json", temperature=2)


def test_a_description_is_understood():
    assert read_policy({"policy": "size", "temperature": 2, "learned": {"steps": 1}}) == SizePolicy(2)


# -- with these tasks ---
def test_a_task_that_was_never_learned_about_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"'fixed' does not know task 'slots'.*its tasks are intent"):
        FixedPolicy({"intent": 1}).begin(COURSE)


def test_weights_that_leave_nothing_to_train_are_refused():
    with pytest.raises(ConfigError, match="gives no weight to any of intent, slots, urgency"):
        FixedPolicy(dict.fromkeys(COURSE.tasks, 0) | {"mood": 1}).begin(COURSE)


@pytest.mark.parametrize("name", ["exp3s", "dynamic"])
@pytest.mark.parametrize("loss", [np.nan, np.inf])
def test_a_policy_that_learns_refuses_a_loss_that_is_no_number_by_task_and_step(name, loss):
    steering = make_policy(name).begin(COURSE)
    with pytest.raises(ConfigError, match=r"step 4: the loss of task 'slots' is (nan|inf)"):
        steering.observe(4, np.array([1]), np.array([loss]), np.array([0.5]))
