"""The study of training protocols: its grid, and what it says of runs whose answer is known."""

from __future__ import annotations

from bursar.learners import make_learner
from bursar.simulation import assistant_corpus
from bursar.studies.training import ARMS, BASE, BEFORE, DATA, ITEMS, SEEDS, analyse, grid


def runs_of(score):
    return [
        {"unit": unit, "result": {"mean": score(unit), "scores": {}, "steps": 1, "core_seconds": 2.0}}
        for unit in grid("small")
    ]


def test_every_arm_is_trained_on_the_same_draws():
    units = grid("small")
    assert len(units) == len(ARMS) * len(DATA) * len(ITEMS) * SEEDS
    draws = {arm: {(u["data"], u["items"], u["seed"]) for u in units if u["arm"] == arm} for arm in ARMS}
    assert len({frozenset(found) for found in draws.values()}) == 1


def test_every_arm_can_be_made():
    schema = assistant_corpus(20, seed=0).with_tasks(["intent", "slots"]).schema
    for options in ARMS.values():
        make_learner("transformer", schema, options)


def test_the_gate_is_passed_only_if_the_base_is_ahead_on_every_set():
    def better(unit):
        return 0.6 + 0.05 * (unit["arm"] == BASE) + 0.001 * unit["seed"] * (unit["arm"] == BEFORE)

    def worse_on_one(unit):
        return better(unit) - 0.2 * (unit["data"] == "atis" and unit["arm"] == BASE)

    assert analyse(runs_of(better), "small").answers[0].verdict == "yes"
    assert analyse(runs_of(worse_on_one), "small").answers[0].verdict == "no"


def test_gains_are_against_the_base_on_the_same_items():
    found = analyse(runs_of(lambda unit: 0.5 + 0.01 * (unit["arm"] == "four layers") + unit["items"] / 1e4), "small")
    gains = next(table for table in found.tables if table.name == "Gains")
    assert [round(cell.ours, 6) for cell in gains.rows["four layers"]] == [1.0, 1.0, 1.0, 1.0]
    assert [round(cell.ours, 6) for cell in gains.rows[BEFORE]] == [0.0, 0.0, 0.0, 0.0]


def test_nothing_run_is_no_answer():
    assert analyse([], "small").answers[0].verdict == "not decided here"
