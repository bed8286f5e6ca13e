"""The section that asks whether confidence can be trusted: what it says, what it draws, and when it is silent."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.report import render
from bursar.report.calibration import (
    calibration_of,
    calibration_table,
    calibration_words,
    reliability_charts,
    reliability_table,
)
from bursar.uncertainty.calibration import calibration_summary
from tests.report import results
from tests.report.results import KINDS, make_corpus, make_reliability, make_result
from tests.report.test_page import Outline, data_of, shown

TITLE = "Can its confidence be trusted?"
OVER = make_reliability((200, 0.2, 0.2), (200, 0.9, 0.6))  # on average 0.55 against 0.40
UNDER = make_reliability((200, 0.4, 0.6), (200, 0.8, 0.9))  # 0.60 against 0.75
UNEVEN = make_reliability((200, 0.3, 0.6), (200, 0.9, 0.6))  # 0.60 both
TRUE = make_reliability((200, 0.3, 0.31), (200, 0.9, 0.89))
FEW = make_reliability((5, 0.3, 0.4), (5, 0.9, 0.8))


def found(**reliability):
    return make_result(tasks=tuple(reliability) or ("intent",), reliability=reliability)


# -- what it says ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("record", "verdict"),
    [
        (OVER, "overconfident by 0.15"),
        (UNDER, "underconfident by 0.15"),
        (UNEVEN, "miscalibrated by 0.30"),
        (TRUE, "well calibrated"),
        (FEW, "too few items to tell"),
    ],
)
def test_the_verdict_on_a_task(record, verdict):
    (calibration,) = calibration_of(found(intent=record))
    assert str(calibration) == verdict


def test_the_sentence_names_every_task_with_its_confidence_and_accuracy():
    assert calibration_words(found(intent=OVER, slots=UNDER, tree=TRUE)) == [
        "After round 3, the model is overconfident for intent (confidence 0.55, accuracy 0.40); "
        "underconfident for slots (confidence 0.60, accuracy 0.75); "
        "well calibrated for tree (confidence 0.60, accuracy 0.60).",
        "Check its predictions for intent before you use them, even confident ones.",
    ]


def test_the_confidence_of_a_calibrated_model_can_be_relied_on():
    assert calibration_words(found(intent=TRUE, slots=TRUE))[-1] == "You can rely on its confidence."
    assert "rely on" not in " ".join(calibration_words(found(intent=TRUE, slots=FEW)))


def test_modesty_is_no_reason_for_a_warning():
    assert len(calibration_words(found(intent=UNDER))) == 1


def test_too_few_items_are_said_to_be_too_few():
    assert calibration_words(found(intent=FEW)) == ["There are too few items to tell for intent."]


def test_three_items_that_are_all_right_prove_nothing():
    (calibration,) = calibration_of(found(intent=make_reliability((3, 0.99, 1.0))))
    assert str(calibration) == "too few items to tell"


def test_a_large_gap_shows_on_few_items_and_a_tiny_one_never_matters():
    assert str(calibration_of(found(intent=make_reliability((12, 0.95, 0.3))))[0]) == "overconfident by 0.65"
    assert str(calibration_of(found(intent=make_reliability((10**6, 0.91, 0.9))))[0]) == "well calibrated"


def test_the_gap_is_the_difference_of_the_numbers_beside_it():
    """0.714 and 0.556 are 0.158 apart, but read 0.71 and 0.56."""
    result = found(intent=make_reliability((400, 0.714, 0.556)))
    assert "confidence 0.71, accuracy 0.56" in calibration_words(result)[0]
    assert str(calibration_of(result)[0]) == "overconfident by 0.15"


def test_before_the_first_round_it_is_the_model_of_the_seed_items():
    result = make_result({"MT-AVG": (0.4,)}, tasks=("intent",), money=(100,), reliability={"intent": OVER})
    assert calibration_words(result)[0].startswith("After the seed items, the model is overconfident for intent")


# -- tables ----------------------------------------------------------------------------------------------------------
def test_the_table_says_how_accurate_the_most_confident_predictions_were():
    (row,) = calibration_table(found(intent=OVER)).rows
    assert row[:2] == ("intent", "400")
    assert row[4] == "0.90, accuracy 0.60 (200 items)"
    assert row[5:] == ("0.150", "0.135")  # half of 0.3, and half of 0.9 × 0.3


def test_every_point_is_in_a_table_and_empty_bins_are_not():
    record = make_reliability((4, 0.2, 0.25), (0, 0, 0), (0, 0, 0), (6, 0.9, 0.7))
    assert reliability_table(found(intent=record)).rows == (
        ("intent", "0.00 to 0.25", "4", "0.20", "0.25"),
        ("intent", "0.75 to 1.00", "6", "0.90", "0.70"),
    )


# -- the diagram -----------------------------------------------------------------------------------------------------
def test_a_diagram_has_the_diagonal_and_a_point_and_a_bar_for_each_filled_bin():
    chart = reliability_charts(found(intent=make_reliability((40, 0.3, 0.5), (0, 0, 0), (60, 0.9, 0.7))))["intent"]
    diagonal, *stems = chart.rules
    assert (diagonal.start, diagonal.end) == ((0, 0), (1, 1))
    assert [(mark.x, mark.y) for mark in chart.marks] == [(0.3, 0.5), (0.9, 0.7)]
    assert [mark.text.split(": ")[1] for mark in chart.marks] == ["40 items", "60 items"]
    assert [mark.size for mark in chart.marks] == [pytest.approx(4 + 4 * (40 / 60) ** 0.5, abs=0.05), 8.0]
    assert [(stem.start, stem.end) for stem in stems] == [((0.3, 0.3), (0.3, 0.5)), ((0.9, 0.9), (0.9, 0.7))]
    assert [sum(bar.x) / 2 for bar in chart.bars] == pytest.approx([1 / 6, 5 / 6])
    low, high = (bar.y[1] for bar in chart.bars)
    assert low / high == pytest.approx(40 / 60)


# -- the section -----------------------------------------------------------------------------------------------------
def test_the_section_stands_on_the_page_with_a_diagram_a_task():
    page = render(found(intent=OVER, slots=TRUE), make_corpus())
    text = shown(page)
    assert TITLE in text
    assert "overconfident by 0.15" in text
    assert [key for key in data_of(page) if key.startswith("reliability")] == [
        "reliability-0",
        "reliability-1",
    ]


def test_a_summary_of_real_confidences_is_what_the_page_reads():
    rng = np.random.default_rng(0)
    confidence = rng.beta(5, 2, 500)
    summary = calibration_summary(confidence, np.clip(confidence - 0.2, 0, 1))
    text = shown(render(found(intent=summary), make_corpus(("intent",))))
    assert f"confidence {confidence.mean():.2f}, accuracy {np.clip(confidence - 0.2, 0, 1).mean():.2f}" in text


@pytest.mark.parametrize("reliability", [None, {}, {"intent": make_reliability((0, 0, 0))}])
def test_there_is_no_section_without_reliability(reliability):
    page = render(make_result(reliability=reliability), make_corpus())
    assert TITLE not in page
    assert not [key for key in data_of(page) if key.startswith("reliability")]


def test_only_the_last_round_counts():
    def edit(found):
        found["arms"]["MT-AVG"]["rounds"][0]["reliability"] = {"intent": OVER}

    assert TITLE not in render(make_result(edit=edit), make_corpus())


def test_a_task_without_known_labels_is_left_out():
    page = render(make_result(reliability={"slots": TRUE}), make_corpus())
    assert [key for key in data_of(page) if key.startswith("reliability")] == ["reliability-1"]


def test_hostile_task_names_never_become_markup(monkeypatch):
    name = "<img src=x onerror=alert(1)></script><a href='javascript:x'>%{x}"
    monkeypatch.setitem(results.KINDS, name, KINDS["intent"])
    monkeypatch.setitem(results.METRICS, name, "accuracy")
    page = render(make_result(tasks=(name,), reliability={name: OVER}), make_corpus((name,)))
    assert {"img", "a"}.isdisjoint(Outline(page).tags)
    assert f"overconfident for {name}" in shown(page)
