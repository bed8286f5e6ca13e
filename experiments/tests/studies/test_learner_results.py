"""What the committed results say of the learner, and that they say it of themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.studies.learner import grid, summarise
from experiments.studies.study import Results

RESULTS = Path(__file__).parents[2] / "results" / "learner.json"


@pytest.fixture(scope="module")
def found():
    return Results.read(RESULTS)


@pytest.fixture(scope="module")
def summary(found):
    return summarise(found.runs)


@pytest.fixture(scope="module")
def mean(summary):
    return lambda arm, score: 100 * summary[arm][score]["mean"]


@pytest.mark.parametrize("data", ["atis", "snips"])
@pytest.mark.parametrize("score", ["intent accuracy", "slots f1"])
def test_one_model_for_both_tasks_is_within_two_points_of_a_model_for_each(mean, data, score):
    assert mean(f"full {data} shared", score) >= mean(f"full {data} single", score) - 2


def test_two_hundred_sentences_reach_what_the_prototype_did(summary, mean):
    assert summary["few snips shared"]["intent accuracy"]["seeds"] == 3
    assert mean("few snips shared", "intent accuracy") >= 94
    assert mean("few snips shared", "slots f1") >= 65


def test_trees_and_relations_were_measured_for_every_way_of_sharing(summary):
    for arm in ("single", "shared", "gated"):
        assert {"dependencies las", "entities f1"} <= set(summary[f"trees ewt {arm}"])
    assert {"entities f1", "relations f1"} <= set(summary["joint scierc shared"])


def test_every_run_is_of_the_study_as_it_is_now(found):
    assert all(run["unit"] in grid("small") for run in found.runs)
