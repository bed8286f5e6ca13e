"""Known forms: the formulas of paper 2, and power laws with intervals of their exponents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from bursar.errors import ConfigError
from bursar.laws.expressions import Formula, least_squares, parse
from bursar.laws.observations import Averages
from bursar.laws.regression import FEWEST_ROWS, check_rows, cross_validated, monotone_error
from bursar.ragged import FloatArray, IntArray
from bursar.random_streams import rng

STEEPEST = 4.0  # largest exponent
UNRELATED = 0.01  # AMI below this is noise around 0


@dataclass(frozen=True)
class PaperForm:
    """A formula of paper 2. Only its form is used: the printed constants are for a scaled score (errata 19)."""

    equation: int
    printed: str
    form: str  # with initial constants
    variables: tuple[str, ...]

    @property
    def formula(self) -> Formula:
        return Formula.parse(self.form, self.variables)


PAPER_FORMS: Mapping[str, PaperForm] = {
    f"eq{equation}": PaperForm(equation, printed, form, variables)
    for equation, printed, form, variables in (
        (3, "sqrt(n) * 0.69", "0.007 * sqrt(n)", ("n",)),
        (4, "sqrt(AMI / 0.015)", "0.8 * sqrt(ami)", ("ami",)),
        (5, "sqrt(T * 20)", "0.2 * sqrt(tasks)", ("tasks",)),
        (
            6,
            "sqrt((log(T) + 0.45) * (AMI * n / (AMI + 0.6)))",
            "0.005 * sqrt((log(tasks) + 0.45) * (ami * n / (ami + 0.6)))",
            ("n", "tasks", "ami"),
        ),
        (7, "sqrt(n_ner)", "0.01 * sqrt(n)", ("n",)),
        (8, "sqrt(n_syn) * 0.69", "0.007 * sqrt(n_other)", ("n_other",)),
        (9, "sqrt(2 * AMI) / 0.026", "0.5 * sqrt(ami)", ("ami",)),
        (10, "log(sqrt(T) + log(T)) / 0.039", "0.25 * log(sqrt(tasks) + log(tasks))", ("tasks",)),
        (
            11,
            "sqrt(log(n_ner / 0.38) * (sqrt(T) + T)) * sqrt(n_syn * AMI)",
            "0.001 * sqrt(log(n / 0.38) * (sqrt(tasks) + tasks)) * sqrt(n_other * ami)",
            ("n", "n_other", "tasks", "ami"),
        ),
    )
}


@dataclass(frozen=True)
class FormComparison:
    """One of the paper's forms refitted to a table, with its error in cross-validation and those of baselines."""

    name: str
    formula: Formula
    error: float  # mean squared
    doubt: float  # its standard error
    monotone: float  # error of a monotone model
    constant: float  # error of the mean
    rows: int


def compare_forms(averages: Averages, *, seed: int = 0) -> list[FormComparison]:
    """Refit the paper's forms to a table. A form with a variable that does not vary is left out."""
    found = []
    monotone: dict[tuple[str, ...], float] = {}  # errors, by variables
    for name, known in PAPER_FORMS.items():
        X, y, _ = averages.matrix(known.variables)
        if len(y) < FEWEST_ROWS or (np.ptp(X, axis=0) == 0).any():
            continue
        mean = Formula.of(parse(repr(float(y.mean())), known.variables), known.variables)
        form, flat = cross_validated([known.formula, mean], X, y, seed=seed)
        if known.variables not in monotone:
            monotone[known.variables] = monotone_error(X, known.variables, y, seed=seed)
        errors = form.error, form.doubt, monotone[known.variables], flat.error
        found.append(FormComparison(name, known.formula.refitted(X, y), *errors, len(y)))
    if not found:
        raise ConfigError("none of the paper's forms can be fitted", fix=f"use {FEWEST_ROWS} settings or more")
    return found


@dataclass(frozen=True)
class Exponent:
    """The exponent of a variable, with an interval."""

    value: float
    low: float
    high: float

    def holds(self, power: float) -> bool:
        return self.low <= power <= self.high


@dataclass(frozen=True)
class PowerLaw:
    """score = a · n^p · AMI^q · T^r, or the same plus an offset."""

    formula: Formula
    exponents: Mapping[str, Exponent]
    offset: float | None
    error: float  # mean squared, on the rows it was fitted to
    rows: int
    left_out: int  # rows where a variable is 0, or AMI is noise around 0
    level: float


@dataclass(frozen=True)
class PowerLawSettings:
    """How a power law is fitted."""

    offset: bool = False
    level: float = 0.95  # of the intervals
    draws: int = 200  # of the bootstrap
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ConfigError(f"level = {self.level}", fix="use a share such as 0.95")


def power_law(
    X: FloatArray,
    names: Sequence[str],
    y: FloatArray,
    settings: PowerLawSettings | None = None,
    *,
    groups: IntArray | None = None,
) -> PowerLaw:
    """Fit a power law by least squares, with bootstrap intervals of its exponents.

    Models of one seed share sentences and initial weights, so their scores are correlated. If ``groups`` (rows,) gives
    the seeds, an interval is that of the mean over groups, each fitted by itself.
    """
    settings = settings or PowerLawSettings()
    least = np.array([UNRELATED if name == "ami" else 0.0 for name in names])
    positive = (np.asarray(X) > least).all(axis=1)
    X, y = check_rows(np.asarray(X)[positive], names, np.asarray(y)[positive])
    centre = np.log(X).mean(axis=0)
    rows = _LogRows(np.log(X) - centre, y, settings.offset)
    found = rows.powers(None)
    ends = rows.ends(found, settings, None if groups is None else np.asarray(groups)[positive])
    factor, added = rows.linear(found)
    scale = factor * float(np.exp(-(centre * found).sum()))
    text = " * ".join([repr(scale), *(f"{name} ** {p!r}" for name, p in zip(names, found.tolist(), strict=True))])
    formula = Formula.parse(text + (f" + {added!r}" if settings.offset else ""), names)
    return PowerLaw(
        formula,
        {name: Exponent(*map(float, values)) for name, *values in zip(names, found, *ends, strict=True)},
        added if settings.offset else None,
        formula.error(X, y),
        len(y),
        int((~positive).sum()),
        settings.level,
    )


@dataclass(frozen=True)
class _LogRows:
    """Rows with centred logarithms of the variables."""

    logs: FloatArray  # (rows, variables)
    y: FloatArray  # (rows,)
    offset: bool

    def take(self, rows: Any) -> _LogRows:
        return _LogRows(self.logs[rows], self.y[rows], self.offset)

    def powers(self, start: FloatArray | None) -> FloatArray:
        """The best exponents; the linear parameters are solved for at each step."""

        def residuals(powers: FloatArray) -> FloatArray:
            factor, added = self.linear(powers)
            return np.nan_to_num(factor * np.exp(self.logs @ powers) + added - self.y, nan=1e3, posinf=1e3, neginf=-1e3)

        width = self.logs.shape[1]
        first = (0.4, 0.1, *((-0.4,) if self.offset else ()))
        starts = [start] if start is not None else [np.full(width, power) for power in first]
        with np.errstate(all="ignore"):
            found = [least_squares(residuals, some) for some in starts]
            best: FloatArray = min(found, key=lambda powers: float((residuals(powers) ** 2).sum()))
        return best.clip(-STEEPEST, STEEPEST)

    def linear(self, powers: FloatArray) -> tuple[float, float]:
        """The best factor and offset (or 0) for these exponents."""
        shape = np.exp(self.logs @ powers)
        if not self.offset:
            return float(shape @ self.y / (shape @ shape)), 0.0
        centred = shape - shape.mean()
        factor = float(centred @ self.y / max(float(centred @ centred), 1e-300))
        return factor, float(self.y.mean() - factor * shape.mean())

    def ends(self, found: FloatArray, settings: PowerLawSettings, groups: IntArray | None) -> FloatArray:
        """The ends of intervals of the exponents, by bootstrap or as t-intervals over groups: (2, variables)."""
        if groups is None:
            numbers, count = rng(settings.seed, "power law bootstrap"), len(self.y)
            drawn = [self.take(numbers.integers(count, size=count)).powers(found) for _ in range(settings.draws)]
            return np.asarray(np.quantile(drawn, [(1 - settings.level) / 2, (1 + settings.level) / 2], axis=0))
        each = np.array([self.take(groups == group).powers(found) for group in np.unique(groups)])
        if len(each) < 2:
            return np.stack([np.full_like(found, -np.inf), np.full_like(found, np.inf)])
        error = each.std(axis=0, ddof=1) / np.sqrt(len(each))
        reach = float(stdtrit(len(each) - 1, (1 + settings.level) / 2)) * error
        return np.stack([found - reach, found + reach])
