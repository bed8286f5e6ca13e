"""The contents of the watch page: numbers match the result, and empty sections say what to do."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from bursar.annotation.session import SessionState
from bursar.report.run_charts import spending_chart, spending_totals
from bursar.report.wording import THIN
from bursar.web.dashboard import answered_clause, lead, train
from bursar.web.panels import dashboard
from tests.report.results import make_reliability, make_result

PARTS = ("curves", "spending", "next", "split", "trust", "stopping", "oracle")
EUROS = {"costs": {"currency": "€", "unit": 0.01}}


def state_of(result=None, **changes):
    """Where a campaign stands that has ended, or is changed to stand elsewhere."""
    spent = result.main.spent if result else 0
    over = SessionState(3, "ended", 10, 10, 0, spent, spent, "all rounds are done", open=0, written=1)
    return replace(over, **changes)


def shown_of(result, **changes):
    found = dashboard(result, state_of(result, **changes), "runs/pilot")
    json.dumps(found, allow_nan=False)  # as it goes over the line
    return found | found["panels"]


def empty_result(**changes):
    """A campaign before its first answer."""
    return make_result({"MT-AVG": ()}, test=False, confidence=False, ended=None, **changes)


BEGINNING = {"round": 0, "phase": "annotating", "answered": 0, "open": 10, "spent": 0, "budget": 300, "why": None}


# -- curves ----------------------------------------------------------------------------------------------------------
def test_every_point_of_a_curve_is_what_the_round_spent_and_scored():
    result = make_result({"MT-AVG": (0.4, 0.6, 0.7, 0.8), "RANDOM": (0.4, 0.5, 0.6, 0.65)})
    panels = shown_of(result)["curves"]["panels"]
    assert [panel["title"] for panel in panels] == ["All tasks", "intent", "slots"]
    for panel in panels:
        drawn = {line["name"]: [at[:2] for at in line["points"]] for line in panel["lines"]}
        assert drawn == {
            "MT-AVG": [[100, 40], [200, 60], [300, 70], [400, 80]],
            "Random": [[100, 40], [200, 50], [300, 60], [400, 65]],
        }
        for axis, numbers in (("x", (100, 400)), ("y", (40, 80))):
            assert panel[axis]["low"] <= numbers[0] < numbers[1] <= panel[axis]["high"]


def test_the_table_behind_the_curves_has_the_same_numbers():
    (table,) = shown_of(make_result())["curves"]["tables"]
    assert table["title"] == "Points of the curves"
    assert [row[1:3] for row in table["rows"]][:2] == [["Seed", "100"], ["1", "200"]]
    assert f"80.0{THIN}%" in table["rows"][-1]


def test_without_a_test_set_the_curve_is_that_of_the_audit_slices_with_their_intervals():
    result = make_result(test=False, audit=12, money=(200, 500, 800, 1100))
    shown = shown_of(result)
    mean, intent, _ = shown["curves"]["panels"]
    assert [mark["y"] for mark in mean["marks"]] == [40, 60, 70]
    assert [(mark["x"], mark["low"], mark["high"]) for mark in intent["marks"]] == [
        (200, 30, 50),
        (500, 50, 70),
        (800, 60, 80),
    ]
    assert "unbiased" in shown["curves"]["note"]


def test_slices_too_small_for_an_interval_are_told_of_and_not_drawn():
    shown = shown_of(make_result(audit=3))["curves"]
    assert all("marks" not in panel for panel in shown["panels"])
    assert "fewer than 10 items" in shown["note"]
    assert [table["title"] for table in shown["tables"]] == ["Points of the curves", "Audit slices"]


# -- tiles -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("savings", "value", "tone"),
    [
        ((0.1, 0.3, 0.5), f"30{THIN}% less", "good"),
        ((-0.5, -0.3, -0.1), f"30{THIN}% more", "poor"),
        ((-0.2, 0.001, 0.2), "As much", ""),
        ((-0.4, 0.9, 0.95), "Not known yet", ""),
    ],
)
def test_what_was_saved_is_a_number_unless_its_interval_holds_both_nothing_and_a_lot(savings, value, tone):
    low, middle, high = savings
    saved = {"low": low, "saved": middle, "high": high, "items": 30, "slices": 3, "needed": 120}
    shown = shown_of(make_result(test=False, audit=10, savings=saved, money=(200, 500, 800, 1100)))
    tile = shown["tiles"][3]
    assert (tile["value"], tile["tone"]) == (value, tone)
    unknown = value == "Not known yet"
    assert ("needs about 120 audit labels" if unknown else "by 30 audit labels") in tile["note"]
    (row,) = shown["curves"]["saved"]
    assert (row["low"], row["middle"], row["high"]) == (low, None if unknown else middle, high)


def test_a_run_beside_random_says_what_it_took_to_reach_randoms_last_score():
    # random ends at 60 %; a straight line from 60 % at 200 units was there with half of its 400
    result = make_result({"MT-AVG": (0.4, 0.6, 0.7, 0.8), "RANDOM": (0.4, 0.5, 0.55, 0.6)})
    tile = shown_of(result)["tiles"][3]
    assert tile["value"] == f"50{THIN}% less"
    assert "one run" in tile["note"]
    assert tile["tone"] == ""


def test_the_tiles_of_a_round_count_its_answers_and_its_money():
    result = make_result(ended=None, config=EUROS)
    answered, spent, score, _ = shown_of(
        result, phase="annotating", answered=4, skipped=1, open=5, spent=400, budget=1000
    )["tiles"]
    assert (answered["value"], answered["share"]) == ("4 of 10", 0.5)
    assert "in round 3; 1 skipped; 40 items, 80 labels in total" in answered["note"]
    assert (spent["value"], spent["note"], spent["share"]) == ("€4.00", "of €10.00, €6.00 left", 0.4)
    assert score["value"] == f"80.0{THIN}%"


def test_a_budget_that_counts_items_is_shown_in_items():
    result = make_result(config={"budget": {"counts": "items", "seed_items": 10, "per_round": 10, "rounds": 3}})
    shown = shown_of(result, phase="annotating", spent=12, budget=40, open=1)
    assert shown["tiles"][1]["value"] == "12 items"
    assert shown["by_item"] is True
    assert shown["split"]["why"] == "the amount spent so far"


# -- what is going on ------------------------------------------------------------------------------------------------
def test_one_open_item_is_spoken_of_as_one():
    state = state_of(phase="annotating", answered=9, open=1)
    asked = train(state)["ask"]
    assert asked.startswith("1 item is not answered yet. It returns to the pool, and its cost")
    assert "1 item left" in lead(make_result(), replace(state, phase="training"))


def test_nothing_can_be_trained_before_the_first_answer_nor_while_training_nor_at_the_end():
    assert train(state_of(**BEGINNING))["button"] is None
    assert train(state_of(phase="training"))["button"] is None
    assert train(state_of())["button"] is None
    assert train(state_of(phase="annotating", open=0)) | {"words": ""} == {
        "title": "Waiting for answers",
        "words": "",
        "button": "Train the next round now",
        "close": False,
        "ask": None,
        "annotate": False,
    }


def test_a_failure_says_why_and_offers_to_try_again():
    result = make_result(ended=None)
    shown = shown_of(result, phase="failed", why="the disk is full. Fix: make room.")
    assert shown["headline"] == "The next round could not be prepared"
    assert shown["lead"] == "The disk is full. Fix: make room. No answers are lost. Try again below."
    assert (shown["train"]["button"], shown["train"]["close"]) == ("Try again", False)


def test_rounds_that_were_added_later_are_counted():
    result = make_result(ended=None, edit=lambda found: found["config"]["budget"].update(rounds=8))
    assert shown_of(result, phase="annotating")["headline"] == "Round 3 of 8 is being annotated"


# -- empty states ----------------------------------------------------------------------------------------------------
def test_before_the_first_model_every_part_says_what_to_do():
    shown = dashboard(empty_result(audit=5), state_of(**BEGINNING), "runs/pilot")
    shown |= shown["panels"]
    assert [name for name in PARTS if not shown[name].get("empty")] == []
    assert "Answer the seed items under Annotate" in shown["curves"]["empty"]
    assert "once the seed items are answered" in shown["next"]["empty"]
    assert [tile["value"] for tile in shown["tiles"]] == ["0 of 10", "0 units", "–", "Not known yet"]
    assert shown["train"]["annotate"] is True
    assert shown["story"] == []


def test_one_task_has_nothing_to_split():
    assert "nothing to split" in shown_of(make_result(tasks=("intent",)))["split"]["empty"]


def test_a_project_that_nobody_can_score_is_told_how_to_change_that():
    result = make_result(test=False, ended=None)
    assert "Give the audit a share" in shown_of(result, phase="annotating")["curves"]["empty"]


# -- spending --------------------------------------------------------------------------------------------------------
def test_bars_and_totals_add_up_to_what_was_spent():
    more = [  # what people who annotate add: development items, and items asked again
        {"round": 0, "purpose": "dev", "what": "reading", "estimate": 40, "actual": 44, "items": 4, "answers": 4},
        {"round": 2, "purpose": "overlap", "what": "intent", "estimate": 3, "actual": 3, "items": 1, "answers": 1},
    ]
    result = make_result(audit=4, edit=lambda found: found["arms"]["MT-AVG"]["spending"].extend(more))
    chart = spending_chart(result)
    drawn = [max(bar.y[1] for bar in chart.bars if round(sum(bar.x) / 2) == at) for at in range(4)]
    paid = [sum(line.actual for line in result.main.spending if line.round == round) for round in range(4)]
    assert drawn == paid
    assert [total.text for total in chart.notes] == [f"{units:,} units" for units in paid]
    totals = {row["name"]: row for row in spending_totals(result)}
    things = sum(totals[name]["share"] for name in ("Reading", "Intent", "Slots"))
    assert things == pytest.approx(1)
    assert totals["Audit slices (included)"]["share"] == pytest.approx(120 / sum(paid))


def test_the_table_of_spending_has_every_line_of_the_ledger():
    result = make_result(audit=4, config=EUROS)
    (table,) = shown_of(result)["spending"]["tables"]
    lines = result.main.spending
    assert len(table["rows"]) == len(lines)
    assert ["1", "audit slice", "reading", "4", "€0.16", "€0.16"] in table["rows"]
    rounds = [-1 if row[0] == "Seed" else int(row[0]) for row in table["rows"]]
    assert all(one <= other for one, other in pairwise(rounds))


# -- confidence, stopping, the next round ----------------------------------------------------------------------------
def test_points_of_a_reliability_diagram_are_the_filled_bins():
    record = make_reliability((0, 0.1, 0.1), (10, 0.4, 0.5), (30, 0.9, 0.8))
    trust = shown_of(make_result(reliability={"intent": record}))["trust"]
    (panel,) = trust["panels"]
    assert [(mark["x"], mark["y"]) for mark in panel["marks"]] == [(0.4, 0.5), (0.9, 0.8)]
    fewer, more = (bar["y"][1] for bar in panel["bars"])
    assert fewer / more == pytest.approx(1 / 3)
    assert "30 items" in panel["marks"][1]["text"]


def test_confidence_that_was_asked_about_development_items_says_so():
    record = make_reliability((40, 0.6, 0.6), (40, 0.9, 0.9))
    words = " ".join(shown_of(make_result(test=False, reliability={"intent": record}))["trust"]["words"])
    assert "development items" in words
    assert "optimistic" in words
    on_test = " ".join(shown_of(make_result(reliability={"intent": record}))["trust"]["words"])
    assert "development items" not in on_test


def advised(stop):
    """A result with advice on stopping, and the curve that it comes from."""
    told = {"gain": 0.021, "low": 0.012, "high": 0.034, "stop": stop, "settled": False, "why": "that is enough"}
    ends = {"money": [400, 500], "score": [0.8, 0.82], "low": [0.8, 0.81], "high": [0.8, 0.83]}
    ahead = {
        "source": "dev",
        "next_money": 100,
        "money": [100, 200, 300, 400],
        "score": [0.4, 0.6, 0.7, 0.8],
        "curve": {"money": [100, 400], "score": [0.4, 0.8]},
        "ahead": ends,
    }
    return make_result(edit=lambda found: found["arms"]["MT-AVG"].update(stopping=[told], forecast=ahead))


def test_the_predicted_gain_and_the_verdict_are_those_of_the_newest_advice():
    shown = shown_of(advised(stop=False))
    assert shown["next"]["gain"]["value"] == "+2.1 points"
    assert "for another 100 units; 1.2 to 3.4 in 90" in shown["next"]["gain"]["note"]
    assert shown["stopping"]["verdict"] == "go on"
    assert shown["stopping"]["words"][0].startswith("Another 100 units should add 2.1 points")
    (chart,) = shown["stopping"]["panels"]
    assert [mark["y"] for mark in chart["marks"]] == [40, 60, 70, 80]
    assert chart["bands"][0]["low"] == [80, 81]
    assert shown_of(advised(stop=True))["stopping"]["verdict"] == "stop"


def test_the_next_round_can_be_foreseen_while_the_campaign_goes_on_and_not_after():
    assert shown_of(make_result(ended=None), phase="annotating", open=3)["next"]["may"] is True
    over = shown_of(make_result())["next"]
    assert over["may"] is False
    assert "all rounds are done" in over["empty"]


def test_the_money_to_split_is_what_is_left_and_after_the_end_that_of_a_round():
    going = shown_of(make_result(ended=None, config=EUROS), phase="annotating", spent=400, budget=1000)["split"]
    assert (going["amount"], going["why"]) == ("6.00", "the rest of the budget")
    over = shown_of(make_result(config=EUROS))["split"]
    assert (over["amount"], over["why"]) == ("1.00", "the budget of the last round")


def test_the_best_order_is_asked_for_where_the_campaign_is_over():
    assert shown_of(make_result())["oracle"]["command"] == "bursar oracle runs/pilot"
    assert "command" not in shown_of(make_result(ended=None), phase="annotating")["oracle"]
    refused = make_result().model_copy(update={"oracle": {"refused": "the labels are not known"}})
    assert shown_of(refused)["oracle"]["empty"] == "Not available: the labels are not known."


def test_the_seed_items_are_no_round():
    assert answered_clause(0) == "the seed items are answered"
    assert answered_clause(3) == "round 3 is answered"
