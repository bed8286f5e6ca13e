"""What all kinds share: vocabularies, descriptions, and the counting kernels, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from bursar.errors import LabelError, SchemaError
from bursar.ragged import Ragged
from bursar.tasks import Classification, Parsing, Regression, Relations, Tagging, Task, Vocabulary, make_task
from bursar.tasks.task import class_f1, groups_of, keys_of, matched_counts, ratio, span_of

often = settings(deadline=None, max_examples=60)


# -- vocabularies --------------------------------------------------------------------------------------------------
@often
@given(st.lists(st.text(min_size=1, max_size=3), max_size=10))
def test_an_open_vocabulary_numbers_labels_as_they_come(labels):
    vocabulary = Vocabulary()
    codes = [vocabulary.code(label) for label in labels]
    seen = list(dict.fromkeys(labels))
    assert codes == [seen.index(label) for label in labels]
    assert vocabulary.labels == tuple(seen)
    assert len(vocabulary) == len(seen)


def test_a_closed_vocabulary_refuses_what_it_does_not_hold_and_stays_as_it_is():
    vocabulary = Vocabulary(["yes", "no"], closed=True)
    with pytest.raises(LabelError, match=r"unknown label 'maybe'. Fix: use one of: yes, no"):
        vocabulary.code("maybe")
    assert vocabulary.labels == ("yes", "no")


def test_a_long_closed_vocabulary_is_not_listed_to_the_end():
    with pytest.raises(LabelError) as raised:
        Vocabulary([f"label{n}" for n in range(100)], closed=True).code("maybe")
    assert raised.value.fix.endswith("label11, …")


def test_a_closed_vocabulary_without_labels_says_so():
    with pytest.raises(LabelError, match="the task has no labels"):
        Vocabulary(closed=True).code("maybe")


@pytest.mark.parametrize("label", [None, 3, True, "", ["yes"], {"a": 1}, 0.5])
@pytest.mark.parametrize("closed", [True, False])
def test_only_a_string_with_something_in_it_is_a_label(label, closed):
    with pytest.raises(LabelError, match="a label must be a non-empty string"):
        Vocabulary(["yes"], closed=closed).code(label)


# -- descriptions --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({}, "has no known kind: None. Fix: kind = one of classification"),
        ({"kind": "taging"}, "has no known kind: 'taging'"),
        ({"kind": ["tagging"]}, "has no known kind"),
        ({"kind": "tagging", "label": ["a"]}, "a tagging task has no option 'label'. Fix: use .*'labels'"),
        ({"kind": "tagging", "name": "b"}, "a tagging task has no option 'name'"),
        ({"kind": "tagging", "labels": "abc"}, "labels must be a list of non-empty strings"),
        ({"kind": "tagging", "labels": ["a", ""]}, "labels must be a list of non-empty strings"),
        ({"kind": "tagging", "labels": ["a", 3]}, "labels must be a list of non-empty strings"),
        ({"kind": "tagging", "labels": ["a", "b", "a"]}, "labels names a label twice"),
        ({"kind": "relations", "entity_types": ["a", "a"]}, "entity_types names a label twice"),
        ({"kind": "tagging", "every_word": 1}, "every_word must be true or false"),
        ({"kind": "regression", "labels": ["a"]}, "a regression task has no option 'labels'"),
        ({"kind": "regression", "low": "0"}, "low and high must be numbers"),
        ({"kind": "regression", "high": float("inf")}, "low and high must be numbers"),
        ({"kind": "regression", "high": 10**400}, "low and high must be numbers"),
        ({"kind": "regression", "high": True}, "low and high must be numbers"),
        ({"kind": "regression", "low": 1}, "low .1. must be below high"),
        (3, "is described by 3"),
        ("tagging", "is described by 'tagging'"),
        (None, "is described by None"),
    ],
)
def test_a_description_that_makes_no_task_is_refused_by_the_tasks_name(description, message):
    with pytest.raises(SchemaError, match=message) as raised:
        make_task("slots", description)
    assert "'slots'" in str(raised.value)


def test_a_description_holds_what_the_kind_has_and_no_more():
    assert Classification("x", ("a",)).describe() == {"kind": "classification", "labels": ["a"]}
    assert Tagging("x").describe() == {"kind": "tagging", "labels": [], "every_word": False}
    assert Relations("x").describe() == {"kind": "relations", "labels": [], "entity_types": []}
    assert Regression("x", high=5).describe() == {"kind": "regression", "low": 0.0, "high": 5}


# -- kernels -------------------------------------------------------------------------------------------------------
@often
@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 4), st.booleans())
def test_a_span_must_lie_in_the_items_words(start, end, words, as_list):
    value = [start, end, "a"] if as_list else (start, end)
    if 0 <= start < end <= words:
        assert span_of(value, words) == (start, end)
    else:
        with pytest.raises(LabelError, match="is outside the item's"):
            span_of(value, words)


rows = st.lists(st.lists(st.tuples(*[st.integers(0, 2)] * 3), max_size=4), max_size=5)


@often
@given(rows, st.randoms(use_true_random=False))
def test_matched_counts_are_sizes_of_sets(gold, random):
    guess = [[row for row in item if random.random() < 0.7] + [(0, 1, 2)] * random.randint(0, 2) for item in gold]
    expected = [[len(set(a) & set(b)), len(set(b)), len(set(a))] for a, b in zip(gold, guess, strict=True)]
    counts = matched_counts(Ragged.of(gold, 3), Ragged.of(guess, 3))
    assert counts.shape == (len(gold), 3)
    assert counts.tolist() == expected


def test_matched_counts_are_right_where_a_row_is_too_long_for_one_number():
    rng = np.random.default_rng(3)
    biggest = 2**31 - 1
    pool = rng.integers(0, biggest, (40, 7))
    pool[0] = pool[1] = biggest
    pool[1, 6] = 0  # rows that differ in the last column only
    pool[2], pool[3] = pool[0], pool[0]
    pool[3, 0] = 0  # ... and in the first
    gold = [[tuple(pool[k].tolist()) for k in rng.integers(0, 40, n)] for n in rng.integers(0, 12, 50)]
    guess = [[tuple(pool[k].tolist()) for k in rng.integers(0, 40, n)] for n in rng.integers(0, 12, 50)]
    expected = [[len(set(a) & set(b)), len(set(b)), len(set(a))] for a, b in zip(gold, guess, strict=True)]
    assert matched_counts(Ragged.of(gold, 7), Ragged.of(guess, 7)).tolist() == expected


@often
@given(st.lists(st.tuples(*[st.sampled_from([0, 1, 5, 2**31 - 1])] * 4), max_size=20))
def test_keys_are_equal_exactly_where_rows_are(rows):
    keys = keys_of(list(np.array(rows, dtype=np.int32).reshape(-1, 4).T)).tolist()
    for a, one in enumerate(rows):
        for b, other in enumerate(rows):
            assert (keys[a] == keys[b]) == (one == other)


def test_a_ratio_is_zero_where_there_is_nothing_to_divide_by():
    assert ratio(np.array([1.0, 0.0, 3.0]), np.array([2.0, 0.0, 0.0])).tolist() == [0.5, 0.0, 0.0]
    assert float(ratio(3, 0)) == 0.0


@often
@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_f1_is_the_harmonic_mean_of_precision_and_recall(shared, more_guessed, more_gold):
    guessed, gold = shared + more_guessed, shared + more_gold
    precision, recall = (shared / n if n else 0.0 for n in (guessed, gold))
    expected = 2 * precision * recall / (precision + recall) if shared else 0.0
    assert float(Tagging("slots").score(np.array([shared, guessed, gold]))) == pytest.approx(expected)


@often
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30))
def test_class_f1_is_scikit_learns(pairs):
    gold, guess = np.array(pairs).T
    macro, weighted = class_f1(gold, guess, 7)
    assert macro == pytest.approx(f1_score(gold, guess, average="macro", zero_division=0))
    assert weighted == pytest.approx(f1_score(gold, guess, average="weighted", zero_division=0))


def test_class_f1_of_nothing_is_zero():
    assert class_f1(np.zeros(0, np.int64), np.zeros(0, np.int64), 3) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("task", "value", "words", "shown"),
    [
        (Tagging("places"), [[0, 2, "city"]], "New York", ["New York: city"]),
        (Parsing("tree"), [[0, "root"], [1, "obj"]], "wake me", ["wake: root", "me: obj of wake"]),
        (
            Relations("links"),
            [[[0, 1, "method"], [2, 3, "task"], "used-for"]],
            "CRFs for tagging",
            ["CRFs (method) → used-for → tagging (task)"],
        ),
    ],
)
def test_labels_are_shown_in_the_words_of_their_item(task, value, words, shown):
    assert task.show(value, words.split()) == shown


def test_a_cell_of_spans_holds_their_text_and_people_are_compared_by_word():
    words, slots = ["a", "blue", "shirt"], Tagging("slots", ("product",))
    value = [[1, 3, "product"]]
    assert slots.cell(value, words, lambda start, end: " ".join(words[start:end])) == 'product: "blue shirt"'
    assert slots.compared(value, 3) == ["", "product", "product"]


def test_entities_and_their_relations_are_trained_together():
    entities, intent = Tagging("entities", ("a", "b")), Classification("intent", ("x", "y"))
    links = Relations("links", ("in",), entity_types=("a", "b"))
    assert groups_of({"links": links, "intent": intent, "entities": entities}) == [["entities", "links"], ["intent"]]


def test_a_kind_without_a_display_of_its_own_is_shown_as_json():
    assert Task.show(Tagging("odd"), {"a": [1]}, []) == ['{"a": [1]}']
