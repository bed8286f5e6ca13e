"""Random streams keep the numbers that stored results were drawn with."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.random_streams import STREAMS, rng

# Purpose and further numbers, and the list that seeds the generator for seed 5.
WORDS = [
    ("joint batches", (8,), [5, 8]),
    ("task draws", (8,), [5, 8, 1]),
    ("task batches", (8, 9), [5, 8, 9, 2]),
    ("pretraining batches", (8,), [5, 8, 3]),
    ("pretraining masks", (8,), [5, 8, 4]),
    ("lockstep batches", (8,), [5, 8]),
    ("lockstep dropout", (8,), [5, 8, 0]),
    ("lockstep dropout passes", (8,), [5, 8, 1]),
    ("lockstep weights", (), [5, 2**31]),
    ("random order", (), [5, 53]),
    ("order moves", (8,), [5, 8, 59]),
    ("order moves", (8, 9), [5, 8, 59, 9]),
    ("problem parts", (), [5, 61]),
    ("probe penalty", (), [5]),
    ("probe passes", (), [5, 71]),
    ("batch seeds", (8,), [5, 8, 73]),
    ("batch seeds", (8, 9, 10), [5, 8, 9, 10, 73]),
    ("random half", (), [5, 79]),
    ("random orders", (), [5, 83]),
    ("held-out parts", (), [5, 89]),
    ("law folds", (), [5, 103]),
    ("law held-out rows", (), [5, 107]),
    ("power law bootstrap", (), [5, 109]),
    ("relatedness", (8,), [5, 127, 8]),
    ("training items", (), [5, 131]),
    ("judged items", (), [5, 137]),
    ("strategy", (), [5]),
    ("pool items", (), [5, 1]),
    ("dev items", (), [5, 2]),
    ("test items", (), [5, 3]),
    ("seed items", (), [5, 11]),
    ("seed items", (8,), [5, 11, 8]),
    ("audit reserve", (), [5, 17]),
    ("watched items", (), [5, 17]),
    ("start candidates", (), [5, 23]),
    ("audit intervals", (), [5]),
    ("savings interval", (), [5]),
    ("held-out items", (), [5, 19]),
    ("simulated test items", (), [5, 139]),
    ("reward reservoir", (), [5, 23]),
    ("related items", (), [5, 101]),
    ("related labels", (8,), [5, 97, 8]),
    ("informativeness parts", (8,), [5, 8, 31]),
    ("training seeds", (8,), [5, 8, 37]),
    ("look-ahead batches", (8,), [5, 8, 41]),
    ("curve parts", (8,), [5, 8, 43]),
    ("curve order", (8,), [5, 8, 47]),
    ("pseudo-labelled items", (), [5, 53]),
    ("seed score parts", (), [5, 61]),
    ("predicted gains", (), [5, 31]),
    ("random splits", (), [5, 97]),
    ("baseline splits", (8,), [5, 8]),
]


@pytest.mark.parametrize(("purpose", "more", "words"), WORDS, ids=[f"{purpose} {more}" for purpose, more, _ in WORDS])
def test_a_stream_is_seeded_by_the_list_that_results_were_drawn_with(purpose, more, words):
    expected = np.random.default_rng(words).random(4)
    np.testing.assert_array_equal(rng(5, purpose, *more).random(4), expected)


def test_every_stream_is_listed_here():
    assert {purpose for purpose, *_ in WORDS} == set(STREAMS)


def test_an_unknown_purpose_is_an_error():
    with pytest.raises(KeyError, match="no such purpose"):
        rng(0, "no such purpose")
