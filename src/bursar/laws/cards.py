"""A law: a formula with its range, its error on held-out rows, and its growth; and how it is fitted to a table."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field, TypeAdapter

from bursar.corpus.formats.format import replacing
from bursar.errors import BursarError, ConfigError, DataError
from bursar.laws.expressions import Formula, growth, slope
from bursar.laws.forms import PAPER_FORMS, Exponent, PowerLawSettings, power_law
from bursar.laws.observations import OPTIONAL, VARIABLES, Averages
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

FORMAT = 1
NEAR_ZERO = ("ami", "alpha")  # they end at 1, so growth is described near 0
SHIPPED = Path(str(files("bursar.laws"))) / "packaged"  # laws that come with the package

MEANINGS = {
    "n": "labelled tokens of the real task",
    "n_other": "labelled tokens of each other task",
    "tasks": "tasks, including the real one",
    "ami": "how related they are (adjusted mutual information)",
    "alpha": "share of the real labels that is kept",
}

Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]  # JSON has no nan


@dataclass(frozen=True)
class Range:
    """The range of a variable in the rows that the law was fitted to."""

    low: float
    middle: float  # the median
    high: float


@dataclass(frozen=True)
class GrowthRate:
    """How a law grows with one variable, with the others at their medians."""

    growth: str | None  # such as "sqrt(n)"; None if unknown
    near_zero: bool  # whether growth is that near 0, rather than for large values
    middle: Number  # local exponent at the median
    top: Number  # local exponent at the top of the range
    power: Exponent | None  # of a power law fitted to the same rows


@dataclass(frozen=True)
class HeldOut:
    """The rows that were not used to fit the law, with its predictions."""

    variables: Mapping[str, tuple[float, ...]]
    score: tuple[float, ...]
    predicted: tuple[float, ...]
    alone: tuple[Number, ...] = ()  # scores of single tasks with as many tokens; nan if unknown

    def __post_init__(self) -> None:
        rows = len(self.score)
        columns = (self.predicted, *self.variables.values(), *([self.alone] if self.alone else []))
        if not rows or any(len(column) != rows for column in columns):
            raise ValueError("held-out rows need a score, and each column as many values")

    @property
    def residuals(self) -> FloatArray:
        return np.asarray(np.array(self.score) - np.array(self.predicted))

    @property
    def mse(self) -> float:
        return float(np.mean(self.residuals**2))

    @property
    def mean_absolute(self) -> float:
        return float(np.mean(np.abs(self.residuals)))

    def half_width(self, level: float) -> float | None:
        """Half the width of a split-conformal interval; ``None`` if there are too few rows."""
        return conformal(self.residuals, level)


def conformal(residuals: FloatArray, level: float) -> float | None:
    """Half the width of an interval that holds a new value at this level; ``None`` if there are too few residuals."""
    rank = math.ceil((len(residuals) + 1) * level - 1e-9)
    return float(np.sort(np.abs(residuals))[rank - 1]) if rank <= len(residuals) else None


@dataclass(frozen=True)
class Prediction:
    """A predicted score with its interval, both cut to 0 to 1."""

    value: float
    low: float
    high: float
    level: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Law:
    """A formula and everything that is known about it."""

    formula: Formula
    origin: str  # the engine, or the equation of paper 2
    ranges: Mapping[str, Range]
    rates: Mapping[str, GrowthRate]
    held_out: HeldOut
    scaling: Mapping[str, Any]  # of score and inputs during the search; the formula is for the real score
    baselines: Mapping[str, float]  # mean squared errors on the held-out rows; "noise" is that of averaging few seeds
    front: tuple[Mapping[str, Any], ...]  # all candidates
    level: float = 0.9
    about: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        return self.formula.variables

    @property
    def provenance(self) -> str:
        """Where the law comes from, in a sentence; empty if unknown."""
        about = self.about
        if "models" not in about:
            return ""
        text = f"Learned from {about['models']:,} models"
        text += f" ({', '.join(about['architectures'])})" if about.get("architectures") else ""
        text += f" on {', '.join(about['sources'])}" if about.get("sources") else ""
        text += f", by {about['command']}" if about.get("command") else ""
        return text + (f", with Bursar {about['version']}." if about.get("version") else ".")

    def predict(self, **values: float) -> Prediction:
        """Predict the score at a setting, such as ``n=5000, tasks=3, ami=0.4``; unknown variables are ignored."""
        missing = [name for name in self.variables if values.get(name) is None]
        if missing:
            raise ConfigError(f"the law needs a value for {missing[0]}", fix=f"give {', '.join(self.variables)}")
        point = np.array([[float(values[name]) for name in self.variables]])
        warnings = self.outside(**values)
        value = float(self.formula.predict(point)[0])
        if not math.isfinite(value):
            at = ", ".join(f"{name} = {values[name]:g}" for name in self.variables)
            raise ConfigError(f"the formula has no value at {at}", fix="stay within the range of the law")
        if not 0 <= value <= 1:
            warnings.append(f"the formula gives {value:.3g}, which is cut to the range 0 to 1")
        half = self.held_out.half_width(self.level)
        if half is None:
            warnings.append(f"{len(self.held_out.score)} held-out rows are too few for an interval at {self.level:g}")
        ends = (0.0, 1.0) if half is None else (value - half, value + half)
        low, value, high = (min(1.0, max(0.0, number)) for number in (ends[0], value, ends[1]))
        return Prediction(value, low, high, self.level, tuple(warnings))

    def outside(self, **values: float) -> list[str]:
        """A warning for each value outside the range of the law."""
        return [
            f"{name} = {values[name]:g} is outside {r.low:g} to {r.high:g}, the range of the law"
            for name, r in self.ranges.items()
            if name in values and not r.low <= values[name] <= r.high
        ]

    def residual_points(self) -> dict[str, list[float]]:
        """The variables, prediction and residual of each held-out row, for plots."""
        own = {name: list(values) for name, values in self.held_out.variables.items()}
        return own | {"predicted": list(self.held_out.predicted), "residual": self.held_out.residuals.tolist()}

    # -- on disk ---------------------------------------------------------------------------------------------------
    def describe(self) -> dict[str, Any]:
        rows = self.held_out
        found: dict[str, Any] = _finite(
            {
                "law": FORMAT,
                "formula": self.formula.exact,
                "text": self.formula.text,
                "latex": self.formula.latex,
                "variables": self.variables,
                "origin": self.origin,
                "ranges": {name: asdict(r) for name, r in self.ranges.items()},
                "rates": {name: asdict(r) for name, r in self.rates.items()},
                "error": {"mse": rows.mse, "mean_absolute": rows.mean_absolute, "rows": len(rows.score)},
                "interval": {"level": self.level, "half_width": rows.half_width(self.level)},
                "scaling": self.scaling,
                "baselines": self.baselines,
                "front": self.front,
                "held_out": asdict(rows),
                "about": self.about,
                "warnings": self.warnings,
            }
        )
        return found

    def save(self, file: str | Path) -> None:
        """Write as JSON, whole or not at all."""
        with replacing(Path(file)) as out:
            out.write(json.dumps(self.describe(), indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, file: str | Path) -> Law:
        """Read a file of ``save``. No code in it is run."""
        path = Path(file)
        if path.is_dir():
            raise DataError("it is a folder", path=path, fix="pass the JSON file of a law")
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError("there is no such file", path=path) from None
        except (OSError, ValueError) as wrong:
            raise DataError(f"it is not a law in JSON: {wrong}", path=path) from None
        return cls.from_json(found, path)

    @classmethod
    def from_json(cls, found: Any, path: Path | None = None) -> Law:
        """Convert from the values of ``describe``; ``path`` is their file, for error messages."""
        if not isinstance(found, dict) or "law" not in found:
            raise DataError("it is not a law", path=path, fix="make one: bursar laws fit TABLE --out LAW.json")
        if found["law"] != FORMAT:
            raise DataError(f"it is a law of format {found['law']!r}, not {FORMAT}", path=path)

        def read(name: str, convert: Callable[[Any], Any]) -> Any:
            try:
                return convert(found[name])
            except BursarError as wrong:
                raise DataError(f"field {name!r}: {wrong.message}", path=path, fix=wrong.fix) from None
            except (KeyError, TypeError, ValueError, AttributeError):
                problem = "is invalid" if name in found else "is missing"
                raise DataError(f"field {name!r} {problem}", path=path, fix="make the law again") from None

        names = read("variables", _variables)
        return cls(
            formula=read("formula", lambda text: Formula.parse(text, names)),
            origin=read("origin", str),
            ranges=read("ranges", lambda v: {name: _RANGE.validate_python(v[name]) for name in names}),
            rates=read("rates", lambda v: {name: _RATE.validate_python(v[name]) for name in names}),
            held_out=read("held_out", lambda v: _held_out(v, names)),
            scaling=read("scaling", dict),
            baselines=read("baselines", _NUMBERS.validate_python),
            front=read("front", lambda v: tuple(_front_entry(entry) for entry in v)),
            level=read("interval", lambda v: _SHARE.validate_python(v["level"])),
            about=read("about", lambda v: dict(v) | ({"models": int(v["models"])} if "models" in v else {})),
            warnings=read("warnings", lambda v: tuple(str(warning) for warning in v)),
        )

    @classmethod
    def packaged(cls, name: str = "balanced", folder: Path | None = None) -> Law:
        """Load a law of the package, such as ``balanced``, ``unbalanced`` or ``single``, or one of a folder."""
        known = packaged_laws(folder)
        if folder is not None and name not in known:
            raise ConfigError(
                f"{folder} has no law {name}.json", fix="use a folder written by python -m experiments laws package"
            )
        if not known:
            raise ConfigError(
                "no packaged law in this installation",
                fix="pass the file of a law, or make one: bursar laws fit TABLE --out LAW.json",
            )
        if name not in known:
            raise ConfigError(f"there is no packaged law {name!r}", fix=f"use {', '.join(known)}")
        return cls.load((folder or SHIPPED) / f"{name}.json")


def packaged_laws(folder: Path | None = None) -> list[str]:
    """The names of the laws of the package, or of those in a folder."""
    return sorted(file.stem for file in (folder or SHIPPED).glob("*.json"))


_RANGE, _RATE, _HELD_OUT = TypeAdapter(Range), TypeAdapter(GrowthRate), TypeAdapter(HeldOut)
_NUMBERS, _SHARE = TypeAdapter(dict[str, Number]), TypeAdapter(Annotated[float, Field(gt=0, lt=1)])


def _variables(found: Sequence[Any]) -> tuple[str, ...]:
    names = tuple(str(name) for name in found)
    unknown = [name for name in names if name not in VARIABLES]
    if unknown:
        raise DataError(f"there is no variable {unknown[0]!r}", fix=f"use {', '.join(VARIABLES)}")
    if not names:
        raise ValueError
    return names


def _held_out(found: Mapping[str, Any], names: Sequence[str]) -> HeldOut:
    return _HELD_OUT.validate_python({**found, "variables": {name: found["variables"][name] for name in names}})


def _front_entry(found: Mapping[str, Any]) -> dict[str, Any]:
    numbers = {name: None if found[name] is None else float(found[name]) for name in ("error", "doubt")}
    texts = {name: str(found[name]) for name in ("text", "origin")}
    return dict(found) | numbers | {"size": int(found["size"])} | texts


def _finite(found: Any) -> Any:
    """Replace nan by null, which JSON has, and all sequences by lists."""
    if isinstance(found, Mapping):
        return {name: _finite(value) for name, value in found.items()}
    if isinstance(found, list | tuple):
        return [_finite(value) for value in found]
    return None if isinstance(found, float) and not math.isfinite(found) else found


# -- fitting ---------------------------------------------------------------------------------------------------------
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
    engine, seed, alone = settings.engine, settings.seed, averages.alone(names)
    X, y, left_out = averages.matrix(names)
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
    scaling: dict[str, Any] = {"score": 1.0, "inputs": input_scales(X[fit], names)}
    if engine == "gplearn":
        scaling = {"score": SCORE_SCALE, "inputs": dict.fromkeys(names, 1.0)}
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
        scaling=scaling,
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
