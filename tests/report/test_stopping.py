"""Whether another round is worth it: the page says what the advice says, with its chart and its table."""

from __future__ import annotations

import pytest

from bursar.campaign.sections import StoppingSection
from bursar.campaign.stopping import advice_by_round, forecast, known_rounds
from bursar.report import render
from bursar.report.stopping import stopping_charts, stopping_table, stopping_words
from tests.report.results import make_corpus, make_result
from tests.report.test_page import data_of, shown

STEEP = (0.3, 0.45, 0.55, 0.62, 0.68)
FLAT = (0.8, 0.8, 0.8, 0.8, 0.8, 0.8)


def advised(scores, *, agreement=0.97, next_money=100, audit=0, dev=True, stopping=None, **more):
    """A result with the advice that a run of these scores would carry."""
    asked = StoppingSection(**(stopping or {}))
    money = tuple(100 * (k + 1) for k in range(len(scores)))
    config = {"stopping": asked.model_dump(), **more.pop("config", {})}

    def edit(found):
        for record in found["arms"]["MT-AVG"]["rounds"]:
            record["dev"] = record["dev"] if dev else None
            record["agreement"] = dict.fromkeys(found["tasks"], agreement) if record["round"] else None

    result = make_result({"MT-AVG": scores}, money=money, audit=audit, config=config, edit=edit, **more)
    known = known_rounds(result.main.rounds, result.main.audit)
    told = advice_by_round(known, next_money=next_money, settings=asked)
    ahead = forecast(known, next_money=next_money, settings=asked)
    arm = result.main.model_copy(update={"stopping": tuple(told), "forecast": ahead})
    return result.model_copy(update={"arms": {"MT-AVG": arm}})


def test_a_steep_curve_says_go_on_with_the_gain_its_interval_and_the_money():
    text = shown(render(advised(STEEP), make_corpus()))
    assert "Go on: another 100 units should add " in text
    advice = advised(STEEP).main.stopping[-1]
    gain, low, high = (f"{100 * end:.1f}" for end in (advice.gain, advice.low, advice.high))
    assert f"{gain} points to the development score ({low} to {high})." in text
    assert "That is at least what a round must bring (0.5 points)." in text


def test_a_flat_curve_says_stop_and_since_when():
    text = shown(render(advised(FLAT), make_corpus()))
    assert "Stop: another 100 units" in text
    assert "Even the upper end is less than a round must bring" in text
    first = next(at for at, advice in enumerate(advised(FLAT).main.stopping) if advice.stop)
    assert f"The first advice to stop came after round {first}, {100 * (5 - first)} units ago." in text


def test_where_nothing_can_be_told_it_says_why():
    assert stopping_words(advised(STEEP[:2])) == [
        "Not known yet: fewer than three rounds have a score, too few to see a curve."
    ]
    (words,) = stopping_words(advised(STEEP, dev=False))
    assert "no development items and no audit slices" in words
    (chart,) = stopping_charts(advised(STEEP, dev=False))
    assert chart.title == "Agreement with the previous model"
    assert stopping_charts(advised(STEEP[:1], dev=False)) == []


def test_a_result_without_advice_has_no_such_section():
    page = render(make_result(), make_corpus())
    assert "Is another round worth it?" not in shown(page)
    assert not [key for key in data_of(page) if key.startswith("stopping")]


def test_the_charts_have_the_scores_the_curve_the_next_two_rounds_and_a_line_a_task():
    scores, agreement = stopping_charts(advised(STEEP))
    curve, ahead = scores.lines
    (band,) = scores.bands
    assert [mark.y for mark in scores.marks] == pytest.approx([100 * score for score in STEEP])
    assert curve.points[-1].x == ahead.points[0].x == 500
    assert ahead.points[-1].x == 700
    assert all(low <= at.y <= high for low, at, high in zip(band.low, ahead.points, band.high, strict=True))
    assert "from 30.0" in scores.words
    assert [[point.y for point in line.points] for line in agreement.lines] == [[97.0] * 4] * 2
    (asked,) = agreement.rules
    assert asked.start[1] == asked.end[1] == 99.0


def test_every_round_has_a_row_with_what_was_known_then():
    table = stopping_table(advised(FLAT))
    assert [row[0] for row in table.rows] == ["Seed", "1", "2", "3", "4", "5"]
    assert [row[-1] for row in table.rows][:2] == ["–", "–"]
    assert table.rows[-1][-1] == "stop"
    assert table.rows[-1][4] == "97.0\u202f%"


def test_audit_slices_are_named_where_they_stand_in():
    words = " ".join(stopping_words(advised(STEEP, dev=False, audit=5)))
    assert "to the score on audit slices" in words


def test_money_and_scores_are_shown_as_elsewhere_on_the_page():
    config = {"costs": {"unit": 0.01, "currency": "€"}}
    words = " ".join(stopping_words(advised(STEEP, tasks=("urgency",), config=config)))
    assert "another €1.00 should add 0.0" in words
    assert "points" not in words
