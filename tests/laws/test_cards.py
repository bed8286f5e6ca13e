"""A law's card: what it says of itself, what it predicts, and that it survives the disk."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bursar.errors import ConfigError, DataError
from bursar.laws import Effort, FitSettings, Formula, Law, Observations, fit_law
from bursar.laws.cards import HeldOut
from tests.laws.planted import observed

SHORT = Effort(150, 15)


@pytest.fixture(scope="module")
def law(root_table):
    return fit_law(root_table.averaged(), settings=FitSettings(effort=SHORT), about={"tables": ["root.parquet"]})


def test_a_planted_law_is_found_with_its_rates(law):
    grid = np.array([[n, t, a] for n in (2000, 15000) for t in (3, 12) for a in (0.2, 0.9)], dtype=float)
    assert law.formula.predict(grid) == pytest.approx(0.0055 * np.sqrt(grid[:, 0] * grid[:, 2]), abs=0.01)
    assert law.rates["n"].power.holds(0.5)
    assert law.rates["ami"].power.holds(0.5)
    assert law.rates["tasks"].power.holds(0)
    assert (law.rates["n"].middle, law.rates["ami"].middle) == pytest.approx((0.5, 0.5), abs=0.05)


def test_the_error_is_of_rows_that_were_held_out(law, root_table):
    averages = root_table.averaged()
    assert len(law.held_out.score) == 20
    assert law.about["rows"] == len(averages)
    assert law.held_out.mse == pytest.approx(0.005**2, rel=0.8)
    assert law.held_out.mse < 0.05 * law.baselines["constant"]
    assert np.isnan(law.baselines["noise"])  # there is one seed


def test_the_held_out_scores_change_nothing_of_the_formula(root_table):
    from bursar.laws.regression import held_out

    averages = root_table.averaged()
    _, out = held_out(len(averages))
    changed = averages.score.copy()
    changed[out] = 0.5
    other = type(averages)(
        averages.variables, changed, averages.deviation, averages.runs, averages.architecture, averages.single
    )
    small = Effort(60, 5)
    assert (
        fit_law(averages, ["n", "ami"], FitSettings(effort=small)).formula.exact
        == fit_law(other, ["n", "ami"], FitSettings(effort=small)).formula.exact
    )


def test_nine_in_ten_new_scores_lie_in_the_interval(law):
    new = observed(lambda n, tasks, ami: 0.0055 * np.sqrt(n * ami), rows=200, seed=8).averaged()
    X, y, _ = new.matrix(law.variables)
    found = [law.predict(n=n, tasks=t, ami=a) for n, t, a in X]
    inside = np.mean([p.low <= score <= p.high for p, score in zip(found, y, strict=True)])
    assert 0.75 <= inside <= 1  # an interval from 20 rows is itself uncertain


def test_a_prediction_outside_the_range_is_given_with_a_warning(law):
    assert law.predict(n=5000, tasks=3, ami=0.4).warnings == ()
    far = law.predict(n=5000, tasks=40, ami=0.05)
    assert [said.split(" is outside")[0] for said in far.warnings] == ["tasks = 40", "ami = 0.05"]


def test_a_prediction_is_a_score(law):
    found = law.predict(n=10**6, tasks=3, ami=1.0)
    assert found.value == found.high == 1
    assert any("is cut to the range 0 to 1" in said for said in found.warnings)


def test_a_missing_variable_is_named(law):
    with pytest.raises(ConfigError, match=r"needs a value for ami.*give n, tasks, ami"):
        law.predict(n=5000, tasks=3)


def test_the_interval_is_the_split_conformal_one():
    rows = HeldOut({}, tuple(i / 100 for i in range(1, 20)), (0.0,) * 19)
    assert rows.half_width(0.9) == pytest.approx(0.18)  # the 18th of 19: ⌈20 · 0.9⌉
    assert rows.half_width(0.95) == pytest.approx(0.19)
    assert rows.half_width(0.96) is None


def test_a_paper_form_that_made_the_table_is_chosen_and_named():
    table = observed(lambda n, t, ami: 0.0025 * np.sqrt((np.log(t) + 0.45) * ami * n / (ami + 0.6)), noise=0.002)
    found = fit_law(table.averaged(), settings=FitSettings(effort=Effort(50, 3)))
    assert found.origin == "eq6"
    assert found.rates["tasks"].growth == "sqrt(log(tasks))"
    assert found.rates["ami"].growth == "sqrt(ami)"
    alone = fit_law(table.averaged(), settings=FitSettings(effort=Effort(50, 3), known_forms=False))
    assert {entry["origin"] for entry in alone.front} == {"operon"}


def test_the_scaling_is_stored_and_the_law_is_in_the_real_score(root_table):
    found = fit_law(
        root_table.averaged(), ["n"], FitSettings(engine="gplearn", effort=Effort(60, 2), known_forms=False)
    )
    assert found.scaling["score"] == 100
    assert 0 < found.formula.predict(np.array([[9000.0]]))[0] < 1


def test_single_tasks_are_left_out_of_a_law_of_ami_and_it_says_so(root_table):
    single = {"n": 1000, "n_other": 0, "tasks": 1, "architecture": "shared", "score": 0.2}
    more = root_table.merged(Observations.of([single | {"seed": 0}, single | {"n": 2000, "seed": 0}]))
    found = fit_law(more.averaged(), ["n", "ami"], FitSettings(effort=Effort(40, 2)))
    assert "2 rows of single tasks were left out: they have no ami" in found.warnings


def test_unbalanced_rows_without_their_variable_are_warned_of(root_table):
    rows = [row | {"n_other": 2 * row["n"]} for row in root_table.table.to_pylist()]
    found = fit_law(Observations.of(rows).averaged(), ["n"], FitSettings(effort=Effort(40, 2)))
    assert any("n_other is not a variable" in said for said in found.warnings)


# -- on disk ---
def test_a_law_read_again_says_the_same(law, tmp_path):
    law.save(tmp_path / "law.json")
    again = Law.load(tmp_path / "law.json")
    assert again.describe() == law.describe() | {"formula": again.formula.exact}
    assert again.predict(n=5000, tasks=3, ami=0.4) == law.predict(n=5000, tasks=3, ami=0.4)
    assert again.residual_points() == law.residual_points()


def test_a_card_is_plain_json_with_text_and_latex(law):
    told = json.loads(json.dumps(law.describe(), allow_nan=False))
    assert Formula.parse(told["formula"], told["variables"]).predict(np.array([[5000.0, 3, 0.4]])) == pytest.approx(
        law.formula.predict(np.array([[5000.0, 3, 0.4]]))
    )
    assert "\\sqrt" in told["latex"]
    assert "\\mathrm{AMI}" in told["latex"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"formula": "__import__('os')"}, "field 'formula': the formula"),
        ({"formula": "mood * 2"}, "there is no variable 'mood'"),
        ({"formula": 7}, "field 'formula' is invalid"),
        ({"formula": "n ** (10.0**400)"}, "field 'formula'"),
        ({"variables": ["n", "words"]}, "field 'variables': there is no variable 'words'"),
        ({"front": [{}]}, "field 'front' is invalid"),
        ({"about": {"models": "many"}}, "field 'about' is invalid"),
        ({"variables": []}, "field 'variables' is invalid"),
        ({"ranges": {}}, "field 'ranges' is invalid"),
        ({"ranges": None}, "field 'ranges'"),
        ({"held_out": {"variables": {}, "score": [1], "predicted": []}}, "field 'held_out'"),
        ({"interval": {"level": 3}}, "field 'interval'"),
        ({"law": 9}, "a law of format 9"),
    ],
)
def test_a_damaged_law_is_refused_by_file_and_field(law, tmp_path, change, said):
    file = tmp_path / "law.json"
    file.write_text(json.dumps(law.describe() | change))
    with pytest.raises(DataError, match=said) as refused:
        Law.load(file)
    assert "law.json" in str(refused.value)


@pytest.mark.parametrize("text", ["", "[1]", "{}", "{"])
def test_what_is_no_law_is_refused(tmp_path, text):
    (tmp_path / "law.json").write_text(text)
    with pytest.raises(DataError, match="it is not a law"):
        Law.load(tmp_path / "law.json")
