"""Forms that are known beforehand: the formulas of paper 2, and power laws with intervals of their exponents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from bursar.errors import ConfigError
from bursar.laws.baselines import monotone_error
from bursar.laws.expressions import Formula, parse, solved
from bursar.laws.observations import Averages
from bursar.laws.regression import FEWEST_ROWS, check_rows, judged
from bursar.ragged import FloatArray, IntArray

STEEPEST = 4.0  # no exponent is looked for beyond
UNRELATED = 0.01  # an adjusted mutual information below this is noise about 0, and its logarithm anything


@dataclass(frozen=True)
class PaperForm:
    """A formula of paper 2. What is fitted is its form: its printed constants are of a scaled score (errata 19)."""

    equation: int
    printed: str
    form: str  # with constants to start from
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
class Comparison:
    """One of the paper's forms refitted to a table, its error on held-out folds, and what others reach there."""

    name: str
    formula: Formula
    error: float  # mean squared
    doubt: float  # its standard error
    monotone: float  # of a monotone model of the same variables
    constant: float  # of the mean alone
    rows: int


def compare_forms(averages: Averages, *, seed: int = 0) -> list[Comparison]:
    """The paper's forms, all refitted to a table. A form with a variable that does not vary there is left out."""
    found = []
    free: dict[tuple[str, ...], float] = {}
    for name, known in PAPER_FORMS.items():
        X, y, _ = averages.matrix(known.variables)
        if len(y) < FEWEST_ROWS or (np.ptp(X, axis=0) == 0).any():
            continue
        mean = Formula.of(parse(repr(float(y.mean())), known.variables), known.variables)
        form, flat = judged([known.formula, mean], X, y, seed=seed)
        if known.variables not in free:
            free[known.variables] = monotone_error(X, known.variables, y, seed=seed)
        fitted = known.formula.refitted(X, y)
        found.append(Comparison(name, fitted, form.error, form.doubt, free[known.variables], flat.error, len(y)))
    if not found:
        raise ConfigError("none of the paper's forms can be fitted", fix=f"bring {FEWEST_ROWS} settings or more")
    return found


# -- power laws -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Exponent:
    """By what power a score grows with a variable, and between what that may well lie."""

    value: float
    low: float
    high: float

    def holds(self, power: float) -> bool:
        """Whether a power is among those that may well be."""
        return self.low <= power <= self.high


@dataclass(frozen=True)
class PowerLaw:
    """score = a · n^p · AMI^q · T^r, or the same plus an offset."""

    formula: Formula
    exponents: Mapping[str, Exponent]
    offset: float | None
    error: float  # mean squared, on the rows it was fitted to
    rows: int
    left_out: int  # rows in which a variable is 0, or AMI noise about 0, of which a power law says nothing
    level: float


def power_law(
    X: FloatArray,
    names: Sequence[str],
    y: FloatArray,
    *,
    offset: bool = False,
    level: float = 0.95,
    draws: int = 200,
    seed: int = 0,
    groups: IntArray | None = None,
) -> PowerLaw:
    """A power law by least squares, with bootstrap intervals of its exponents.

    Models of one seed share sentences and first values, so they rise and fall together. ``groups`` (rows,) says which
    do: then an interval is that of the mean over groups, each with exponents of its own.

    >>> rng = np.random.default_rng(0)
    >>> n = rng.uniform(1000, 20000, 200)
    >>> law = power_law(n[:, None], ["n"], 0.005 * np.sqrt(n) + rng.normal(0, 0.01, 200), draws=50)
    >>> law.exponents["n"].holds(0.5), law.exponents["n"].holds(0.6)
    (True, False)
    """
    if not 0 < level < 1:
        raise ConfigError(f"level = {level}", fix="use a share such as 0.95")
    least = np.array([UNRELATED if name == "ami" else 0.0 for name in names])
    positive = (np.asarray(X) > least).all(axis=1)
    left_out = int((~positive).sum())
    X, y = check_rows(np.asarray(X)[positive], names, np.asarray(y)[positive])
    logs = np.log(X)
    centre = logs.mean(axis=0)
    found = _powers(logs - centre, y, offset, None)
    if groups is None:
        rng = np.random.default_rng([seed, 109])
        drawn = np.array([_resampled(logs - centre, y, offset, found, rng) for _ in range(draws)])
        ends = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    else:
        ends = _over_groups(logs - centre, y, offset, found, np.asarray(groups)[positive], level)
    factor, added = _linear(logs - centre, y, offset, found)
    scale = factor * float(np.exp(-(centre * found).sum()))
    text = " * ".join([repr(scale), *(f"{name} ** {p!r}" for name, p in zip(names, found.tolist(), strict=True))])
    formula = Formula.parse(text + (f" + {added!r}" if offset else ""), names)
    return PowerLaw(
        formula,
        {name: Exponent(*map(float, values)) for name, *values in zip(names, found, *ends, strict=True)},
        added if offset else None,
        formula.error(X, y),
        len(y),
        left_out,
        level,
    )


def _over_groups(
    logs: FloatArray, y: FloatArray, offset: bool, found: FloatArray, groups: IntArray, level: float
) -> FloatArray:
    """Ends of t-intervals about the exponents: (2, variables)."""
    each = np.array([_powers(logs[groups == g], y[groups == g], offset, found) for g in np.unique(groups)])
    if len(each) < 2:
        return np.stack([np.full_like(found, -np.inf), np.full_like(found, np.inf)])
    error = each.std(axis=0, ddof=1) / np.sqrt(len(each))
    reach = float(stdtrit(len(each) - 1, (1 + level) / 2)) * error
    return np.stack([found - reach, found + reach])


def _resampled(
    logs: FloatArray, y: FloatArray, offset: bool, start: FloatArray, rng: np.random.Generator
) -> FloatArray:
    rows = rng.integers(len(y), size=len(y))
    return _powers(logs[rows], y[rows], offset, start)


def _powers(logs: FloatArray, y: FloatArray, offset: bool, start: FloatArray | None) -> FloatArray:
    """The exponents; what is linear is solved for at every step."""

    def misses(powers: FloatArray) -> FloatArray:
        factor, added = _linear(logs, y, offset, powers)
        return np.nan_to_num(factor * np.exp(logs @ powers) + added - y, nan=1e3, posinf=1e3, neginf=-1e3)

    width = logs.shape[1]
    starts = [start] if start is not None else [np.full(width, p) for p in (0.4, 0.1, *((-0.4,) if offset else ()))]
    with np.errstate(all="ignore"):
        found = [solved(misses, first) for first in starts]
        best: FloatArray = min(found, key=lambda powers: float((misses(powers) ** 2).sum()))
    return best.clip(-STEEPEST, STEEPEST)


def _linear(logs: FloatArray, y: FloatArray, offset: bool, powers: FloatArray) -> tuple[float, float]:
    """The factor, and the offset or 0, that fit best with these exponents."""
    shape = np.exp(logs @ powers)
    if not offset:
        return float(shape @ y / (shape @ shape)), 0.0
    centred = shape - shape.mean()
    factor = float(centred @ y / max(float(centred @ centred), 1e-300))
    return factor, float(y.mean() - factor * shape.mean())
