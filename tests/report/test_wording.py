"""Numbers, names and lists as readers see them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from bursar.campaign.curves import Difference
from bursar.campaign.results import ArmResult
from bursar.ledger import SpendingLine
from bursar.report.across_seeds import difference_row
from bursar.report.allocation import described
from bursar.report.calibration import TaskCalibration, Verdict
from bursar.report.charts import Axis, Chart, Rule, _shades, thing_look
from bursar.report.law import _power
from bursar.report.oracle import share_words
from bursar.report.spending import bought_words
from bursar.report.summary import saving
from bursar.report.together import _between
from bursar.report.wording import (
    Money,
    Scale,
    amount,
    counted,
    listed,
    number,
    percent,
    round_phrase,
    share,
    strategy_name,
)

SHOWN = [
    (Money(Decimal("0.01"), "€").show(123456), "€1,234.56"),
    (Money(Decimal(1), "").show(2512), "2,512 units"),
    (Money(Decimal(1), "").average(100, 8), "12.5"),
    (Money(Decimal(1), "").average(0, 0), "–"),
    (Scale.of("f1").show(0.7234), "72.3\u202f%"),
    (Scale.of("pearson").show(0.7234), "0.723"),
    (Scale.of("f1").difference(-0.0134), "1.3 points"),
    (Scale.of("pearson").difference(0.05), "0.050"),
    (strategy_name(ArmResult(strategies=("RANDOM", "MT-AVG", "MT-MAX"))), "random, then MT-AVG, then MT-MAX"),
    (amount(1493.2), "1,493"),
    (amount(16.4321), "16.4"),
    (amount(0.0), "0"),
    (share(3, 1500), "0.2 %"),
    (share(1, 0), "–"),
    (number(89.026), "89.03"),
    (number(0.0114), "0.0114"),
    (number(1500), "1,500"),
    (number(1234.56), "1,234.6"),
    (number("MT-R"), "MT-R"),
    (number(None), "–"),
    (percent(0.314), "31\u202f%"),
    (percent(0.314, 1), "31.4\u202f%"),
    (counted(1, "item"), "1 item"),
    (counted(1200, "item"), "1,200 items"),
    (counted("1.0", "point"), "1.0 points"),
    (listed(["a"]), "a"),
    (listed(["a", "b"]), "a and b"),
    (listed(["a", "b", "c"]), "a, b and c"),
    (round_phrase(0), "the seed items"),
    (round_phrase(3), "round 3"),
    (saving(0.314), "31\u202f% less"),
    (saving(-0.2), "20\u202f% more"),
    (saving(0.001), "as much"),
    (saving(-146.0), "over twice as much"),
    (share_words(0.341), "34\u202f%"),
    (share_words(-0.12), "−12\u202f%"),
    (share_words(-0.001), "0\u202f%"),
    (share_words(None), "–"),
    (_power(-0.001), "0.00"),
    (_power(-0.25), "−0.25"),
    (_power(float("nan")), "–"),
    (_between({"value": 0.0134, "low": -0.01, "high": 0.037}), "+1.3 (−1.0 to +3.7)"),
    (thing_look(0), "reading"),
    (thing_look(1), "task-1"),
    (thing_look(6), "task-1"),
]


@pytest.mark.parametrize(("shown", "expected"), SHOWN, ids=[expected for _, expected in SHOWN])
def test_numbers_and_names_read_well(shown, expected):
    assert shown == expected


def test_the_gap_of_a_calibration_fits_the_rounded_numbers_beside_it():
    found = TaskCalibration("intent", 400, 0.914, 0.826, (0.97, 0.9, 120), 0.09, 0.07, Verdict.OVERCONFIDENT)
    assert str(found) == "overconfident by 0.08"


def test_a_paired_difference_is_in_points_with_its_interval():
    found = Difference("COVER", "RANDOM", 3, 0.021, 0.01, 0.032)
    assert difference_row(found, Scale(percent=True)) == (
        "COVER against random",
        "3",
        "+2.1 points",
        "+1.0 to +3.2 points",
    )


def test_reading_is_paid_once_an_item_and_answers_are_labels():
    read = SpendingLine(0, "seed", "reading", estimate=4, actual=4, items=2, answers=2)
    intent = SpendingLine(0, "seed", "intent", estimate=3, actual=3, items=1, answers=1)
    assert bought_words([read, intent]) == "2 items and 1 label"


def test_how_estimates_were_measured_leaves_out_tables():
    about = {"informer": "lookahead", "items": 200, "own_gains": {"a": 1.0}}
    assert described(about) == {"informer": "lookahead", "items": "200"}


def test_a_chart_in_json_has_no_default_values():
    chart = Chart("None.", Axis(0, 1), Axis(0, 1), rules=[Rule("muted", (0, 0), (1, 1))])
    assert chart.to_json()["rules"] == [{"look": "muted", "start": [0, 0], "end": [1, 1]}]


def test_negative_values_are_shaded_apart_only_beside_positive_ones():
    assert _shades([1.0, 2.0, 3.0]) == {1.0: 0.0, 2.0: 0.5, 3.0: 1.0}
    assert _shades([-1.0, 2.0]) == {-1.0: -0.5, 2.0: 1.0}
