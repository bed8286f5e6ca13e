"""What the committed overlap table says, and that it says it of itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bursar.studies.overlap import OPTIONS, PAPER, SHARE, STRATEGIES, summarise

RESULTS = Path(__file__).parents[2] / "studies"


@pytest.fixture
def overlap():
    return json.loads((RESULTS / "overlap.json").read_text())


def test_the_summary_follows_from_the_runs(overlap):
    assert overlap["summary"] == summarise(overlap["runs"])


def test_the_runs_are_of_the_study_as_it_is_now(overlap):
    for run in overlap["runs"]:
        about = {name: run["unit"][name] for name in ("share", "options", "strategies")}
        assert about == {"share": SHARE, "options": OPTIONS, "strategies": list(STRATEGIES)}
    assert {run["unit"]["seed"] for run in overlap["runs"]} == {0, 1, 2}


def test_every_two_strategies_are_compared(overlap):
    for table in overlap["summary"].values():
        assert len(table) == len(STRATEGIES) * (len(STRATEGIES) - 1) // 2
        assert set(PAPER) <= set(table)


def test_ranks_and_quotas_agree_most_and_maximum_and_minimum_hardly(overlap):
    """As in the paper: MT-IND and MT-RRF pick nearly the same, MT-MAX and MT-MIN do not."""
    for table in overlap["summary"].values():
        assert table["MT-IND MT-RRF"]["mean"] > 0.8
        assert table["MT-MAX MT-MIN"]["mean"] < 0.3
