"""The study of the audit: simulated campaigns have a known saving, and estimates are judged by it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from experiments.studies.arms import Place
from experiments.studies.audit import DATA, grid, work
from experiments.studies.audit_before import exchange_rate
from experiments.studies.audit_findings import COLUMNS, analyse, cases_of, quality
from experiments.studies.audit_simulated import simulate

PLACE = Place(Path("runs"), Path("data"))


def campaign(share: float, shadow: float, strategy: str = "AUTO"):
    """A strategy that has random's score with half of the money, and shadows that have so much error."""
    rounds = [
        {
            "round": k,
            "spent": m,
            "chosen": m - 100 * k,
            "items": m // 10,
            "test": {"intent": {"accuracy": 1 - 4 * m**-0.4}},
        }
        for k, m in enumerate((1000, 2000, 3000))
    ]
    shadows = [{"round": k, "spent": 100 * k + 200, "items": 30, "test": {"intent": shadow}} for k in (1, 2)]
    unit = {"part": "campaign", "data": "snips", "learner": "probe", "seed": 0, "strategy": strategy, "share": share}
    found = {"rounds": rounds, "shadows": shadows, "slices": [], "tasks": {"intent": "classification"}}
    return {"unit": unit, "result": found | {"test_items": 700}}


RANDOM = {
    "unit": {"part": "random", "data": "snips", "learner": "probe", "seed": 0},
    "result": {
        "money": [500, 1000, 1500, 3000],
        "scores": [[1 - 4 * (m / 2) ** -0.4 for m in (500, 1000, 1500, 3000)]] * 2,
    },
}


def test_the_truth_is_what_random_needs_for_the_lower_of_the_two_ends():
    """Random ends with 1 − 4 · 1500^−0.4; by straight lines the strategy is there at 1,618 of 3,000."""
    (case,) = cases_of([RANDOM, campaign(0.2, 0.5)])
    start, end, wanted = (4 * m**-0.4 for m in (1000, 2000, 1500))
    assert case.truth == pytest.approx(1 - (1000 + 1000 * (start - wanted) / (start - end)) / 3000)
    assert set(case.said) == {"test items"}  # there are no slices


def test_a_campaign_without_random_beside_it_is_not_judged():
    assert cases_of([campaign(0.2, 0.5)]) == []


def test_quality_counts_what_is_covered_known_and_wrong():
    truth = np.array([0.2, -0.1, 0.1, -3.0])
    said = np.array([[0.1, 0.2, 0.3], [0.05, 0.1, 0.2], [-0.5, 0.1, 0.6], [-2.0, -0.5, 0.1]])
    found = dict(zip(COLUMNS, (cell.ours for cell in quality(truth, said)), strict=True))
    assert found["campaigns"] == 4
    assert found["covered %"] == 75  # the second is not; the last is cut at twice the money
    assert found["known %"] == 50
    assert found["wrong side %"] == 25
    assert found["bias if known"] == pytest.approx(10)


def test_findings_say_whether_the_estimate_can_be_believed():
    simulated = grid("small")[0]
    runs = [RANDOM, campaign(0.1, 0.4), campaign(0.2, 0.4), campaign(0.1, 0.4, "LONGEST")]
    runs.append({"unit": simulated, "result": {"campaigns": [[0.3, 0.1, 0.3, 0.5, None], [0.3, -0.4, 0.1, 0.5, 80]]}})
    found = analyse(runs, "small")
    assert [answer.question for answer in found.answers] == ["Bias", "Coverage"]
    (row,) = next(table for table in found.tables if table.name == "Simulated").rows.values()
    assert [cell.ours for cell in row[-2:]] == [50, 80]
    costs = next(table for table in found.tables if table.name == "Cost").rows
    assert [cell.ours for cell in costs["AUTO, last score"]] == [0, 0]
    assert json.dumps(found.as_json())


def test_a_simulated_unit_is_the_same_every_time():
    unit = grid("small")[1] | {"share": 0.3}
    small = simulate(3, **{key: unit[key] for key in ("share", "test", "random_start", "size", "seed")})
    assert work(unit, print, place=PLACE)["campaigns"][:3] == small


def test_the_grid_keeps_to_the_development_sets():
    assert {unit["data"] for unit in grid("small") if "data" in unit} == set(DATA)
    assert {"snips", "atis", "mit_restaurant", "builtin"} == set(DATA)


def test_the_exchange_rate_of_before_is_exact_without_noise():
    money = np.array([[300.0, 250], [600, 300], [1200, 360], [2000, 420]])
    for worth, b in ((0.5, 0.3), (1.0, 0.7), (3.0, 0.5)):
        errors = np.stack([2 * (worth * money[:, 0]) ** -b, 2 * money[:, 1] ** -b], axis=1)
        assert exchange_rate(errors[None], money, np.ones(4))[0] == pytest.approx(worth)
