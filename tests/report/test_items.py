"""Items: spans stand where the model put them, whatever else is in the text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bursar.campaign.decisions import ConfidenceExample
from bursar.corpus import CorpusBuilder
from bursar.report.page import shown_item
from tests.report.results import make_corpus


def example(guess, id="u1", confidence=0.5):
    return ConfidenceExample(id=id, guess=guess, confidence=dict.fromkeys(guess, confidence))


def test_spans_are_marked_where_they_stand():
    shown = shown_item(example({"intent": "music", "slots": [[2, 3, "genre"], [4, 5, "time"]]}, "u2"), make_corpus())
    assert [(piece.text, piece.span) for piece in shown.pieces] == [
        ("play some ", ""),
        ("jazz", "genre"),
        (" in ", ""),
        ("Paris", "time"),
    ]
    assert [prediction.chips for prediction in shown.predictions] == [("music",), ()]
    assert [prediction.marked for prediction in shown.predictions] == [None, 2]


def test_every_word_has_its_tag():
    builder = CorpusBuilder({"pos": {"kind": "tagging", "every_word": True, "labels": ["V", "N"]}})
    builder.add("u1", text="wake Anna")
    shown = shown_item(example({"pos": ["V", "N"]}), builder.build())
    assert [(piece.text, piece.tag) for piece in shown.pieces] == [("wake", "V"), (" ", ""), ("Anna", "N")]


def test_the_task_with_spans_is_marked_before_one_that_tags_every_word():
    tags = {"kind": "tagging", "every_word": True, "labels": ["V", "N"]}
    builder = CorpusBuilder({"pos": tags, "slots": {"kind": "tagging", "labels": ["who"]}})
    builder.add("u1", text="wake Anna")
    shown = shown_item(example({"pos": ["V", "N"], "slots": [[1, 2, "who"]]}), builder.build())
    assert [piece.span for piece in shown.pieces] == ["", "who"]
    assert shown.predictions[0].chips == ("wake: V", "Anna: N")


def test_confidences_beyond_their_range_still_fit_their_bar():
    shown = shown_item(example({"intent": "music", "slots": []}, confidence=1.2), make_corpus())
    assert shown.predictions[0].confidence == 1


words = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=6), max_size=200)


@given(words, st.lists(st.tuples(st.integers(0, 30), st.integers(1, 4)), max_size=6))
def test_the_pieces_are_the_text_up_to_where_it_is_cut(words, spans):
    builder = CorpusBuilder({"slots": {"kind": "tagging", "labels": ["x"]}})
    builder.add("u1", text=(text := " ".join(words)))
    corpus = builder.build()
    count = int(corpus.words[0])
    guess = [[start, min(start + length, count), "x"] for start, length in spans if start < count]
    shown = shown_item(example({"slots": guess}), corpus)
    assert "".join(piece.text for piece in shown.pieces) == text[: len(text) - shown.left_out]
    assert len(text) - shown.left_out <= 420 or shown.left_out == 0
