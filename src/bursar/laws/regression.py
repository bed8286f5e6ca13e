"""Symbolic regression: finds formulas from the shortest to the most accurate, and chooses one.

Two engines find forms. ``operon`` keeps a Pareto front of error and length. ``gplearn`` has the operators, rates and
scaled scores of paper 2. Formulas are rewritten for the real score and simplified, and their constants are refitted by
least squares.

Operon's operators are the plain ones. gplearn's are protected: √|x|; log|x|, 0 near 0; x ÷ y is 1 for y near 0; exp is
cut at ``EXP_CUT``. A formula that relies on such a protection (other than |x|) somewhere in the table is dropped, and
so is one that is undefined there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy  # type: ignore[import-untyped]

from bursar.errors import BursarError, ConfigError
from bursar.laws.expressions import Formula, parse, symbol, without_offset
from bursar.ragged import FloatArray, IntArray
from bursar.random_streams import rng

OPERATORS = ("add", "sub", "mul", "div", "log", "sqrt", "exp", "neg")  # paper 2, section 4
SCORE_SCALE = 100.0  # factor of scores for gplearn, which otherwise finds their mean (paper 2, section 4)
EXP_CUT = 50.0  # largest argument of gplearn's exp
LONGEST = 20  # nodes of an Operon formula
FOLDS = 5
TREES = 50  # of the monotone baseline
RISING = ("n", "n_other", "ami", "alpha")  # more of these should not hurt; more tasks may (paper 2)
FEWEST_ROWS = 20
_UNDEFINED = (sympy.nan, sympy.zoo, sympy.oo, -sympy.oo, sympy.I)


@dataclass(frozen=True)
class Effort:
    """How long an engine searches."""

    population: int
    generations: int
    restarts: int = 1


EFFORTS = {"operon": Effort(500, 60, 4), "gplearn": Effort(1000, 20)}


@dataclass(frozen=True)
class FitSettings:
    """How a formula is searched for."""

    engine: str = "operon"
    effort: Effort | None = None  # the engine's default if not given
    seed: int = 0
    known_forms: bool = True  # try paper 2's forms too
    level: float = 0.9  # of the interval of a prediction

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise ConfigError(f"there is no engine {self.engine!r}", fix=f"use {' or '.join(ENGINES)}")
        if not 0 < self.level < 1:
            raise ConfigError(f"level = {self.level}", fix="use a share such as 0.9")


@dataclass(frozen=True)
class ScoredFormula:
    """A formula and its error in cross-validation."""

    formula: Formula
    error: float  # mean squared
    doubt: float  # its standard error


FormEngine = Callable[[FloatArray, Sequence[str], FloatArray, Effort, int], list[Any]]


def fit_front(X: FloatArray, names: Sequence[str], y: FloatArray, settings: FitSettings | None = None) -> list[Formula]:
    """Formulas for y, each longer and more accurate than the one before; the first is a constant."""
    settings = settings or FitSettings()
    X, y = check_rows(X, names, y)
    effort = settings.effort or EFFORTS[settings.engine]
    found = ENGINES[settings.engine](X, names, y, effort, settings.seed)
    mean = Formula.of(parse(repr(float(y.mean())), names), names)
    formulas = [(formula, formula.error(X, y)) for formula in (mean, *_formulas(found, names, X, y))]
    front: list[Formula] = []
    lowest = float("inf")
    for formula, error in sorted(formulas, key=lambda entry: (entry[0].size, entry[1], str(entry[0].form))):
        if error < lowest:
            front, lowest = [*front, formula], error
    return front


def _formulas(expressions: Iterable[Any], names: Sequence[str], X: FloatArray, y: FloatArray) -> list[Formula]:
    """Fit the constants of expressions, with and without an offset; each form once."""
    best: dict[Any, Formula] = {}
    forms = (form for expression in expressions for form in (expression, without_offset(expression)))
    for formula in (Formula.of(form, names) for form in forms if form is not None):
        if formula.form not in best and formula.form.free_symbols and np.isfinite(formula.error(X, y)):
            best[formula.form] = formula.refitted(X, y)
    return list(best.values())


# -- the choice -------------------------------------------------------------------------------------------------------
def cross_validated(formulas: Sequence[Formula], X: FloatArray, y: FloatArray, *, seed: int = 0) -> list[ScoredFormula]:
    """Each formula with its error in cross-validation, where its constants are refitted for each fold."""
    found = []
    for formula in formulas:
        misses = _misses(X, y, seed, lambda X, y, at, formula=formula: formula.refitted(X, y).predict(at))
        squares = np.where(np.isfinite(misses), misses**2, np.inf)
        error = float(squares.mean())
        doubt = float(squares.std(ddof=1) / np.sqrt(len(y))) if np.isfinite(error) else float("inf")
        found.append(ScoredFormula(formula, error, doubt))
    return found


def _misses(X: FloatArray, y: FloatArray, seed: int, predict: Callable[..., FloatArray]) -> FloatArray:
    """The error of each row, predicted from those of the other folds."""
    fold, misses = folds(len(y), seed), np.empty(len(y))
    for k in range(FOLDS):
        out = fold == k
        misses[out] = predict(X[~out], y[~out], X[out]) - y[out]
    return misses


def choose(candidates: Sequence[ScoredFormula]) -> ScoredFormula:
    """The shortest formula whose error is within one standard error of the lowest."""
    best = min(candidates, key=lambda c: (c.error, c.formula.size))
    near = [c for c in candidates if c.error <= best.error + best.doubt]
    return min(near, key=lambda c: (c.formula.size, c.error))


def folds(rows: int, seed: int = 0) -> IntArray:
    """The fold of each row; folds differ by at most one row in size."""
    return rng(seed, "law folds").permutation(np.arange(rows) % FOLDS)


def held_out(rows: int, seed: int = 0) -> tuple[IntArray, IntArray]:
    """Rows to fit to and held-out rows: a tenth as in paper 2, but at least 20 or a third."""
    many = max(round(0.1 * rows), min(20, rows // 3))
    order = rng(seed, "law held-out rows").permutation(rows)
    return np.sort(order[many:]), np.sort(order[:many])


def monotone_values(X: FloatArray, names: Sequence[str], y: FloatArray, at: FloatArray) -> FloatArray:
    """Predictions for other rows (rows,) by a baseline: isotonic regression, or boosted trees that rise with RISING."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.isotonic import IsotonicRegression

    if len(names) == 1:
        rises = bool(names[0] in RISING or np.cov(X[:, 0], y)[0, 1] >= 0)
        isotonic = IsotonicRegression(increasing=rises, out_of_bounds="clip")
        return np.asarray(isotonic.fit(X[:, 0], y).predict(at[:, 0]))
    trees = HistGradientBoostingRegressor(
        monotonic_cst=[int(name in RISING) for name in names],
        learning_rate=0.2,
        max_iter=TREES,
        min_samples_leaf=5,
        early_stopping=False,
        random_state=0,
    )
    return np.asarray(trees.fit(X, y).predict(at))


def monotone_error(X: FloatArray, names: Sequence[str], y: FloatArray, *, seed: int = 0) -> float:
    """The mean squared error of the monotone baseline in cross-validation, on the same folds as formulas."""
    return float(np.mean(_misses(X, y, seed, lambda X, y, at: monotone_values(X, names, y, at)) ** 2))


def check_rows(X: FloatArray, names: Sequence[str], y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Check that rows are complete and that each variable varies."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    if X.shape != (len(y), len(names)):
        raise ConfigError(f"values {X.shape} for {len(y)} scores and the variables {', '.join(names)}")
    if len(y) < FEWEST_ROWS:
        raise ConfigError(f"{len(y)} rows are too few to find a formula", fix=f"use {FEWEST_ROWS} settings or more")
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise ConfigError("some values are not finite numbers", fix="remove those rows")
    for name, column in zip(names, X.T, strict=True):
        if np.ptp(column) == 0:
            raise ConfigError(f"{name} is {column[0]:g} in all rows", fix="remove it from the variables")
    return X, y


# -- the engines ------------------------------------------------------------------------------------------------------
def input_scales(X: FloatArray, names: Sequence[str]) -> dict[str, float]:
    """The power of ten by which each variable is divided for Operon, so that constants have similar sizes."""
    middle = np.median(np.abs(X), axis=0)
    powers = np.floor(np.log10(np.maximum(middle, 1.0)))
    return {name: float(10**power) for name, power in zip(names, powers, strict=True)}


def operon_forms(X: FloatArray, names: Sequence[str], y: FloatArray, effort: Effort, seed: int) -> list[Any]:
    """The Pareto fronts of error and length of all restarts."""
    try:
        from pyoperon.sklearn import SymbolicRegressor  # type: ignore[import-untyped]
    except ImportError:
        raise _missing("pyoperon") from None
    scales = input_scales(X, names)
    columns = [f"X{at + 1}" for at in range(len(names))]
    own = {symbol(x): sympy.Float(1 / scales[name], 17) * symbol(name) for x, name in zip(columns, names, strict=True)}
    found: list[Any] = []
    for restart in range(effort.restarts):
        engine = SymbolicRegressor(
            allowed_symbols="add,sub,mul,div,log,sqrt,exp,constant,variable",
            objectives=["r2", "length"],
            population_size=effort.population,
            generations=effort.generations,
            max_evaluations=10**9,
            max_length=LONGEST,
            max_depth=7,
            optimizer_iterations=0,  # constants mutate, and are fitted afterwards
            epsilon=1e-6,
            n_threads=1,
            random_state=seed * 1000 + restart + 1,
        )
        engine.fit(X / np.array(list(scales.values())), y)
        for solution in engine.pareto_front_:
            read = _read(engine.get_model_string(solution["tree"], 12), columns) if solution["variables"] else None
            if read is not None:
                found.append(read.xreplace(own))
    return found


def gplearn_forms(X: FloatArray, names: Sequence[str], y: FloatArray, effort: Effort, seed: int) -> list[Any]:
    """The sincere programs of the last generation, with paper 2's settings."""
    try:
        from gplearn.functions import make_function  # type: ignore[import-untyped]
        from gplearn.genetic import SymbolicRegressor  # type: ignore[import-untyped]
    except ImportError:
        raise _missing("gplearn") from None
    own = make_function(function=lambda x: np.exp(np.minimum(x, EXP_CUT)), name="exp", arity=1, wrap=False)
    found: list[Any] = []
    for restart in range(effort.restarts):
        engine = SymbolicRegressor(
            population_size=effort.population,
            generations=effort.generations,
            function_set=[own if name == "exp" else name for name in OPERATORS],
            p_crossover=0.7,
            p_subtree_mutation=0.1,
            p_hoist_mutation=0.1,
            p_point_mutation=0.1,
            parsimony_coefficient=0.2,
            metric="mse",
            feature_names=list(names),
            n_jobs=1,
            random_state=seed * 1000 + restart,
        )
        engine.fit(X, SCORE_SCALE * y)
        last = {str(program): program for program in engine._programs[-1] if program is not None}
        found += _sincere(last, X, names)
    return found


def _sincere(programs: dict[str, Any], X: FloatArray, names: Sequence[str]) -> list[Any]:
    """The best program of each length whose formula has the same values, for the real score."""
    best: dict[int, str] = {}
    for text, program in sorted(programs.items(), key=lambda entry: (entry[1].raw_fitness_, entry[0])):
        best.setdefault(program.length_, text)
    found = []
    for text in best.values():
        read = _read(text.replace("sqrt(", "sqrt_abs(").replace("log(", "log_abs("), names)  # gplearn's are of |x|
        if read is None:
            continue
        with np.errstate(all="ignore"):
            does, says = programs[text].execute(X), Formula.of(read, names).predict(X)
        if np.allclose(does, says, rtol=1e-6, atol=1e-9):
            found.append(read / SCORE_SCALE)
    return found


def _read(text: str, names: Sequence[str]) -> Any | None:
    """Parse the output of an engine; ``None`` if it is no formula with finite numbers."""
    try:
        found = parse(text, names)
    except BursarError:
        return None
    return None if found.has(*_UNDEFINED) else found


def _missing(package: str) -> ConfigError:
    return ConfigError(f"{package} is not installed", fix="install it: pip install 'bursar[laws]'")


ENGINES: dict[str, FormEngine] = {"operon": operon_forms, "gplearn": gplearn_forms}
