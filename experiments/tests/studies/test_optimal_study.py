"""The studies of best orders, at a size for tests: all kinds of units, their analysis, and a search that was killed."""

from __future__ import annotations

import json
from functools import cache, partial

import numpy as np
import pytest

from bursar.compute import ResultStore, run_units
from bursar.oracle import network
from bursar.simulation import assistant_corpus
from experiments.studies import optimal
from experiments.studies import optimal_settings as settings
from experiments.studies.arms import Place
from experiments.studies.findings import Findings
from experiments.studies.optimal import judged
from experiments.studies.optimal_findings import analyse
from experiments.studies.optimal_orders import Transfer
from experiments.studies.optimal_settings import grid_of, shorter
from experiments.studies.page import write_study_report
from experiments.studies.study import Results

TINY = {"pool": 60, "warm": 12, "aside": 16, "validation": 60, "test": 60}


@cache
def small_corpus():
    return assistant_corpus(260, seed=2)


@pytest.fixture
def tiny(monkeypatch):
    """Two seeds, short searches, short trainings."""
    setting = settings.Setting("builtin", "intent", TINY, 4, 3, "weighted_f1", {"aoe": shorter(6, 2)})
    monkeypatch.setitem(settings.SETTINGS, "intents", setting)
    monkeypatch.setattr(optimal, "corpus_of", lambda data, folder, tasks: small_corpus().with_tasks(list(tasks)))
    monkeypatch.setattr(settings, "SEEDS", range(2))
    monkeypatch.setattr(settings, "RANDOM", 3)
    monkeypatch.setattr(settings, "PAPER", {"steps": 60, "greedy_steps": 20, "cooling": 40.0})
    monkeypatch.setattr(settings, "COLDER", {"steps": 60, "greedy_steps": 20, "cooling": 400.0})
    monkeypatch.setattr(settings, "MISMATCH_PLAN", {"steps": 4, "greedy_steps": 1, "cooling": 500.0})
    monkeypatch.setattr(settings, "TARGETS", {"intents": ("probe", "aoe")})
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
    return run_units(partial(judged, place=place), units, store=ResultStore(place.runs / "results"))


def test_every_unit_of_a_small_grid_runs_and_its_findings_are_a_page(tiny, place, tmp_path):
    units = grid_of("intents")
    results = run(place, units)
    assert {unit["kind"] for unit in units} == {"search", "orders", "reference", "transfer", "mismatch"}
    runs = [{"unit": unit, "result": result} for unit, result in zip(units, results, strict=True)]
    found = analyse(runs, "small")
    questions = [answer.question for answer in found.answers]
    assert [asked for asked in questions if asked.startswith("6.1")][::2] == ["6.1, probe", "6.1, AOE"]
    assert {"6.2", "6.3", "6.3, from the probe", "6.4", "6.5, probe"} <= set(questions)
    kept = json.dumps(found.as_json(), allow_nan=False)
    assert json.dumps(Findings.from_json(json.loads(kept)).as_json()) == kept
    results = Results("optimal-intents", "small", "python -m experiments run optimal-intents", runs, len(units))
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


def test_a_search_that_other_code_began_is_begun_anew(tiny, place, tmp_path, monkeypatch):
    search = next(unit for unit in grid_of("intents") if unit["kind"] == "search")
    whole = judged(search, lambda what: None, place=Place(tmp_path / "other", tmp_path))
    monkeypatch.setattr(optimal, "SAVE_SECONDS", 0.0)

    class Killed(Exception):
        pass

    def tell(what):
        if what[1] > 0.5:
            raise Killed

    with pytest.raises(Killed):
        judged(search, tell, place=place)
    (file,) = (place.runs / "searches").iterdir()
    kept = json.loads(file.read_text())
    kept["state"]["best_curve"][0] = 0.999  # better than anything that can be found
    file.write_text(json.dumps(kept))
    after = judged(search, lambda what: None, place=place)
    assert after["best"] == whole["best"]


def test_annealing_beside_the_greedy_order_takes_as_long(tiny, place):
    unit = next(unit for unit in grid_of("intents") if unit["kind"] == "reference")
    (found,) = run(place, [unit])
    greedy, as_long = found["greedy"]["seconds"], found["annealing, as long"]["seconds"]
    assert 0.4 * greedy < as_long < 1.5 * greedy + 0.2
    assert found["annealing, as many sets"]["judged"] <= 1.5 * found["greedy"]["judged"]


def test_a_shorter_search_ends_as_cold_as_the_papers():
    plan = shorter(1500, 150)
    assert plan["cooling"] * plan["steps"] == pytest.approx(0.1 * 25_000)


def test_without_a_search_there_is_nothing_to_say(tiny, place):
    orders = next(unit for unit in grid_of("intents") if unit["kind"] == "orders")
    runs = [{"unit": orders, "result": run(place, [orders])[0]}]
    assert "nothing to compare" in analyse(runs, "small").headline


# -- what follows from runs that are made up ---------------------------------------------------------------------------
def an_order(level, seed=0):
    rng = np.random.default_rng([seed, int(1e4 * level)])
    curve = [level - 0.05, *(level + rng.normal(0, 1e-3, 3)).tolist()]
    shares = {"inputs": [[0.5, 0.5]] * 4, "labels": [[0.5, 0.5]] * 4}
    batches = np.sort(rng.permutation(800)[:6].reshape(3, 2), axis=1).tolist()
    distance = {"inputs": 0.1 + 0.01 * rng.random(), "labels": 0.1 + 0.01 * rng.random()}
    return {"order": batches, "validation": curve, "test": curve, "shares": shares, "distance": distance}


def made_up(kind, learner="probe", draw=0, seed=0, best=0.6, heuristic=0.55, random=0.5, **more):
    unit = {"problem": "intents", "kind": kind, "learner": learner, "draw": draw, "seed": seed, **more}
    if kind == "search":
        unit = {"steps": 100, "greedy_steps": 10, "cooling": 1.0, **unit}
        effort = {"accepted": 5, "dropped": 0, "spared": 0, "asked": 400, "trained": 390}
        history = [[0, random, random], [50, best, best]]
        result = {"best": an_order(best, seed), "history": history, "annealed": best, "steps": effort, "seconds": 1.0}
    else:
        names = ("MAX-ENT", "MAX-ENT+IDMR")
        bins = {"inputs": ["short", "long"], "labels": ["yes", "no"]}
        result = {
            "orders": {name: an_order(heuristic, seed) for name in names},
            "random": [an_order(random + 0.001 * at, seed) for at in range(3)],
            "reference": {"inputs": [0.5, 0.5], "labels": [0.5, 0.5]},
            "bins": bins,
            "seconds": 1.0,
        }
    return {"unit": unit, "result": result}


def answer_of(runs, question):
    return next(answer for answer in analyse(runs, "small").answers if answer.question == question)


def test_the_ranking_is_a_yes_only_if_several_seeds_say_so():
    several = [made_up(kind, draw=seed, seed=seed) for seed in range(5) for kind in ("search", "orders")]
    assert answer_of(several, "6.1, probe").verdict == "yes"
    assert answer_of(several, "6.1, probe, heuristics").verdict == "yes"
    assert answer_of([made_up("search"), made_up("orders")], "6.1, probe").verdict == "not decided here"
    once = [made_up("search", best=0.45), made_up("orders")]
    assert answer_of(once, "6.1, probe").verdict == "not decided here"
    assert "0.4" in answer_of(once, "6.1, probe").why.split(" < ")[0]
    upside_down = [made_up(kind, draw=seed, seed=seed, best=0.45) for seed in range(5) for kind in ("search", "orders")]
    assert answer_of(upside_down, "6.1, probe").verdict == "no"


def test_a_heuristic_that_is_no_better_than_random_takes_nothing_from_the_best_order():
    runs = [made_up(kind, draw=seed, seed=seed, heuristic=0.4) for seed in range(5) for kind in ("search", "orders")]
    assert answer_of(runs, "6.1, probe").verdict == "yes"
    assert answer_of(runs, "6.1, probe, heuristics").verdict == "no"


def test_orders_of_one_draw_are_never_compared_with_heuristics_of_another():
    """Searches for the question of seeds are all on the first draw of the data."""
    runs = [made_up("search", "aoe", draw=0, seed=seed) for seed in range(5)]
    runs += [made_up("orders", "aoe", draw=seed, seed=seed) for seed in range(5)]
    assert "1 seed," in answer_of(runs, "6.1, AOE").why


@pytest.mark.parametrize(("own", "verdict"), [(0.0, "not decided here"), (0.02, "yes")])
def test_seeds_matter_only_if_their_own_orders_are_better_for_most_trainings(own, verdict):
    rng = np.random.default_rng(4)
    runs = [made_up("search"), made_up("orders")]
    for of in range(5):
        trained = {str(by): [0.4, *([0.6 + own * (of == by) + rng.normal(0, 0.004)] * 3)] for by in range(5)}
        unit = {"problem": "intents", "kind": "mismatch", "learner": "aoe", "draw": 0, "seed": of}
        runs.append({"unit": unit, "result": {"trained": trained, "seconds": 1.0}})
    assert answer_of(runs, "6.2").verdict == verdict


def test_heuristics_are_compared_with_random_orders_over_all_seeds_whether_searched_or_not():
    runs = [made_up("orders", "lstm", draw=seed, seed=seed) for seed in range(5)]
    found = answer_of([made_up("search"), made_up("orders"), *runs], "6.1, BiLSTM, heuristics")
    assert found.verdict == "yes"
    assert "5 seeds" in found.why


def test_best_orders_that_are_farther_in_labels_alone_do_not_keep_the_distribution():
    runs = [made_up(kind, draw=seed, seed=seed) for seed in range(5) for kind in ("search", "orders")]
    assert answer_of(runs, "6.4").verdict == "not decided here"
    for run in runs:
        if run["unit"]["kind"] == "search":
            run["result"]["best"]["distance"]["labels"] += 0.1
    assert answer_of(runs, "6.4").verdict == "no"


def test_one_more_random_order_is_taken_for_more_than_luck_in_one_of_twenty_cases():
    rng = np.random.default_rng(5)
    drawn = rng.normal(0.5, 0.01, (4000, 6))
    found = [Transfer(("probe",), ("tagger",), row[:1, None], row[1:, None]).by_luck.item() for row in drawn]
    assert 0.04 < np.mean(np.array(found) < 0.05) < 0.06
    apart = []
    for row in drawn[:, :, None]:
        one, other = (Transfer(("a",), ("b",), row[at : at + 1], row[2:]) for at in (0, 1))
        apart.append(one.by_luck_from(other).item())
    assert 0.04 < np.mean(np.array(apart) < 0.05) < 0.06


def test_an_order_transfers_if_it_is_above_random_orders_beyond_luck():
    def transfer(best):
        unit = {"problem": "intents", "kind": "transfer", "learner": "aoe", "draw": 0, "seed": 0}
        orders = {"probe": {"best": [0.4, *[best] * 3], "MAX-ENT": [0.4, *[0.55] * 3]}}
        random = [[0.4, *[0.5 + 0.02 * at] * 3] for at in range(-2, 3)]
        return {"unit": unit, "result": {"orders": orders, "random": random, "seconds": 1.0}}

    runs = [made_up("search"), made_up("orders")]
    assert answer_of([*runs, transfer(0.6)], "6.3").verdict == "yes"
    assert answer_of([*runs, transfer(0.51)], "6.3").verdict == "not decided here"
    assert answer_of([*runs, transfer(0.35)], "6.3").verdict == "no"
    assert answer_of([*runs, transfer(0.6)], "6.3, from the probe").verdict == "yes"
    assert answer_of([*runs, transfer(0.51)], "6.3, from the probe").verdict == "not decided here"
    assert answer_of([*runs, transfer(0.35)], "6.3, from the probe").verdict == "no"
