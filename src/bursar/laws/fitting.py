"""Fits a law to a table: finds candidates, chooses one and describes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bursar.errors import ConfigError
from bursar.laws.cards import GrowthRate, HeldOut, Law, Range
from bursar.laws.expressions import Formula, growth, slope
from bursar.laws.forms import PAPER_FORMS, Exponent, PowerLawSettings, power_law
from bursar.laws.observations import OPTIONAL, Averages
from bursar.laws.regression import (
    SCORE_SCALE,
    FitSettings,
    check_rows,
    choose,
    cross_validated,
    fit_front,
    held_out,
    input_scales,
    monotone_values,
)
from bursar.ragged import FloatArray

NEAR_ZERO = ("ami", "alpha")  # they end at 1, so growth is described near 0


def fit_law(
    averages: Averages,
    variables: Sequence[str] = ("n", "tasks", "ami"),
    settings: FitSettings | None = None,
    *,
    about: Mapping[str, Any] | None = None,
) -> Law:
    """Fit a law of these variables to a table.

    At least a tenth of the rows are held out to measure the error and the interval. An engine finds formulas on the
    others, and paper 2's forms in the same variables are added. The law is the shortest formula whose error in
    cross-validation is within a standard error of the lowest.
    """
    settings, names = settings or FitSettings(), tuple(variables)
    engine, seed = settings.engine, settings.seed
    X, y, left_out = averages.matrix(names)
    alone = averages.alone(names)
    X, y = check_rows(X, names, y)
    fit, out = held_out(len(y), seed)
    front = fit_front(X[fit], names, y[fit], settings)
    known = _known(X[fit], names, y[fit], front) if settings.known_forms else {}
    formulas = sorted([*front, *known], key=lambda f: (f.size, f.error(X[fit], y[fit])))
    whole = [f for f in formulas if np.isfinite(f.predict(X)).all()]  # uses no held-out scores
    origins = {f.form: name for f, name in known.items()}
    candidates = cross_validated(whole, X[fit], y[fit], seed=seed)
    formula = choose(candidates).formula
    rows = HeldOut(
        {name: tuple(X[out, at].tolist()) for at, name in enumerate(names)},
        tuple(y[out].tolist()),
        tuple(formula.predict(X[out]).tolist()),
        tuple(alone[out].tolist()) if "n" in names and np.isfinite(alone).any() else (),
    )
    ranges = {name: Range(*map(float, np.quantile(X[:, at], [0, 0.5, 1]))) for at, name in enumerate(names)}
    monotone = monotone_values(X[fit], names, y[fit], X[out])
    try:
        powers = power_law(X[fit], names, y[fit], PowerLawSettings(seed=seed)).exponents
    except ConfigError:  # too few rows without zeros
        powers = {}
    return Law(
        formula=formula,
        origin=origins.get(formula.form, engine),
        ranges=ranges,
        rates=rates_of(formula, ranges, powers),
        held_out=rows,
        scaling={
            "score": SCORE_SCALE if engine == "gplearn" else 1.0,
            "inputs": dict.fromkeys(names, 1.0) if engine == "gplearn" else input_scales(X[fit], names),
        },
        baselines={
            "constant": float(np.mean((y[out] - y[fit].mean()) ** 2)),
            "monotone": float(np.mean((y[out] - monotone) ** 2)),
            "noise": averages.noise,
        },
        front=tuple(
            {"size": formula.size, "error": found.error, "doubt": found.doubt, "text": formula.text}
            | {"origin": origins.get(formula.form, engine)}
            for found in candidates
            for formula in (found.formula,)
        ),
        level=settings.level,
        about={"rows": len(y), "left_out": left_out, "engine": engine, "seed": seed} | dict(about or {}),
        warnings=tuple(_warnings(averages, names, formula, left_out)),
    )


def rates_of(formula: Formula, ranges: Mapping[str, Range], powers: Mapping[str, Exponent]) -> dict[str, GrowthRate]:
    """How a formula grows with each variable, with the others at their medians."""
    middle = {name: r.middle for name, r in ranges.items()}
    found = {}
    for name, r in ranges.items():
        near = name in NEAR_ZERO
        grows = growth(formula, name, middle, at_zero=near)
        top = slope(formula, name, middle | {name: r.high})
        found[name] = GrowthRate(grows, near, slope(formula, name, middle), top, powers.get(name))
    return found


def _known(X: FloatArray, names: Sequence[str], y: FloatArray, front: Sequence[Formula]) -> dict[Formula, str]:
    """Paper 2's forms in these variables, refitted, without those of the front."""
    found: dict[Formula, str] = {}
    have = {formula.form for formula in front}
    for name, known in PAPER_FORMS.items():
        form, constants = known.formula.form, known.formula.constants
        if set(known.variables) <= set(names) and form not in have:
            have.add(form)
            found[Formula(form, constants, tuple(names)).refitted(X, y)] = name
    return found


def _warnings(averages: Averages, names: Sequence[str], formula: Formula, left_out: int) -> list[str]:
    found = []
    if left_out:
        without = " and no ".join(name for name in OPTIONAL if name in names)
        found.append(f"{left_out} rows of single tasks were left out: they have no {without}")
    other, own = averages.variables["n_other"], averages.variables["n"]
    if "n_other" not in names and ((other != own) & ~averages.single).any():
        found.append("synthetic tasks have other numbers of tokens than the real one, and n_other is not a variable")
    used = {str(symbol) for symbol in formula.form.free_symbols}
    idle = [name for name in names if name not in used]
    if idle:
        found.append(f"the formula does not depend on {', '.join(idle)}")
    return found
