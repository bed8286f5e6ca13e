"""Ragged rows and strings against plain lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.ragged import Ragged, Strings, flat_positions, offsets_of

often = settings(deadline=None, max_examples=60)
rows = st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5), max_size=8)
texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), max_size=8)


def picks(count: int) -> st.SearchStrategy[list[int]]:
    """Row numbers, from the front or from the end, any of them several times."""
    return st.lists(st.integers(-count, count - 1), max_size=12) if count else st.just([])


def plain(ragged: Ragged) -> list[list[int]]:
    return [row.tolist() for row in ragged]


@often
@given(st.lists(st.integers(0, 9)))
def test_offsets_are_running_sums(lengths):
    assert offsets_of(lengths).tolist() == [sum(lengths[:n]) for n in range(len(lengths) + 1)]
    assert offsets_of(lengths).dtype == np.int64


@often
@given(st.data(), st.lists(st.integers(0, 5), max_size=8))
def test_flat_positions_are_the_ranges_of_the_rows_one_after_another(data, lengths):
    picked = data.draw(picks(len(lengths)))
    bounds = offsets_of(lengths)
    expected = [at for row in picked for at in range(bounds[row % len(lengths)], bounds[row % len(lengths) + 1])]
    assert flat_positions(bounds, np.array(picked, dtype=np.int64)).tolist() == expected


@often
@given(st.data(), rows)
def test_ragged_takes_rows_as_a_list_does(data, lists):
    ragged, picked = Ragged.of(lists), data.draw(picks(len(lists)))
    assert plain(ragged) == lists
    assert len(ragged) == len(lists)
    assert ragged.lengths.tolist() == [len(row) for row in lists]
    assert ragged.owners.tolist() == [at for at, row in enumerate(lists) for _ in row]
    assert plain(ragged.take(np.array(picked, dtype=np.int64))) == [lists[row] for row in picked]
    assert [ragged[row].tolist() for row in picked] == [lists[row] for row in picked]


@often
@given(st.data(), rows)
def test_ragged_of_some_width_takes_rows_as_a_list_does(data, lists):
    pairs = [[[n, -n - 1] for n in row] for row in lists]
    ragged, picked = Ragged.of(pairs, width=2, dtype=np.int64), data.draw(picks(len(lists)))
    assert ragged.values.shape == (sum(map(len, lists)), 2)
    assert plain(ragged.take(np.array(picked, dtype=np.int64))) == [pairs[row] for row in picked]


@often
@given(st.lists(rows, min_size=1, max_size=4))
def test_concatenated_rows_are_the_lists_one_after_another(parts):
    joined = Ragged.concatenate([Ragged.of(part) for part in parts])
    assert plain(joined) == [row for part in parts for row in part]


def test_a_window_on_a_larger_block_is_concatenated_without_the_rest():
    window = Ragged(np.arange(10), np.array([3, 5, 9]))
    assert plain(Ragged.concatenate([window, window])) == [[3, 4], [5, 6, 7, 8]] * 2


@often
@given(rows, rows)
def test_ragged_rows_are_equal_when_the_lists_are(some, others):
    assert Ragged.of(some).equals(Ragged.of(others)) == (some == others)
    assert Ragged.of(some).equals(Ragged.of(some))


def test_missing_numbers_are_equal_to_each_other():
    unknown = Ragged.of([[float("nan")], []], dtype=float)
    assert unknown.equals(Ragged.of([[float("nan")], []], dtype=float))


@pytest.mark.parametrize("row", [3, -4, 100])
def test_a_row_that_is_not_there_is_an_error_and_never_another_row(row):
    ragged, strings = Ragged.of([[1], [], [2, 3]]), Strings.of(["a", "", "b"])
    for held in (ragged, strings):
        with pytest.raises(IndexError):
            held[row]
        with pytest.raises(IndexError):
            held.take(np.array([row]))


@often
@given(st.data(), texts)
def test_strings_are_a_list_of_strings(data, strings):
    held, picked = Strings.of(strings), data.draw(picks(len(strings)))
    assert held.tolist() == list(held) == strings
    assert [held[row] for row in picked] == [strings[row] for row in picked]
    assert held.take(np.array(picked, dtype=np.int64)).tolist() == [strings[row] for row in picked]


@often
@given(st.lists(texts, min_size=1, max_size=4))
def test_concatenated_strings_are_the_lists_one_after_another(parts):
    joined = Strings.concatenate([Strings.of(part) for part in parts])
    assert joined.tolist() == [string for part in parts for string in part]
    assert joined.equals(Strings.of(string for part in parts for string in part))


@often
@given(texts, texts)
def test_strings_are_equal_when_the_lists_are(some, others):
    assert Strings.of(some).equals(Strings.of(others)) == (some == others)


def test_astral_characters_and_empty_strings_keep_their_places():
    strings = ["", "𝔹ursar", "🏛️", "", "naïve\u0301", "中"]
    assert Strings.of(strings).take(np.array([2, 0, 5, 1])).tolist() == ["🏛️", "", "中", "𝔹ursar"]
