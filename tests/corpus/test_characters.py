from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.corpus.formats.characters import check_cut, check_word_spans, from_utf16, in_characters, in_words
from bursar.errors import ConfigError, LabelError
from tests.corpus.corpora import spaced, tokens

TEXT, PLACES = "at  seven!", [(0, 2), (4, 9), (9, 10)]


@given(st.data())
def test_words_become_characters_and_the_same_words_again(data: st.DataObject) -> None:
    text, places = spaced(data.draw, tokens(data.draw))
    start = data.draw(st.integers(0, len(places) - 1))
    end = data.draw(st.integers(start + 1, len(places)))
    assert in_words(text, places, *in_characters(places, start, end)) == (start, end)


@pytest.mark.parametrize(
    ("span", "words"), [((0, 2), (0, 1)), ((2, 9), (1, 2)), ((3, 10), (1, 3)), ((0, 10), (0, 3)), ((9, 10), (2, 3))]
)
def test_blanks_around_words_do_not_matter(span: tuple[int, int], words: tuple[int, int]) -> None:
    assert in_words(TEXT, PLACES, *span) == words


@pytest.mark.parametrize(("span", "words"), [((1, 2), (0, 1)), ((1, 5), (0, 2)), ((8, 9), (1, 2))])
def test_half_a_word_is_refused_or_widened(span: tuple[int, int], words: tuple[int, int]) -> None:
    with pytest.raises(LabelError, match="cuts the word"):
        in_words(TEXT, PLACES, *span)
    assert in_words(TEXT, PLACES, *span, cut="widen") == words


@pytest.mark.parametrize(
    "span", [(2, 2), (3, 2), (-1, 2), (0, 11), (0, "2"), (True, 2), (0.0, 2.0), (None, None), (0, 10**30), (2, 4)]
)
def test_what_is_no_span_of_words_is_refused_widened_or_not(span: tuple[object, object]) -> None:
    for cut in ("refuse", "widen"):
        with pytest.raises(LabelError):
            in_words(TEXT, PLACES, *span, cut=cut)


@given(st.text("a😀é𝔘 ", max_size=8), st.data())
def test_units_of_a_browser_are_told_by_what_they_are_said_to_hold(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    units = [len(text[:at].encode("utf-16-le")) // 2 for at in (start, end)]
    first, last = from_utf16(text, *units, text[start:end])
    assert text[first:last] == text[start:end]
    assert from_utf16(text, start, end, text[start:end]) == (start, end)


def test_a_text_that_fits_neither_way_leaves_the_span_as_it_is() -> None:
    assert from_utf16("😀 seven", 1, 4, "nothing of it") == (1, 4)


@pytest.mark.parametrize(
    "words", [None, 7, [[0]], [[0, 2, 3]], [["0", 2]], [[2, 2]], [[0, 2], [1, 3]], [[0, 99]], [True]]
)
def test_places_of_words_that_are_none_are_refused(words: object) -> None:
    with pytest.raises(LabelError, match="words must be"):
        check_word_spans(words, TEXT)


def test_there_are_two_ways_about_half_words() -> None:
    with pytest.raises(ConfigError, match="use refuse or widen"):
        check_cut("drop")
