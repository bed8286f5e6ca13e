"""The studies of best orders, at a size for tests: all kinds of units, their analysis, and a search that was killed."""

from __future__ import annotations

import json
from functools import cache, partial

import pytest

from bursar.compute import Store, run_units
from bursar.oracle import network
from bursar.report.study import write_study_report
from bursar.simulation import assistant_corpus
from bursar.studies import optimal
from bursar.studies.arms import Place
from bursar.studies.findings import Findings
from bursar.studies.optimal import grid_of, judged, shorter
from bursar.studies.optimal_findings import analyse
from bursar.studies.study import Results

TINY = {"pool": 60, "warm": 12, "aside": 16, "validation": 60, "test": 60}


@cache
def small_corpus():
    return assistant_corpus(260, seed=2)


@pytest.fixture
def tiny(monkeypatch):
    """Two seeds, short searches, short trainings."""
    setting = optimal.Setting("builtin", "intent", TINY, 4, 3, "weighted_f1", {"aoe": shorter(6, 2)})
    monkeypatch.setitem(optimal.SETTINGS, "intents", setting)
    monkeypatch.setattr(optimal, "corpus_of", lambda data, folder, tasks: small_corpus().with_tasks(list(tasks)))
    monkeypatch.setattr(optimal, "SEEDS", range(2))
    monkeypatch.setattr(optimal, "RANDOM", 3)
    monkeypatch.setattr(optimal, "PAPER", {"steps": 60, "greedy_steps": 20, "cooling": 40.0})
    monkeypatch.setattr(optimal, "COLDER", {"steps": 60, "greedy_steps": 20, "cooling": 400.0})
    monkeypatch.setattr(optimal, "MISMATCH_PLAN", {"steps": 4, "greedy_steps": 1, "cooling": 500.0})
    monkeypatch.setattr(optimal, "TARGETS", {"intents": ("probe", "aoe")})
    few = partial(network.Settings, epochs=3, patience=2)
    monkeypatch.setattr(network, "Settings", few)
    optimal.problem_of.cache_clear()
    optimal.judge_of.cache_clear()
    yield
    optimal.problem_of.cache_clear()
    optimal.judge_of.cache_clear()


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, tmp_path)


def run(place, units):
    return run_units(partial(judged, place=place), units, store=Store(place.runs / "results"))


def test_every_unit_of_a_small_grid_runs_and_its_findings_are_a_page(tiny, place, tmp_path):
    units = grid_of("intents")
    results = run(place, units)
    assert {unit["kind"] for unit in units} == {"search", "orders", "reference", "transfer", "mismatch"}
    runs = [{"unit": unit, "result": result} for unit, result in zip(units, results, strict=True)]
    found = analyse(runs, "small")
    questions = [answer.question for answer in found.answers]
    assert questions[:2] == ["6.1, probe", "6.1, AOE"]
    assert {"6.2", "6.3", "6.4"} <= set(questions)
    kept = json.dumps(found.as_json(), allow_nan=False)
    assert json.dumps(Findings.from_json(json.loads(kept)).as_json()) == kept
    results = Results("optimal-intents", "small", "bursar study optimal-intents", runs, len(units))
    page = write_study_report(results, tmp_path / "page.html")
    assert "best order found" in page.read_text(encoding="utf-8")


def test_the_best_order_is_at_least_as_good_on_validation_as_where_the_search_began(tiny, place):
    search = next(unit for unit in grid_of("intents") if unit["kind"] == "search")
    (result,) = run(place, [search])
    assert sum(result["best"]["validation"][1:]) / 3 >= result["history"][0][2] - 1e-5
    assert result["history"][-1][2] == pytest.approx(sum(result["best"]["validation"][1:]) / 3, abs=1e-4)


def test_a_search_that_was_killed_ends_as_one_that_was_not(tiny, place, tmp_path, monkeypatch):
    search = next(unit for unit in grid_of("intents") if unit["kind"] == "search")
    whole = judged(search, lambda what: None, place=Place(tmp_path / "other", tmp_path))
    monkeypatch.setattr(optimal, "SAVE_SECONDS", 0.0)
    steps = []

    class Killed(Exception):
        pass

    def tell(what):
        steps.append(what)
        if len(steps) == 40:
            raise Killed

    with pytest.raises(Killed):
        judged(search, tell, place=place)
    after = judged(search, lambda what: None, place=place)
    assert {**after, "seconds": 0, "steps": 0} == {**whole, "seconds": 0, "steps": 0}
    assert after["steps"]["accepted"] == whole["steps"]["accepted"]
    assert not list((place.runs / "searches").iterdir())


def test_a_shorter_search_ends_as_cold_as_the_papers():
    plan = shorter(1500, 150)
    assert plan["cooling"] * plan["steps"] == pytest.approx(0.1 * 25_000)


def test_without_a_search_there_is_nothing_to_say(tiny, place):
    orders = next(unit for unit in grid_of("intents") if unit["kind"] == "orders")
    runs = [{"unit": orders, "result": run(place, [orders])[0]}]
    assert "nothing to compare" in analyse(runs, "small").headline
