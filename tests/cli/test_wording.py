"""How the command line writes amounts and durations, reads thresholds, and makes options of the fields of a class."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from inspect import signature

from typer import Option

from bursar.cli.new import _price
from bursar.cli.options import grouped
from bursar.cli.predict import parse_thresholds
from bursar.cli.select import _shown
from bursar.compute import duration


@dataclass(frozen=True)
class Size:
    width: int = Option(1, help="Width in cm.")
    height: int = Option(2, help="Height in cm.")


def test_every_field_of_a_group_is_an_option() -> None:
    drawn = []

    @grouped
    def draw(name: str, size: Size) -> None:
        drawn.append((name, size))

    assert list(signature(draw).parameters) == ["name", "width", "height"]
    draw(name="box", width=3, height=4)
    assert drawn == [("box", Size(3, 4))]


def test_a_small_price_is_for_100_units() -> None:
    assert _price("€", Decimal("0.0167"), "per_item") == "€1.67 per 100 items"
    assert _price("€", Decimal("0.25"), "per_span") == "€0.25 per span"


def test_amounts_have_two_decimals_unless_they_are_whole_or_tiny() -> None:
    shown = [_shown(Decimal(number)) for number in ("20000.50", "2E+3", "0.004")]
    assert shown == ["20,000.50", "2,000", "0.004"]


def test_thresholds_are_by_task_or_one_for_all() -> None:
    assert parse_thresholds(["intent=0.92", "slots=.5"]) == {"intent": 0.92, "slots": 0.5}
    assert parse_thresholds(["0.8"]) == 0.8
    assert parse_thresholds(None) == {}


def test_durations_are_short() -> None:
    shown = [duration(seconds) for seconds in (0.25, 31, 558, 9000, 400_000)]
    assert shown == ["0.2 s", "31 s", "9 min", "2 h 30 min", "4 d 15 h"]
