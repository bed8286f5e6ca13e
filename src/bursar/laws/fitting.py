"""Looking for a law in a table: candidates, the choice among them, and what the card says of the chosen one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bursar.errors import ConfigError
from bursar.laws.baselines import monotone_values
from bursar.laws.cards import HeldOut, Law, Range, Rate
from bursar.laws.expressions import Formula, growth, slope
from bursar.laws.forms import PAPER_FORMS, Exponent, power_law
from bursar.laws.observations import OPTIONAL, Averages
from bursar.laws.regression import (
    SCORE_SCALE,
    Candidate,
    Effort,
    check_rows,
    chosen,
    fit_front,
    held_out,
    input_scales,
    judged,
)
from bursar.ragged import FloatArray

NEAR_ZERO = ("ami", "alpha")  # these end at 1: what counts is how a law starts from 0


def fit_law(
    averages: Averages,
    variables: Sequence[str] = ("n", "tasks", "ami"),
    *,
    engine: str = "operon",
    effort: Effort | None = None,
    known_forms: bool = True,
    level: float = 0.9,
    seed: int = 0,
    about: Mapping[str, Any] | None = None,
) -> Law:
    """Look for a law of these variables in a table.

    Some rows are held out first, a tenth or more; they are used for nothing but the error and the interval. On the
    others an engine finds formulas; paper 2's forms in the same variables join them unless ``known_forms`` is off. Of
    all, the shortest whose error on held-out folds is within a standard error of the best is taken.
    """
    if not 0 < level < 1:
        raise ConfigError(f"level = {level}", fix="use a share such as 0.9")
    names = tuple(variables)
    X, y, left_out = averages.matrix(names)
    alone = averages.alone(names)
    X, y = check_rows(X, names, y)
    fit, out = held_out(len(y), seed)
    front = fit_front(X[fit], names, y[fit], engine=engine, effort=effort, seed=seed)
    known = _known(X[fit], names, y[fit], front) if known_forms else {}
    formulas = sorted([*front, *known], key=lambda f: (f.size, f.error(X[fit], y[fit])))
    whole = [f for f in formulas if np.isfinite(f.predict(X)).all()]  # the scores held out are not looked at
    origins = {f.form: name for f, name in known.items()}
    candidates = judged(whole, X[fit], y[fit], seed=seed)
    formula = chosen(candidates).formula
    rows = HeldOut(
        {name: tuple(X[out, at].tolist()) for at, name in enumerate(names)},
        tuple(y[out].tolist()),
        tuple(formula.predict(X[out]).tolist()),
        tuple(alone[out].tolist()) if "n" in names and np.isfinite(alone).any() else (),
    )
    ranges = {name: Range(*map(float, np.quantile(X[:, at], [0, 0.5, 1]))) for at, name in enumerate(names)}
    monotone = monotone_values(X[fit], names, y[fit], X[out])
    return Law(
        formula=formula,
        origin=origins.get(formula.form, engine),
        ranges=ranges,
        rates=rates_of(formula, ranges, _exponents(X[fit], names, y[fit], seed)),
        held_out=rows,
        scaling=_scaling(engine, X[fit], names),
        baselines={
            "constant": float(np.mean((y[out] - y[fit].mean()) ** 2)),
            "monotone": float(np.mean((y[out] - monotone) ** 2)),
            "noise": averages.noise,
        },
        front=tuple(_told(candidate, origins, engine) for candidate in candidates),
        level=level,
        about={"rows": len(y), "left_out": left_out, "engine": engine, "seed": seed} | dict(about or {}),
        warnings=tuple(_warnings(averages, names, formula, left_out)),
    )


def rates_of(formula: Formula, ranges: Mapping[str, Range], powers: Mapping[str, Exponent]) -> dict[str, Rate]:
    """How a formula grows with each of its variables, the others at their middle."""
    middle = {name: r.middle for name, r in ranges.items()}
    found = {}
    for name, r in ranges.items():
        near = name in NEAR_ZERO
        order = growth(formula, name, middle, at_zero=near)
        grows = None if order is None else order.text(name)
        top = slope(formula, name, middle | {name: r.high})
        found[name] = Rate(grows, near, slope(formula, name, middle), top, powers.get(name))
    return found


def _known(X: FloatArray, names: Sequence[str], y: FloatArray, front: Sequence[Formula]) -> dict[Formula, str]:
    """Paper 2's forms in these variables, refitted, unless the front has them already."""
    found: dict[Formula, str] = {}
    have = {formula.form for formula in front}
    for name, known in PAPER_FORMS.items():
        form, constants = known.formula.form, known.formula.constants
        if set(known.variables) <= set(names) and form not in have:
            have.add(form)
            found[Formula(form, constants, tuple(names)).refitted(X, y)] = name
    return found


def _exponents(X: FloatArray, names: Sequence[str], y: FloatArray, seed: int) -> Mapping[str, Exponent]:
    try:
        return power_law(X, names, y, seed=seed).exponents
    except ConfigError:  # too few rows in which no variable is 0
        return {}


def _scaling(engine: str, X: FloatArray, names: Sequence[str]) -> dict[str, Any]:
    if engine == "gplearn":
        return {"score": SCORE_SCALE, "inputs": dict.fromkeys(names, 1.0)}
    return {"score": 1.0, "inputs": input_scales(X, names)}


def _told(candidate: Candidate, origins: Mapping[Any, str], engine: str) -> dict[str, Any]:
    formula = candidate.formula
    return {
        "size": formula.size,
        "error": candidate.error,
        "doubt": candidate.doubt,
        "text": formula.text,
        "origin": origins.get(formula.form, engine),
    }


def _warnings(averages: Averages, names: Sequence[str], formula: Formula, left_out: int) -> list[str]:
    said = []
    if left_out:
        without = " and no ".join(name for name in OPTIONAL if name in names)
        said.append(f"{left_out} rows of single tasks were left out: they have no {without}")
    other, own = averages.variables["n_other"], averages.variables["n"]
    if "n_other" not in names and ((other != own) & ~averages.single).any():
        said.append("synthetic tasks have other numbers of tokens than the real one, and n_other is no variable")
    used = {str(symbol) for symbol in formula.form.free_symbols}
    idle = [name for name in names if name not in used]
    if idle:
        said.append(f"the formula does not depend on {', '.join(idle)}")
    return said
