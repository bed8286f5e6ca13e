"""What the report says of a split: the labels and the money of each task, and why."""

from __future__ import annotations

from bursar.campaign.decisions import SelectedItem
from bursar.report.page import render
from bursar.report.tables import paid_by_task, split_table, split_words
from tests.report.results import make_corpus, make_result

KNOWN = {
    "labels": {"intent": 10, "slots": 10},
    "rates": {"intent": [0.5, 0.4, 0.6, 10], "slots": [0.8, 0.7, 0.9, 10]},
    "informs": {"intent": {"slots": [-0.4, 0.1]}, "slots": {"intent": [0.3, 0.2]}},
    "unknown": ["slots"],
}


def split_result():
    """A run whose first round was split between its tasks, with none for slots."""
    estimate = {"reading": 4, "intent": 3, "slots": 3}
    items = [{"id": f"i{k}", "tasks": ["intent"], "purpose": "strategy", "estimate": estimate} for k in range(3)]
    caps, worth = {"intent": 4, "slots": 0}, {"intent": 0.6, "slots": 0.1}
    split = {"round": 1, "method": "greedy", "money": 28, "labels": caps, "gain": 2.4, "worth": worth, "known": KNOWN}

    def edit(found):
        arm = found["arms"]["UDJS"]
        arm["selections"][1] |= {"caps": caps, "items": items}
        arm["splits"] = [split | {"prices": {"intent": 7, "slots": 9}}]

    return make_result({"UDJS": (0.4, 0.6, 0.7, 0.8)}, edit=edit)


def test_the_table_has_what_was_chosen_of_what_might_be():
    [row] = split_table(split_result()).rows
    assert row == ("1", "21", "3 of 4 (100\u202f%)", "0 of 0 (0\u202f%)")


def test_the_words_tell_the_dearest_label_clear_effects_and_what_is_not_known():
    [words] = split_words(split_result())
    assert "a label of intent had the highest value for its price" in words
    assert "One label of intent was worth −0.40 labels of slots." in words
    assert "One label of slots" not in words  # 0.3 ± 0.2 is not clear
    assert "None for slots" in words
    assert "How fast slots saturates was not known: there were too few labels." in words


def test_the_page_shows_a_split_only_where_there_was_one():
    corpus = make_corpus()
    assert "How the budget was split" in render(split_result(), corpus)
    assert "How the budget was split" not in render(make_result(), corpus)


def test_audit_items_are_not_of_the_split():
    item = SelectedItem(id="u1", tasks=("intent",), purpose="audit", estimate={"reading": 4, "intent": 3})
    assert paid_by_task([item], ["intent"]) == ({"intent": 0.0}, {"intent": 0})
