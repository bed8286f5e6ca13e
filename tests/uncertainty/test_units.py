"""Doubts of units: one contract for all kinds of task, and nothing that depends on how long an item is."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.learners import make_learner
from bursar.ragged import Ragged
from bursar.simulation import assistant_corpus
from bursar.tasks import Beliefs, Classification, Estimates, Parsing, Regression, Relations, Tagging
from bursar.uncertainty.measures import SURELY_NOTHING, above_chance, label_words, unit_doubts, unit_words

SLOTS = Tagging("slots", ("city", "time"))
TAGS = SLOTS.classes


def sure_of(choice, choices, p):
    row = np.full(choices, (1 - p) / (choices - 1))
    row[choice] = p
    return row


def test_a_doubt_is_one_less_the_lead_of_the_likeliest_choice():
    beliefs = Beliefs.of([[0.7, 0.2, 0.1], [0.4, 0.4, 0.2]], units=[1, 1])
    np.testing.assert_allclose(unit_doubts(Classification("intent", ("a", "b", "c")), beliefs), [0.5, 1.0], atol=1e-6)


def test_the_same_word_is_as_doubtful_in_a_long_item_as_in_a_short_one():
    word = sure_of(1, TAGS, 0.6)
    short, long = Beliefs.of([word], units=[1]), Beliefs.of([word] * 40, units=[40])
    assert unit_doubts(SLOTS, short)[0] == unit_doubts(SLOTS, long)[0]
    assert unit_doubts(SLOTS, long).sum() == pytest.approx(40 * unit_doubts(SLOTS, short).sum())


def test_a_head_is_not_less_doubtful_for_having_more_words_to_choose_from():
    few, many = ([0.6, 0.4, *[0.0] * zeros] for zeros in (1, 30))
    found = [unit_doubts(Parsing("tree", ("x",)), Beliefs.of([row], units=[1]))[0] for row in (few, many)]
    assert found[0] == pytest.approx(found[1])


def test_words_that_are_surely_outside_have_no_doubt_and_surely_inside_keep_theirs():
    sure = 1 - SURELY_NOTHING / 4
    rows = [sure_of(0, TAGS, sure), sure_of(1, TAGS, sure), sure_of(0, TAGS, 0.6)]
    outside, inside, unsure = unit_doubts(SLOTS, Beliefs.of(rows, units=[3]))
    assert outside == 0
    assert 0 < inside < SURELY_NOTHING
    assert unsure > 0.4


def test_where_every_word_has_a_label_no_choice_means_nothing():
    pos = Tagging("pos", ("NOUN", "VERB"), every_word=True)
    assert unit_doubts(pos, Beliefs.of([[0.97, 0.03]], units=[1]))[0] == pytest.approx(0.06, abs=1e-6)


def test_a_number_is_doubted_by_its_spread():
    task = Regression("score", low=0, high=12)
    doubts = unit_doubts(task, Estimates(np.array([[2.0, 2.0]]), np.array([[0.0, 3.0]]), low=0, high=12))
    assert doubts.tolist() == [0.0, 0.5]
    assert unit_words(task, Estimates(np.zeros((1, 2)), np.zeros((1, 2)), low=0, high=12)) is None


def test_units_know_their_words():
    spans = Beliefs.of(np.full((2, 3), 1 / 3), units=[2], subjects=np.array([[0, 3], [2, 3]], dtype=np.int32))
    assert unit_words(SLOTS, spans).tolist() == [[0, 2], [2, 2]]
    subjects = np.array([[0, 3, 0, 4, 5, 1]], dtype=np.int32)
    pairs = Beliefs.of(np.full((1, 2), 0.5), units=[1], subjects=subjects)
    assert unit_words(Relations("links", ("a",), entity_types=("x", "y")), pairs).tolist() == [[0, 2, 4, 4]]
    assert label_words(Ragged.of([[(0, 3, 0, 4, 5, 1, 0)]], 7)).tolist() == [[0, 2, 4, 4]]


def test_every_kind_of_task_has_doubts_of_the_units_that_its_beliefs_have():
    corpus = assistant_corpus(120, seed=2)
    learner = make_learner("transformer", corpus.schema, {"layers": 1, "steps": 3})
    learner.fit(corpus.take(np.arange(60)), seed=0)
    items = corpus.take(np.arange(60, 90)).unlabelled()
    for name, beliefs in learner.predict_proba(items).items():
        task = learner.tasks[name]
        doubts, words = unit_doubts(task, beliefs), unit_words(task, beliefs)
        assert len(doubts) == beliefs.units.sum()
        assert ((doubts >= 0) & (doubts <= 1)).all()
        if words is not None:
            assert (words < np.repeat(items.words, beliefs.units)[:, None]).all()
            assert (words >= 0).all()


def test_confidence_above_chance_is_comparable_for_few_and_many_labels():
    assert above_chance(Beliefs.of([[0.5, 0.5], [0.75, 0.25]], units=[1, 1])).tolist() == [0, 0.5]
    assert above_chance(Beliefs.of([[0.25] * 4, [0.625, 0.125, 0.125, 0.125]], units=[1, 1])).tolist() == [0, 0.5]


def test_units_that_are_nothing_count_only_if_all_are():
    words = Beliefs.of([[0.875, 0.125], [0.375, 0.625], [0.875, 0.125], [0.625, 0.375]], units=[2, 2])
    assert above_chance(words, may_be_empty=True).tolist() == [0.25, 0.25]
