"""The study of training protocols: its grid, and what it says of runs whose answer is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from bursar.learners import make_learner
from bursar.simulation import assistant_corpus
from experiments.studies.arms import Place
from experiments.studies.study import Results
from experiments.studies.training import (
    ARMS,
    BEFORE,
    DATA,
    DEFAULT,
    ITEMS,
    LINEAR,
    MAIN,
    PRETRAINED,
    SEEDS,
    SIDE,
    SIDE_SEEDS,
    analyse,
    grid,
    train,
)
from tests.tiny import tiny_encoder


def runs_of(score):
    return [
        {"unit": unit, "result": {"mean": score(unit), "scores": {}, "steps": 1, "core_seconds": 2.0}}
        for unit in grid("small")
    ]


def test_arms_of_one_seed_are_trained_on_the_same_draws():
    units = grid("small")
    assert len(units) == (len(MAIN) * SEEDS + len(SIDE) * SIDE_SEEDS) * len(DATA) * len(ITEMS)
    for seed in range(SEEDS):
        arms = ARMS if seed < SIDE_SEEDS else MAIN
        draws = {arm: {(u["data"], u["items"]) for u in units if u["arm"] == arm and u["seed"] == seed} for arm in arms}
        assert set(map(frozenset, draws.values())) == {frozenset((data, items) for data in DATA for items in ITEMS)}


def test_every_committed_unit_is_in_the_grid():
    units = grid("small")
    committed = Results.read(Path(__file__).parents[2] / "results" / "training.json").runs
    assert committed
    assert all(run["unit"] in units for run in committed)


def test_every_arm_can_be_made():
    schema = assistant_corpus(20, seed=0).with_tasks(["intent", "slots"]).schema
    for options in ARMS.values():
        make_learner("transformer", schema, options)


def test_a_pool_is_read_once_for_all_units_that_read_it_alike(tmp_path):
    place = Place(tmp_path / "runs", tmp_path)
    options = {"encoder": str(tiny_encoder(tmp_path / "encoder")), "steps": 2, "pretraining_steps": 2}
    stages = []
    for items in (50, 150):
        unit = {"data": "builtin", "items": items, "seed": 0, "arm": PRETRAINED, "options": options}
        result = train(unit, lambda told, items=items: stages.append((items, told[0])), place=place)
        assert 0 <= result["mean"] <= 1
    assert (50, "pretraining") in stages
    assert (150, "pretraining") not in stages


def test_the_gate_is_passed_only_if_the_new_protocol_is_ahead_on_every_set():
    def better(unit):
        return 0.6 + 0.05 * (unit["arm"] == DEFAULT) + 0.001 * unit["seed"] * (unit["arm"] == BEFORE)

    def worse_on_one(unit):
        return better(unit) - 0.2 * (unit["data"] == "atis" and unit["arm"] == DEFAULT)

    assert analyse(runs_of(better), "small").answers[0].verdict == "yes"
    assert analyse(runs_of(worse_on_one), "small").answers[0].verdict == "no"


@pytest.mark.parametrize(
    ("gain", "verdict"),
    [
        (lambda unit: 0.01, "yes"),
        (lambda unit: 0.03 - 0.034 * (unit["data"] == "atis"), "yes"),  # half a point is forgiven
        (lambda unit: 0.03 - 0.036 * (unit["data"] == "atis"), "no"),
        (lambda unit: 0.03 - 0.04 * (unit["items"] == 400), "no"),
    ],
)
def test_a_change_is_kept_only_if_it_helps_at_every_size_and_harms_no_set(gain, verdict):
    found = analyse(runs_of(lambda unit: 0.5 + gain(unit) * (unit["arm"] == PRETRAINED)), "small")
    assert {answer.question: answer.verdict for answer in found.answers}[PRETRAINED] == verdict


def test_gains_are_against_the_default_on_the_same_items():
    def score(unit):
        return 0.5 + unit["items"] / 1e4 + 0.02 * (unit["arm"] == "four layers") - 0.01 * (unit["arm"] == LINEAR)

    tables = {table.name: table.rows for table in analyse(runs_of(score), "small").tables}
    assert [round(cell.ours, 6) for cell in tables["Gains"][LINEAR]] == [-1.0] * 4
    assert [round(cell.ours, 6) for cell in tables["Gains"]["four layers"]] == [2.0] * 4
    assert [round(cell.ours, 6) for cell in tables["Gains"]["averaged weights"]] == [0.0] * 4
    assert DEFAULT not in tables["Gains"]


def test_nothing_run_is_no_answer():
    assert {answer.verdict for answer in analyse([], "small").answers} == {"not decided here"}
