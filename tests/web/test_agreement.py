"""Inter-annotator agreement, compared with worked examples, scikit-learn and the definitions."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from bursar.ledger import Answer
from bursar.ledger.records import CORRECTION
from bursar.tasks import make_task
from bursar.web.agreement import (
    agreement,
    alike,
    cohen,
    krippendorff_interval,
    krippendorff_nominal,
    mean_cohen,
    span_f1,
    units_of,
)
from bursar.web.assignments import AnswerIndex

INTENT = make_task("intent", {"kind": "classification", "labels": ["a", "b", "c"]})
SLOTS = make_task("slots", {"kind": "tagging", "labels": ["x", "y"]})
POS = make_task("pos", {"kind": "tagging", "labels": ["N", "V"], "every_word": True})
TREE = make_task("tree", {"kind": "parsing", "labels": ["root", "obj"]})
LINKS = make_task("links", {"kind": "relations", "labels": ["r"], "entity_types": ["x"]})
URGENCY = make_task("urgency", {"kind": "regression"})

# Krippendorff's own example (2011, "Computing Krippendorff's Alpha-Reliability"): four observers, twelve units, some
# missing. He gives 0.743 for labels that are alike or not and 0.849 for numbers.
OBSERVERS = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)
UNITS = [[value for value in unit if value is not None] for unit in zip(*OBSERVERS, strict=True)]

labels = st.sampled_from("abc")
units = st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=8)


def plain_alpha(units, distance):
    """Krippendorff's alpha as it is defined: observed over expected disagreement, pair by pair."""
    units = [unit for unit in units if len(unit) > 1]
    pooled = [value for unit in units for value in unit]
    n = len(pooled)
    if not n:
        return None
    observed = sum(sum(distance(a, b) for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in units) / n
    expected = sum(distance(a, b) for a, b in permutations(pooled, 2)) / (n * (n - 1))
    return 1 - observed / expected if expected else None


def test_krippendorffs_own_example_comes_out_as_he_has_it():
    assert round(krippendorff_nominal(UNITS), 3) == 0.743
    assert round(krippendorff_interval(UNITS), 3) == 0.849


@settings(max_examples=60, deadline=None)
@given(units)
def test_nominal_alpha_is_its_definition(units):
    expected = plain_alpha(units, lambda a, b: float(a != b))
    assert krippendorff_nominal(units) == (None if expected is None else pytest.approx(expected))


@settings(max_examples=60, deadline=None)
@given(units, st.sampled_from([0.0, 1e6]))
def test_interval_alpha_is_its_definition_wherever_the_numbers_begin(units, shift):
    units = [[value + shift for value in unit] for unit in units]
    expected = plain_alpha(units, lambda a, b: float((a - b) ** 2))
    assert krippendorff_interval(units) == (None if expected is None else pytest.approx(expected, abs=1e-6))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(labels, labels), min_size=1, max_size=30))
def test_kappa_is_scikit_learns(pairs):
    first, second = (list(side) for side in zip(*pairs, strict=True))
    mine = cohen(first, second)
    if mine is None:  # both used one label throughout: scikit-learn has no number for that either
        assert len({*first, *second}) == 1
    else:
        assert mine == pytest.approx(cohen_kappa_score(first, second))


def test_the_textbooks_kappa_comes_out():
    # 50 applications, two readers: 20 both yes, 15 both no, 5 and 10 otherwise. Observed 0.7, by chance 0.5.
    first = ["yes"] * 25 + ["no"] * 25
    second = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    assert cohen(first, second) == pytest.approx(0.4)


def test_the_mean_kappa_weighs_pairs_by_what_they_share():
    units = [{"ann": "a", "bob": "a"}, {"ann": "b", "bob": "b"}] * 2 + [
        {"ann": "a", "eve": "b"},
        {"ann": "b", "eve": "a"},
    ]
    assert mean_cohen(units) == pytest.approx((1.0 * 4 + -1.0 * 2) / 6)
    assert mean_cohen([{"ann": "a"}]) is None


def test_f1_between_people_takes_no_side_and_pools_all_pairs():
    said = {"ann": [[0, 1, "x"], [2, 3, "x"]], "bob": [[0, 1, "x"]], "eve": [[0, 1, "y"]]}
    # ann and bob share one of three marks, the other two pairs none of three and of two.
    assert span_f1([said]) == pytest.approx(2 * 1 / (3 + 3 + 2))
    assert span_f1([dict(reversed(said.items()))]) == span_f1([said])
    assert span_f1([{"ann": [], "bob": []}]) is None


def test_spans_are_compared_word_by_word_and_nested_ones_together():
    said = {"ann": [[0, 2, "x"], [1, 2, "y"]], "bob": [[1, 2, "x"]]}
    assert [unit["ann"] for unit in units_of(SLOTS, said, 3)] == ["x", "x + y", ""]
    assert [unit["bob"] for unit in units_of(SLOTS, said, 3)] == ["", "x", ""]


@pytest.mark.parametrize(
    ("task", "mine", "yours"),
    [
        (INTENT, "a", "b"),
        (SLOTS, [[0, 1, "x"]], [[1, 2, "x"]]),
        (POS, ["N", "V"], ["V", "N"]),
        (TREE, [[0, "root"], [1, "obj"]], [[2, "obj"], [0, "root"]]),
        (LINKS, [[[0, 1, "x"], [1, 2, "x"], "r"]], [[[1, 2, "x"], [0, 1, "x"], "r"]]),
        (URGENCY, 0.2, 0.8),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_every_kind_tells_full_agreement_from_none(task, mine, yours):
    def found(first, second):
        said = {"u1": {"ann": first, "bob": second}, "u2": {"ann": yours, "bob": yours}}
        return agreement(task, said, {"u1": 2, "u2": 2})

    same, other = found(mine, mine), found(mine, yours)
    assert (same.items, same.people, same.same) == (2, 2, 1.0)
    assert other.same == 0.5
    figures = [(same.cohen, other.cohen), (same.krippendorff, other.krippendorff), (same.span_f1, other.span_f1)]
    there = [(full, less) for full, less in figures if full is not None]
    assert there
    assert all(full == pytest.approx(1.0) and less < 1 for full, less in there)


def test_what_only_one_person_answered_says_nothing():
    found = agreement(INTENT, {"u1": {"ann": "a"}, "u2": {"bob": "b"}}, {"u1": 1, "u2": 1})
    assert (found.items, found.cohen, found.krippendorff, found.same) == (0, None, None, None)


def test_the_newest_answer_of_a_person_counts():
    said = [Answer("u1", {"intent": label}, person) for person, label in (("ann", "b"), ("bob", "a"))]
    corrected = replace(said[0], labels={"intent": "a"}, role=CORRECTION)
    shared = AnswerIndex([*said, corrected]).shared()
    labels = {person: answer.labels["intent"] for person, answer in shared["u1"].items()}
    assert agreement(INTENT, {"u1": labels}, {"u1": 1}).same == 1.0


@settings(max_examples=60, deadline=None)
@given(st.permutations([[0, 1, "x"], [2, 3, "y"], [4, 6, "x"]]))
def test_the_order_of_spans_makes_no_difference(spans):
    assert alike([[[0, 1, "x"], [2, 3, "y"], [4, 6, "x"]], list(spans)])
    assert not alike([list(spans), list(spans)[:2]])


def test_the_order_of_words_does():
    assert not alike([[[0, "root"], [1, "obj"]], [[1, "obj"], [0, "root"]]])
    assert alike([np.float64(0.5).item(), 0.5])
