"""What the committed results say of the learner, and that they say it of themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bursar.studies.learner import summarise, units

RESULTS = Path(__file__).parents[2] / "studies" / "learner.json"


@pytest.fixture(scope="module")
def found():
    return json.loads(RESULTS.read_text())


@pytest.fixture
def mean(found):
    return lambda arm, score: 100 * found["summary"][arm][score]["mean"]


@pytest.mark.parametrize("data", ["atis", "snips"])
@pytest.mark.parametrize("score", ["intent accuracy", "slots f1"])
def test_one_model_for_both_tasks_is_within_two_points_of_a_model_for_each(mean, data, score):
    assert mean(f"full {data} shared", score) >= mean(f"full {data} single", score) - 2


def test_two_hundred_sentences_reach_what_the_prototype_did(found, mean):
    assert found["summary"]["few snips shared"]["intent accuracy"]["seeds"] == 3
    assert mean("few snips shared", "intent accuracy") >= 94
    assert mean("few snips shared", "slots f1") >= 65


def test_trees_and_relations_were_measured_for_every_way_of_sharing(found):
    for arm in ("single", "shared", "gated"):
        assert {"dependencies las", "entities f1"} <= set(found["summary"][f"trees ewt {arm}"])
    assert {"entities f1", "relations f1"} <= set(found["summary"]["joint scierc shared"])


def test_the_summary_follows_from_the_runs(found):
    assert found["summary"] == json.loads(json.dumps(summarise(found["runs"])))


def test_every_run_is_of_the_study_as_it_is_now(found):
    known = {unit.name: unit for unit in units()}
    for run in found["runs"]:
        unit = run["unit"]
        now = known[f"{unit['question']}-{unit['data']}-{unit['arm']}-{unit['seed']}"]
        assert (unit["items"], unit["dev"], unit["options"]) == (now.items, now.dev, now.options)
