"""Figures of studies: lines, bars, points and heat maps, as charts, in words, and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from bursar.report.charts import (
    DASHES,
    SHAPES,
    Axis,
    Band,
    Bar,
    Chart,
    Look,
    Mark,
    Point,
    Polyline,
    Rule,
    heat_map,
    padded_range,
)
from bursar.report.tables import Table
from bursar.report.wording import is_number, listed, number, sentence

COLOURS = 8  # in the style sheet, as --line-1 and so on
PAPERS = " (paper)"  # at the end of a line's name: the paper's line of that name
HEIGHT = 290  # of a panel, in pixels
MANY_POINTS = 100  # of a panel: they are drawn smaller
MOST_LETTERS = 60  # in the names of bars that stand
GROUP = 0.7  # of a place's width: its bars
MOST_INTERVALS = 5  # lines of a panel whose intervals can be told apart
MOST_ROWS = 400  # of a figure's table
MOST_SAID = 8  # lines that the words of a panel mention


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
class Panel:
    """One chart of a figure."""

    key: str
    title: str
    chart: Chart


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
    for at, title in enumerate(titles):
        lines = [line for line in figure.lines if line.panel == title]
        if figure.kind == "heat":
            chart = _grid(figure, lines)
        else:
            chart = (_bar_chart if figure.kind == "bars" else _line_chart)(figure, lines, looks)
        panels.append(Panel(f"{key}-{at}", title, chart))
    return Picture(
        heading=sentence(f"{figure.name}: {figure.title}" if figure.title else figure.name),
        note=figure.note,
        y_title=sentence(figure.y_title),
        legend=list(looks.items()) if len(looks) > 1 else [],
        panels=panels,
        table=_table(figure),
    )


# -- looks ------------------------------------------------------------------------------------------------------------
def _looks(lines: Sequence[Line]) -> dict[str, Look]:
    """The paper's lines have the colours of ours, and dots."""
    names = list(dict.fromkeys(line.name for line in lines))
    own = [name for name in names if not name.endswith(PAPERS)]
    found = {}
    for name in names:
        base = name.removesuffix(PAPERS)
        at = own.index(base) if base in own else None
        colour = "muted" if at is None else f"line-{at % COLOURS + 1}"
        dash = "dot" if name != base else DASHES[(at or 0) // COLOURS % len(DASHES)]
        found[name] = Look(colour, dash, SHAPES[(at or 0) % len(SHAPES)], open=name != base)
    return found


# -- lines and points -------------------------------------------------------------------------------------------------
def _line_chart(figure: Figure, lines: Sequence[Line], looks: dict[str, Look]) -> Chart:
    places = list(dict.fromkeys(x for line in lines for x in line.x))
    numeric = all(map(is_number, places))
    scattered = figure.kind == "points"
    shown = scattered or len(lines) <= MOST_INTERVALS
    size = 3 if sum(len(line.x) for line in lines) > MANY_POINTS and scattered else 4 if scattered else 3.5
    bands, marks, drawn, values = [], [], [], []
    for line in lines:
        look, intervals = looks[line.name], _intervals(line) if shown else []
        at = list(line.x) if numeric else [places.index(x) for x in line.x]
        points = [
            Point(x, y if is_number(y) else None, f"{line.name}: {_point(figure, line, k)}")
            for k, (x, y) in enumerate(zip(at, line.y, strict=True))
        ]
        drawn.append(
            Polyline(line.name, look.colour, points, look.dash, look.shape, look.open, size, joined=not scattered)
        )
        values += [point.y for point in points if point.y is not None]
        values += [end for _, low, high in intervals for end in (low, high)]
        if not scattered and len(line.x) > 1 and intervals:
            bands.append(Band(look.colour, *_columns([(at[k], low, high) for k, low, high in intervals])))
        else:
            known = [(points[k], low, high) for k, low, high in intervals]
            marks += [Mark(look.colour, p.x, p.y, low, high, shape="none") for p, low, high in known if p.y is not None]
    if numeric:
        low, high = padded_range(places or [0.0], 0.04, 0.01 * max(map(abs, places), default=0.0) or 1.0)
        x = Axis(low, high, figure.x_title, grid=scattered)
    else:
        x = Axis.of_names([number(place) for place in places], figure.x_title, grid=scattered)
    y = _value_axis(values)
    return Chart(
        _words(figure, lines),
        x,
        y,
        height=HEIGHT,
        lines=drawn[::-1] if scattered else drawn,  # what is chosen, over all that there was to choose from
        bands=bands,
        marks=marks,
        rules=[Rule("muted", (x.low, 0), (x.high, 0), "solid")] if _crosses_zero(lines) else [],
    )


def _intervals(line: Line) -> list[tuple[int, float, float]]:
    """The intervals of a line that are known, with the places of their points."""
    ends = enumerate(zip(line.low, line.high, strict=True)) if line.low and line.high else ()
    return [(k, low, high) for k, (low, high) in ends if is_number(low) and is_number(high)]


def _columns(rows: Sequence[tuple[float, float, float]]) -> tuple[list[float], list[float], list[float]]:
    return [x for x, _, _ in rows], [low for _, low, _ in rows], [high for _, _, high in rows]


def _value_axis(values: Sequence[float], *, zero: bool = False) -> Axis:
    """The range of all values with some room; with ``zero`` it begins or ends there unless values are on both sides."""
    known = [*values, *([0.0] if zero or not values else [])]
    room = max(0.06 * (max(known) - min(known)), 0.001 * max(map(abs, known)), 1e-6)
    low = min(known) - (0.0 if zero and min(known) == 0 else room)
    high = max(known) + (0.0 if zero and max(known) == 0 else room)
    return Axis(float(f"{low:.6g}"), float(f"{high:.6g}"))


def _point(figure: Figure, line: Line, at: int) -> str:
    """One point in words."""
    between = f" ({number(line.low[at])} to {number(line.high[at])})" if line.low and line.high else ""
    x = number(line.x[at])
    where = f"{figure.x_title} {x}" if figure.x_title and is_number(line.x[at]) else x
    return f"{number(line.y[at])}{between} at {where}"


def _crosses_zero(lines: Sequence[Line]) -> bool:
    values = [y for line in lines for y in line.y if y is not None and is_number(y)]
    return bool(values) and min(values) < 0 < max(values)


# -- bars -------------------------------------------------------------------------------------------------------------
def _bar_chart(figure: Figure, lines: Sequence[Line], looks: dict[str, Look]) -> Chart:
    """Bars side by side for each place; they lie where the names of places need room."""
    places = list(dict.fromkeys(x for line in lines for x in line.x))
    names = [number(place) for place in places]
    width = GROUP / max(1, len(lines))
    bars, marks, values = [], [], []
    for k, line in enumerate(lines):
        look, papers = looks[line.name].colour, line.name.endswith(PAPERS)
        middles = [places.index(place) - GROUP / 2 + width * (k + 0.5) for place in line.x]
        known = {at: y for at, y in enumerate(line.y) if y is not None and is_number(y)}
        for at, y in known.items():
            sides = (middles[at] - 0.47 * width, middles[at] + 0.47 * width)
            bars.append(Bar(look, sides, (0.0, y), f"{line.name}: {_point(figure, line, at)}", papers))
        intervals = [(at, low, high) for at, low, high in _intervals(line) if at in known]
        marks += [Mark("ink", middles[at], known[at], low, high, shape="none") for at, low, high in intervals]
        values += [*known.values(), *(end for _, *ends in intervals for end in ends)]
    x = Axis.of_names(names, figure.x_title)
    y_axis = _value_axis(values, zero=True)
    zero = Rule("muted", (x.low, 0), (x.high, 0), "solid")
    chart = Chart(_words(figure, lines), x, y_axis, height=HEIGHT, bars=bars, marks=marks, rules=[zero])
    if sum(len(name) + 2 for name in names) <= MOST_LETTERS:
        return chart
    return _lying(chart, height=70 + len(places) * max(24, 8 + 13 * len(lines)))


def _lying(chart: Chart, height: int) -> Chart:
    """A chart of standing bars on its side, the first on top."""
    last = len(chart.x.names) - 1
    return replace(
        chart,
        x=replace(chart.y, grid=True),
        y=Axis.of_names(chart.x.names[::-1]),
        height=height,
        bars=[replace(bar, x=bar.y, y=(last - bar.x[1], last - bar.x[0])) for bar in chart.bars],
        marks=[replace(mark, x=mark.y, y=last - mark.x, flat=True) for mark in chart.marks],
        rules=[Rule("muted", (0, -0.5), (0, last + 0.5), "solid")],
    )


# -- grids ------------------------------------------------------------------------------------------------------------
def _grid(figure: Figure, rows: Sequence[Line]) -> Chart:
    """A row of cells for each line. Rows whose names are numbers go up, as axes do; others go down, as tables do."""
    columns = list(dict.fromkeys(x for row in rows for x in row.x))
    down = not all(_reads_as_number(row.name) for row in rows)
    cells = {row.name: [_at(row, column) for column in columns] for row in (rows[::-1] if down else rows)}
    return heat_map(_words(figure, rows), [number(column) for column in columns], cells, figure.x_title, figure.y_title)


def _at(row: Line, column: Any) -> float | None:
    found = dict(zip(row.x, row.y, strict=True)).get(column)
    return found if is_number(found) else None


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
