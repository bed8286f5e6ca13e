"""The study of splits: its units, what a split buys, what the tables say; and one real budget, split and trained."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from bursar.compute import ResultStore, address, run_units
from bursar.simulation import assistant_corpus
from experiments.studies import allocation, allocation_models, allocation_settings
from experiments.studies.allocation import split_up
from experiments.studies.allocation_controls import in_epochs
from experiments.studies.allocation_findings import analyse
from experiments.studies.allocation_models import labelled
from experiments.studies.allocation_runs import (
    ABLATIONS,
    ALL_ON_ONE,
    AS_OFTEN,
    BEST_ONE,
    FOREKNOWN,
    MAIN,
    OURS,
    QUICK,
    WEIGHED,
    Seen,
    arm_name,
    clear_effects,
    draws_agree,
    estimates_from,
    heuristics,
    known_rates,
    mean_over,
    turned_out,
)
from experiments.studies.allocation_settings import (
    ARMS,
    SETTINGS,
    common_of,
    curves_unit,
    estimates_unit,
    grid,
    prices_of,
    setting_of,
)
from experiments.studies.arms import Place

TASKS = ("intent", "slots", "urgency")
PLAIN = ["equal money", "equal counts", "same items", "difficulty"]
BETTER_KNOWN = [f"{how}, {way}" for how in ("exact", "together") for way in (FOREKNOWN, WEIGHED)]
BOUGHT = {"foreknown": BETTER_KNOWN, "seen as often": [MAIN, *AS_OFTEN]}  # by the controls


@pytest.fixture(scope="module")
def items():
    corpus = assistant_corpus(300, seed=3).with_tasks(list(TASKS)).split("train")
    return corpus.take(np.arange(20)), corpus.take(np.arange(20, 120))


# -- units -------------------------------------------------------------------------------------------------------------
def test_every_draw_has_its_estimates_before_its_splits_and_no_unit_comes_twice():
    units = grid("small")
    assert len({repr(sorted(unit.items(), key=str)) for unit in units}) == len(units)
    met = set()
    for unit in units:
        if unit["kind"] == "estimates":
            met.add((unit["data"], unit["seed"]))
        if unit["kind"] == "splits":
            assert (unit["data"], unit["seed"]) in met
            assert estimates_unit(unit) in units
    assert {unit["seed"] for unit in units} == set(range(5))


@pytest.mark.parametrize(("costs", "tasks"), list(product(("alike", "rising", "falling", "shared reading"), (2, 3, 4))))
def test_an_item_for_all_tasks_is_cheaper_only_where_reading_is_shared(costs, tasks):
    prices, joint = prices_of(costs, tasks)
    assert len(prices) == tasks
    assert min(prices) > 0
    assert (joint < sum(prices)) == (costs == "shared reading")


def test_every_campaign_of_the_grid_is_one_that_can_be_run(tmp_path):
    units = [unit for unit in grid("small") if unit["kind"] == "campaign"]
    assert len(units) == 5 * len(ARMS)
    for unit in units:
        config = allocation.campaign_of(unit, Place(tmp_path, Path("none")))
        assert config.splits == bool(unit["allocation"])
        assert config.corpus.dev_items == 100


# -- what a split buys -------------------------------------------------------------------------------------------------
def test_a_split_buys_as_many_labels_as_it_says_beyond_the_seed(items):
    seeds, pool = items
    found = labelled(seeds, pool, (30, 12, 0), 0, seed=1)
    assert [int(found.labels[task].present.sum()) for task in TASKS] == [50, 32, 20]


def test_items_for_all_tasks_are_the_same_items(items):
    seeds, pool = items
    found = labelled(seeds, pool, (30, 25, 25), 25, seed=1)
    bought = found.take(np.arange(len(seeds), len(found)))
    present = np.stack([bought.labels[task].present for task in TASKS])
    assert int(present.all(axis=0).sum()) == 25
    assert len(bought) == 30


def test_a_larger_split_has_the_labels_of_a_smaller_one(items):
    seeds, pool = items
    small, large = (labelled(seeds, pool, counts, 5, seed=2) for counts in ((10, 8, 5), (40, 8, 30)))
    for task in TASKS:
        mine, theirs = (
            {some.ids[int(at)] for at in np.flatnonzero(some.labels[task].present)} for some in (small, large)
        )
        assert mine <= theirs


def test_another_draw_buys_other_items(items):
    seeds, pool = items
    one, other = (set(labelled(seeds, pool, (20, 20, 20), 0, seed=seed).ids.tolist()) for seed in (1, 2))
    assert one != other


# -- a real one --------------------------------------------------------------------------------------------------------
def test_one_budget_is_estimated_split_and_trained_and_no_model_twice(tmp_path, monkeypatch):
    """Three tasks of the built-in corpus, few items and a small network."""
    tiny = replace(SETTINGS["builtin"], seed=40, pool=60, test=40, learner="aoe", options={"steps": 4})
    monkeypatch.setitem(SETTINGS, "builtin", tiny)
    trainings = []
    monkeypatch.setattr(allocation_models, "labelled", lambda *a: trainings.append(a[2:4]) or labelled(*a))
    common = common_of("builtin", 0) | {"rater": {"repetitions": 2, "points": 3}}
    unit = {"kind": "splits", **common, "costs": "shared reading", "prices": [6, 6, 6], "joint": 10, "times": 1.0}
    unit["budget"] = 240
    work = partial(split_up, place=Place(tmp_path, Path("none")))
    store = ResultStore(tmp_path / "results")
    [found] = run_units(work, [unit], store=store)
    assert store.get(address(work, estimates_unit(unit)))["ways"][QUICK]["rates"].keys() == set(TASKS)
    assert set(OURS) <= set(found["splits"])
    for split in found["splits"].values():
        assert split["cost"] <= 240
        assert split["scores"].keys() == set(TASKS)
    assert found["splits"]["same items"]["together"] == 24
    distinct = {(tuple(counts), both) for counts, both in trainings}
    assert len(distinct) == len(trainings) > 5
    assert analyse([{"unit": unit, "result": found}], "small").headline.startswith("Relative gain")


def test_controls_of_one_budget_are_estimated_split_and_trained(tmp_path, monkeypatch):
    tiny = replace(SETTINGS["builtin"], seed=40, pool=60, test=40, learner="aoe", options={"steps": 4})
    monkeypatch.setitem(SETTINGS, "builtin", tiny)
    monkeypatch.setattr(allocation_settings, "SEEDS", range(3))
    units = [unit for unit in allocation_settings.controls_of(0) if unit["data"] == "builtin"]
    wanted = [next(unit for unit in units if unit["kind"] == kind) for kind in ("foreknown", "seen as often")]
    wanted = [unit | {"rater": {"repetitions": 2, "points": 3}} for unit in wanted]
    store = ResultStore(tmp_path / "results")
    work = partial(split_up, place=Place(tmp_path, Path("none")))
    known, often = run_units(work, wanted, store=store)
    assert set(known["splits"]) == set(BETTER_KNOWN)
    assert all(split["cost"] <= wanted[0]["budget"] for split in known["splits"].values())
    others = [store.get(address(work, curves_unit(wanted[0], seed))) for seed in (1, 2)]
    assert [other["sizes"] for other in others] == [[40, 60, 60]] * 2  # the pool ends at 60
    assert store.get(address(work, curves_unit(wanted[0], 0))) is None  # a draw does not know its own test scores
    assert often["epochs"] == 1  # four steps are less than one epoch of the same items
    assert set(often["splits"]) == {MAIN, *AS_OFTEN}


def test_labels_are_seen_as_often_with_as_many_epochs():
    assert in_epochs({"layers": 3, "steps": 200}, 120) == {"layers": 3, "epochs": 25}
    assert in_epochs({"steps": 100, "batch_size": 32}, 64) == {"batch_size": 32, "epochs": 50}


# -- findings ----------------------------------------------------------------------------------------------------------
def made_up(gain_of, seeds=5):
    """Runs in which the seed models score 0.5, and each split as a function of its name, data and seed says."""
    runs = []
    for unit in grid("small"):
        if unit["seed"] >= seeds or unit["kind"] == "campaign":
            continue
        tasks = setting_of(unit["data"]).tasks
        if unit["kind"] == "real curves":
            rows = [dict.fromkeys(tasks, 0.5 + gain) for gain in (0.1, 0.15, 0.1875)]  # a rate of 0.5
            result = {"seed_scores": dict.fromkeys(tasks, 0.5), "sizes": [60, 120, 240]}
            result["scores"] = dict.fromkeys(tasks, rows)
        elif unit["kind"] == "estimates":
            way = {"value": np.eye(len(tasks)).tolist(), "error": np.zeros((len(tasks),) * 2).tolist(), "seconds": 9.0}
            way["rates"] = {task: [0.6, 0.5, 0.7, 60.0] for task in tasks}
            result = {"hard": {}, "ways": dict.fromkeys(("the paper's estimates", QUICK), way)}
            result["agreement"] = {"alignment": {"spearman": 0.5, "seconds": 1.0}}
        else:
            splits = {}
            for name in BOUGHT.get(unit["kind"], [*OURS, *ABLATIONS, *PLAIN, *(f"only {task}" for task in tasks)]):
                gain = gain_of(name, unit)
                splits[name] = {"predicted": gain, "scores": dict.fromkeys(tasks, 0.5 * (1 + gain))}
            result = {"seed_scores": dict.fromkeys(tasks, 0.5), "splits": splits}
        runs.append({"unit": unit, "result": result | {"seconds": 1.0}})
    return runs


def noise(unit, name):
    return 0.002 * ((unit["seed"] * 7 + len(name) * 3 + len(unit["data"])) % 5)


def ours_is_better(name, unit):
    return (0.2 if name in OURS else 0.1) + noise(unit, name)


def heuristics_are_better(name, unit):
    return (0.3 if name == "same items" else 0.2) + noise(unit, name)


def test_a_method_that_gains_more_everywhere_beats_every_heuristic():
    found = {answer.question: answer for answer in analyse(made_up(ours_is_better), "small").answers}
    assert found["A1"].verdict == "yes"
    assert found["A3"].verdict == "yes"
    assert found["A7"].verdict == "yes"
    assert "ahead of all" in found["A1"].why


def test_a_heuristic_that_gains_more_is_named():
    found = {answer.question: answer for answer in analyse(made_up(heuristics_are_better), "small").answers}
    assert found["A1"].verdict == "no"
    assert "behind" in found["A1"].why
    assert "same items" in found["A1"].why


def test_a_split_for_one_task_that_gains_more_is_not_averaged_away():
    """With the first task of each data set ahead of the method, and the others far behind it."""

    def first_task_is_better(name, unit):
        first = f"only {setting_of(unit['data']).tasks[0]}"
        return (0.4 if name == first else 0.3 if name in OURS else 0.1) + noise(unit, name)

    found = {answer.question: answer for answer in analyse(made_up(first_task_is_better), "small").answers}
    assert found["A1"].verdict == "no"
    assert BEST_ONE in found["A1"].why


def test_draws_that_lack_a_data_set_or_a_setting_do_not_move_a_mean():
    runs = made_up(lambda name, unit: 0.9 if unit["data"] == "faces" else 0.1)
    whole = mean_over(Seen(runs).divided, MAIN).ours
    part = [run for run in runs if run["unit"]["seed"] == 0 or run["unit"]["data"] == "faces"]
    assert mean_over(Seen(part).divided, MAIN).ours == pytest.approx(whole)


def test_how_much_is_known_is_counted():
    rates = {"a": [0.5, 1e-6, 1.0, 60.0], "b": [0.5, 0.4, 0.6, 60.0], "c": [0.9, 0.8, 1.0, 60.0]}
    error = [[0.0, 0.1, 0.1], [0.1, 0.0, 0.1], [0.1, 0.1, 0.0]]
    one = {"rates": rates, "value": [[1, 0.3, 0.1], [0.0, 1, -0.1], [0.15, 0.05, 1]], "error": error}
    other = {**one, "value": [[1, 0.6, 0.2], [0.0, 1, -0.2], [0.3, 0.1, 1]]}  # twice as much, in the same order
    assert known_rates([one, other]) == pytest.approx(200 / 3)
    assert clear_effects([one]) == pytest.approx(100 / 6)
    assert draws_agree([one, other]) == pytest.approx(1)
    assert draws_agree([one]) is None


def test_the_table_has_the_mean_relative_gain_beside_the_papers():
    found = analyse(made_up(lambda name, unit: 0.25 if name == MAIN else 0.1), "small")
    row = found.tables[0].rows[MAIN]
    assert row[0].ours == pytest.approx(25.0)
    assert row[0].paper == 24.7
    assert row[1].ours == pytest.approx(12.5)
    assert found.tables[0].rows[ALL_ON_ONE][0].ours == pytest.approx(10.0)
    for table in found.tables:
        assert all(len(cells) == len(table.columns) for cells in table.rows.values())


@pytest.mark.parametrize("count", [0, 1, 2, 5, 20, 40])
def test_findings_follow_from_any_part_of_the_runs(count):
    runs = made_up(ours_is_better)
    assert analyse(runs[:count], "small").headline
    assert analyse(runs[-count:], "small").headline


def curves_of(rates, own, informs, seeds=4):
    """Real curves that follow the model to the letter, each draw from another start."""
    tasks, runs = tuple(rates), []
    for seed in range(seeds):
        begin = dict.fromkeys(tasks, 0.4 + 0.02 * seed)
        grown = {}
        for of in tasks:
            beta = rates[of]
            worth = [(1 - beta**blocks) / (1 - beta) for blocks in (1, 2, 4)]
            grown[of] = [{to: begin[to] + own[to] * informs[of].get(to, 1.0) * w for to in tasks} for w in worth]
        runs.append({"seed_scores": begin, "sizes": [60, 120, 240], "scores": grown})
    return runs


def test_real_curves_that_follow_the_model_give_its_rates_effects_and_own_gains_back():
    informs = {"a": {"b": 0.5}, "b": {"a": -0.25}}
    draws = curves_of({"a": 0.5, "b": 0.8}, {"a": 0.02, "b": 0.06}, informs)
    found, weights = estimates_from(("a", "b"), draws, block=60)
    assert found.rates["a"].beta == pytest.approx(0.5, abs=1e-3)
    assert found.rates["b"].beta == pytest.approx(0.8, abs=1e-3)
    assert found.informativeness.value[0, 1] == pytest.approx(0.5, abs=1e-3)
    assert found.informativeness.value[1, 0] == pytest.approx(-0.25, abs=1e-3)
    assert weights == pytest.approx((0.5, 1.5), abs=1e-3)


def test_own_gains_that_are_none_anywhere_weigh_nothing():
    draws = curves_of({"a": 0.5, "b": 0.5}, {"a": 0.0, "b": 0.0}, {"a": {}, "b": {}})
    assert estimates_from(("a", "b"), draws, block=60)[1] == (1.0, 1.0)


def test_controls_are_answered_and_change_no_other_answer():
    runs = made_up(ours_is_better)
    plain = [
        run for run in runs if run["unit"]["kind"] not in (*BOUGHT, "real curves") and run["unit"]["data"] in SETTINGS
    ]
    with_controls, without = (analyse(some, "small") for some in (runs, plain))
    before = {answer.question: answer for answer in without.answers}
    after = {answer.question: answer for answer in with_controls.answers}
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"A9", "A10", "A11", "A12", "A13", "A14", "A15"}
    assert with_controls.tables[0] == without.tables[0]
    named = {table.name: table for table in with_controls.tables}
    assert {"Foreknown", "Real labels", "Seen as often", "More seed items"} <= set(named)
    assert named["Real labels"].rows["faces: pose"][3].ours == pytest.approx(10, abs=0.1)


def test_controls_are_compared_in_the_direction_that_they_are_asked_in():
    def as_hoped(name, unit):
        """Good estimates and own gains help, and the same items lead only where labels are seen less often."""
        often = unit["kind"] == "seen as often"
        same = 0.1 if often else 0.3
        gains = {f"exact, {WEIGHED}": 0.5, f"together, {WEIGHED}": 0.5, f"exact, {FOREKNOWN}": 0.4, "same items": same}
        return gains.get(name, 0.2) + 0.1 * noise(unit, name)

    found = {answer.question: answer.verdict for answer in analyse(made_up(as_hoped), "small").answers}
    assert [found[name] for name in ("A9", "A10", "A11", "A12", "A13", "A14")] == ["yes"] * 6
    turned = made_up(lambda name, unit: -as_hoped(name, unit))
    by = {answer.question: answer.verdict for answer in analyse(turned, "small").answers}
    assert [by[name] for name in ("A9", "A10", "A11", "A12", "A13", "A14")] == ["no"] * 6


def test_a_task_that_the_seed_model_knows_nothing_of_does_not_make_gains_endless():
    [run, *_] = [run for run in made_up(ours_is_better, seeds=1) if run["unit"]["kind"] == "splits"]
    run["result"]["seed_scores"] = dict.fromkeys(run["result"]["seed_scores"], 0.0)
    [cell] = Seen([run]).divided
    assert np.isfinite(cell.relative(MAIN))


def test_heuristics_are_what_nothing_is_measured_for():
    known = heuristics(Seen(made_up(ours_is_better, seeds=1)))
    assert known == [ALL_ON_ONE, BEST_ONE, *PLAIN]
    assert arm_name(*ARMS[1]) == "UDJS+BLP_AL, split (robust)"


def test_what_labels_turned_out_to_be_worth_is_told_in_points_of_each_task():
    """With all money on poses, people gain a tenth of their score of 0.5, and poses two tenths."""
    runs = made_up(lambda name, unit: 0.1, seeds=2)
    for run in runs:
        if run["unit"]["kind"] == "splits" and run["unit"]["data"] == "faces":
            run["result"]["splits"]["only pose"]["scores"]["pose"] = 0.6
    seen = Seen(runs)
    found = turned_out(seen, "faces")
    assert found is not None
    assert found[1].tolist() == pytest.approx([5, 10, 5, 5])
    assert found[0].tolist() == pytest.approx([5, 5, 5, 5])
    assert turned_out(Seen([]), "faces") is None
