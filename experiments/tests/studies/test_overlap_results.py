"""What the committed overlap table says, and that it says it of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.studies.overlap import PAPER, STRATEGIES, grid, summarise
from experiments.studies.study import Results


@pytest.fixture(scope="module")
def found():
    return Results.read(Path(__file__).parents[2] / "results" / "overlap.json")


@pytest.fixture(scope="module")
def summary(found):
    return summarise(found.runs)


def test_the_runs_are_of_the_study_as_it_is_now(found):
    assert [run["unit"] for run in found.runs] == grid("small")


def test_every_two_strategies_are_compared(summary):
    for table in summary.values():
        assert len(table) == len(STRATEGIES) * (len(STRATEGIES) - 1) // 2
        assert set(PAPER) <= set(table)


def test_ranks_and_quotas_agree_most_and_maximum_and_minimum_hardly(summary):
    """As in the paper: MT-IND and MT-RRF pick nearly the same, MT-MAX and MT-MIN do not."""
    for table in summary.values():
        assert table["MT-IND MT-RRF"]["mean"] > 0.8
        assert table["MT-MAX MT-MIN"]["mean"] < 0.3
