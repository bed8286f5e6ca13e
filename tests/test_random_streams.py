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
    ("reward reservoir", (), [5, 23]),
]


@pytest.mark.parametrize(("purpose", "more", "words"), WORDS, ids=[purpose for purpose, *_ in WORDS])
def test_a_stream_is_seeded_by_the_list_that_results_were_drawn_with(purpose, more, words):
    expected = np.random.default_rng(words).random(4)
    np.testing.assert_array_equal(rng(5, purpose, *more).random(4), expected)


def test_every_stream_is_listed_here():
    assert {purpose for purpose, *_ in WORDS} == set(STREAMS)


def test_an_unknown_purpose_is_an_error():
    with pytest.raises(KeyError, match="no such purpose"):
        rng(0, "no such purpose")
