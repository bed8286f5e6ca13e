"""``bursar run`` with plugins, changed settings and several seeds, and ``bursar compare``."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from bursar.campaign.curves import LearningCurve, area_by_seed, mean_curve, mean_interval, paired
from bursar.registry import PLUGINS
from bursar.selection import STRATEGIES

CAMPAIGN = """
tasks = ["intent"]
compare = ["RANDOM"]
corpus = { items = 300 }
budget = { seed_items = 20, per_round = 150, rounds = 1 }
strategy = { name = "MT-AVG" }
learner = { name = "scikit", estimator = "naive-bayes" }
"""
PLUGIN = """
from bursar.selection import scoring_strategy, strategy


@scoring_strategy("MINE-{tag}", "short items first", needs=frozenset({{"words"}}))
def mine(pool):
    return {body}
"""


@pytest.fixture
def campaign(tmp_path):
    (tmp_path / "c.toml").write_text(CAMPAIGN)
    return "c.toml"


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Writes a plugin with a strategy of its own, which the test's processes forget afterwards."""
    monkeypatch.setenv(PLUGINS, "")
    known = set(STRATEGIES.names())

    def write(tag, body="-pool.features.require('words')"):
        (tmp_path / f"{tag}.py").write_text(PLUGIN.format(tag=tag.upper(), body=body))
        return f"{tag}.py"

    yield write
    for name in set(STRATEGIES.names()) - known:
        del STRATEGIES._entries[name]


# -- plugins ---
def test_a_plugin_is_known_here_and_in_worker_processes(bursar, campaign, plugin, tmp_path):
    file = plugin("workers")
    chosen = ("--plugin", file, "--set", "strategy.name=MINE-WORKERS", "--workers", 2, "--json")
    code, out, err = bursar("run", campaign, *chosen)
    assert (code, err) == (0, "")
    assert list(json.loads(out)["arms"]) == ["MINE-WORKERS", "RANDOM"]
    assert os.environ[PLUGINS] == str(tmp_path / file)
    code, _, _ = bursar("report", "runs/c", "--plugin", file)
    assert code == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("import nowhere_at_all", "p.py:1: the plugin cannot be imported: ModuleNotFoundError"),
        ("x = 1\n\ny = x +\n", "p.py:3: the plugin cannot be imported: SyntaxError"),
        ("def f():\n    raise ValueError('no')\n\nf()\n", "p.py:2: the plugin cannot be imported: ValueError: no"),
    ],
)
def test_an_error_in_a_plugin_is_named_with_its_line(bursar, campaign, monkeypatch, tmp_path, content, said):
    monkeypatch.setenv(PLUGINS, "")
    (tmp_path / "p.py").write_text(content)
    code, _, err = bursar("run", campaign, "--plugin", "p.py")
    assert (code, said in err) == (2, True), err
    assert not (tmp_path / "runs").exists()


def test_a_plugin_that_is_no_file_is_refused(bursar, campaign, monkeypatch):
    monkeypatch.setenv(PLUGINS, "")
    code, _, err = bursar("run", campaign, "--plugin", "nowhere.py")
    assert (code, "there is no file" in err) == (2, True)


@pytest.mark.parametrize(
    ("tag", "body", "said"),
    [
        ("shape", "pool.confidence", "shape.py:5) returned an array of shape (2"),
        ("forgot", "pool.features.require('vectors')[:, 0]", "uses the feature 'vectors' and does not declare it"),
        ("fails", "pool.features.vectors[:, 0]", "failed at "),
        ("nan", "pool.confidence[:, 0] * float('nan')", "returned a score that is not a number"),
        ("kind", "'high'", "returned a str in place of (items,)"),
    ],
)
def test_what_is_wrong_with_a_strategy_is_named_with_its_file_and_line(bursar, campaign, plugin, tag, body, said):
    file = plugin(tag, body)
    chosen = ("--set", f"strategy.name=MINE-{tag.upper()}", "--set", "compare=[]", "--json")
    code, _, err = bursar("run", campaign, "--plugin", file, *chosen)
    assert code == 2
    assert said in err
    assert f"{tag}.py:" in err


# -- settings ---
def test_settings_are_changed_as_they_are_written_in_the_file(bursar, campaign):
    changes = ("--set", "budget.rounds=0", "--set", "compare=[]", "--set", "strategy.name=MT-MAX", "--json")
    code, out, _ = bursar("run", campaign, *changes)
    assert code == 0
    found = json.loads(out)
    assert list(found["arms"]) == ["MT-MAX"]
    assert found["config"]["budget"]["rounds"] == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("lerner.name=cnn", "lerner is no key. Fix: did you mean 'learner'?"),
        ("budget.per_rond=3", "did you mean 'per_round'?"),
        ("per_round=3", "per_round is no key. Fix: did you mean budget.per_round?"),
        ('tasks=["intnet"]', "there is no task 'intnet'. Fix: did you mean 'intent'?"),
        ("costs.intnet={per_item=3}", "costs.intnet: there is no such task. Fix: did you mean 'intent'?"),
        ("limits.tasks.intnet={at_most=3}", "there is no task 'intnet'. Fix: did you mean 'intent'?"),
        ("learner={name='probe',penalti=1.0}", "is not a setting of 'probe'. Fix: did you mean 'penalty'?"),
        ("learner={name='transformer',step=9}", "learner.step is not a setting. Fix: did you mean 'steps'?"),
        ("seed", "--set seed: not a setting"),
        ("seed.more=1", "seed is not a section"),
    ],
)
def test_near_misses_of_sections_keys_and_tasks_are_guessed(bursar, campaign, change, said):
    text = "seed = 0\n" + CAMPAIGN if change.startswith("seed.") else CAMPAIGN
    with open(campaign, "w") as file:
        file.write(text)
    code, _, err = bursar("run", campaign, "--set", change)
    assert (code, said in err) == (2, True), err


def test_a_campaign_on_data_without_labels_points_to_new(bursar, campaign, tmp_path):
    (tmp_path / "m.csv").write_text("id,text\n1,where is my order\n2,stop it please\n")
    code, _, err = bursar("run", campaign, "--set", "corpus={source='m.csv'}")
    assert code == 2
    assert "has no labels, and a simulation needs them" in err
    assert "bursar new PROJECT --from m.csv" in err


# -- seeds ---
def test_several_seeds_have_a_folder_each_and_one_report(bursar, campaign, tmp_path):
    code, out, _ = bursar("run", campaign, "--seeds", "0-2", "--workers", 1)
    assert code == 0
    assert "MT-AVG against random" in out
    assert out.rstrip().endswith("Report: runs/c/report.html")
    page = (tmp_path / "runs" / "c" / "report.html").read_text()
    assert "3 runs of one campaign, with the seeds 0, 1, 2." in page
    assert '"bands":[' in page
    alone = bursar("run", campaign, "--seed", 1, "--run", "one", "--json")[1]
    again = bursar("report", "runs/c/seed-1", "--json")[1]
    assert json.loads(alone)["arms"] == json.loads(again)["arms"]
    code, _, err = bursar("run", campaign)
    assert (code, "holds runs of several seeds" in err) == (2, True)
    code, out, _ = bursar("compare", "runs/c", "--json")
    found = json.loads(out)
    assert [arm["seeds"] for arm in found["arms"]] == [3, 3]
    assert found["differences"][0]["seeds"] == 3
    assert found["differences"][0]["low"] <= found["differences"][0]["mean"] <= found["differences"][0]["high"]


@pytest.mark.parametrize(
    ("seeds", "said"),
    [("4-2", "not a list"), ("a", "not a list"), ("1,1", "twice"), ("", "not a list"), ("0-5000", "more than 1,000")],
)
def test_seeds_that_are_none_are_refused(bursar, campaign, seeds, said):
    code, _, err = bursar("run", campaign, "--seeds", seeds)
    assert (code, said in err) == (2, True)


def test_runs_on_other_data_are_not_compared(bursar, campaign):
    for name, items in (("a", 300), ("b", 400)):
        small = ("--set", "budget.rounds=0", "--set", "compare=[]", "--set", f"corpus.items={items}")
        assert bursar("run", campaign, "--run", name, *small, "--json")[0] == 0
    code, _, err = bursar("compare", "a", "b")
    assert (code, "a and b have different numbers of test items" in err) == (2, True)


# -- the numbers ---
def curve(scores, money=(0.0, 1.0)):
    return LearningCurve("X", (0, 1), np.array(money), {"t": np.array(scores)})


def test_the_band_is_that_of_the_mean_at_every_amount_of_money():
    found = mean_curve("X", {0: curve([0.0, 1.0]), 1: curve([0.2, 0.6]), 2: curve([0.4, 0.8])})
    middle = len(found.money) // 2
    at = float(found.money[middle])
    by_hand = mean_interval([at, 0.2 + 0.4 * at, 0.4 + 0.4 * at])
    assert (found.mean[middle], found.low[middle], found.high[middle]) == pytest.approx(by_hand)


def test_arms_are_compared_over_the_money_that_all_of_a_seed_have_spent():
    areas = area_by_seed({"A": {0: curve([0.0, 1.0]), 1: curve([0.5, 0.5])}, "B": {0: curve([1.0, 1.0], (0.0, 0.5))}})
    assert areas == {"A": {0: pytest.approx(0.25), 1: pytest.approx(0.5)}, "B": {0: pytest.approx(1.0)}}
    difference = paired("A", "B", areas)
    assert (difference.seeds, difference.mean, difference.low) == (1, pytest.approx(-0.75), None)
