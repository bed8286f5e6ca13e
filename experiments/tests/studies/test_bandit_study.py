"""The bandit study: its units, how λ is chosen, and what the committed results say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bursar.compute import run_units
from experiments.studies.bandit import grid, play_recipe
from experiments.studies.bandit_findings import Gap, Played, Plays, analyse
from experiments.studies.study import Results

RESULTS = Path(__file__).parents[2] / "results" / "bandit.json"


def run_small(tmp_path, unit):
    """A unit of the grid on few, short environments."""
    from functools import partial

    from experiments.studies.arms import Place

    small = {**unit, "where": {**unit["where"], "environments": 2, "runs": 2}, "steps": min(unit["steps"], 300)}
    small["entropies"] = small["entropies"][:1]
    [result] = run_units(partial(play_recipe, place=Place(tmp_path, tmp_path)), [small])
    return {"unit": {**unit, "entropies": small["entropies"]}, "result": result}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return [run_small(tmp_path_factory.mktemp("bandit"), unit) for unit in grid("small")]


def test_every_unit_of_the_grid_can_be_played_and_gives_a_score_a_run(runs):
    for run in runs:
        for played in run["result"]["played"]:
            final = np.array(played["final"])
            assert final.shape == (2, 2)
            assert ((final > 0) & (final <= 1)).all()
            assert len(played["steps"]) == len(played["first"]["median"]) == len(played["all"]["high"]) == 50


def test_no_two_units_are_alike_and_reported_environments_are_not_those_to_choose_on():
    units = grid("small")
    assert len({repr(sorted(unit.items(), key=str)) for unit in units}) == len(units)
    assert {unit["where"]["seed"] for unit in units} == {0, 1000}


def test_a_play_of_the_same_unit_is_the_same(runs, tmp_path):
    unit = next(unit for unit in grid("small") if unit["recipe"] == "dynamic")
    again, before = run_small(tmp_path, unit), next(run for run in runs if run["unit"]["recipe"] == "dynamic")
    assert again["result"]["played"] == before["result"]["played"]


def test_findings_follow_from_any_part_of_the_runs(runs):
    def of(*recipes):
        return [run for run in runs if run["unit"]["recipe"] in recipes]

    assert "nothing to compare with" in analyse(of("oracle", "fixed"), "small").headline
    few = analyse(of("random", "oracle", "fixed"), "small")
    assert [table.name for table in few.tables] == ["Policies", "λ", "Rewards and estimators"]
    whole = analyse(runs, "small")
    assert "Lengths" in [table.name for table in whole.tables]
    for table in whole.tables:
        assert all(len(row) == len(table.columns) for row in table.rows.values())


def made_up(recipe, entropy, value, reported=True):
    return Played(recipe, entropy, "improving", "self-normalised", 2000, reported, {"final": np.full((3, 2), value)})


def test_the_share_of_the_gap_is_the_gain_over_random_divided_by_the_oracles():
    gap = Gap(made_up("random", None, 0.5), made_up("oracle", None, 0.7))
    assert gap.closed(made_up("fixed", 0.5, 0.65)) == pytest.approx(0.75)
    assert gap.closed(made_up("fixed", 0.5, 0.45)) == pytest.approx(-0.25)


def test_lambda_is_chosen_where_nothing_is_reported():
    """0.1 would look best on the reported environments; 0.5 is best on the others, so 0.5 it is."""
    plays = Plays([])
    plays.all = [
        *(made_up(name, None, value, reported) for reported in (True, False) for name, value in REFERENCE.items()),
        made_up("fixed", 0.1, 0.69),
        made_up("fixed", 0.5, 0.6),
        made_up("fixed", 0.1, 0.4, reported=False),
        made_up("fixed", 0.5, 0.65, reported=False),
    ]
    chosen = plays.chosen("fixed")
    assert chosen is not None
    assert (chosen.entropy, chosen.reported) == (0.5, True)


REFERENCE = {"random": 0.5, "oracle": 0.7}


def test_the_committed_results_are_whole_and_close_as_much_of_the_gap_as_was_asked():
    results = Results.read(RESULTS)
    assert results.complete
    plays = Plays(results.runs)
    gap = plays.gap()
    assert gap is not None
    closed = {name: gap.closed(played) for name in ("fixed", "dynamic") if (played := plays.chosen(name)) is not None}
    assert closed["fixed"] >= 0.7
    assert closed["dynamic"] >= 1.0
    assert plays.chosen("fixed").final.shape == (20, 10)
