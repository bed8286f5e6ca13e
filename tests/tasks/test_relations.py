"""The strict relation score against plain Python sets."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings

from bursar.errors import LabelError
from bursar.tasks import Relations
from tests.tasks.examples import EXAMPLES, LABELS, column, items_of

TASK = Relations("links", ("used-for", "part-of"), entity_types=LABELS)
GOLD = [[0, 2, "city"], [3, 4, "größe"], "used-for"]


def frozen(label: list) -> set[str]:
    return {json.dumps(relation) for relation in label}


@settings(deadline=None, max_examples=60)
@given(items_of(EXAMPLES["relations"]))
def test_precision_recall_and_f1_are_those_of_sets(items):
    words = np.array([item[0] for item in items], dtype=np.int64)
    gold, guess = (column(TASK, [(item[0], item[k]) for item in items]) for k in (1, 2))
    shared = sum(len(frozen(a) & frozen(b)) for _, a, b in items)
    known, guessed = (sum(len(frozen(item[k])) for item in items) for k in (1, 2))
    assert TASK.evaluate(gold, guess, words) == pytest.approx(
        {
            "f1": 2 * shared / (known + guessed) if shared else 0,
            "precision": shared / guessed if guessed else 0,
            "recall": shared / known if known else 0,
        }
    )


@pytest.mark.parametrize(
    "wrong",
    [
        [[1, 2, "city"], [3, 4, "größe"], "used-for"],
        [[0, 1, "city"], [3, 4, "größe"], "used-for"],
        [[0, 2, "größe"], [3, 4, "größe"], "used-for"],
        [[0, 2, "city"], [2, 4, "größe"], "used-for"],
        [[0, 2, "city"], [3, 5, "größe"], "used-for"],
        [[0, 2, "city"], [3, 4, "city"], "used-for"],
        [[0, 2, "city"], [3, 4, "größe"], "part-of"],
        [[3, 4, "größe"], [0, 2, "city"], "used-for"],
    ],
)
def test_one_wrong_end_type_direction_or_relation_is_no_match(wrong):
    words = np.array([5])
    gold, guess = column(TASK, [(5, [GOLD])]), column(TASK, [(5, [wrong])])
    assert TASK.evaluate(gold, guess, words)["f1"] == 0.0
    both = column(TASK, [(5, [wrong, GOLD])])
    assert TASK.evaluate(gold, both, words) == pytest.approx({"f1": 2 / 3, "precision": 0.5, "recall": 1.0})


def test_a_relation_in_another_item_is_no_match():
    gold, guess = column(TASK, [(5, [GOLD]), (5, [])]), column(TASK, [(5, []), (5, [GOLD])])
    assert TASK.evaluate(gold, guess, np.array([5, 5]))["f1"] == 0.0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "relations must be a list"),
        (["used-for"], "a relation must be"),
        ([[[0, 2, "city"], "used-for"]], "a relation must be"),
        ([[[0, 2], [3, 4, "größe"], "used-for"]], "a relation must be"),
        ([["abc", "def", "used-for"]], "a relation must be"),
        ([[[0, "2", "city"], [3, 4, "größe"], "used-for"]], "a span must be"),
        ([[[0, 2, "city"], [3, 9, "größe"], "used-for"]], "is outside the item's 5 words"),
        ([[[0, 2, "town"], [3, 4, "größe"], "used-for"]], "unknown label 'town'"),
        ([[[0, 2, "city"], [3, 4, "größe"], "near"]], "unknown label 'near'"),
        ([[[0, 2, "city"], [3, 4, None], "used-for"]], "a label must be a non-empty string"),
    ],
)
def test_what_is_no_list_of_relations_is_refused_in_words(value, message):
    with pytest.raises(LabelError, match=message):
        TASK.encode(value, 5)
