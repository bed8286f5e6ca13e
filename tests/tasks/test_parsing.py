"""Attachment scores and tree checks against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.errors import LabelError
from bursar.tasks import Parsing
from tests.tasks.examples import LABELS, column, trees

TASK = Parsing("tree", LABELS)
pairs = st.integers(0, 5).flatmap(lambda words: st.tuples(st.just(words), trees(words), trees(words)))


@settings(deadline=None, max_examples=100)
@given(st.lists(pairs, max_size=4))
def test_uas_and_las_are_shares_of_words(items):
    words = [item[0] for item in items]
    gold, guess = (column(TASK, [(item[0], item[k]) for item in items]) for k in (1, 2))
    heads = labelled = total = 0
    for _, right, found in items:
        for (head, label), (guessed_head, guessed_label) in zip(right, found, strict=True):
            total += 1
            heads += head == guessed_head
            labelled += head == guessed_head and label == guessed_label
    scores = TASK.evaluate(gold, guess, np.array(words, dtype=np.int64))
    assert scores == pytest.approx({"las": labelled / max(total, 1), "uas": heads / max(total, 1)})


def test_a_right_label_at_a_wrong_head_is_worth_nothing():
    gold = column(TASK, [(2, [[0, "city"], [1, "größe"]])])
    guess = column(TASK, [(2, [[2, "city"], [0, "größe"]])])
    assert TASK.evaluate(gold, guess, np.array([2])) == {"las": 0.0, "uas": 0.0}


def reaches_the_root(word: int, heads: list[int]) -> bool:
    for _ in range(len(heads)):
        word = heads[word - 1]
        if word == 0:
            return True
    return False


@settings(deadline=None, max_examples=300)
@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.integers(-1, n + 1), min_size=n, max_size=n)))
def test_heads_are_taken_exactly_when_every_word_reaches_the_root(heads):
    value = [[head, "city"] for head in heads]
    in_range = all(0 <= head <= len(heads) for head in heads)
    if in_range and all(reaches_the_root(word, heads) for word in range(1, len(heads) + 1)):
        assert TASK.encode(value, len(heads))[:, 0].tolist() == heads
    else:
        with pytest.raises(LabelError, match=r"cannot have head|not a tree"):
            TASK.encode(value, len(heads))


def test_a_long_chain_is_checked_in_one_pass():
    words = 20_000
    chain = [[head, "city"] for head in range(words)]
    assert len(TASK.encode(chain, words)) == words
    with pytest.raises(LabelError, match="never reaches the root"):
        TASK.encode([[words, "city"], *chain[1:]], words)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "2 words need a list of 2 "),
        ([[0, "city"]], "2 words need a list of 2 "),
        ([[0, "city"], [1]], "word 2: expected \\[head, label\\]"),
        ([[0, "city"], "1a"], "word 2: expected \\[head, label\\]"),
        ([[0, "city"], [True, "city"]], "word 2: expected \\[head, label\\]"),
        ([[0, "city"], [1.0, "city"]], "word 2: expected \\[head, label\\]"),
        ([[0, "city"], [3, "city"]], "word 2 cannot have head 3 in 2 words"),
        ([[0, "city"], [2, "city"]], "word 2 cannot have head 2 in 2 words"),
        ([[0, "city"], [-1, "city"]], "word 2 cannot have head -1 in 2 words"),
        ([[2, "city"], [1, "city"]], "not a tree: word 1 never reaches the root"),
        ([[0, "city"], [1, "nsubj"]], "unknown label 'nsubj'"),
    ],
)
def test_what_is_no_tree_is_refused_in_words(value, message):
    with pytest.raises(LabelError, match=message):
        TASK.encode(value, 2)
