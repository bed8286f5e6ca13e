"""What a chart shows, for reports and web pages alike: ``static/charts.js`` draws it as SVG.

A chart has two axes and any of: lines, bands, marks with intervals, rules, bars, cells of a grid, notes. Everything
that a person reads comes ready from here. A look is the name of a colour in the style sheets: ``arm-1`` is ``--arm-1``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, NamedTuple

from bursar.report.wording import Money, Scale

Shape = Literal["circle", "diamond", "square", "triangle-up", "none"]
Dash = Literal["solid", "dash", "dot", "dashdot"]
SHAPES: tuple[Shape, ...] = ("circle", "diamond", "square", "triangle-up")
DASHES: tuple[Dash, ...] = ("solid", "dash", "dot", "dashdot")
ARM_COLOURS = 4  # in the style sheets, as --arm-1 and so on
TASK_COLOURS = 5
Ends = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """A range of numbers, or with ``names`` of categories: the first stands at 0, the next at 1."""

    low: float
    high: float
    title: str = ""
    prefix: str = ""
    suffix: str = ""
    names: Sequence[str] = ()
    grid: bool | None = None  # upward axes have one unless this is false, axes across have none unless it is true

    @classmethod
    def of_names(cls, names: Sequence[str], title: str = "", grid: bool | None = False) -> Axis:
        return cls(-0.5, len(names) - 0.5, title, names=tuple(names), grid=grid)


class Point(NamedTuple):
    """A place of a line; ``y`` is None where the line has a gap. The text is what the tooltip says."""

    x: float
    y: float | None
    text: str = ""


@dataclass(frozen=True)
class Polyline:
    """A line through points, or the points alone; with ``label`` its name stands at its end."""

    name: str
    look: str
    points: Sequence[Point]
    dash: Dash = "solid"
    shape: Shape = "circle"
    open: bool = False  # points are outlined, not filled
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
    """A point with an interval upward or, where it is ``flat``, across; without a shape the interval alone."""

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
    """A straight line to compare with."""

    look: str
    start: Ends
    end: Ends
    dash: Dash = "dash"


@dataclass(frozen=True)
class Bar:
    """A filled box from one x to another and from one y to another."""

    look: str
    x: Ends
    y: Ends
    text: str = ""
    hatched: bool = False


@dataclass(frozen=True)
class Cell:
    """A box of a grid of categories, the stronger in colour the further ``shade`` is from 0: -1 to 1."""

    column: int
    row: int
    shade: float
    label: str = ""
    text: str = ""


@dataclass(frozen=True)
class Note:
    """A few words in the chart."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "middle"


@dataclass(frozen=True)
class Chart:
    """A chart, its heading, and in words what it shows. The first line is drawn on top of the others."""

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
        """As the script reads it; what is as usual is left out.

        >>> Chart("None.", Axis(0, 1), Axis(0, 1), rules=[Rule("muted", (0, 0), (1, 1))]).to_json()["rules"]
        [{'look': 'muted', 'start': [0, 0], 'end': [1, 1]}]
        """
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
    """How a line differs from others, in all charts of a page."""

    colour: str
    dash: Dash
    shape: Shape
    open: bool = False


def arm_look(at: int) -> Look:
    """The look of a strategy, by its place among those of the run."""
    look = at % ARM_COLOURS
    return Look(f"arm-{look + 1}", DASHES[look], SHAPES[look])


def thing_look(at: int) -> str:
    """The colour of a thing that money is paid for: reading first, then the tasks.

    >>> thing_look(0), thing_look(1), thing_look(6)
    ('reading', 'task-1', 'task-1')
    """
    return "reading" if at == 0 else f"task-{(at - 1) % TASK_COLOURS + 1}"


# -- axes ------------------------------------------------------------------------------------------------------------
def padded_range(values: Sequence[float], share: float, least: float) -> Ends:
    """The values with some room on both sides, and never a range of nothing."""
    low, high = min(values), max(values)
    room = max(share * (high - low), least)
    return round(low - room, 4), round(high + room, 4)


def money_axis(money: Money, amounts: Sequence[float]) -> Axis:
    """An axis across for amounts of money."""
    title = "money spent" if money.currency else "money spent, in units"
    low, high = padded_range(amounts, 0.04, 0.01 * max(amounts) or 1.0)
    return Axis(max(0.0, low), high, title, prefix=money.currency)


def score_axis(scale: Scale, scores: Sequence[float]) -> Axis:
    """An upward axis for scores. It ends where scores do, unless a curve through them goes beyond."""
    low, high = padded_range(scores, 0.1, 2.0 if scale.percent else 0.02)
    bottom, top = (0.0, 100.0) if scale.percent else (-1.0, 1.0)
    low = max(bottom, low) if min(scores) >= bottom else low
    high = min(top, high) if max(scores) <= top else high
    return Axis(low, high, suffix=" %" if scale.percent else "")
