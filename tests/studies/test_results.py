"""What the committed results say, and that they say it of themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bursar.campaign.config import parse_config
from bursar.campaign.demo import demo_config
from bursar.studies.demo import summarise

RESULTS = Path(__file__).parents[2] / "studies"


@pytest.fixture
def demo():
    return json.loads((RESULTS / "demo.json").read_text())


def test_the_demos_strategy_beats_random_over_three_seeds(demo):
    strategy = demo_config().strategy.name
    assert len(demo["runs"]) == 3
    assert demo["summary"][strategy]["over_random"] > 0


def test_the_demo_result_is_of_the_demo_as_it_is_now(demo):
    """Keys that did not exist then have their defaults, which change nothing."""
    assert parse_config(demo["config"]) == demo_config()


def test_the_summary_follows_from_the_runs(demo):
    assert demo["summary"] == summarise([run["area"] for run in demo["runs"]])
