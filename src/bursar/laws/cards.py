"""A law as a card: the formula, where it holds, how wrong it was on rows that it did not see, and how fast it grows.

>>> from bursar.laws import Effort, Observations, fit_law
>>> rng = np.random.default_rng(0)
>>> model = {"tasks": 2, "alpha": 0.9, "ami": 0.5, "architecture": "shared", "seed": 0}
>>> tokens = range(500, 9500, 90)
>>> rows = [model | {"n": n, "n_other": n, "score": 0.006 * n**0.5 + rng.normal(0, 0.005)} for n in tokens]
>>> law = fit_law(Observations.of(rows).averaged(), ["n"], effort=Effort(100, 10))
>>> law.formula.text, law.rates["n"].growth
('0.006008*sqrt(n)', 'sqrt(n)')
>>> found = law.predict(n=4900)
>>> round(found.value, 2), found.low < 0.42 < found.high, found.warnings
(0.42, True, ())
>>> law.predict(n=20000).warnings
('n = 20000 lies outside 500 to 9410, where the law was learned',)
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from bursar.corpus.formats.format import replacing
from bursar.errors import BursarError, ConfigError, DataError
from bursar.laws.expressions import Formula
from bursar.laws.forms import Exponent
from bursar.laws.observations import VARIABLES
from bursar.ragged import FloatArray

FORMAT = 1
SHIPPED = Path(str(files("bursar.laws"))) / "packaged"  # laws that come with the package, a file each

MEANINGS = {  # of variables
    "n": "labelled tokens of the real task",
    "n_other": "labelled tokens of each other task",
    "tasks": "tasks, the real one counted",
    "ami": "how related they are (adjusted mutual information)",
    "alpha": "how much of the real labels is kept",
}


@dataclass(frozen=True)
class Range:
    """Where a variable lay in the rows that the law was learned from."""

    low: float
    middle: float  # the median
    high: float


@dataclass(frozen=True)
class Rate:
    """How a law grows with one variable, the others at their middle."""

    growth: str | None  # such as "sqrt(n)"; not known where the rules of growth do not tell
    near_zero: bool  # whether that is near 0, rather than far out
    middle: float  # the local exponent in the middle of the range
    top: float  # and at its top
    power: Exponent | None  # of a power law fitted to the same rows, with its interval


@dataclass(frozen=True)
class HeldOut:
    """The rows that neither the search nor the constants saw, and what the law says of them."""

    variables: Mapping[str, tuple[float, ...]]
    score: tuple[float, ...]
    predicted: tuple[float, ...]
    alone: tuple[float, ...] = ()  # the scores of single tasks with as many tokens, nan where there is none; or nothing

    @property
    def residuals(self) -> FloatArray:
        found: FloatArray = np.array(self.score) - np.array(self.predicted)
        return found

    @property
    def mse(self) -> float:
        return float(np.mean(self.residuals**2))

    @property
    def mean_absolute(self) -> float:
        return float(np.mean(np.abs(self.residuals)))

    def half_width(self, level: float) -> float | None:
        """Half of a split-conformal interval; ``None`` if there are too few rows for the level."""
        return conformal(self.residuals, level)


def conformal(residuals: FloatArray, level: float) -> float | None:
    """How far to either side of a prediction a new value lies in so many of cases; ``None`` if these are too few.

    >>> conformal(np.array([0.1, -0.3, 0.2, 0.0]), 0.6), conformal(np.array([0.1, -0.3, 0.2, 0.0]), 0.9)
    (0.2, None)
    """
    rank = math.ceil((len(residuals) + 1) * level - 1e-9)
    return float(np.sort(np.abs(residuals))[rank - 1]) if rank <= len(residuals) else None


@dataclass(frozen=True)
class Prediction:
    """What a law says of a setting. Scores lie in 0 to 1, and so do these."""

    value: float
    low: float
    high: float
    level: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Law:
    """The card."""

    formula: Formula
    origin: str  # the engine, or the equation of paper 2 whose form it is
    ranges: Mapping[str, Range]
    rates: Mapping[str, Rate]
    held_out: HeldOut
    scaling: Mapping[str, Any]  # what the search saw the score and the inputs times; the formula is in the real score
    baselines: Mapping[str, float]  # mean squared errors on the held-out rows; of "noise" what few seeds leave
    front: tuple[Mapping[str, Any], ...]  # what else there was to choose from
    level: float = 0.9
    about: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        return self.formula.variables

    @property
    def provenance(self) -> str:
        """Where it came from, in a sentence; empty where the card does not say."""
        about = self.about
        if "models" not in about:
            return ""
        said = f"Learned from {about['models']:,} models"
        said += f" ({', '.join(about['architectures'])})" if about.get("architectures") else ""
        said += f" on {', '.join(about['sources'])}" if about.get("sources") else ""
        said += f", by {about['command']}" if about.get("command") else ""
        return said + (f", with Bursar {about['version']}." if about.get("version") else ".")

    def predict(self, **values: float) -> Prediction:
        """The score at a setting, such as ``n=5000, tasks=3, ami=0.4``; other variables than the law's are ignored."""
        missing = [name for name in self.variables if values.get(name) is None]
        if missing:
            raise ConfigError(f"the law needs a value of {missing[0]}", fix=f"give {', '.join(self.variables)}")
        point = np.array([[float(values[name]) for name in self.variables]])
        said = self.outside(**values)
        value = float(self.formula.predict(point)[0])
        if not math.isfinite(value):
            at = ", ".join(f"{name} = {values[name]:g}" for name in self.variables)
            raise ConfigError(f"the formula has no value at {at}", fix="ask within the range of the law")
        if not 0 <= value <= 1:
            said.append(f"the formula says {value:.3g}, which is no score: it is cut to 0 or 1")
        half = self.held_out.half_width(self.level)
        if half is None:
            said.append(f"{len(self.held_out.score)} held-out rows are too few for an interval at {self.level:g}")
        ends = (0.0, 1.0) if half is None else (value - half, value + half)
        low, value, high = (min(1.0, max(0.0, number)) for number in (ends[0], value, ends[1]))
        return Prediction(value, low, high, self.level, tuple(said))

    def outside(self, **values: float) -> list[str]:
        """Which values lie where the law was not learned, in words."""
        return [
            f"{name} = {values[name]:g} lies outside {r.low:g} to {r.high:g}, where the law was learned"
            for name, r in self.ranges.items()
            if name in values and not r.low <= values[name] <= r.high
        ]

    def residual_points(self) -> dict[str, list[float]]:
        """What a residual plot is drawn from: each held-out row's variables, prediction and residual."""
        own = {name: list(values) for name, values in self.held_out.variables.items()}
        return own | {"predicted": list(self.held_out.predicted), "residual": self.held_out.residuals.tolist()}

    # -- on disk ---------------------------------------------------------------------------------------------------
    def describe(self) -> dict[str, Any]:
        """As JSON."""
        half = self.held_out.half_width(self.level)
        return {
            "law": FORMAT,
            "formula": self.formula.exact,
            "text": self.formula.text,
            "latex": self.formula.latex,
            "variables": list(self.variables),
            "origin": self.origin,
            "ranges": {name: asdict(r) for name, r in self.ranges.items()},
            "rates": {name: _finite(asdict(r)) for name, r in self.rates.items()},
            "error": {
                "mse": self.held_out.mse,
                "mean_absolute": self.held_out.mean_absolute,
                "rows": len(self.held_out.score),
            },
            "interval": {"level": self.level, "half_width": half},
            "scaling": dict(self.scaling),
            "baselines": _finite(dict(self.baselines)),
            "front": [_finite(dict(entry)) for entry in self.front],
            "held_out": {
                "variables": {name: list(values) for name, values in self.held_out.variables.items()},
                "score": list(self.held_out.score),
                "predicted": list(self.held_out.predicted),
                "alone": [None if math.isnan(score) else score for score in self.held_out.alone],
            },
            "about": dict(self.about),
            "warnings": list(self.warnings),
        }

    def save(self, file: str | Path) -> None:
        """As JSON, whole or not at all."""
        with replacing(Path(file)) as out:
            out.write(json.dumps(self.describe(), indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, file: str | Path) -> Law:
        """From a file of ``save``. Nothing in it is run."""
        path = Path(file)
        if path.is_dir():
            raise DataError("it is a folder", path=path, fix="name the JSON file of a law")
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError("there is no such file", path=path) from None
        except (OSError, ValueError) as wrong:
            raise DataError(f"it is no law in JSON: {wrong}", path=path) from None
        return cls.from_json(told, path)

    @classmethod
    def from_json(cls, told: Any, path: Path | None = None) -> Law:
        """From what ``describe`` gave; ``path`` is the file that it stood in."""
        if not isinstance(told, dict) or "law" not in told:
            raise DataError("it is no law", path=path, fix="make one: bursar laws fit TABLE --out LAW.json")
        if told["law"] != FORMAT:
            raise DataError(f"it is a law of format {told['law']!r}, and this reads {FORMAT}", path=path)
        return _Reader(path, told).law()

    @classmethod
    def packaged(cls, name: str = "balanced", folder: Path | None = None) -> Law:
        """A law that comes with the package, such as ``balanced``, ``unbalanced`` or ``single``; or one of a folder."""
        known = packaged_laws(folder)
        if folder is not None and name not in known:
            raise ConfigError(
                f"{folder} holds no law {name}.json", fix="name a folder that python -m experiments laws package wrote"
            )
        if not known:
            raise ConfigError(
                "no packaged law in this installation",
                fix="name the file of a law, or make one: bursar laws fit TABLE --out LAW.json",
            )
        if name not in known:
            raise ConfigError(f"there is no packaged law {name!r}", fix=f"use {', '.join(known)}")
        return cls.load((folder or SHIPPED) / f"{name}.json")


def packaged_laws(folder: Path | None = None) -> list[str]:
    """The names of the laws that come with the package, or of those in a folder."""
    return sorted(file.stem for file in (folder or SHIPPED).glob("*.json"))


@dataclass(frozen=True)
class _Reader:
    """Reads a law, and says which field of the file is wrong."""

    path: Path | None
    told: Mapping[str, Any]

    def law(self) -> Law:
        variables = self.field("variables", self.variables)
        return Law(
            formula=self.field("formula", lambda text: self.formula(text, variables)),
            origin=self.field("origin", str),
            ranges=self.field("ranges", lambda v: {name: Range(**_floats(v[name])) for name in variables}),
            rates=self.field("rates", lambda v: {name: _rate(v[name]) for name in variables}),
            held_out=self.field("held_out", lambda v: self.rows(v, variables)),
            scaling=self.field("scaling", dict),
            baselines=self.field("baselines", _floats),
            front=self.field("front", lambda v: tuple(_entry(entry) for entry in v)),
            level=self.field("interval", lambda v: self.level(v["level"])),
            about=self.field("about", _about),
            warnings=self.field("warnings", lambda v: tuple(str(said) for said in v)),
        )

    def field(self, name: str, read: Any) -> Any:
        try:
            return read(self.told[name])
        except BursarError as wrong:
            raise DataError(f"field {name!r}: {wrong.message}", path=self.path, fix=wrong.fix) from None
        except (KeyError, TypeError, ValueError, AttributeError):
            said = "is missing" if name not in self.told else "is not as a law has it"
            raise DataError(f"field {name!r} {said}", path=self.path, fix="make the law again") from None

    def variables(self, told: Sequence[Any]) -> tuple[str, ...]:
        names = tuple(str(name) for name in told)
        unknown = [name for name in names if name not in VARIABLES]
        if unknown:
            raise DataError(f"there is no variable {unknown[0]!r}", fix=f"use {', '.join(VARIABLES)}")
        if not names:
            raise ValueError
        return names

    def formula(self, text: str, variables: tuple[str, ...]) -> Formula:
        return Formula.parse(text, variables)

    def rows(self, told: Mapping[str, Any], variables: Sequence[str]) -> HeldOut:
        columns = {name: tuple(map(float, told["variables"][name])) for name in variables}
        score, predicted = (tuple(map(float, told[name])) for name in ("score", "predicted"))
        alone = tuple(map(_number, told.get("alone", ())))
        if not score or len({len(score), len(predicted), *(len(column) for column in columns.values())}) > 1:
            raise ValueError
        if len(alone) not in (0, len(score)):
            raise ValueError
        return HeldOut(columns, score, predicted, alone)

    def level(self, value: Any) -> float:
        if not 0 < float(value) < 1:
            raise ValueError
        return float(value)


def _entry(told: Mapping[str, Any]) -> dict[str, Any]:
    """One of the formulas that there were to choose from."""
    numbers = {name: None if told[name] is None else float(told[name]) for name in ("error", "doubt")}
    return dict(told) | numbers | {"size": int(told["size"]), "text": str(told["text"]), "origin": str(told["origin"])}


def _about(told: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(told)
    return found | ({"models": int(found["models"])} if "models" in found else {})


def _rate(told: Mapping[str, Any]) -> Rate:
    power = None if told["power"] is None else Exponent(**_floats(told["power"]))
    grows = None if told["growth"] is None else str(told["growth"])
    return Rate(grows, bool(told["near_zero"]), _number(told["middle"]), _number(told["top"]), power)


def _floats(told: Mapping[str, Any]) -> dict[str, float]:
    return {str(name): _number(value) for name, value in told.items()}


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _finite(told: dict[str, Any]) -> dict[str, Any]:
    """JSON has no nan."""
    return {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in told.items()}
