"""Typed descriptions of charts, for reports and web pages: ``static/charts.js`` draws them as SVG.

A chart has two axes and any of: lines, bands, marks with intervals, rules, bars, cells of a grid, notes. All text is
written here. A look is the name of a colour in the style sheets: ``arm-1`` is ``--arm-1``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, NamedTuple

from bursar.report.wording import Money, Scale, number

Shape = Literal["circle", "diamond", "square", "triangle-up", "none"]
Dash = Literal["solid", "dash", "dot", "dashdot"]
SHAPES: tuple[Shape, ...] = ("circle", "diamond", "square", "triangle-up")
DASHES: tuple[Dash, ...] = ("solid", "dash", "dot", "dashdot")
ARM_COLOURS = 4  # in the style sheets, as --arm-1 and so on
TASK_COLOURS = 5
MOST_WRITTEN = 12  # rows or columns of a heat map with values in its cells
SKEWED = 20  # times the median: shade by the square root if the largest value is above this
Ends = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """A range of numbers, or with ``names`` of categories at 0, 1 and so on."""

    low: float
    high: float
    title: str = ""
    prefix: str = ""
    suffix: str = ""
    names: Sequence[str] = ()
    grid: bool | None = None  # default: yes for y axes, no for x axes

    @classmethod
    def of_names(cls, names: Sequence[str], title: str = "", grid: bool | None = False) -> Axis:
        return cls(-0.5, len(names) - 0.5, title, names=tuple(names), grid=grid)


class Point(NamedTuple):
    """A point of a line with its tooltip; ``y`` is None for a gap."""

    x: float
    y: float | None
    text: str = ""


@dataclass(frozen=True)
class Polyline:
    """A line through points, or only the points; with ``label`` its name is written at its end."""

    name: str
    look: str
    points: Sequence[Point]
    dash: Dash = "solid"
    shape: Shape = "circle"
    open: bool = False  # outlined points
    size: float = 4  # of a point, in pixels
    joined: bool = True
    label: bool = False


@dataclass(frozen=True)
class Band:
    """The area between two lines."""

    look: str
    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True)
class Mark:
    """A point with a vertical or, if ``flat``, horizontal interval; without a shape, only the interval."""

    look: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    text: str = ""
    shape: Shape = "circle"
    open: bool = False
    size: float = 4
    flat: bool = False


@dataclass(frozen=True)
class Rule:
    """A straight reference line."""

    look: str
    start: Ends
    end: Ends
    dash: Dash = "dash"


@dataclass(frozen=True)
class Bar:
    """A filled box."""

    look: str
    x: Ends
    y: Ends
    text: str = ""
    hatched: bool = False


@dataclass(frozen=True)
class Cell:
    """A cell of a heat map; ``shade`` is from -1 to 1."""

    column: int
    row: int
    shade: float
    label: str = ""
    text: str = ""


@dataclass(frozen=True)
class Note:
    """A short text in the chart."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "middle"


@dataclass(frozen=True)
class Chart:
    """A chart, its heading, and its description in words. The first line is drawn on top."""

    words: str
    x: Axis
    y: Axis
    title: str = ""
    measure: str = ""
    height: int = 260  # in pixels
    lines: Sequence[Polyline] = ()
    bands: Sequence[Band] = ()
    marks: Sequence[Mark] = ()
    rules: Sequence[Rule] = ()
    bars: Sequence[Bar] = ()
    cells: Sequence[Cell] = ()
    notes: Sequence[Note] = ()

    def to_json(self) -> dict[str, Any]:
        """JSON for the script, without default values."""
        encoded: dict[str, Any] = _encoded(self)
        return encoded


def _encoded(value: Any) -> Any:
    if is_dataclass(value):
        parts = {field.name: (getattr(value, field.name), field.default) for field in fields(value)}
        return {name: _encoded(part) for name, (part, usual) in parts.items() if part != usual and part != []}
    if isinstance(value, (list, tuple)):
        return [_encoded(part) for part in value]
    return value


# -- looks -----------------------------------------------------------------------------------------------------------
class Look(NamedTuple):
    """Colour, dash and shape of a line."""

    colour: str
    dash: Dash
    shape: Shape
    open: bool = False


def arm_look(at: int) -> Look:
    """The look of a strategy, by its position in the run."""
    look = at % ARM_COLOURS
    return Look(f"arm-{look + 1}", DASHES[look], SHAPES[look])


def thing_look(at: int) -> str:
    """The colour of reading (0) or of a task (from 1)."""
    return "reading" if at == 0 else f"task-{(at - 1) % TASK_COLOURS + 1}"


# -- axes ------------------------------------------------------------------------------------------------------------
def padded_range(values: Sequence[float], share: float, least: float) -> Ends:
    """The range of the values with some room on both sides, never empty."""
    low, high = min(values), max(values)
    room = max(share * (high - low), least)
    return round(low - room, 4), round(high + room, 4)


def money_axis(money: Money, amounts: Sequence[float]) -> Axis:
    """The x axis for amounts of money."""
    title = "money spent" if money.currency else "money spent, in units"
    low, high = padded_range(amounts, 0.04, 0.01 * max(amounts) or 1.0)
    return Axis(max(0.0, low), high, title, prefix=money.currency)


def score_axis(scale: Scale, scores: Sequence[float]) -> Axis:
    """The y axis for scores, limited to their range unless a fitted curve leaves it."""
    low, high = padded_range(scores, 0.1, 2.0 if scale.percent else 0.02)
    bottom, top = (0.0, 100.0) if scale.percent else (-1.0, 1.0)
    low = max(bottom, low) if min(scores) >= bottom else low
    high = min(top, high) if max(scores) <= top else high
    return Axis(low, high, suffix=" %" if scale.percent else "")


# -- heat maps -------------------------------------------------------------------------------------------------------
def heat_map(
    words: str, columns: Sequence[str], rows: Mapping[str, Sequence[float | None]], x_title: str, y_title: str
) -> Chart:
    """A grid of shaded cells, rows from the bottom up. Values are written into the cells of small grids."""
    known = [value for row in rows.values() for value in row if value is not None]
    counts, shades = all(value == round(value) for value in known), _shades(known)
    written = max(len(rows), len(columns)) <= MOST_WRITTEN
    cells = []
    for up, (name, values) in enumerate(rows.items()):
        for at, value in enumerate(values):
            if value is not None:
                label = number(value) if written and (value or not counts) else ""
                cells.append(Cell(at, up, shades[value], label, f"{number(value)} at {name}, {columns[at]}"))
    x, y = Axis.of_names(columns, x_title), Axis.of_names(list(rows), y_title)
    return Chart(words, x, y, height=80 + max(8, len(rows)) * 30, cells=cells)


def _shades(values: Sequence[float]) -> dict[float, float]:
    """The strength of colour of each value; negative values get a second hue if there are positive ones, too."""
    known = sorted(value for value in values if value)
    if known and known[0] < 0 < known[-1]:
        most = max(-known[0], known[-1])
        return {value: round(value / most, 3) for value in values}
    skewed = bool(known) and known[0] > 0 and known[-1] > SKEWED * known[len(known) // 2]
    on_scale = {value: math.sqrt(value) if skewed else value for value in values}
    low, high = min(on_scale.values(), default=0.0), max(on_scale.values(), default=0.0)
    return {value: round((on - low) / (high - low), 3) if high > low else 0.5 for value, on in on_scale.items()}
