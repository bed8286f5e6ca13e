"""Figures of lines, bars, points and heat maps: as Plotly reads them, in words, and as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bursar.report.figures import DASHES, SYMBOLS, base_layout, padded_range, plain
from bursar.report.figures import Figure as Chart
from bursar.report.tables import Table
from bursar.report.wording import listed, sentence

COLOURS = 8  # in the style sheet, as --line-1 and so on
PAPERS = " (paper)"  # at the end of a line's name: the paper's line of that name
HEIGHT = 290  # of a panel, in pixels
MOST_INTERVALS = 5  # lines of a panel whose intervals can be told apart
MOST_ROWS = 400  # of a figure's table
MOST_SAID = 8  # lines that the words of a panel mention
WRITTEN = 12  # rows and columns of a grid that has its figures written into it
SKEWED = 20  # times the median: where a grid's largest figure would outshine the rest


@dataclass(frozen=True)
class Line:
    """A series of points, or of bars; ``low`` and ``high`` are the ends of their intervals."""

    name: str
    x: Sequence[Any]
    y: Sequence[float | None]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    panel: str = ""  # lines of one panel share axes


@dataclass(frozen=True)
class Figure:
    """A picture of lines, bars, points, or counts on a grid (``y`` of a heat line is its row)."""

    name: str
    title: str
    kind: Literal["lines", "bars", "points", "heat"]
    x_title: str
    y_title: str
    lines: Sequence[Line]
    note: str = ""


@dataclass(frozen=True)
class Look:
    """How a line is told from the others: the same in all panels of a figure."""

    colour: str
    symbol: str
    dash: str


@dataclass(frozen=True)
class Panel:
    """One chart of a figure, and what it shows in words."""

    key: str
    title: str
    chart: Chart
    words: str

    @property
    def height(self) -> int:
        height: int = self.chart["layout"]["height"]
        return height


@dataclass(frozen=True)
class Picture:
    """A figure: its panels side by side, a legend for all of them, and everything in it as a table."""

    heading: str
    note: str
    y_title: str
    legend: Sequence[tuple[str, Look]]
    panels: Sequence[Panel]
    table: Table | None


def picture_of(figure: Figure, key: str) -> Picture:
    """A figure as it is shown; its charts have keys that begin with this one."""
    titles = list(dict.fromkeys(line.panel for line in figure.lines))
    looks = {} if figure.kind == "heat" else _looks(figure.lines)
    panels = []
    for number, title in enumerate(titles):
        lines = [line for line in figure.lines if line.panel == title]
        chart = _grid(figure, lines) if figure.kind == "heat" else _chart(figure, lines, looks)
        panels.append(Panel(f"{key}-{number}", title, chart, _words(figure, lines)))
    return Picture(
        heading=sentence(f"{figure.name}: {figure.title}" if figure.title else figure.name),
        note=figure.note,
        y_title=sentence(figure.y_title),
        legend=list(looks.items()) if len(looks) > 1 else [],
        panels=panels,
        table=_table(figure),
    )


def number(figure: Any) -> str:
    """A figure for a reader.

    >>> number(89.026), number(0.0114), number(1500), number(1234.56), number("MT-R"), number(None)
    ('89.03', '0.0114', '1,500', '1,234.6', 'MT-R', '–')
    """
    if not _is_number(figure):
        return "–" if figure is None or isinstance(figure, float) else str(figure)
    if figure == round(figure):
        return f"{figure:,.0f}".replace("-", "−")
    digits = 1 if abs(figure) >= 100 else 2 if abs(figure) >= 1 else 4
    return f"{figure:,.{digits}f}".rstrip("0").replace("-", "−")


# -- looks ------------------------------------------------------------------------------------------------------------
def _looks(lines: Sequence[Line]) -> dict[str, Look]:
    """The paper's lines have the colours of ours, and dots."""
    names = list(dict.fromkeys(line.name for line in lines))
    own = [name for name in names if not name.endswith(PAPERS)]
    found = {}
    for name in names:
        base = name.removesuffix(PAPERS)
        at = own.index(base) if base in own else None
        colour = "--muted" if at is None else f"--line-{at % COLOURS + 1}"
        symbol = SYMBOLS[(at or 0) % len(SYMBOLS)]
        dash = "dot" if name != base else DASHES[(at or 0) // COLOURS % len(DASHES)]
        found[name] = Look(colour, symbol if name == base else f"{symbol}-open", dash)
    return found


# -- lines, bars and points -------------------------------------------------------------------------------------------
def _chart(figure: Figure, lines: Sequence[Line], looks: dict[str, Look]) -> Chart:
    bars = figure.kind == "bars"
    places = list(dict.fromkeys(x for line in lines for x in line.x))
    numeric = not bars and all(map(_is_number, places))
    lying = bars and sum(len(str(place)) + 2 for place in places) > 60  # their names need room
    intervals = bars or figure.kind == "points" or len(lines) <= MOST_INTERVALS
    banded = [line for line in lines if figure.kind == "lines" and intervals and len(line.x) > 1 and line.low]
    data = [_band(line, looks[line.name], numeric) for line in banded]
    data += [_trace(figure, line, looks[line.name], numeric, lying, intervals and line not in banded) for line in lines]
    layout = base_layout(HEIGHT, right=12)
    along, up = ("yaxis", "xaxis") if lying else ("xaxis", "yaxis")
    layout["yaxis"] |= {"automargin": True, "nticks": 6}
    layout[up] |= {"zeroline": True, "zerolinecolor": "--muted", "zerolinewidth": 1} if _crosses_zero(lines) else {}
    if figure.x_title and not lying:
        layout["xaxis"]["title"] = {"text": plain(figure.x_title), "standoff": 12}
    if lying:
        layout["height"] = 70 + len(places) * max(24, 8 + 13 * len(lines))
    if numeric:
        layout["xaxis"]["range"] = padded_range(places, 0.04, 0.01 * max(map(abs, places)) or 1.0)
    else:
        names = [plain(str(place)) for place in places]
        layout[along] |= {"type": "category", "categoryarray": names, "showgrid": figure.kind == "points"}
        layout[along] |= {"nticks": len(names) + 1, "automargin": True}
        layout[along] |= {"autorange": "reversed"} if lying else {}
    if bars:
        layout |= {"barmode": "group", "bargap": 0.3, "bargroupgap": 0.06}
        layout[up] |= {"rangemode": "tozero"}
    return {"data": data, "layout": layout}


def _trace(figure: Figure, line: Line, look: Look, numeric: bool, lying: bool, intervals: bool) -> Chart:
    values = [y if _is_number(y) else None for y in line.y]
    places = _places(line, numeric)
    trace: Chart = {
        "name": plain(line.name),
        "x": values if lying else places,
        "y": places if lying else values,
        "customdata": [plain(_point(figure, line, at)) for at in range(len(line.x))],
        "hovertemplate": "%{fullData.name}: %{customdata}<extra></extra>",
    }
    if intervals and line.low and line.high:
        pairs = list(zip(values, line.low, line.high, strict=True))
        trace["error_x" if lying else "error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [0.0 if y is None else max(0.0, round(high - y, 6)) for y, _, high in pairs],
            "arrayminus": [0.0 if y is None else max(0.0, round(y - low, 6)) for y, low, _ in pairs],
            "thickness": 1.25,
            "width": 2 if figure.kind == "bars" else 0,
            "color": "--muted" if figure.kind == "bars" else look.colour,
        }
    if figure.kind == "bars":
        pattern = {"shape": "/", "size": 5, "solidity": 0.35, "fgcolor": "--paper", "bgcolor": look.colour}
        papers = line.name.endswith(PAPERS)
        marker = {"color": look.colour, "pattern": {**pattern, "fillmode": "overlay"} if papers else {"shape": ""}}
        return {**trace, "type": "bar", "marker": marker} | ({"orientation": "h"} if lying else {})
    return {
        **trace,
        "type": "scatter",
        "mode": "markers" if figure.kind == "points" else "lines+markers",
        "line": {"color": look.colour, "width": 2, "dash": look.dash},
        "marker": {"color": look.colour, "size": 8 if figure.kind == "points" else 6.5, "symbol": look.symbol},
        "connectgaps": False,
    }


def _band(line: Line, look: Look, numeric: bool) -> Chart:
    """From the lower ends of a line's intervals to the upper ones."""
    ends = [
        (place, low, high)
        for place, low, high in zip(_places(line, numeric), line.low, line.high, strict=True)
        if _is_number(low) and _is_number(high)
    ]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [place for place, _, _ in ends] + [place for place, _, _ in reversed(ends)],
        "y": [high for _, _, high in ends] + [low for _, low, _ in reversed(ends)],
        "fill": "toself",
        "fillcolor": look.colour,
        "line": {"width": 0},
        "opacity": 0.14,
        "hoverinfo": "skip",
    }


def _places(line: Line, numeric: bool) -> list[Any]:
    """Where its points stand: numbers, or names that Plotly shows as they are."""
    return list(line.x) if numeric else [plain(str(x)) for x in line.x]


def _point(figure: Figure, line: Line, at: int) -> str:
    """One point in words."""
    between = f" ({number(line.low[at])} to {number(line.high[at])})" if line.low and line.high else ""
    x = number(line.x[at])
    where = f"{figure.x_title} {x}" if figure.x_title and _is_number(line.x[at]) else x
    return f"{number(line.y[at])}{between} at {where}"


def _crosses_zero(lines: Sequence[Line]) -> bool:
    values = [y for line in lines for y in line.y if y is not None and _is_number(y)]
    return bool(values) and min(values) < 0 < max(values)


# -- grids ------------------------------------------------------------------------------------------------------------
def _grid(figure: Figure, rows: Sequence[Line]) -> Chart:
    """A row of cells for each line. Rows whose names are numbers go up, as axes do; others go down, as tables do."""
    columns = list(dict.fromkeys(x for row in rows for x in row.x))
    values = [[_at(row, column) for column in columns] for row in rows]
    known = sorted(value for row in values for value in row if value)
    skewed = bool(known) and known[0] > 0 and known[-1] > SKEWED * known[len(known) // 2]
    said = [
        [plain(f"{number(value)} at {row.name}, {number(column)}") for value, column in zip(line, columns, strict=True)]
        for row, line in zip(rows, values, strict=True)
    ]
    trace: Chart = {
        "type": "heatmap",
        "x": [plain(number(column)) for column in columns],
        "y": [plain(row.name) for row in rows],
        "z": [[None if v is None else math.sqrt(v) if skewed else v for v in line] for line in values],
        "customdata": said,
        "hovertemplate": "%{customdata}<extra></extra>",
        "colorscale": [[0, "--surface"], [1, "--heat"]],
        **_about_zero(known),
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
    }
    if len(rows) <= WRITTEN and len(columns) <= WRITTEN:
        counts = all(value == round(value) for value in known)
        said_in = [["" if v is None or (counts and not v) else number(v) for v in line] for line in values]
        trace |= {"text": said_in, "texttemplate": "%{text}", "textfont": {"color": "--ink"}}
    layout = base_layout(80 + max(8, len(rows)) * 30, right=12)
    axis = {"type": "category", "showgrid": False, "automargin": True}
    layout["xaxis"] |= axis | {"title": {"text": plain(figure.x_title), "standoff": 12}, "nticks": len(columns) + 1}
    layout["yaxis"] |= axis | {"title": {"text": plain(figure.y_title), "standoff": 10}, "nticks": len(rows) + 1}
    if not all(map(_reads_as_number, (row.name for row in rows))):
        layout["yaxis"]["autorange"] = "reversed"
    return {"data": [trace], "layout": layout}


def _about_zero(known: Sequence[float]) -> Chart:
    """Two hues where some numbers are below 0 and some above: nothing is the colour of the page."""
    if not known or not known[0] < 0 < known[-1]:
        return {}
    scale = [[0, "--cold"], [0.5, "--surface"], [1, "--heat"]]
    most = max(-known[0], known[-1])
    return {"colorscale": scale, "zmin": -most, "zmax": most}


def _at(row: Line, column: Any) -> float | None:
    found = dict(zip(row.x, row.y, strict=True)).get(column)
    return found if _is_number(found) else None


def _reads_as_number(text: str) -> bool:
    try:
        float(text.split()[0])
    except (ValueError, IndexError):
        return False
    return True


# -- in words and as a table ------------------------------------------------------------------------------------------
def _words(figure: Figure, lines: Sequence[Line]) -> str:
    """What a panel shows, for who does not see it."""
    kind = {"lines": "Line chart", "bars": "Bar chart", "points": "Points", "heat": "Grid of shades"}[figure.kind]
    what = (
        f"{kind}. {sentence(figure.y_title)} by {figure.x_title}" if figure.x_title else f"{kind} of {figure.y_title}"
    )
    if figure.kind == "heat":
        return f"{what}: {len(lines)} rows."
    told = []
    for line in lines[:MOST_SAID]:
        known = [y for y in line.y if y is not None]
        if figure.kind == "lines" and len(known) > 1:
            told.append(f"{line.name} from {number(known[0])} to {number(known[-1])}")
        elif len(known) == 1:
            told.append(f"{line.name} {number(known[0])}")
        elif known:
            told.append(f"{line.name} between {number(min(known))} and {number(max(known))}")
    more = [f"{len(lines) - MOST_SAID} more"] if len(lines) > MOST_SAID else []
    return f"{what}: {listed(told + more)}." if told else f"{what}."


def _table(figure: Figure) -> Table | None:
    """Every point; none where there are too many to read."""
    panels = len({line.panel for line in figure.lines}) > 1
    spans = any(line.low and line.high for line in figure.lines)
    rows = []
    for line in figure.lines:
        for at, x in enumerate(line.x):
            between = f"{number(line.low[at])} to {number(line.high[at])}" if line.low and line.high else "–"
            first = [line.panel] if panels else []
            rows.append((*first, line.name, number(x), number(line.y[at]), *([between] if spans else [])))
    if not rows or len(rows) > MOST_ROWS:
        return None
    value = "figure" if figure.kind == "heat" else figure.y_title
    row = figure.y_title if figure.kind == "heat" else "line"
    first = ["panel"] if panels else []
    columns = [*first, row, figure.x_title or "at", value, *(["between"] if spans else [])]
    return Table(tuple(map(sentence, columns)), tuple(rows))


def _is_number(figure: Any) -> bool:
    return isinstance(figure, (int, float)) and not isinstance(figure, bool) and math.isfinite(figure)
