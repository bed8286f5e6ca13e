"""Policies inside campaigns: a learned one is learned from the campaign's own first training."""

from __future__ import annotations

import pytest

from bursar.learners.neural import NeuralLearner
from experiments.studies.arms import Arm, Place, Setup
from experiments.studies.steering import DYNAMIC, ENTROPIES, FIXED, JOINT, POLICIES, analyse, grid, run_steered

TINY = Setup(60, 20, 30, 16, 8, 1, learner={"layers": 1, "frozen_layers": 1, "steps": 16, "batch_size": 4})


def quiet(what):
    pass


def tiny(policy):
    return {
        "policy": policy,
        "entropy": ENTROPIES.get(POLICIES[policy]),
        **Arm("builtin", "MT-AVG", 0, TINY, tasks=("intent", "slots")).unit(),
    }


@pytest.mark.parametrize("policy", [JOINT, FIXED, DYNAMIC])
def test_a_campaign_is_steered_by_what_the_unit_says(policy, tmp_path, monkeypatch):
    led = []
    fit = NeuralLearner.fit
    monkeypatch.setattr(NeuralLearner, "fit", lambda *a, **how: led.append(how.get("policy")) or fit(*a, **how))
    result = run_steered(tiny(policy), quiet, place=Place(tmp_path, tmp_path))
    assert [r["round"] for r in result["rounds"]] == [0, 1]
    assert len({id(type(one)) for one in led[-2:]}) == 1  # the campaign's own two trainings
    assert (None if led[-1] is None else led[-1].describe()) == result["policy"]
    if policy == JOINT:
        assert result["policy"] is None
    elif policy == FIXED:
        assert sum(result["policy"]["weights"].values()) == pytest.approx(1)
        assert list(result["policy"]["weights"]) == ["intent", "slots"]
    else:
        assert result["policy"]["policy"] == "dynamic"


def test_the_same_unit_gives_the_same_campaign(tmp_path):
    one, two = (run_steered(tiny(FIXED), quiet, place=Place(tmp_path / n, tmp_path)) for n in "ab")
    assert one["rounds"] == two["rounds"]
    assert one["policy"] == two["policy"]


def made_up(unit, score):
    learned = {"policy": "fixed", "weights": {"intent": 0.5, "slots": 0.5}} if unit["policy"] == FIXED else None
    rounds = [
        {
            "round": n,
            "spent": 100.0 * (n + 1),
            "items": 60 * (n + 1),
            "test": {"intent": score + n / 50, "slots": score},
        }
        for n in range(5)
    ]
    return {"unit": unit, "result": {"rounds": rounds, "policy": learned, "seconds": 1.0}}


def test_findings_say_which_policy_is_ahead():
    value = dict(zip(POLICIES, (0.7, 0.6, 0.61, 0.62, 0.66), strict=True))
    runs = [made_up(unit, value[unit["policy"]] + 0.01 * unit["seed"]) for unit in grid("small")]
    found = analyse(runs, "small")
    verdicts = {answer.question: answer.verdict for answer in found.answers}
    assert verdicts == {
        f"{FIXED} against uniform": "yes",
        f"{DYNAMIC} against uniform": "yes",
        f"{DYNAMIC} against {JOINT}": "no",
    }
    assert found.tables[0].rows[DYNAMIC][-1].ours == pytest.approx(6.0)
    assert all(len(row) == len(table.columns) for table in found.tables for row in table.rows.values())
    assert analyse(runs[:3], "small").headline


def test_arms_differ_in_nothing_but_the_policy():
    units = grid("small")
    for data in ("builtin", "snips"):
        same = [{**unit, "policy": "", "entropy": None} for unit in units if (unit["data"], unit["seed"]) == (data, 1)]
        assert len(same) == len(POLICIES)
        assert all(unit == same[0] for unit in same)
