"""All that is said of a split."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bursar.allocation import exact, greedy
from bursar.allocation.advice import Context, advise
from bursar.allocation.estimates import SMALLEST
from bursar.errors import AllocationError
from tests.allocation.problems import made


def problem(**more):
    return made(
        [0.5, 0.8, 1.0],
        [100, 100, 50],
        [[1, 0.5, 0], [-0.4, 1, 0.1], [0, 0.05, 1]],
        [1, 2, 4],
        1000,
        errors=[[0, 0.1, 0], [0.05, 0, 0], [0, 0, 0]],
        ends=[(0.4, 0.6), (0.8, 0.8), (0.9, 1.0)],
        **more,
    )


@pytest.mark.parametrize(("method", "split"), [("exact", exact), ("greedy", greedy)])
def test_the_split_is_that_of_the_method(method, split):
    found = advise(problem(), method=method)
    assert found.split.counts == split(problem()).counts
    assert found.robust is None


def test_a_robust_answer_says_how_much_it_may_lose():
    found = advise(problem(), method="robust")
    assert found.split.method == "robust"
    assert found.robust.regret <= found.robust.nominal
    assert found.outcomes[0].regret <= found.robust.regret + 1e-9


def test_reasons_say_who_informs_whom_and_how_fast_labels_lose_worth():
    found = advise(problem())
    reasons = "\n".join(found.reasons)
    # A label of the first block is worth 1.5 for 1, 0.7 for 2, 1.05 for 4; the first label of intent, of which half is
    # lost within the block, 100 · (1 − 0.5^0.01) / 0.5 = 1.381 times as much, and the last task loses nothing
    assert "For its price, a first label of intent is worth the most to all tasks together, 7.89 times" in reasons
    effects = [reason for reason in found.reasons if "labels of its own" in reason]
    assert effects == [
        "A label of intent advances slots by 0.5 (± 0.1) labels of its own.",
        "A label of slots sets back intent by 0.4 (± 0.05) labels of its own.",
        "A label of slots advances urgency by 0.1 labels of its own.",
        "A label of urgency advances slots by 0.05 labels of its own.",
    ]
    assert "One more label of intent is worth half of the first after 100 labels" in reasons
    assert "Labels of urgency do not lose value." in reasons
    assert "With half of the money the best split would gain" in reasons


def test_a_rate_that_is_not_known_is_told():
    unknown = made([0.5, 0.5], [10, 10], np.eye(2), [1, 1], 50, ends=[(SMALLEST, 1.0), (0.4, 0.6)])
    assert "How fast labels of intent lose value is not known; 0.5 per block is assumed." in advise(unknown).reasons


def test_baselines_come_best_first_and_those_that_cannot_be_had_are_named():
    found = advise(problem())
    totals = [other.total for other in found.others]
    assert totals == sorted(totals, reverse=True)
    assert totals[0] <= found.split.total + 1e-9
    assert {"only intent", "equal money", "random", "no transfer"} <= {other.method for other in found.others}
    assert found.left_out == (
        "same items: the price of an item labelled for all tasks is not known",
        "difficulty: the seed score of intent, slots, urgency is not known",
    )
    more = advise(problem(joint=5), Context({"intent": 0.5, "slots": 0.6, "urgency": 0.7}))
    assert more.left_out == ()


def test_all_of_it_can_be_written_as_json_and_the_same_seed_says_the_same():
    told = json.dumps(advise(problem(), seed=2).describe(), allow_nan=False)
    assert told == json.dumps(advise(problem(), seed=2).describe(), allow_nan=False)
    found = json.loads(told)
    assert found["cost"] + found["unspent"] == found["budget"] == 1000
    assert sum(task["spent"] for task in found["tasks"].values()) == found["cost"]
    assert found["predicted_in_all"]["value"] == pytest.approx(found["total"])
    assert found["predicted"].keys() == found["tasks"].keys() == found["estimates"]["rates"].keys()
    assert found["estimates"]["informativeness"]["intent"]["slots"] == {"value": 0.5, "error": 0.1}
    assert found["prices"] == {"intent": 1, "slots": 2, "urgency": 4}
    assert found["scenarios"][0]["regret"] >= found["scenarios"][-1]["regret"]


def test_effects_within_their_errors_are_no_reasons():
    errors = np.full((2, 2), 0.3) - 0.3 * np.eye(2)
    found = advise(made([0.5, 0.8], [100, 100], [[1, 0.5], [-0.4, 1]], [1, 1], 100, errors=errors))
    assert not any("of its own" in reason for reason in found.reasons)
    assert any("is not known" in reason for reason in found.reasons)


def test_the_task_whose_first_label_is_worth_the_most_for_its_price_is_bought_first():
    fast = made([0.3, 0.8], [200, 200], np.eye(2), [1, 1], 1)
    assert exact(fast).counts == (1, 0)
    assert advise(fast).reasons[0].startswith("For its price, a first label of intent is worth the most")


@pytest.mark.parametrize(("joint", "better"), [(1, True), (7, False)])
def test_items_for_all_tasks_are_recommended_if_they_are_cheap(joint, better):
    found = advise(problem(joint=joint))
    (same,) = (other for other in found.others if other.method == "same items")
    assert (same.total > found.split.total) == better
    said = f"Labelling the same items for all tasks, at {joint} an item, would gain more than this: the method together"
    assert any(reason.startswith(said) for reason in found.reasons) == better


def test_an_unknown_method_is_refused():
    with pytest.raises(AllocationError, match="use exact, greedy, together, robust"):
        advise(problem(), method="magic")


def test_nothing_that_is_worth_buying_has_an_answer_too():
    harmful = made([0.5, 0.5], [10, 10], [[1, -2], [-2, 1]], [1, 1], 50)
    for method in ("exact", "greedy", "robust"):
        found = advise(harmful, method=method)
        assert found.split.counts == (0, 0)
        assert "Nothing is bought." in found.reasons[0]
