"""Symbolic regression: planted formulas come back, the shortest good one is taken, the seed decides."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

from bursar.errors import ConfigError
from bursar.laws.expressions import Formula
from bursar.laws.regression import (
    Effort,
    FitSettings,
    ScoredFormula,
    choose,
    cross_validated,
    fit_front,
    folds,
    held_out,
    input_scales,
    monotone_error,
    monotone_values,
)
from tests.laws.planted import settings_of

NAMES = ("n", "tasks", "ami")
SHORT = {"operon": Effort(200, 20), "gplearn": Effort(80, 3)}
NOISE = 0.005


def planted(score, rows=150):
    X = settings_of(rows)
    return X, score(*X.T) + np.random.default_rng(5).normal(0, NOISE, rows)


def best_of(X, names, y, engine="operon", effort=None):
    front = fit_front(X, names, y, FitSettings(engine, effort or SHORT[engine]))
    return choose(cross_validated(front, X, y)).formula


# -- planted formulas ---
def test_a_root_of_n_is_recovered_as_such():
    X, y = planted(lambda n, tasks, ami: 0.0069 * np.sqrt(n))
    found = best_of(X[:, :1], ["n"], y)
    assert found.form == Formula.parse("0.7 * sqrt(n)", ["n"]).form
    assert found.constants == pytest.approx([0.0069], rel=0.01)


def test_a_root_of_n_and_ami_is_recovered_among_three_variables():
    X, y = planted(lambda n, tasks, ami: 0.0055 * np.sqrt(n * ami))
    found = best_of(X, NAMES, y, effort=Effort(400, 30))
    assert found.form == Formula.parse("0.7 * sqrt(n) * sqrt(ami)", NAMES).form
    assert found.constants == pytest.approx([0.0055], rel=0.01)
    assert found.error(X, y) < 1.2 * NOISE**2


def test_a_score_that_levels_off_is_recovered_within_the_noise():
    X, y = planted(lambda n, tasks, ami: 0.9 - 15 / np.sqrt(n))
    found = best_of(X[:, :1], ["n"], y)
    grid = np.linspace(1000, 20000, 50)
    assert found.predict(grid[:, None]) == pytest.approx(0.9 - 15 / np.sqrt(grid), abs=NOISE)


def test_a_score_of_noise_is_a_constant():
    X, y = planted(lambda n, tasks, ami: 0.5 + 0 * n)
    assert best_of(X, NAMES, y).size <= 3
    assert best_of(X, NAMES, y).predict(X) == pytest.approx(0.5, abs=0.01)


# -- the front ---
def test_along_the_front_formulas_get_longer_and_better():
    X, y = planted(lambda n, tasks, ami: 0.002 * np.sqrt(n * (np.log(tasks) + ami)))
    front = fit_front(X, NAMES, y, FitSettings(effort=SHORT["operon"]))
    assert np.all(np.diff([formula.size for formula in front]) > 0)
    assert np.all(np.diff([formula.error(X, y) for formula in front]) < 0)
    assert front[0].constants == pytest.approx([y.mean()])


@pytest.mark.parametrize("engine", ["operon", "gplearn"])
def test_the_same_seed_gives_the_same_front_to_the_last_digit(engine):
    X, y = planted(lambda n, tasks, ami: 0.0055 * np.sqrt(n * ami), rows=60)
    first, again = (fit_front(X, NAMES, y, FitSettings(engine, SHORT[engine], 3)) for _ in range(2))
    assert [formula.exact for formula in first] == [formula.exact for formula in again]


def test_gplearn_speaks_of_the_real_score_though_it_sees_a_scaled_one():
    X, y = planted(lambda n, tasks, ami: 0.0069 * np.sqrt(n))
    found = best_of(X[:, :1], ["n"], y, "gplearn")
    assert found.error(X[:, :1], y) < 0.2 * y.var()
    assert np.abs(found.predict(X[:, :1]) - y).max() < 0.3


# -- the choice ---
def candidate(terms, error, doubt=0.0):
    text = " + ".join(["n", "sqrt(n)", "log(n)", "tasks", "ami"][:terms])
    return ScoredFormula(Formula.parse(text, NAMES), error, doubt)


def test_the_shortest_within_a_standard_error_of_the_best_is_taken():
    short, middle, long = candidate(1, 1.3), candidate(3, 1.05), candidate(5, 1.0, doubt=0.1)
    assert choose([short, middle, long]) is middle
    assert choose([short, candidate(3, 1.2), long]) is long


def test_a_formula_is_judged_on_rows_that_its_constants_did_not_see():
    X, y = settings_of(50), np.random.default_rng(0).normal(0.5, 0.1, 50)
    mean = Formula.parse("0.5", NAMES)
    by_hand = [y[folds(50) == k] - y[folds(50) != k].mean() for k in range(5)]
    assert cross_validated([mean], X, y)[0].error == pytest.approx(np.mean(np.concatenate(by_hand) ** 2))


@pytest.mark.parametrize(("rows", "out"), [(1002, 100), (200, 20), (100, 20), (30, 10)])
def test_a_tenth_is_held_out_or_enough_for_an_interval(rows, out):
    fit, kept = held_out(rows, seed=1)
    assert len(kept) == out
    assert sorted([*fit, *kept]) == list(range(rows))


# -- what a formula is held against ---
def test_the_monotone_model_never_falls_with_more_tokens_or_relatedness():
    X, y = planted(lambda n, tasks, ami: 0.0055 * np.sqrt(n * ami), rows=80)
    for at in (0, 2):
        row = np.repeat(X[:1], 30, axis=0)
        row[:, at] = np.linspace(X[:, at].min(), X[:, at].max(), 30)
        assert np.all(np.diff(monotone_values(X, NAMES, y, row)) >= 0)


def test_a_true_formula_beats_the_monotone_model_on_held_out_rows():
    X, y = planted(lambda n, tasks, ami: 0.0055 * np.sqrt(n * ami))
    formula = Formula.parse("0.1 * sqrt(n * ami)", NAMES)
    assert cross_validated([formula], X, y)[0].error < monotone_error(X, NAMES, y)
    one = Formula.parse("0.1 * sqrt(n)", ["n"])
    X, y = planted(lambda n, tasks, ami: 0.0055 * np.sqrt(n))
    assert cross_validated([one], X[:, :1], y)[0].error < monotone_error(X[:, :1], ["n"], y)


# -- what is refused ---
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda X, y: (X[:10], y[:10]), "10 rows are too few"),
        (lambda X, y: (X, np.where(np.arange(len(y)) == 3, np.nan, y)), "not finite numbers"),
        (lambda X, y: (np.ones_like(X), y), "n is 1 in all rows"),
        (lambda X, y: (X[:, :2], y), r"for 30 scores"),
    ],
)
def test_rows_that_no_formula_follows_from_are_refused(change, said):
    X, y = change(settings_of(30), settings_of(30)[:, 2])
    with pytest.raises(ConfigError, match=said):
        fit_front(X, NAMES, y)


def test_an_unknown_engine_is_refused():
    with pytest.raises(ConfigError, match="operon or gplearn"):
        fit_front(settings_of(30), NAMES, settings_of(30)[:, 2], FitSettings("magic"))


@pytest.mark.parametrize(("engine", "package"), [("operon", "pyoperon"), ("gplearn", "gplearn")])
def test_a_missing_engine_is_named_with_the_extra_that_brings_it(monkeypatch, engine, package):
    real = builtins.__import__

    def without(name, *given, **more):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match=rf"{package} is not installed.*bursar\[laws\]"):
        fit_front(settings_of(30), NAMES, settings_of(30)[:, 2], FitSettings(engine))


def test_inputs_are_scaled_by_powers_of_ten():
    assert input_scales(np.array([[5000.0, 0.4], [9000.0, 0.8]]), ["n", "ami"]) == {"n": 1000.0, "ami": 1.0}
