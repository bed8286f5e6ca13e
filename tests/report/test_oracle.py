"""What the page says of the best order found."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.oracle.comparison import OrderComparison, OrderScores
from bursar.oracle.judge import JUDGES
from bursar.oracle.problem import Order
from bursar.oracle.search import SearchPlan
from bursar.report.oracle import (
    oracle_cautions,
    oracle_chart,
    oracle_note,
    oracle_of,
    oracle_table,
    oracle_words,
    search_words,
)
from bursar.report.page import render
from tests.report.results import make_corpus, make_result


def level(score):
    """An order that scores the same after each of two batches."""
    return OrderScores({part: np.array([score, score]) for part in ("test", "validation")})


def answer_of(best=0.8, arms=None, **changes):
    """Random orders score 0.49 and 0.51, and so 0.5 on average."""
    arms = {"MT-AVG": 0.6, "RANDOM": 0.5} if arms is None else arms
    gap = OrderComparison(
        SearchPlan(300, 60, 8.0),
        0,
        {"test": 0.4, "validation": 0.4},
        (level(0.49), level(0.51)),
        {arm: level(score) for arm, score in arms.items()},
        level(best),
        Order.of(np.arange(10).reshape(2, 5)),
    )
    about = {
        "judge": "probe",
        "metric": "weighted_f1",
        "tasks": ["intent", "slots"],
        "items": {"pool": 90, "warm": 10, "aside": 20, "validation": 250, "test": 40},
        "validation_from": "unused items",
        "aside_from": "development items",
        "tasks_left_out": {},
        "arms_left_out": {},
        "bought": dict.fromkeys(arms, 10),
    }
    return {**about, **gap.as_json(), **changes}


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (0.6, "MT-AVG reached 33\u202f% of the way from random to the best order found."),
        (0.5, "MT-AVG reached 0\u202f% of the way from random to the best order found, which may be luck."),
        (0.48, "MT-AVG reached −7\u202f% of the way from random to the best order found, which may be luck."),
        (0.44, "MT-AVG reached −20\u202f% of the way from random to the best order found, worse than random"),
        (0.83, "MT-AVG reached 110\u202f% of the way from random to the best order found, better"),
    ],
)
def test_the_first_sentence_is_how_far_the_strategy_came(score, said):
    assert oracle_words(answer_of(arms={"MT-AVG": score}))[0].startswith(said)


def test_strategies_beside_it_are_named_but_random_only_where_it_is_alone():
    words = " ".join(oracle_words(answer_of(arms={"MT-AVG": 0.6, "RANDOM": 0.5, "MT-MIN": 0.65})))
    assert "Others: MT-MIN 50\u202f%." in words
    assert "Random reached" not in words
    assert oracle_words(answer_of(arms={"RANDOM": 0.53}))[0].startswith("Random reached 10\u202f%")


def test_a_best_order_that_is_hardly_better_than_random_places_nobody():
    answer = answer_of(best=0.505)
    assert "hardly better than random ones" in oracle_words(answer)[0]
    assert "%" not in oracle_table(answer).rows[1][2]


def test_the_settings_and_the_judge_are_told():
    words = f"{oracle_note(answer_of())} {search_words(answer_of())}"
    for said in (
        "2 batches of 5 items",
        "a probe",
        "weighted F1",
        "300 annealing steps",
        "cooling 8",
        "60 greedy",
        "40 test items",
    ):
        assert said in words


@pytest.mark.parametrize("judge", JUDGES)
def test_whoever_the_judge_is_the_page_tells_the_truth(judge):
    answer = answer_of(judge=judge, aside_from="test items")
    words = f"{oracle_note(answer)} {' '.join(oracle_cautions(answer))}"
    network = judge != "probe"
    assert ("retrained for every set" in words) == network
    assert ("ridge regression" in words) != network
    assert ("the probe’s penalty" in words) != network


def test_what_is_unusual_is_told_and_nothing_else():
    assert oracle_cautions(answer_of()) == []
    words = " ".join(
        oracle_cautions(
            answer_of(
                validation_from="half of the test items",
                aside_from="test items",
                tasks_left_out={"tree": "parsing is not judged"},
                arms_left_out={"UDJS": "it buys labels of single tasks"},
                bought={"MT-AVG": 10, "RANDOM": 14},
            )
        )
    )
    for said in (
        "half of the test items",
        "no development items",
        "Task tree",
        "UDJS is left out",
        "MT-AVG 10 and random 14",
    ):
        assert said in words


def test_the_page_has_the_section_only_where_there_is_an_answer():
    result = make_result({"MT-AVG": (0.4, 0.6), "RANDOM": (0.4, 0.5)}, money=(100, 200))
    for nothing in ({}, {"oracle": None}, {"oracle": {"refused": "no tasks"}}):
        assert oracle_of(result.model_copy(update=nothing)) is None
        assert "How far from the best?" not in render(result.model_copy(update=nothing), make_corpus())
    page = render(result.model_copy(update={"oracle": answer_of()}), make_corpus())
    assert "How far from the best?" in page
    assert "MT-AVG reached 33\u202f% of the way from random to the best order found." in page


def test_lines_have_the_colours_of_the_strategies_and_names_are_no_markup():
    result = make_result({"MT-AVG": (0.4, 0.6), "RANDOM": (0.4, 0.5)}, money=(100, 200))
    chart = oracle_chart(answer_of(arms={"RANDOM": 0.5, "<b>own</b>": 0.6}), list(result.arms))
    looks = {line.name: line.look for line in chart.lines}
    assert looks == {"Best found": "good", "Random": "arm-2", "<b>own</b>": "arm-1", "Random orders": "muted"}
    assert all(len(line.points) == 3 for line in chart.lines)
    assert all(len(of) == 3 for band in chart.bands for of in (band.x, band.low, band.high))
    answer = answer_of(arms={"RANDOM": 0.5, "<b>own</b>": 0.6})
    page = render(result.model_copy(update={"oracle": answer}), make_corpus())
    assert "<b>own" not in page
