"""What every committed file of results must hold: it is of the study as it is now, and its findings follow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.studies.catalogue import known_studies
from experiments.studies.study import Results

NO_FIGURES = ("beyond", "learner", "bandit")  # the paper draws them and prints none, or has none
FILES = sorted((Path(__file__).parents[2] / "results").glob("*.json"))


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def file(request) -> Path:
    known_studies()  # so that each test can run alone
    return request.param


def test_the_runs_are_units_of_the_study_as_it_is_now(file):
    found = Results.read(file)
    grid = [json.dumps(unit, sort_keys=True) for unit in known_studies()[found.study].grid(found.scale)]
    runs = [json.dumps(run["unit"], sort_keys=True) for run in found.runs]
    assert set(runs) <= set(grid)
    assert len(set(runs)) == len(runs)
    assert found.total == len(grid)


def test_the_findings_follow_from_the_runs(file):
    stored = json.loads(file.read_text())
    found = json.loads(json.dumps(Results.read(file).findings().as_json()))
    assert _rounded(stored["findings"]) == _rounded(found)


def test_a_file_tells_how_it_was_made(file):
    stored = json.loads(file.read_text())
    assert stored["command"].startswith("python -m experiments run ")
    assert {"bursar", "torch", "numpy", "python"} <= set(stored["versions"])
    assert stored["seconds"] > 0
    assert stored["units"]["finished"] == len(stored["runs"])


def test_no_round_of_any_campaign_spent_over_its_budget(file):
    rounds = [
        r for run in Results.read(file).runs for r in run["result"].get("rounds", []) if r.get("budget") is not None
    ]
    assert all(r["cost"] <= r["budget"] for r in rounds)


def test_figures_of_the_paper_stand_beside_ours(file):
    found = Results.read(file)
    if "paper" in known_studies()[found.study].source and found.complete:
        cells = [cell for table in found.findings().tables for row in table.rows.values() for cell in row]
        assert any(cell.paper is not None and cell.ours is not None for cell in cells) or found.study in NO_FIGURES


def _rounded(found):
    """Sums in another order differ in their last digits."""
    if isinstance(found, float):
        return round(found, 6)
    if isinstance(found, dict):
        return {key: _rounded(value) for key, value in found.items()}
    if isinstance(found, list):
        return [_rounded(value) for value in found]
    return found
