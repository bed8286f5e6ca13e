"""``bursar laws``: what it fits, shows, predicts and lists, what it refuses, and with which exit code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bursar.laws import Law, regression
from bursar.laws.regression import Effort
from tests.laws.planted import observed


@pytest.fixture(autouse=True)
def little_effort(monkeypatch):
    monkeypatch.setitem(regression.EFFORTS, "operon", Effort(100, 8))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A table, and a law of it."""
    from bursar.laws import fit_law

    folder = tmp_path_factory.mktemp("laws")
    table = observed(lambda n, tasks, ami: 0.0055 * np.sqrt(n * ami), rows=60)
    table.write(folder / "table.parquet")
    fit_law(table.averaged(), effort=Effort(100, 8), about={"tables": ["table.parquet"]}).save(folder / "law.json")
    return folder


@pytest.mark.parametrize("command", [[], ["fit"], ["show"], ["predict"], ["list"]])
def test_every_command_has_help_with_an_example(bursar, command):
    code, out, _ = bursar("laws", *command, "--help")
    assert code == 0
    assert "Usage" in out
    assert not command or f"bursar laws {command[0]}" in out


def test_a_law_is_fitted_written_and_asked(bursar, made):
    code, out, _ = bursar("laws", "fit", made / "table.parquet", "--out", "law.json")
    assert code == 0
    assert out.startswith("score = ")
    assert "Law: law.json" in out
    law = Law.load("law.json")
    assert law.about["tables"] == ["table.parquet"]
    assert law.about["models"] == 60
    code, out, errors = bursar("laws", "predict", "law.json", "--tokens", 5000, "--tasks", 3, "--ami", 0.4)
    assert (code, errors) == (0, "")
    assert float(out.split()[0]) == pytest.approx(0.0055 * np.sqrt(5000 * 0.4), abs=0.02)


def test_a_fit_of_one_variable_without_a_file_says_that_it_was_not_kept(bursar, made, tmp_path):
    code, out, _ = bursar("laws", "fit", made / "table.parquet", "--variables", "n", "--restarts", 1)
    assert code == 0
    assert "It was not kept" in out
    assert list(tmp_path.iterdir()) == []


def test_a_fit_as_json_is_the_card(bursar, made):
    code, out, _ = bursar("laws", "fit", made / "table.parquet", "--variables", "n,ami", "--json", "--out", "law.json")
    told = json.loads(out)
    assert code == 0
    assert told["variables"] == ["n", "ami"]
    assert told == {"file": "law.json"} | json.loads(Path("law.json").read_text())


def test_a_law_is_shown(bursar, made):
    code, out, _ = bursar("laws", "show", made / "law.json")
    assert code == 0
    for said in ("score =", "grows like", "power law", "did not see", "monotone model"):
        assert said in out
    code, out, _ = bursar("laws", "show", made / "law.json", "--json")
    assert json.loads(out)["law"] == 1


def test_a_prediction_out_of_range_warns_on_the_side(bursar, made):
    asked = ["--tokens", 90000, "--tasks", 3, "--ami", 0.4]
    code, out, errors = bursar("laws", "predict", made / "law.json", *asked, "--json")
    told = json.loads(out)
    assert code == 0
    assert "n = 90000 lies outside" in errors
    assert told["low"] <= told["value"] <= told["high"]
    assert told["warnings"]


def test_the_formulas_of_the_paper_are_listed_and_refitted(bursar, made):
    code, out, _ = bursar("laws", "list")
    assert code == 0
    assert "eq11" in out
    code, out, _ = bursar("laws", "list", made / "table.parquet", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["eq3"]["error"] < told["eq3"]["constant"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit", "none.parquet"], "none.parquet: there is no such file"),
        (["fit", "TABLE", "--engine", "magic"], "--engine magic"),
        (["fit", "TABLE", "--variables", "mood"], "there is no variable 'mood'"),
        (["fit", "TABLE", "--variables", ","], "variables = none"),
        (["fit", "TABLE", "--out", "law.txt"], "end in .json"),
        (["fit", "TABLE", "--architecture", "giant"], "there is no architecture 'giant'"),
        (["fit", "LAW"], "it is no table"),
        (["show", "TABLE"], "it is no law"),
        (["show", "none.json"], "there is no such file"),
        (["predict", "LAW", "--tokens", "5000", "--tasks", "3"], "needs --ami"),
        (["predict", "LAW", "--tokens", "5000", "--tasks", "3", "--ami", "2"], "--ami"),
        (["list", "none.parquet"], "there is no such file"),
    ],
)
def test_what_is_wrong_ends_with_2_and_a_sentence_and_leaves_nothing(bursar, made, tmp_path, arguments, said):
    files = {"TABLE": made / "table.parquet", "LAW": made / "law.json"}
    code, out, errors = bursar("laws", *(files.get(argument, argument) for argument in arguments))
    assert (code, out) == (2, "")
    assert said in errors
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []
