"""``bursar policy``: what it learns, shows and lists, what it refuses, and with which exit code."""

from __future__ import annotations

import json
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

from bursar.curriculum import POLICIES, REWARDS, FixedPolicy, StepLog, learn_dynamic, load_policy, make_policy

TASKS = ("intent", "slots", "urgency")


def write_log(file, *, seed=0, steps=600, after=True, shares=(1 / 3, 1 / 3, 1 / 3), tasks=TASKS):
    """Intent is learned soon, slots need long, urgency stays as bad as it is."""
    rng = np.random.default_rng(seed)
    taken = rng.choice(3, p=shares, size=steps)
    done = np.array([np.cumsum(taken == task)[at] for at, task in enumerate(taken)])
    rate, level = np.array([0.05, 0.01, 0.0])[taken], np.array([2.0, 2.5, 1.0])[taken]
    before = level * np.exp(-rate * done) * np.exp(rng.normal(0, 0.1, steps))
    StepLog(
        tasks,
        (100, 100, 50),
        steps,
        taken,
        np.tile(shares, (steps, 1)),
        before,
        before * (1 - rate) if after else None,
        make_policy("uniform").describe(),
        seed,
    ).write(file)


def stored(file):
    return json.loads(Path(file).read_text())


@pytest.fixture
def logs(tmp_path):
    for seed in (0, 1):
        write_log(tmp_path / f"log-{seed}.parquet", seed=seed)
    return ["log-0.parquet", "log-1.parquet"]


@pytest.mark.parametrize("command", [[], ["learn"], ["show"], ["list"]])
def test_every_command_has_help(bursar, command):
    code, out, _ = bursar("policy", *command, "--help")
    assert code == 0
    assert "Usage" in out


# -- learning ---
def test_a_policy_is_learned_from_logs_and_can_be_used(bursar, logs):
    code, out, errors = bursar("policy", "learn", *logs, "--out", "learned.json")
    assert (code, errors) == (0, "")
    assert "Policy: learned.json" in out
    policy = load_policy("learned.json")
    assert set(policy.weights) == set(TASKS)
    assert policy.weights["slots"] == max(policy.weights.values())
    assert policy.weights["intent"] == min(policy.weights.values())


def test_the_file_says_where_the_policy_came_from(bursar, logs):
    bursar("policy", "learn", *logs, "--out", "learned.json", "--entropy", 0.7, "--estimator", "doubly-robust")
    learned = stored("learned.json")["learned"]
    rewards = np.concatenate([StepLog.read(log).rewards() for log in logs])
    assert learned["logs"] == logs
    assert learned["steps"] == 1200
    assert (learned["reward"], learned["estimator"], learned["entropy"]) == ("improving", "doubly-robust", 0.7)
    assert learned["estimate"]["low"] < learned["estimate"]["value"] < learned["estimate"]["high"]
    assert 0 < learned["estimate"]["effective"] <= 1200
    assert learned["logged"]["value"] == pytest.approx(rewards.mean(), abs=1e-5)
    assert learned["shares"] == pytest.approx(dict.fromkeys(TASKS, 1 / 3), abs=1e-5)
    assert learned["policies"] == ["uniform"]
    assert learned["warnings"] == []


def test_only_the_names_of_logs_are_kept_and_not_where_they_were(bursar, tmp_path):
    (tmp_path / "private").mkdir()
    write_log(tmp_path / "private" / "a.parquet")
    bursar("policy", "learn", tmp_path / "private" / "a.parquet", "--out", "learned.json")
    assert "private" not in (tmp_path / "learned.json").read_text()


def test_learning_for_machines_prints_one_json_object(bursar, logs):
    code, out, _ = bursar("policy", "learn", *logs, "--out", "learned.json", "--json")
    found, kept = json.loads(out), stored("learned.json")
    assert code == 0
    assert found["file"] == "learned.json"
    assert found["learned"] == kept.pop("learned")
    assert found["policy"] == kept
    assert sum(found["shares"].values()) == pytest.approx(1)


def test_a_dynamic_policy_is_learned_too(bursar, logs):
    code, out, _ = bursar("policy", "learn", *logs, "--out", "d.json", "--kind", "dynamic")
    assert code == 0
    assert load_policy("d.json").name == "dynamic"
    assert "how far the task is from a perfect score" in out
    usual = signature(learn_dynamic).parameters
    learned = stored("d.json")["learned"]
    assert (learned["reward"], learned["entropy"]) == (usual["reward"].default, usual["entropy"].default)
    assert learned["estimator"] == "self-normalised"


def test_a_doubtful_estimate_comes_with_a_warning_and_is_written_all_the_same(bursar, tmp_path):
    write_log(tmp_path / "rare.parquet", shares=(0.989, 0.01, 0.001), steps=300)
    code, _, errors = bursar("policy", "learn", "rare.parquet", "--out", "learned.json")
    assert code == 0
    assert "Warning: " in errors
    warnings = json.loads((tmp_path / "learned.json").read_text())["learned"]["warnings"]
    assert warnings
    assert all(f"Warning: {warning}" in errors for warning in warnings)


def test_a_log_of_one_step_has_an_estimate_without_ends_and_a_file_that_is_json(bursar, tmp_path):
    write_log(tmp_path / "one.parquet", steps=1)
    code, _, _ = bursar("policy", "learn", "one.parquet", "--out", "learned.json")
    assert code == 0
    learned = json.loads((tmp_path / "learned.json").read_text(), parse_constant=lambda name: pytest.fail(name))
    assert learned["learned"]["estimate"]["low"] is None
    assert bursar("policy", "show", "learned.json")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["learn", "none.parquet"], "none.parquet: there is no such file"),
        (["learn", "text.parquet"], "text.parquet: it is no log"),
        (["learn", "log-0.parquet", "other.parquet"], "other.parquet: its tasks are"),
        (["learn", "plain.parquet", "--reward", "prediction-gain"], "plain.parquet: --reward prediction-gain"),
        (["learn", "log-0.parquet", "--reward", "praise"], "there is no reward 'praise'"),
        (["learn", "log-0.parquet", "--estimator", "guess"], "there is no policy estimator 'guess'"),
        (
            ["learn", "log-0.parquet", "--estimator", "clipped", "--kind", "dynamic"],
            "Fix: use self-normalised",
        ),
        (["learn", "log-0.parquet", "--kind", "random"], "use fixed or dynamic"),
        (["learn", "log-0.parquet", "--entropy", "-1"], "--entropy"),
        (["learn", "log-0.parquet", "--entropy", "nan"], "--entropy"),
        (["learn"], "LOG"),
    ],
)
def test_bad_input_exits_with_2_and_a_sentence_and_writes_nothing(bursar, logs, tmp_path, arguments, said):
    (tmp_path / "text.parquet").write_text("step,task")
    write_log(tmp_path / "plain.parquet", after=False)
    write_log(tmp_path / "other.parquet", tasks=("a", "b", "c"))
    code, out, errors = bursar("policy", *arguments, "--out", "learned.json")
    assert code == 2
    assert said in errors
    assert "Traceback" not in errors + out
    assert not (tmp_path / "learned.json").exists()


def test_a_policy_is_written_to_a_file_that_can_be_named_in_a_campaign(bursar, logs):
    code, _, errors = bursar("policy", "learn", *logs, "--out", "learned")
    assert code == 2
    assert "end in .json" in errors


# -- showing ---
def test_showing_says_what_each_share_means(bursar, logs):
    bursar("policy", "learn", *logs, "--out", "learned.json")
    code, out, _ = bursar("policy", "show", "learned.json")
    assert code == 0
    assert "share: mean share of training steps" in out
    assert "its share in the trainings that the policy was learned from" in out
    assert "Learned from 1,200 steps in log-0.parquet, log-1.parquet (policy: uniform)" in out
    slots = next(line for line in out.splitlines() if line.startswith("slots"))
    share = load_policy("learned.json").weights["slots"]
    assert f"{100 * share:.1f} %" in slots
    assert "33.3 %" in slots


def test_showing_weights_of_ones_own_needs_no_logs(bursar, tmp_path):
    FixedPolicy({"intent": 1, "slots": 3}).save(tmp_path / "mine.json")
    code, out, _ = bursar("policy", "show", "mine.json")
    assert code == 0
    assert "75.0 %" in out
    assert "in the logs" not in out
    found = json.loads(bursar("policy", "show", "mine.json", "--json")[1])
    assert found["shares"] == {"intent": 0.25, "slots": 0.75}
    assert found["learned"] is None


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "fixed"])
def test_every_policy_can_be_shown_by_its_name(bursar, name):
    code, out, _ = bursar("policy", "show", name)
    assert code == 0
    assert out.startswith(f"{name}: ")
    assert "share" in out


@pytest.mark.parametrize(
    "learned", ["much", {}, {"logs": 3, "estimate": [1], "shares": {"intent": "x"}, "steps": "many", "warnings": None}]
)
def test_a_file_whose_story_was_edited_is_shown_as_far_as_it_goes(bursar, tmp_path, learned):
    (tmp_path / "p.json").write_text(json.dumps({"policy": "fixed", "weights": {"intent": 1}, "learned": learned}))
    code, out, errors = bursar("policy", "show", "p.json")
    assert (code, errors) == (0, "")
    assert "100.0 %" in out


@pytest.mark.parametrize("policy", ["none.json", "bad.json", "unifrom", "fixed"])
def test_what_is_no_policy_cannot_be_shown(bursar, tmp_path, policy):
    (tmp_path / "bad.json").write_text("{")
    code, _, errors = bursar("policy", "show", policy)
    assert code == 2
    assert policy in errors


# -- listing ---
def test_policies_and_rewards_are_listed_with_what_they_do(bursar):
    code, out, _ = bursar("policy", "list")
    assert code == 0
    assert all(name in out for name in [*POLICIES, *REWARDS])
    found = json.loads(bursar("policy", "list", "--json")[1])
    assert list(found["policies"]) == list(POLICIES)
    assert list(found["rewards"]) == list(REWARDS)
    assert all(found["policies"].values())
    assert all(found["rewards"].values())


# -- in a campaign ---
@pytest.mark.parametrize(
    ("learner", "said"),
    [
        ('policy = "unifrom"', "did you mean 'uniform'"),
        ('policy = "none.json"', "none.json"),
        ('policy = "other.json"', "does not know task 'intent'"),
        ('name = "probe"\npolicy = "uniform"', "the learner 'probe' has no training steps"),
    ],
)
def test_a_campaign_with_a_policy_that_cannot_be_exits_with_2_and_has_spent_nothing(bursar, tmp_path, learner, said):
    FixedPolicy({"mood": 1}).save(tmp_path / "other.json")
    (tmp_path / "c.toml").write_text(f'tasks = ["intent"]\n[corpus]\nitems = 300\n[learner]\n{learner}\n')
    code, out, errors = bursar("run", "c.toml", "--workers", "1")
    assert code == 2
    assert said in errors
    assert "Traceback" not in errors + out
    assert not (tmp_path / "runs/c/models").exists()


def test_a_policy_that_needs_weights_says_how_to_give_them(bursar):
    code, _, errors = bursar("policy", "show", "fixed")
    assert code == 2
    assert "needs its weights" in errors


def test_a_folder_is_no_log_and_its_files_are_asked_for(bursar, tmp_path):
    code, _, errors = bursar("policy", "learn", tmp_path, "--out", "learned.json")
    assert code == 2
    assert "it is a folder" in errors
