"""The page of a law: its formula, range, growth, and errors on held-out settings."""

from __future__ import annotations

import math
from typing import Any

from bursar.laws import PAPER_FORMS, Law
from bursar.laws.cards import MEANINGS
from bursar.report.charts import Axis, Band, Chart, Point, Polyline, Rule, padded_range
from bursar.report.page import fill
from bursar.report.tables import Table
from bursar.report.wording import counted, is_number, number, sentence

AXES = {
    "predicted": "predicted score",
    "n": "labelled tokens (n)",
    "n_other": "tokens of each other task",
    "tasks": "tasks (T)",
    "ami": "AMI",
    "alpha": "α",
}


def render_law(law: Law, name: str) -> str:
    """The HTML page. Equal laws give equal pages."""
    charts, half, scale = residual_charts(law), law.held_out.half_width(law.level), law.scaling.get("score", 1.0)
    level = f"{100 * law.level:.0f} % interval"
    return fill(
        "law.html",
        ["page.css", "figures.css"],
        charts,
        title=sentence(name),
        law=law,
        origin=origin_words(law),
        tiles=error_tiles(law),
        variables=variables_table(law),
        warnings=[sentence(warning) for warning in law.warnings],
        interval=f"There are too few held-out settings for a {level}."
        if half is None
        else f"The grey band is ± {half:.3f}, the {level} for new settings.",
        points=points_table(law),
        front=front_table(law),
        about={key: _shown(value) for key, value in law.about.items()}
        | ({"score in the search": f"times {scale:g}"} if scale != 1 else {}),
    )


# -- charts -----------------------------------------------------------------------------------------------------------
def residual_charts(law: Law) -> dict[str, Chart]:
    """Charts of the residuals against the predicted score and every variable."""
    points = law.residual_points()
    residuals = points.pop("residual")
    half = law.held_out.half_width(law.level)
    ends = padded_range([*residuals, *([half, -half] if half is not None else [0.0])], 0.12, 0.001)
    worst = max(map(abs, residuals), default=0.0)
    settings = counted(len(residuals), "held-out setting")
    charts = {}
    for key in ("predicted", *law.variables):
        title = AXES.get(key, key)
        low, high = padded_range(points[key], 0.04, 0.01)
        places = [
            Point(x, y, f"{title} {number(_short(x))}: residual {y:.4f}".replace("-", "−"))
            for x, y in zip(points[key], residuals, strict=True)
        ]
        charts[key] = Chart(
            f"Residuals of {settings} against {title}; the largest is {worst:.4f}. All are in the table.",
            Axis(low, high, title),
            Axis(*ends),
            f"By {title}",
            "score minus prediction",
            lines=[Polyline("", "line-1", places, joined=False)],
            bands=[Band("pool", (low, high), (-half, -half), (half, half))] if half is not None else [],
            rules=[Rule("muted", (low, 0), (high, 0), "solid")],
        )
    return charts


# -- tables and words --------------------------------------------------------------------------------------------------
def variables_table(law: Law) -> Table:
    """Range and growth of every variable."""
    rows = []
    for name, rate in law.rates.items():
        r, power = law.ranges[name], rate.power
        grows = f"{rate.growth} {'near 0' if rate.near_zero else 'for large values'}" if rate.growth else "not known"
        between = f"{_power(power.value)} ({_power(power.low)} to {_power(power.high)})" if power is not None else "–"
        meaning = MEANINGS.get(name, "a variable of the table")
        holds = f"{number(_short(r.low))} to {number(_short(r.high))}"
        rows.append((name, meaning, holds, grows, _power(rate.middle), _power(rate.top), between))
    columns = ("Variable", "Meaning", "Range", "Grows like", "Exponent", "At the top", "Power law (95 %)")
    return Table(columns, tuple(rows))


def points_table(law: Law) -> Table:
    """Every held-out setting."""
    points, names, rows = law.residual_points(), list(law.variables), []
    for at, score in enumerate(law.held_out.score):
        residual = f"{points['residual'][at]:+.4f}".replace("-", "−")
        values = [number(_short(points[name][at])) for name in names]
        rows.append((*values, f"{score:.4f}", f"{points['predicted'][at]:.4f}", residual))
    return Table((*map(sentence, names), "Score", "Predicted", "Residual"), tuple(rows))


def front_table(law: Law) -> Table:
    """The candidate formulas."""
    rows = []
    for entry in law.front:
        error = "–" if entry["error"] is None else f"{entry['error']:.2e} ± {entry['doubt'] or 0:.0e}"
        rows.append((str(entry["text"]), str(entry["size"]), error, _named(str(entry["origin"]))))
    return Table(("Formula", "Length", "Squared error", "Found by"), tuple(rows))


def error_tiles(law: Law) -> list[tuple[str, str, str]]:
    """The errors on held-out settings, each with a title and a note."""
    rows = law.held_out
    half = rows.half_width(law.level)
    found = [("Mean absolute error", f"{rows.mean_absolute:.4f}", f"on {counted(len(rows.score), 'held-out setting')}")]
    if half is not None:
        found.append((f"{100 * law.level:.0f} % are within", f"± {half:.3f}", "split conformal"))
    found.append(("Mean squared error", f"{rows.mse:.2e}", "of the law"))
    for name, title, note in (
        ("constant", "Of the mean score", "as a baseline"),
        ("monotone", "Of a monotone model", "free-form"),
        ("noise", "Noise from few seeds", "a lower bound"),
    ):
        value = law.baselines.get(name, math.nan)
        if math.isfinite(value):
            found.append((title, f"{value:.2e}", note))
    return found


def origin_words(law: Law) -> str:
    """How the law was found, and in what."""
    about, scale = law.about, law.scaling.get("score", 1.0)
    rows = "models" if about.get("by_seed") else "settings"
    found = f"{sentence(_named(law.origin))}, in {about.get('rows', '?')} {rows}"
    scaled = f"; the search used scores times {scale:g}, the formula is rescaled" if scale != 1 else ""
    return f"{found}, seed {about.get('seed', '?')}{scaled}. {law.provenance}".strip()


def _named(origin: str) -> str:
    known = PAPER_FORMS.get(origin)
    return f"found by {origin}" if known is None else f"the form of paper 2’s equation {known.equation}, refitted"


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "–"
    return number(value) if is_number(value) else str(value)


def _power(value: float) -> str:
    """An exponent."""
    if not math.isfinite(value):
        return "–"
    text = f"{abs(value):.2f}"
    return f"−{text}" if value < 0 and float(text) else text


def _short(value: float) -> float:
    return float(f"{value:.4g}")
