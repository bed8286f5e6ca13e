"""The sentences at the top of the page say what the numbers say, and no more."""

from __future__ import annotations

import pytest

from bursar.report.spending import round_rows, spending_words
from bursar.report.summary import summarise
from tests.report.results import KINDS, make_items, make_result

BETTER = {"MT-AVG": (0.4, 0.6, 0.72, 0.8), "RANDOM": (0.4, 0.5, 0.6, 0.7)}
WORSE = {"MT-AVG": (0.4, 0.45, 0.5, 0.65), "RANDOM": (0.4, 0.5, 0.6, 0.7)}
LEVEL = {"MT-AVG": (0.4, 0.5, 0.6, 0.7), "RANDOM": (0.4, 0.5, 0.6, 0.7)}
FOUND = {"saved": 0.31, "low": 0.05, "high": 0.44, "items": 75, "slices": 3}


def lead(result) -> str:
    return " ".join(summarise(result).lead).replace("\u202f", " ")


def tiles(result) -> dict[str, str]:
    return {tile.title: tile.value.replace("\u202f", " ") for tile in summarise(result).tiles}


# -- what was spent and scored ---------------------------------------------------------------------------------------
def test_the_lead_states_money_items_labels_and_scores():
    words = lead(make_result(BETTER))
    assert "MT-AVG spent 400 units on 40 items and 80 labels." in words
    assert "80.0 % accuracy for intent and 80.0 % F1 for slots on the test set" in words


def test_money_has_its_currency():
    result = make_result(BETTER, config={"costs": {"unit": 0.01, "currency": "€"}})
    assert "spent €4.00 on 40 items" in lead(result)
    assert tiles(result)["Spent"] == "€4.00"


def test_a_correlation_is_no_percentage():
    result = make_result({"MT-AVG": (0.4, 0.5, 0.6, 0.7)}, tasks=("urgency",))
    assert "0.700 correlation for urgency" in lead(result)


# -- against random --------------------------------------------------------------------------------------------------
def test_the_saving_is_the_one_the_curves_show():
    """0.7 is reached at 283.33 of 400: 29 % less."""
    words = lead(make_result(BETTER))
    assert "It reached the final score of random for 29 % less" in words
    assert "ended 10.0 points higher on average over tasks at equal cost" in words
    assert tiles(make_result(BETTER))["Cost against random"] == "29 % less"


def test_a_strategy_that_lost_is_said_to_have_lost():
    """Random had 0.65 at 350 of 400: 14 % more. On the way it was (0.425 + 0.475 + 0.575) / 3 against 0.55."""
    words = lead(make_result(WORSE))
    assert "It did not beat random here: the same score cost 14 % more" in words
    assert "and at equal cost it ended 5.0 points lower on average over tasks" in words
    assert "and was 5.8 points lower on average along the curve." in words
    assert tiles(make_result(WORSE))["Cost against random"] == "14 % more"


def test_a_draw_is_a_draw():
    assert "At equal cost, it ended level with random on average over tasks." in lead(make_result(LEVEL))
    assert tiles(make_result(LEVEL))["Cost against random"] == "As much"


def test_a_random_arm_that_never_rose_is_told_as_that():
    words = lead(make_result({"MT-AVG": (0.4, 0.6), "RANDOM": (0.4, 0.4)}, money=(100, 200)))
    assert "Random did not improve; MT-AVG ended 20.0 points higher" in words


def test_one_task_needs_no_mean_over_tasks():
    assert "over tasks" not in lead(make_result(BETTER, tasks=("intent",)))


def test_nothing_ran_beside_it():
    words = lead(make_result())
    assert "not known yet: there are no audit slices, and no random run to compare with." in words
    assert tiles(make_result())["Cost against random"] == "Not known yet"


def test_a_comparison_is_marked_as_one_run_with_one_seed():
    """A share of 0.8 on 80 items: 1.645 · √(0.8 · 0.2 / 80) = 0.0736."""
    (caution,) = summarise(make_result(BETTER)).cautions
    assert "One run with one seed: on 80 test items, a score is known to about ±7.4 points" in caution
    assert summarise(make_result()).cautions == ()


def test_a_difference_is_praised_or_blamed_only_beyond_luck():
    """On 80 items luck is about 7 points: 10 more are good, 5 less may be luck, 20 less are poor."""

    def tones(mine: float) -> set[str]:
        arms = {"MT-AVG": (0.4, mine), "RANDOM": (0.4, 0.7)}
        tiles = summarise(make_result(arms, money=(100, 200))).tiles
        return {tile.tone for tile in tiles if tile.title in ("intent", "slots", "Cost against random")}

    assert tones(0.8) == {"good"}
    assert tones(0.65) == {""}
    assert tones(0.5) == {"poor"}


# -- what was saved, without random beside it ------------------------------------------------------------------------
ALONE = {"MT-AVG": (0.4, 0.6, 0.72, 0.8)}


def test_the_audit_gives_its_estimate_with_the_interval():
    result = make_result(ALONE, audit=5, savings=FOUND)
    assert "By the audit, it cost 31 % less than random labelling for the same score" in lead(result)
    assert "(90 % interval 5 % less to 44 % less)." in lead(result)
    assert tiles(result)["Cost against random"] == "31 % less"


def test_where_random_ran_beside_it_there_is_one_number_and_it_is_the_measured_one():
    result = make_result(BETTER, audit=5, savings=FOUND)
    assert tiles(result)["Cost against random"] == "29 % less"
    assert "29 % less" in lead(result)
    assert "31 %" not in lead(result)
    assert sum("random" in tile.title for tile in summarise(result).tiles) == 1


@pytest.mark.parametrize(
    ("low", "high", "saved", "said"),
    [
        (-0.2, 0.2, 0.001, "By the audit, it cost as much as random labelling"),
        (-0.4, -0.1, -0.2, "it cost 20 % more than random labelling for the same score (90 % interval 40 % more"),
        (-140.0, -0.1, -0.2, "90 % interval over twice as much to 10 % more"),
        (-0.1, 0.4, 0.2, "Savings against random are not known yet: the budget buys too few audit labels."),
    ],
)
def test_the_audit_does_not_boast(low, high, saved, said):
    found = FOUND | {"low": low, "high": high, "saved": saved}
    assert said in lead(make_result(ALONE, audit=5, savings=found))


def test_what_is_not_known_comes_with_what_would_summarise():
    vague = FOUND | {"low": -0.3, "high": 0.5}
    result = make_result(ALONE, audit=5, savings=vague | {"needed": 90})
    assert "telling 25 % from nothing needs about 90 audit labels, and there are 15." in lead(result)
    assert tiles(result)["Cost against random"] == "Not known yet"
    dear = make_result(ALONE, audit=5, savings=vague | {"needed": None})
    assert "the budget buys too few audit labels." in lead(dear)


def test_the_audit_says_what_it_lacks():
    assert "at least 20 audit items are needed, and there are 15." in lead(make_result(ALONE, test=False, audit=5))
    few = make_result({"MT-AVG": (0.4,)}, money=(100,), audit=5)
    assert "at least one round of selected items is needed." in lead(few)


def test_no_audit_and_no_shadow_are_told_apart():
    assert "there are no audit slices" in lead(make_result(ALONE))
    without = make_result(ALONE, audit=5, config={"audit": {"share": 0.2, "shadow": False}})
    assert "audit.shadow is off" in lead(without)
    random = make_result({"RANDOM": (0.4, 0.5)}, money=(100, 200))
    assert "Savings against random" not in lead(random)
    assert "Cost against random" not in tiles(random)


def test_without_a_test_set_the_audit_slice_scores_and_nothing_is_compared():
    """The last slice was answered by the model of round 2, whose score is 0.72."""
    result = make_result(BETTER, test=False, audit=5)
    assert "72.0 % accuracy for intent and 72.0 % F1 for slots on the latest audit slice" in lead(result)
    assert "There is no test set, so it cannot be compared with random" in lead(result)
    assert [cell.score for cell in round_rows(result, "MT-AVG")[2].tasks] == ["72.0\u202f%", "72.0\u202f%"]


def test_with_neither_test_set_nor_audit_no_score_is_claimed():
    words = lead(make_result(test=False))
    assert "its score is not known" in words
    assert "%" not in words


# -- how far it is ---------------------------------------------------------------------------------------------------
def test_a_finished_run_says_so():
    summary = summarise(make_result(BETTER))
    assert summary.over
    assert summary.status == "Finished after 3 rounds"


def test_a_run_that_ended_early_says_why():
    early = make_result({"MT-AVG": (0.4, 0.6)}, money=(100, 200, 300), ended="the money is spent")
    assert summarise(early).status == "Finished after 1 round: the money is spent"


def test_a_run_that_is_being_annotated_says_how_far_it_is():
    line = {"round": 2, "purpose": "strategy", "what": "reading", "estimate": 8, "actual": 8, "items": 2, "answers": 2}

    def begin(found):
        items = make_items(9, found["tasks"])
        found["arms"]["MT-AVG"]["selections"].append({"round": 2, "budget": 100, "items": items})
        found["arms"]["MT-AVG"]["spending"].append(line)

    result = make_result({"MT-AVG": (0.4, 0.6)}, money=(100, 200, 300, 400), ended=None, edit=begin)
    summary = summarise(result)
    assert not summary.over
    assert summary.status == "In progress: round 2 of 3, 2 of 9 annotated"
    assert round_rows(result, "MT-AVG")[-1].open


def test_a_run_whose_comparison_has_not_finished_is_not_over():
    result = make_result(BETTER, edit=lambda found: found["arms"].pop("RANDOM"))
    summary = summarise(result)
    assert not summary.over
    assert "comparison is still running" in summary.status
    assert "have not started yet" in lead(result)


def test_a_run_that_has_not_begun_claims_nothing():
    result = make_result({"MT-AVG": ()}, money=(100,), ended=None)
    summary = summarise(result)
    assert not summary.over
    assert summary.lead == ("MT-AVG has not bought anything yet.",)
    assert tiles(result) == {"Spent": "0", "Items annotated": "0"}


def test_a_campaign_of_no_rounds_has_a_score_and_nothing_to_compare():
    result = make_result({"MT-AVG": (0.4,), "RANDOM": (0.4,)}, money=(100,))
    assert summarise(result).status == "Finished: seed items only"
    assert "A comparison with random needs at least two scored rounds" in lead(result)


# -- spending --------------------------------------------------------------------------------------------------------
def test_every_round_has_its_money_items_labels_and_scores():
    row = round_rows(make_result(BETTER), "MT-AVG")[1]
    assert (row.name, row.items, row.money, row.total, row.per_item) == ("1", 10, "100", "200", "10.0")
    assert [(cell.task, cell.labels, cell.score) for cell in row.tasks] == [
        ("intent", 10, "60.0\u202f%"),
        ("slots", 10, "60.0\u202f%"),
    ]
    assert row.off is None


def test_estimates_that_were_off_are_shown():

    def halve(found):
        for line in found["arms"]["MT-AVG"]["spending"]:
            line["estimate"] = line["actual"] // 2

    result = make_result(BETTER, config={"costs": {"pricing": "predicted"}}, edit=halve)
    row = round_rows(result, "MT-AVG")[0]
    assert (row.estimate, row.off) == ("50", "100.0\u202f% over the estimate")
    assert "The estimated cost was 200 units, the actual cost 400 units" in " ".join(spending_words(result))


@pytest.mark.parametrize("count", range(1, 6))
def test_any_number_of_tasks_has_a_tile_each(count):
    tasks = tuple(KINDS)[:count]
    found = tiles(make_result(BETTER, tasks=tasks))
    assert [title for title in found if title in KINDS] == list(tasks)


def test_a_proven_selection_is_said_to_be_proven_and_a_greedy_one_what_it_left():
    def words(*objectives):
        def certify(found):
            for selection, objective in zip(found["arms"]["MT-AVG"]["selections"][1:], objectives, strict=False):
                selection["certificate"] = {"objective": objective, "bound": 5.0, "optimal": objective == 5.0}

        return " ".join(spending_words(make_result(edit=certify)))

    assert "optim" not in words()
    assert "proven optimal" in words(5.0, 5.0, 5.0)
    assert "at least 80" in words(4.0, 5.0, 5.0)
