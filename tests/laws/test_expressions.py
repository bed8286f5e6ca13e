"""Formulas: read without running anything, simplified without changing a value, and how fast they grow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.errors import DataError
from bursar.laws.expressions import Formula, growth, slope

NAMES = ("n", "tasks", "ami")
GRID = np.array([[n, t, a] for n in (1000.0, 7000.0) for t in (2.0, 9.0) for a in (0.1, 0.9)])

numbers = st.floats(0.01, 50).map(lambda x: f"{x:.4g}")
leaves = st.one_of(numbers, st.sampled_from(NAMES))
terms = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+*/"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda x: f"sqrt({x})"),
        inner.map(lambda x: f"log({x} + 1.5)"),
    ),
    max_leaves=6,
)


@settings(max_examples=40, deadline=None)
@given(terms)
def test_simplifying_and_writing_out_change_no_value(text):
    n, tasks, ami = GRID.T
    plain = np.broadcast_to(eval(text, {"sqrt": np.sqrt, "log": np.log, "n": n, "tasks": tasks, "ami": ami}), len(GRID))
    formula = Formula.parse(text, NAMES)
    assert formula.predict(GRID) == pytest.approx(plain, rel=1e-6)
    assert Formula.parse(formula.exact, NAMES).predict(GRID) == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "n.real",
        "(lambda: 1)()",
        "[n for n in (1, 2)]",
        "eval('1')",
        "n if n else 1",
        "mood",
        "n +",
        "'n'",
        "True",
        "sqrt(n, n, n, n)",
        "n" * 5000,
    ],
)
def test_what_is_no_formula_is_refused_and_not_run(text):
    with pytest.raises(DataError, match="cannot be read"):
        Formula.parse(text, NAMES)


def test_constants_are_refitted_to_what_they_were():
    true = Formula.parse("0.0025 * sqrt((log(tasks) + 0.45) * ami * n / (ami + 0.6))", NAMES)
    start = Formula.parse("0.01 * sqrt((log(tasks) + 1.5) * ami * n / (ami + 0.1))", NAMES)
    rng = np.random.default_rng(0)
    X = np.stack([rng.uniform(1000, 20000, 200), rng.integers(2, 15, 200), rng.uniform(0.1, 1, 200)], axis=1)
    found = start.refitted(X, true.predict(X))
    assert sorted(found.constants) == pytest.approx(sorted(true.constants), rel=1e-4)


def test_refitting_never_makes_a_formula_worse():
    rng = np.random.default_rng(1)
    X, y = rng.uniform(0.1, 5, (50, 3)), rng.uniform(0, 1, 50)
    for text in ("log(n - 3) + ami", "exp(30 * n) / tasks", "1 / (n - tasks)", "0.5", "sqrt(n)"):
        formula = Formula.parse(text, NAMES)
        assert not formula.refitted(X, y).error(X, y) > formula.error(X, y)


def test_a_formula_without_a_value_says_so():
    found = Formula.parse("log(n - 3000)", NAMES).predict(GRID)
    assert np.isnan(found[GRID[:, 0] < 3000]).all()
    assert np.isfinite(found[GRID[:, 0] > 3000]).all()


@pytest.mark.parametrize(
    ("text", "name", "near_zero", "said"),
    [
        ("0.69 * sqrt(n)", "n", False, "sqrt(n)"),
        ("3 * n + 100 * sqrt(n)", "n", False, "n"),
        ("n / (n + 500)", "n", False, "a constant"),
        ("0.9 - 2 * n ** -0.3", "n", False, "a constant"),
        ("n ** 0.43 * tasks", "n", False, "n^0.43"),
        ("log(sqrt(tasks) + log(tasks))", "tasks", False, "log(tasks)"),
        ("sqrt(log(n / 0.38) * (sqrt(tasks) + tasks)) * sqrt(n * ami)", "n", False, "sqrt(n) sqrt(log(n))"),
        ("1 - exp(-0.001 * n)", "n", False, "a constant"),
        ("exp(0.001 * n)", "n", False, None),
        ("exp(-0.001 * n)", "n", False, None),
        ("0.5 * tasks", "n", False, "a constant"),
        ("ami / (ami + 0.6)", "ami", True, "ami"),
        ("0.3 + sqrt(ami)", "ami", True, "a constant"),
        ("sqrt(n) - sqrt(n + 5)", "n", False, None),
    ],
)
def test_growth_is_that_of_the_leading_term(text, name, near_zero, said):
    formula = Formula.parse(text, NAMES)
    assert growth(formula, name, {"n": 5000, "tasks": 4, "ami": 0.5}, at_zero=near_zero) == said


@settings(max_examples=40, deadline=None)
@given(st.floats(-2, 2), st.floats(0.1, 3))
def test_the_local_exponent_of_a_power_is_the_power(power, factor):
    formula = Formula.parse(f"{factor!r} * n ** {power!r} * ami", NAMES)
    assert slope(formula, "n", {"n": 3000, "tasks": 2, "ami": 0.4}) == pytest.approx(power, abs=1e-6)
