"""``bursar laws``: what it fits, shows, predicts and lists, what it refuses, and with which exit code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bursar.laws import Law, cards, regression
from bursar.laws.regression import Effort, FitSettings
from tests.laws.planted import observed, planted_laws


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
    fit_law(table.averaged(), settings=FitSettings(effort=Effort(100, 8)), about={"tables": ["table.parquet"]}).save(
        folder / "law.json"
    )
    return folder


@pytest.fixture(autouse=True)
def shipped(monkeypatch, tmp_path_factory):
    """The folder of packaged laws, empty."""
    monkeypatch.setattr(cards, "SHIPPED", tmp_path_factory.mktemp("installation"))
    return cards.SHIPPED


@pytest.fixture
def packaged(shipped):
    for name, law in planted_laws().named().items():
        law.save(shipped / f"{name}.json")


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
    assert "The law was not saved" in out
    assert list(tmp_path.iterdir()) == []


def test_a_fit_as_json_is_the_card(bursar, made):
    code, out, _ = bursar("laws", "fit", made / "table.parquet", "--variables", "n,ami", "--json", "--out", "law.json")
    result = json.loads(out)
    assert code == 0
    assert result["variables"] == ["n", "ami"]
    assert result == {"file": "law.json"} | json.loads(Path("law.json").read_text())


def test_a_law_is_shown(bursar, made):
    code, out, _ = bursar("laws", "show", made / "law.json")
    assert code == 0
    for said in ("score =", "Grows like", "power law", "held-out settings", "monotone model"):
        assert said in out
    code, out, _ = bursar("laws", "show", made / "law.json", "--json")
    assert json.loads(out)["law"] == 1


def test_a_prediction_out_of_range_warns_on_the_side(bursar, made):
    asked = ["--tokens", 90000, "--tasks", 3, "--ami", 0.4]
    code, out, errors = bursar("laws", "predict", made / "law.json", *asked, "--json")
    result = json.loads(out)
    assert code == 0
    assert "n = 90000 is outside" in errors
    assert result["low"] <= result["value"] <= result["high"]
    assert result["warnings"]


def test_the_formulas_of_the_paper_are_listed_and_refitted(bursar, made):
    code, out, _ = bursar("laws", "list")
    assert code == 0
    assert "eq11" in out
    code, out, _ = bursar("laws", "list", made / "table.parquet", "--json")
    result = json.loads(out)
    assert code == 0
    assert result["eq3"]["error"] < result["eq3"]["constant"]


# -- packaged laws ---
def test_a_packaged_law_is_asked_where_none_is_named(bursar, packaged):
    asked = {
        "balanced": ["--tokens", 5000, "--tasks", 3, "--ami", 0.4],
        "unbalanced": ["--tokens", 2000, "--other-tokens", 5000, "--tasks", 3, "--ami", 0.4],
        "single": ["--tokens", 5000, "--tasks", 1],
    }
    for name, options in asked.items():
        code, out, _ = bursar("laws", "predict", *options)
        assert code == 0
        assert out == bursar("laws", "predict", name, *options)[1]
        expected = Law.packaged(name).predict(n=options[1], n_other=5000, tasks=3, ami=0.4).value
        assert float(out.split()[0]) == pytest.approx(expected, abs=0.001)


def test_packaged_laws_are_listed_and_shown_with_their_range_and_provenance(bursar, packaged):
    code, out, _ = bursar("laws", "list")
    assert code == 0
    assert "unbalanced" in out
    assert "n 1,000 to 6,000" in out
    result = json.loads(bursar("laws", "list", "--json")[1])
    assert set(result["packaged"]) == {"balanced", "single", "unbalanced"}
    assert result["forms"]["eq11"]["variables"] == ["n", "n_other", "tasks", "ami"]
    code, out, _ = bursar("laws", "show", "single")
    assert code == 0
    assert "Learned from 300 models (shared) on news." in out
    assert bursar("laws", "show")[1] == bursar("laws", "show", "balanced")[1]


def test_a_file_of_the_same_name_is_not_taken_for_a_packaged_law(bursar, packaged, made):
    Path("balanced").write_bytes((made / "law.json").read_bytes())
    assert bursar("laws", "show", "balanced")[1] == bursar("laws", "show", made / "law.json")[1]


def test_without_packaged_laws_a_list_says_so(bursar):
    code, out, _ = bursar("laws", "list")
    assert code == 0
    assert "This installation has no packaged laws." in out


def test_a_law_is_shown_as_a_page(bursar, made):
    code, out, _ = bursar("laws", "show", made / "law.json", "--page", "deep/law.html")
    assert code == 0
    assert "Page: deep/law.html" in out
    assert Law.load(made / "law.json").formula.exact in Path("deep/law.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["predict", "--tokens", "5000", "--tasks", "3", "--ami", "0.4"], "no packaged law in this installation"),
        (["show"], "no packaged law in this installation"),
        (["show", "LAW", "--page", "."], "--page . is a folder"),
        (["fit", "TABLE", "--single", "--variables", "n"], "no single tasks in the table"),
        (["fit", "none.parquet"], "none.parquet: there is no such file"),
        (["fit", "TABLE", "--engine", "magic"], "--engine magic"),
        (["fit", "TABLE", "--variables", "mood"], "there is no variable 'mood'"),
        (["fit", "TABLE", "--variables", ","], "variables = none"),
        (["fit", "TABLE", "--out", "law.txt"], "end in .json"),
        (["fit", "TABLE", "--architecture", "giant"], "there is no architecture 'giant'"),
        (["fit", "LAW"], "it is no table"),
        (["show", "TABLE"], "it is not a law"),
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
