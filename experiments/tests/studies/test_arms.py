"""One campaign as a unit of a study: on the built-in corpus, with real models, in seconds."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bursar.errors import ConfigError
from bursar.selection import Candidates, make_strategy
from bursar.tasks import Prices
from experiments.studies import arms
from experiments.studies.arms import Arm, Place, Setup, corpus_of, run_arm
from experiments.studies.catalogue import known_studies
from experiments.studies.study import Results, run_study
from experiments.tests.studies.tiny_study import SETUP, TINY, count


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("study")
    return Place(folder, folder / "no data here")


def silent(_: object) -> None:
    """Tells nobody."""


def without_seconds(result: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in result.items() if key != "seconds"}


def test_all_arms_of_a_seed_start_from_one_model_and_part_from_there(place: Place) -> None:
    found = {
        name: run_arm(Arm("builtin", name, 0, SETUP, ("intent",)).unit(), silent, place=place)
        for name in ("MT-AVG", "MT-R")
    }
    first, second = found["MT-AVG"]["rounds"], found["MT-R"]["rounds"]
    assert first[0] == second[0]
    assert first[1]["items"] == second[1]["items"] == SETUP.start + SETUP.per_round
    assert [f.name for f in (place.runs / "starts").iterdir() if f.is_dir()] != []
    assert len([f for f in (place.runs / "starts").iterdir() if f.is_dir()]) == 1


def test_the_same_unit_gives_the_same_result_wherever_it_runs(place: Place, tmp_path: Path) -> None:
    unit = Arm("builtin", "MT-AVG", 0, SETUP, ("intent",)).unit()
    here = run_arm(unit, silent, place=place)
    arms._learner.cache_clear()
    there = run_arm(unit, silent, place=Place(tmp_path, tmp_path))
    assert without_seconds(here) == without_seconds(there)


def test_nothing_is_left_of_a_finished_campaign_but_its_result(place: Place) -> None:
    run_arm(Arm("builtin", "MT-R", 1, SETUP, ("intent",)).unit(), silent, place=place)
    assert list((place.runs / "arms").iterdir()) == []


def test_an_arm_killed_in_the_middle_ends_as_an_undisturbed_one(place: Place, tmp_path: Path) -> None:
    unit = Arm("builtin", "MT-AVG", 3, replace(SETUP, rounds=3), ("intent",)).unit()
    program = (
        "import json, sys; from pathlib import Path; from experiments.studies.arms import Place, run_arm;"
        "run_arm(json.loads(sys.argv[1]), lambda told: None, place=Place(Path(sys.argv[2]), Path(sys.argv[2])))"
    )
    process = subprocess.Popen([sys.executable, "-c", program, json.dumps(unit), str(tmp_path)], start_new_session=True)
    until = time.monotonic() + 120
    while _rounds_scored(tmp_path) < 2:
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < until
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert list((tmp_path / "arms").iterdir()), "nothing was left to go on from"
    resumed = run_arm(unit, silent, place=Place(tmp_path, tmp_path))
    assert without_seconds(resumed) == without_seconds(run_arm(unit, silent, place=place))


def _rounds_scored(runs: Path) -> int:
    """How many rounds the campaign below a folder has finished."""
    for file in runs.glob("arms/*/ledger.sqlite"):
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(file)) as ledger:
            return int(ledger.execute("select count(*) from decisions where kind = 'scores'").fetchone()[0])
    return 0


def test_data_sets_do_not_share_a_round_0_model_because_their_settings_are_alike(tmp_path: Path) -> None:
    """The settings' digest leaves the corpus out; two data sets once met in one folder."""
    place = Place(tmp_path, tmp_path)
    configs = {
        data: arms.config_of(Arm(data, "MT-R", 0, SETUP), place) for data in ("ewt:email", "ewt:weblog", "snips")
    }
    assert len({config.digest for config in configs.values()}) == 1
    assert len({arms.start_folder(data, config, place) for data, config in configs.items()}) == 3


def test_trust_is_measured_on_what_is_left_of_the_pool(place: Place) -> None:
    arm = Arm("builtin", "MT-AVG", 0, SETUP, ("intent",), smoothing=0.0, trust=True)
    trust = run_arm(arm.unit(), silent, place=place)["trust"]
    assert set(trust) == {"EC", "TS", "DA"}
    left = SETUP.pool - SETUP.start - SETUP.per_round
    assert all(np.sum(trust[way]["intent"]["grid"]) == left for way in trust)


def test_a_data_set_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="snips: there is no such data set"):
        corpus_of("snips", tmp_path)


def test_rounds_tell_what_was_allowed_and_what_was_spent(tmp_path: Path) -> None:
    setup = Setup(**{**SETUP.__dict__, "counts": "money", "per_round": 60})
    arm = Arm("builtin", "UDJS+BLP_AL", 0, setup, ("intent", "slots"))
    rounds = run_arm(arm.unit(), silent, place=Place(tmp_path, tmp_path))["rounds"]
    assert rounds[0]["budget"] is None
    assert 0 < rounds[1]["cost"] <= rounds[1]["budget"] == 60
    assert rounds[1]["spent"] == rounds[0]["spent"] + rounds[1]["cost"]


# -- whole studies ---------------------------------------------------------------------------------------------------
def test_a_study_killed_in_the_middle_repeats_no_unit_and_ends_the_same(tmp_path: Path) -> None:
    def start(folder: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "experiments.tests.studies.tiny_study", str(folder)]
        return subprocess.Popen(command, start_new_session=True, env={**os.environ, "BURSAR_TINY_SLOW": "1"})

    undisturbed = tmp_path / "undisturbed"
    assert start(undisturbed).wait(timeout=120) == 0

    killed = tmp_path / "killed"
    process = start(killed)
    until = time.monotonic() + 60
    while not list((killed / "runs" / "results").glob("*.json")):
        assert time.monotonic() < until
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = {f.name for f in (killed / "runs" / "results").glob("*.json")}
    assert 0 < len(finished) < 6
    began = count(killed / "runs")
    assert start(killed).wait(timeout=120) == 0

    results = [Results.read(folder / "tiny.json") for folder in (undisturbed, killed)]
    assert results[0].complete
    assert results[1].complete
    assert [run["result"]["value"] for run in results[0].runs] == [run["result"]["value"] for run in results[1].runs]
    again = {unit for unit, times in count(killed / "runs").items() if times > began.get(unit, 0)}
    assert len(again) == 6 - len(finished)


def test_committed_results_are_enough_to_go_on_from(tmp_path: Path) -> None:
    out = tmp_path / "tiny.json"
    run_study(TINY, scale="small", place=Place(tmp_path / "a", tmp_path), out=out, command="tiny", seeds=[0])
    partly = Results.read(out)
    assert len(partly.runs) == 3
    assert not partly.complete
    found = run_study(TINY, scale="small", place=Place(tmp_path / "b", tmp_path), out=out, command="tiny")
    assert found.complete
    assert sum(count(tmp_path / "b").values()) == 3


def test_results_of_another_study_are_not_written_over(tmp_path: Path) -> None:
    out = tmp_path / "tiny.json"
    out.write_text(
        json.dumps({"study": "other", "scale": "small", "command": "", "runs": [], "units": {"all": 1}, "versions": {}})
    )
    with pytest.raises(ConfigError, match="holds results of study other"):
        run_study(TINY, scale="small", place=Place(tmp_path, tmp_path), out=out, command="tiny")


def test_a_damaged_file_of_results_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(ConfigError, match=r"x\.json is no file of results"):
        Results.read(tmp_path / "x.json")


# -- grids -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scale", ["small", "paper"])
@pytest.mark.parametrize("name", ["complementing", "hierarchical", "granularity", "overall", "beyond"])
def test_a_grid_has_every_unit_once_and_goes_seed_by_seed(name: str, scale: str) -> None:
    units = known_studies()[name].grid(scale)
    assert len({json.dumps(unit, sort_keys=True) for unit in units}) == len(units) > 0
    seeds = [unit["seed"] for unit in units]
    assert seeds == sorted(seeds)
    assert len(set(seeds)) >= 3


@pytest.mark.parametrize("scale", ["small", "paper"])
@pytest.mark.parametrize("name", ["complementing", "hierarchical", "granularity", "beyond"])
def test_every_unit_of_a_grid_is_a_campaign_that_could_be_started(name: str, scale: str, tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path)
    for unit in known_studies()[name].grid(scale):
        config = arms.config_of(Arm.of(unit), place)
        assert config.budget.rounds == unit["setup"]["rounds"]


def test_the_overall_study_runs_nothing_that_the_scenarios_do_not_run() -> None:
    studies = known_studies()
    theirs = [u for name in studies["overall"].shares for u in studies[name].grid("small")]
    assert all(unit in theirs for unit in studies["overall"].grid("small"))


@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_where_one_task_has_all_the_weight_four_strategies_choose_alike(beta: float) -> None:
    """So the hierarchical study runs one campaign for the four of them."""
    rng = np.random.default_rng(0)
    ids = [f"i{at:03}" for at in range(200)]
    confidence = rng.choice([0.1, 0.2, 0.35, 0.5, 0.8], (200, 2)) + rng.choice([0, 0.01], (200, 2))
    prices = Prices(("entities", "relations"), np.ones(200, np.int64), np.ones((200, 2), np.int64))
    pool = Candidates(ids, confidence, prices)
    weights = {"relations": beta, "entities": 1 - beta}
    chosen = [
        set(make_strategy(name, weights=weights).select(pool, 37, 0, in_items=True).items.tolist())
        for name in ("MT-AVG", "MT-RRF", "MT-IND", "MT-PAR")
    ]
    assert all(found == chosen[0] for found in chosen)
