"""The study of savings: its grid, its campaigns, and what it says of curves that are known."""

from __future__ import annotations

import pytest

from experiments.studies import savings
from experiments.studies.arms import Place
from experiments.studies.catalogue import known_studies
from experiments.studies.savings_findings import analyse, bootstrap_over_sets_and_seeds


def run(data, arm, seed, scores, step=100):
    rounds = [
        {"round": at, "spent": step * (at + 1), "items": at, "test": {"intent": score, "slots": score}}
        for at, score in enumerate(scores)
    ]
    return {"unit": {"data": data, "arm": arm, "seed": seed}, "result": {"rounds": rounds}}


RANDOM = [0.5, 0.6, 0.7, 0.75]
RUNS = [
    run(data, arm, seed, scores)
    for data in ("snips", "atis")
    for seed in range(3)
    for arm, scores in (("random", RANDOM), ("auto", [0.6, 0.7, 0.75 + 0.001 * seed, 0.8]), ("longest", RANDOM))
]


def test_the_study_is_known_and_its_grid_begins_with_random_and_auto():
    assert "savings" in known_studies()
    assert not set(savings.DEVELOPMENT) & set(savings.CONFIRMATION)
    for grid, data, seeds in (
        (savings.confirmation("small"), savings.CONFIRMATION, 10),
        (savings.development("small"), savings.DEVELOPMENT, 5),
    ):
        assert {unit["data"] for unit in grid} == set(data)
        assert {unit["arm"] for unit in grid[: 2 * seeds * len(data)]} == {"random", "auto"}
        assert len({(u["data"], u["arm"], u["seed"]) for u in grid}) == len(grid)


def test_every_arm_is_run_on_some_sets():
    arms = {unit["arm"] for unit in savings.confirmation("small") + savings.development("small")}
    assert arms == set(savings.ARMS)


def test_known_curves_give_known_savings():
    found = analyse(RUNS, "small")
    assert found.headline.startswith("A default campaign reached random labelling's score with 25 % less money")
    assert "6 of 6 campaigns over 2 data sets" in found.headline
    answers = {answer.question: answer for answer in found.answers}
    assert answers["Ahead"].verdict == "yes"
    assert answers["Worst"].verdict == "yes"
    saved = next(table for table in found.tables if table.name == "Saved")
    assert saved.rows["auto"][0].ours == pytest.approx(25, abs=1)
    assert saved.rows["longest"][0].ours == pytest.approx(0, abs=1e-9)


def test_an_arm_with_fewer_seeds_is_compared_on_the_seeds_that_it_has():
    some = [found for found in RUNS if found["unit"]["arm"] != "longest" or found["unit"]["seed"] == 0]
    beside = {answer.question: answer for answer in analyse(some, "small").answers}["Beside"]
    assert beside.verdict == "yes"
    assert "longest" in beside.why
    assert "2 pairs" in beside.why


def test_exact_spending_is_compared_with_greedy():
    worse = [0.5, 0.6, 0.69, 0.74]
    arms = [("doubts added up, greedily", RANDOM), ("doubts added up, exactly", worse)]
    runs = [run("snips", arm, seed, scores) for seed in range(3) for arm, scores in arms]
    exact = {answer.question: answer for answer in analyse(RUNS + runs, "small").answers}["Exact"]
    assert exact.verdict == "no"
    assert "3 pairs" in exact.why


def test_nothing_is_claimed_before_anything_was_run():
    assert analyse([], "small").headline == "Not run yet."


def test_an_arm_that_is_worse_is_said_to_be():
    runs = [*RUNS[:1], run("snips", "auto", 0, [0.4, 0.5, 0.6, 0.65]), *RUNS[3:]]
    worst = {answer.question: answer for answer in analyse(runs, "small").answers}["Worst"]
    assert "atis" in worst.why or "snips" in worst.why


def test_the_bootstrap_knows_that_data_sets_differ():
    one = {("a", seed): 1.0 for seed in range(10)} | {("b", seed): 5.0 for seed in range(10)}
    low, high = bootstrap_over_sets_and_seeds(one)
    assert (low, high) == (1.0, 5.0)


@pytest.mark.parametrize("arm", list(savings.ARMS))
def test_every_arm_is_a_campaign_that_can_be_made(arm, tmp_path):
    unit = {"data": "builtin", "arm": arm, "seed": 0, "settings": savings.ARMS[arm], "learner": {"name": "probe"}}
    config = savings.config_of(unit, Place(tmp_path, tmp_path))
    assert config.corpus.dev is None
    assert (config.audit.share == 0) == (savings.ARMS[arm]["name"] == "RANDOM")


@pytest.mark.parametrize("arm", ["random of the same lengths", "auto without doubt", "auto whatever the price"])
def test_arms_of_the_study_spend_no_more_than_they_may(arm, tmp_path, monkeypatch):
    monkeypatch.setattr(savings, "POOL", 120)
    monkeypatch.setattr(savings, "TEST", 20)
    monkeypatch.setattr(savings, "ROUNDS", 1)
    unit = {"data": "builtin", "arm": arm, "seed": 0, "settings": savings.ARMS[arm], "learner": {"name": "probe"}}
    found = savings.run_campaign(unit, lambda told: None, place=Place(tmp_path, tmp_path))
    first, last = found["rounds"]
    assert 0 < last["spent"] - first["spent"] <= savings.DEVELOPMENT["builtin"][1] + 60
    assert set(last["test"]) == {"intent", "slots"}
