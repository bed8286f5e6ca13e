"""Laws and tables of models from the results of the study of laws."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bursar.laws import Effort, Law, Observations, cards
from bursar.laws.advice import track_record
from experiments.laws_files import packed
from experiments.studies.study import Results
from tests.laws.planted import planted_laws

COMMAND = "python -m experiments run laws"
ABOUT = {"study": "laws, scale small", "command": COMMAND, "kinds": ["tagging"]}


@pytest.fixture(autouse=True)
def shipped(monkeypatch, tmp_path_factory):
    """The folder of packaged laws, empty."""
    monkeypatch.setattr(cards, "SHIPPED", tmp_path_factory.mktemp("installation"))
    return cards.SHIPPED


def test_laws_are_packaged_from_the_results_of_the_study(command, shipped):
    study_results(Path("laws.json"))
    code, out, _ = command("laws", "package", "laws.json", "--out", shipped)
    assert code == 0
    assert [line.split("/")[-1].split(":")[0] for line in out.splitlines()] == [
        "balanced.json",
        "unbalanced.json",
        "single.json",
    ]
    law = Law.packaged("balanced")
    assert law.formula.exact == planted_laws().joint["balanced"].formula.exact
    assert law.about["command"] == COMMAND
    assert law.about["sources"] == ["conll2003"]


def test_the_models_of_the_study_are_a_table_that_can_grow(command):
    study_results(Path("laws.json"))
    for _ in range(2):  # the second time nothing is doubled
        code, out, _ = command("laws", "table", "laws.json", "--out", "table.parquet")
        assert (code, out) == (0, "table.parquet: 44 models\n")
    table = Observations.read("table.parquet")
    assert set(table.column("source")) == {"conll2003"}
    assert set(table.column("settings")) == {"laws, scale small"}


def study_results(path, fits=True, study="laws", open_units=0):
    """Results as the study writes them, of a few models."""
    unit = {"architecture": "shared", "seed": 0}
    models = [{"n": n, "n_other": n, "alpha": 0.9, "ami": 0.5, "score": n / 20000} for n in range(1000, 6001, 500)]
    runs = [
        {"unit": unit | {"kind": kind, "tasks": 2}, "result": {"models": models}} for kind in ("balanced", "unbalanced")
    ]
    alone = [model | {"n_other": 0, "alpha": None, "ami": None} for model in models]
    single = [unit | {"kind": "single", "tasks": 1, "seed": seed} for seed in range(3)]
    runs += [{"unit": some, "result": {"models": alone}} for some in single]
    for table, law in planted_laws().joint.items() if fits else ():
        found = {"laws": {", ".join(law.variables): law.describe()}}
        runs.append({"unit": {"kind": "fit", "table": table, "scale": "small", "of": "x"}, "result": found})
    text = {
        "study": study,
        "scale": "small",
        "command": COMMAND,
        "versions": {"bursar": "0.1.0"},
    }
    path.write_text(json.dumps(text | {"units": {"all": len(runs) + open_units}, "runs": runs}))
    assert Results.read(path).complete == (not open_units)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fits": False}, "the study has fitted no law yet"),
        ({"study": "bandit"}, "holds results of study bandit"),
        ({"open_units": 3}, "3 of 10 units are open"),
    ],
)
def test_results_without_laws_are_refused(command, shipped, options, said):
    study_results(Path("laws.json"), **options)
    code, out, errors = command("laws", "package", "laws.json", "--out", "there")
    assert (code, out) == (2, "")
    assert said in errors
    assert not Path("there").exists()


@pytest.mark.parametrize(
    ("content", "said"), [(None, "there are no results yet"), ("no results", "is no file of results")]
)
def test_a_file_that_holds_no_results_is_refused(command, content, said):
    if content is not None:
        Path("laws.json").write_text(content)
    code, out, errors = command("laws", "package", "laws.json", "--out", "there")
    assert (code, out) == (2, "")
    assert said in errors
    assert not Path("there").exists()


# -- packing ----------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def made():
    """Laws as a study found them, without single tasks beside them, and its tables."""
    laws = planted_laws()
    fits = {}
    for name, law in laws.joint.items():
        told = law.describe() | {"held_out": law.describe()["held_out"] | {"alone": []}}
        fits[name] = {"n": told | {"variables": ["n"]}, ", ".join(law.variables): told}
    rng = np.random.default_rng(2)
    single = [
        {"n": n, "n_other": 0, "tasks": 1, "architecture": "shared", "seed": seed}
        | {"score": 0.002 * np.sqrt(n) + rng.normal(0, 0.002)}
        for n in range(1000, 6001, 500)
        for seed in range(5)
    ]
    joint = {"n": 1000, "n_other": 1000, "tasks": 2, "ami": 0.5, "alpha": 0.9, "architecture": "shared", "score": 0.2}
    tables = dict.fromkeys(fits, Observations.of([joint | {"seed": seed} for seed in range(3)]))
    return packed(fits, tables | {"single": Observations.of(single)}, ABOUT, effort=Effort(40, 4)), laws


def test_the_study_s_laws_of_all_variables_are_packed_as_they_were_found(made):
    found, laws = made
    for name, law in laws.joint.items():
        assert found[name].formula.exact == law.formula.exact
        assert found[name].ranges == law.ranges
        assert found[name].held_out.score == law.held_out.score


def test_a_packed_law_knows_how_single_tasks_did_and_where_it_came_from(made):
    found, laws = made
    alone = found["balanced"].held_out.alone
    assert np.isfinite(alone).all()
    assert np.allclose(alone, laws.joint["balanced"].held_out.alone, atol=0.01)
    assert track_record(found["balanced"], found["single"]).decided > 30
    assert found["balanced"].about["command"] == "python -m experiments run laws"
    assert (found["balanced"].about["models"], found["single"].about["models"]) == (3, 55)
    assert "by python -m experiments run laws" in found["single"].provenance


def test_the_law_of_single_tasks_has_every_seed_as_a_row(made):
    single = made[0]["single"]
    assert single.variables == ("n",)
    assert single.about["rows"] == 55
    assert single.held_out.half_width(0.9) is not None
    assert single.predict(n=3000).value == pytest.approx(0.002 * np.sqrt(3000), abs=0.01)
