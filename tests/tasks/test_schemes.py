"""Tags to spans and back, against conlleval's rules and seqeval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from bursar.errors import LabelError
from bursar.ragged import Ragged
from bursar.tasks.schemes import (
    SCHEMES,
    codes_of_spans,
    overlapping,
    spans_of_codes,
    spans_of_tags,
    split_tag,
    tags_of_spans,
)
from tests.tasks import conlleval
from tests.tasks.examples import flat_spans

often = settings(deadline=None, max_examples=100)
TYPES = ("a", "b", "a-b", "from.city")


def tags(prefixes: str, types: tuple[str, ...] = TYPES) -> st.SearchStrategy[list[str]]:
    """Any sequence of tags, valid in its scheme or not."""
    every = ["O", *(f"{prefix}-{type}" for prefix in prefixes for type in types)]
    return st.lists(st.sampled_from(every), max_size=12)


def spans_by_seqeval(sentence: list[str]) -> list[tuple[int, int, str]]:
    return [(start, last + 1, type) for type, start, last in get_entities(sentence)]


def merged_neighbours(spans):
    """The spans after merging adjacent spans of one type."""
    merged = []
    for start, end, type in spans:
        if merged and merged[-1][1:] == (start, type):
            start = merged.pop()[0]
        merged.append((start, end, type))
    return merged


# -- reading -------------------------------------------------------------------------------------------------------
@often
@given(tags("BI"))
def test_iob_tags_valid_or_not_are_read_as_conlleval_and_seqeval_read_them(sentence):
    assert spans_of_tags(sentence) == conlleval.chunks(sentence) == spans_by_seqeval(sentence)


@often
@given(tags("BIES", ("a", "b")))
def test_bioes_tags_valid_or_not_are_read_as_conlleval_and_seqeval_read_them(sentence):
    assert spans_of_tags(sentence) == conlleval.chunks(sentence) == spans_by_seqeval(sentence)


def test_every_pair_of_tags_is_read_as_conlleval_reads_it():
    every = ["O", *(f"{prefix}-{type}" for prefix in "BIES" for type in "ab")]
    for first in every:
        for second in every:
            for third in every:
                sentence = [first, second, third]
                assert spans_of_tags(sentence) == conlleval.chunks(sentence), sentence


@often
@given(tags("BIES", ("a", "b")))
def test_bilou_is_bioes_by_other_letters(sentence):
    renamed = [{"E": "L", "S": "U"}.get(tag[0], tag[0]) + tag[1:] for tag in sentence]
    assert spans_of_tags(renamed) == spans_of_tags(sentence)


@often
@given(tags("I", ("PER", "LOC")))
def test_a_bare_type_is_io_without_its_prefix(sentence):
    assert spans_of_tags([tag.removeprefix("I-") for tag in sentence]) == spans_of_tags(sentence)


@pytest.mark.parametrize("tag", ["", "B", "I", "E", "S", "B-", "I-", "U-"])
def test_a_tag_without_a_type_is_refused_with_what_to_write(tag):
    for read in (split_tag, lambda tag: spans_of_tags(["O", tag])):
        with pytest.raises(LabelError, match="has no type") as raised:
            read(tag)
        assert "B-city" in raised.value.fix


# -- writing -------------------------------------------------------------------------------------------------------
@often
@given(st.integers(0, 10).flatmap(lambda words: st.tuples(st.just(words), flat_spans(words, TYPES))))
def test_spans_survive_every_scheme_but_for_what_io_cannot_say(case):
    words, spans = case[0], [tuple(span) for span in case[1]]
    for scheme in SCHEMES:
        written = tags_of_spans(reversed(spans), words, scheme)
        assert len(written) == words
        assert {tag[0] for tag in written} <= set("IO" if scheme == "IO" else "BIOES" if scheme == "BIOES" else "BIO")
        assert spans_of_tags(written) == (merged_neighbours(spans) if scheme == "IO" else spans)


def test_the_schemes_differ_as_their_definitions_say():
    spans = [(0, 2, "a"), (2, 3, "a"), (3, 4, "b"), (5, 8, "a")]
    assert tags_of_spans(spans, 8, "IO") == "I-a I-a I-a I-b O I-a I-a I-a".split()
    assert tags_of_spans(spans, 8, "IOB1") == "I-a I-a B-a I-b O I-a I-a I-a".split()
    assert tags_of_spans(spans, 8, "IOB2") == "B-a I-a B-a B-b O B-a I-a I-a".split()
    assert tags_of_spans(spans, 8, "BIOES") == "B-a E-a S-a S-b O B-a I-a E-a".split()


@often
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3), st.integers(0, 1)), max_size=4))
def test_spans_are_refused_exactly_when_two_share_a_word(drawn):
    spans = [(start, start + length, "ab"[label]) for start, length, label in drawn]
    held = [word for start, end, _ in spans for word in range(start, end)]
    coded = Ragged.of([[(start, end, "ab".index(label)) for start, end, label in spans]], 3)
    if len(held) == len(set(held)):
        assert spans_of_tags(tags_of_spans(spans, 8)) == sorted(spans)
        assert len(codes_of_spans(coded, np.array([8]))) == 8
        return
    for scheme in SCHEMES:
        with pytest.raises(LabelError, match="overlap"):
            tags_of_spans(spans, 8, scheme)
    with pytest.raises(LabelError, match="overlap"):
        codes_of_spans(coded, np.array([8]))


def test_an_unknown_scheme_is_refused_with_the_known_ones():
    with pytest.raises(LabelError, match=r"BILOU.*IO, IOB1, IOB2, BIOES"):
        tags_of_spans([], 3, "BILOU")


# -- a whole corpus at a time --------------------------------------------------------------------------------------
def code_of(tag: str, types: str = "abc") -> int:
    """0 is O, 1 + 2k is B of type k, 2 + 2k is I."""
    return 0 if tag == "O" else 1 + 2 * types.index(tag[2:]) + (tag[0] == "I")


@often
@given(st.lists(tags("BI", ("a", "b", "c")), max_size=8))
def test_spans_of_codes_are_spans_of_tags_sentence_by_sentence(sentences):
    codes = np.array([code_of(tag) for sentence in sentences for tag in sentence], dtype=np.int64)
    spans = spans_of_codes(codes, np.array([len(sentence) for sentence in sentences], dtype=np.int64))
    found = [[(start, end, "abc"[label]) for start, end, label in rows.tolist()] for rows in spans]
    assert found == [spans_of_tags(s) for s in sentences] == [conlleval.chunks(s) for s in sentences]


@often
@given(st.lists(st.integers(0, 8).flatmap(lambda n: st.tuples(st.just(n), flat_spans(n, "abc"))), max_size=6))
def test_codes_of_spans_are_the_iob2_tags_and_lead_back_to_the_spans(items):
    words = np.array([n for n, _ in items], dtype=np.int64)
    spans = Ragged.of([[(a, b, "abc".index(label)) for a, b, label in spans] for _, spans in items], 3)
    codes = codes_of_spans(spans, words)
    written = [tag for n, held in items for tag in tags_of_spans([tuple(span) for span in held], n)]
    assert codes.tolist() == [code_of(tag) for tag in written]
    assert spans_of_codes(codes, words).equals(spans)


def test_a_span_never_runs_on_into_the_next_item():
    codes, words = np.array([1, 2, 2, 2]), np.array([2, 0, 2])
    assert [rows.tolist() for rows in spans_of_codes(codes, words)] == [[[0, 2, 0]], [], [[0, 2, 0]]]


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_overlaps_are_found_in_all_items_at_once(data):
    lengths = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=5))
    items = []
    for words in lengths:
        every = [(a, b, 0) for b in range(words + 1) for a in range(b)]
        items.append(data.draw(st.lists(st.sampled_from(every), max_size=3)) if every else [])
    expected = []
    for rows in items:
        used = [word for start, end, _ in rows for word in range(start, end)]
        expected.append(len(used) != len(set(used)))
    assert overlapping(Ragged.of(items, 3), np.array(lengths)).tolist() == expected
