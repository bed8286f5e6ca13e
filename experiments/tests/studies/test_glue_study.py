"""The GLUE study: its units, its scores, how λ is chosen, what the tables say; and one real training."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score, matthews_corrcoef

from bursar.compute import ResultStore, address, make_engine, run_units
from bursar.ragged import Ragged
from experiments.studies.arms import Place
from experiments.studies.glue import glue_score, grid, log_of, parts, train_glue
from experiments.studies.glue_findings import ALONE, LEARNED, TASKS, analyse, by_policy


def made_up(unit, score, choose=None):
    """A result of a unit in which every task scores the same; on the part to choose on perhaps another score."""
    scores = dict.fromkeys(unit["tasks"], score)
    weights = dict.fromkeys(unit["tasks"], 0.2)
    return {
        "unit": unit,
        "result": {
            "scores": scores,
            "choose": scores if choose is None else dict.fromkeys(unit["tasks"], choose),
            "curve": [[188, score / 2], [1504, score]],
            "shares": [0.2] * len(unit["tasks"]),
            "policy": {"policy": "fixed", "weights": weights},
            "entropy": unit.get("entropy"),
            "seconds": 1.0,
        },
    }


def all_made_up():
    """λ = 0.2 is the best where λ is chosen, and the worst where scores are reported."""
    value = {"uniform": 0.6, "size": 0.5, "exp3s": 0.61, "dynamic": 0.62}
    runs = []
    for unit in grid("small"):
        kind = unit.get("policy") or ("dynamic" if unit["learn"] == "dynamic" else unit["entropy"])
        score = value.get(kind, {0.2: 0.66, "chosen": 0.66}.get(kind, 0.7))
        choose = {0.2: 0.9}.get(kind, 0.5)
        runs.append(made_up(unit, score + 0.001 * unit["seed"], choose))
    return runs


def test_every_policy_has_three_seeds_and_only_the_first_tries_every_lambda():
    units = grid("small")
    assert len({repr(sorted(unit.items(), key=str)) for unit in units}) == len(units)
    tried = [unit for unit in units if unit.get("learn") == "fixed"]
    assert sorted(str(unit["entropy"]) for unit in tried if unit["seed"] == 0) == ["0.1", "0.15", "0.2", "0.5"]
    assert [unit["entropy"] for unit in tried if unit["seed"]] == ["chosen", "chosen"]
    alone = [unit for unit in units if len(unit["tasks"]) == 1]
    assert len(alone) == 3 * len(TASKS)
    assert sum(unit["steps"] for unit in alone if unit["seed"] == 0) == 1500


def test_only_the_chosen_lambda_stands_for_the_learned_policy():
    arms = by_policy(all_made_up())
    assert arms[LEARNED][0].mean() == pytest.approx(66.0)
    assert sorted(arms[LEARNED]) == [0, 1, 2]
    assert sorted(arms[ALONE]) == [0, 1, 2]


def test_findings_compare_with_random_and_with_the_papers_order():
    found = analyse(all_made_up(), "small")
    answers = {answer.question: answer for answer in found.answers}
    assert answers[LEARNED].verdict == "yes"
    assert answers["task size"].verdict == "yes"  # worse than random, as asked
    assert answers["Ranking"].verdict == "yes"
    assert [table.name for table in found.tables] == ["Table 1", "Table 3", "λ"]
    assert found.tables[0].rows["random"][1].paper == 48.2
    for table in found.tables:
        assert all(len(row) == len(table.columns) for row in table.rows.values())


@pytest.mark.parametrize("count", [0, 1, 3, 7, 12])
def test_findings_follow_from_any_part_of_the_runs(count):
    runs = all_made_up()
    assert analyse(runs[:count], "small").headline
    assert analyse(runs[-count:], "small").headline


def test_scores_are_glues_own():
    rng = np.random.default_rng(0)
    gold, guess = rng.integers(2, size=50), rng.integers(2, size=50)
    rows = [Ragged.of([[int(v)] for v in values], 1) for values in (gold, guess)]
    assert glue_score("CoLA", *rows) == pytest.approx(matthews_corrcoef(gold, guess))
    right = (gold == guess).mean()
    assert glue_score("SST-2", *rows) == pytest.approx(right)
    assert glue_score("MRPC", *rows, positive=0) == pytest.approx((right + f1_score(1 - gold, 1 - guess)) / 2)


@pytest.fixture
def data(data_folder):
    """The folder that has GLUE among others."""
    return data_folder("glue").parent


def test_the_two_parts_of_the_development_items_share_none_and_training_has_neither(data):
    unit = {"tasks": list(TASKS), "seed": 1, "choose": 200, "report": 400, "cut": 0}
    train, choose, report = (set(part.ids.tolist()) for part in parts(unit, Place(Path("unused"), data)))
    for seed in (0, 2):  # what λ was chosen on with one seed is reported with none
        assert set(parts({**unit, "seed": seed}, Place(Path("unused"), data))[1].ids.tolist()) == choose
    assert not choose & report
    assert not train & (choose | report)
    counts = {task: sum(name.startswith(task) for name in choose) for task in TASKS}
    assert counts == {"CoLA": 200, "MRPC": 200, "RTE": 92, "SST-2": 200, "STS-B": 200}


def test_a_learned_policy_is_learned_from_the_random_trainings_log(data, tmp_path):
    """Two tasks, a few steps: the unit trains what it needs first, and that is found again."""
    base = {"tasks": ["RTE", "MRPC"], "steps": 16, "seed": 0, "choose": 8, "report": 8, "cut": 0}
    base["learner"] = {"batch_size": 4, "layers": 1, "frozen_layers": 1, "patience": 100}
    work = partial(train_glue, place=Place(tmp_path, data))
    store = ResultStore(tmp_path / "results")
    [learned] = run_units(work, [{"learn": "fixed", "entropy": 0.5, **base}], store=store)
    first = store.get(address(work, {"policy": "uniform", **base}))
    assert first is not None
    assert learned["steps"] == first["steps"] == 16
    log = log_of(first, base)
    assert log.tasks == ("RTE", "MRPC")
    assert sum(learned["policy"]["weights"].values()) == pytest.approx(1)
    assert len(learned["curve"]) == 8
    units = [{"learn": "fixed", "entropy": "chosen", "entropies": [0.5, 2.0], **base, "seed": seed} for seed in (1, 2)]
    with make_engine("processes:2") as two:
        chosen = run_units(work, units, engine=two, store=store)
    tried = {e: store.get(address(work, {"learn": "fixed", "entropy": e, **base})) for e in (0.5, 2.0)}
    best = max(tried, key=lambda entropy: np.mean(list(tried[entropy]["choose"].values())))
    assert [result["entropy"] for result in chosen] == [best, best]
