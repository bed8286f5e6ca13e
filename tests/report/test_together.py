"""What the page says of training tasks together: what was expected, what was measured, and whether that agrees."""

from __future__ import annotations

import pytest

from bursar.report.page import render
from bursar.report.together import section_of
from tests.report.results import make_corpus, make_result


def gain(value, half=0.01):
    return {"value": value, "low": value - half, "high": value + half, "level": 0.9}


def verdict(value, half=0.01):
    return "helps" if value > half else "harms" if value < -half else "cannot tell"


def advice(warnings=(), left_out=None, **gains):
    tasks = {
        name: {
            "n": 3000,
            "n_other": 3000,
            "ami": {"value": 0.2, "low": 0.15, "high": 0.25},
            "law": "balanced",
            "together": 0.5,
            "alone": 0.5 - value,
            "gain": gain(value),
            "verdict": verdict(value),
            "warnings": list(warnings),
        }
        for name, value in gains.items()
    }
    laws = {"balanced": {"text": "sqrt(n)", "about": {"models": 3000, "sources": ["conll2003"]}}}
    return {
        "unit": "words",
        "basis": "what the run has bought",
        "tasks": tasks,
        "left_out": left_out or {},
        "laws": laws,
    }


def check(**gains):
    tasks = {
        name: {"together": 0.8 + value, "alone": 0.8, "gain": gain(value), "verdict": verdict(value), "metric": "f1"}
        for name, value in gains.items()
    }
    return {"seeds": 3, "items": 300, "judged": 600, "judged_by": "test items", "level": 0.9, "tasks": tasks}


def words(**parts):
    return " ".join(section_of(parts).words)


# -- words ---
def test_what_the_law_expects_is_said_of_every_task():
    said = words(advice=advice(intent=0.03, slots=-0.02, tree=0.0))
    assert said == (
        "By the law, training together should help intent (+3.0 points) and should harm slots (−2.0 points); "
        "the effect on tree is not clear."
    )


def test_where_nothing_can_be_told_that_is_said():
    assert words(advice=advice(intent=0.0, slots=0.0)) == ("By the law, the effect on intent and slots is not clear.")


@pytest.mark.parametrize(
    ("expected", "measured", "said"),
    [
        (0.03, 0.02, "The prediction held for slots."),
        (0.03, -0.02, "The prediction did not hold for slots."),
        (0.03, 0.0, "The prediction is undecided for slots."),
        (0.0, 0.02, "There was no prediction to check."),
    ],
)
def test_whether_a_prediction_held_is_said(expected, measured, said):
    assert words(advice=advice(slots=expected), check=check(slots=measured)).endswith(said)


def test_a_check_alone_needs_no_law():
    section = section_of({"check": check(intent=0.02, slots=-0.03)})
    assert section.words == (
        "In the measurement, training together helps intent (+2.0 points) and harms slots (−3.0 points).",
    )
    assert not section.predicted
    assert "300 items" in section.note
    assert "600 test items" in section.note


def test_a_warning_is_said_once_for_all_tasks_that_it_is_true_of():
    section = section_of({"advice": advice(["n = 9 lies outside"], {"links": "of two spans"}, intent=0.0, slots=0.0)})
    assert section.warnings == ("intent and slots: n = 9 lies outside.", "links is left out: of two spans.")


# -- table and chart ---
def test_the_table_has_what_was_expected_beside_what_was_measured():
    table = section_of({"advice": advice(slots=0.03), "check": check(slots=0.02, links=0.1)}).table
    slots, links = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    assert slots["Predicted"] == "+3.0 (+2.0 to +4.0)"
    assert slots["Difference"] == "+2.0 (+1.0 to +3.0)"
    assert (slots["Alone"], slots["Together"], slots["Prediction"]) == ("80.0", "82.0", "held")
    assert (links["Predicted"], links["Prediction"]) == ("–", "none was made")


def test_the_chart_has_a_row_a_task_and_a_mark_for_each_of_both():
    chart = section_of({"advice": advice(intent=0.01, slots=0.03), "check": check(intent=0.02, slots=0.01)}).chart
    expected, measured = chart.marks[:2], chart.marks[2:]
    assert [mark.x for mark in expected] == pytest.approx([1, 3])
    assert [mark.x for mark in measured] == pytest.approx([2, 1])
    assert all(above.y > below.y for above, below in zip(expected, measured, strict=True))
    assert chart.y.names == ("slots", "intent")  # from below: the first task is on top
    assert "slots, measured: +1.0 (0.0 to +2.0)" in chart.words


# -- the page ---
def test_the_section_is_there_only_where_somebody_asked():
    result, corpus = make_result(), make_corpus()
    heading = "Should these tasks be trained together?"
    assert heading not in render(result, corpus)
    page = render(result, corpus, {"advice": advice(intent=0.03, slots=0.0)})
    assert heading in page
    assert 'data-chart="together"' in page


def test_hostile_names_never_become_markup():
    hostile = "<script>alert(1)</script>"
    together = {"advice": advice(**{hostile: 0.03}), "check": check(**{hostile: 0.02})}
    assert hostile not in render(make_result(), make_corpus(), together)
