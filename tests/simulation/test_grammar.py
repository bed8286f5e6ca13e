"""The notation, the grammar that reads it, and the noise that is laid over it."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.simulation.grammar import Dice, Fragment, Grammar, Phrase, Reference, Splice, parse
from bursar.simulation.sentence import (
    SHORTEST_TYPO,
    Noise,
    disturb,
    make_clause,
    make_sentence,
    misspell,
    relations_of,
    render,
)
from bursar.simulation.vocabulary import dependency_labels, english, frames, intents


def said(line: str, *, symbols: dict[str, str] | None = None, seed: int = 0) -> Fragment:
    grammar, piece = Grammar(), Fragment()
    for name, entries in (symbols or {}).items():
        grammar.compounds(name, entries)
    grammar.write(parse(line), piece, Dice(seed, 0, 0))
    return piece


def check(grammar: Grammar, phrases: Iterable[Phrase] = ()) -> None:
    """Every symbol in use exists and has a head where it needs one, and no slot is in a slot."""

    def phrases_of(symbol):
        if symbol not in grammar.symbols:
            raise ValueError(f"there is no symbol {symbol!r}")
        return grammar.symbols[symbol].phrases

    def used(phrases):
        return [part for phrase in phrases for part in phrase.walk() if isinstance(part, Reference | Splice)]

    def holds_slot(symbol):
        return any(getattr(part, "kind", "") or holds_slot(part.symbol) for part in used(phrases_of(symbol)))

    for part in used((*phrases, *(phrase for symbol in grammar.symbols for phrase in phrases_of(symbol)))):
        for line, phrase in enumerate(phrases_of(part.symbol), start=1):
            if (phrase.head is None) != isinstance(part, Splice):
                raise ValueError(f"symbol {part.symbol!r}, line {line}: a phrase to splice has no head, all others one")
        if getattr(part, "kind", "") and holds_slot(part.symbol):
            raise ValueError(f"slot {part.kind!r} would hold another slot")


def test_a_line_says_words_and_tree_at_once():
    piece = said("turn on/prt (obj the lights (nmod in the kitchen))")
    assert piece.words == ["turn", "on", "the", "lights", "in", "the", "kitchen"]
    assert piece.heads == [-1, 0, 3, 0, 6, 6, 3]
    assert piece.labels[1:] == ["compound:prt", "det", "obj", "case", "det", "nmod"]


def test_a_slot_marks_the_words_of_its_symbol_and_keeps_its_role():
    piece = said("go (obl to {city:goal=town})", symbols={"town": "new york"})
    (span,) = piece.spans
    assert (span.start, span.end, span.kind, span.role) == (2, 4, "city", "goal")


def test_optional_parts_come_and_go_and_take_their_words_with_them():
    seen = {tuple(said("play (obj jazz) (advmod again)?", seed=seed).words) for seed in range(20)}
    assert seen == {("play", "jazz"), ("play", "jazz", "again")}


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("play jazz", "2 possible heads"),
        ("play (obj jazz", "without an end"),
        ("play (obj jazz))", "a bracket too many"),
        ("play (obj at the)", "without a head"),
        ("play?", "head can be left out"),
    ],
)
def test_a_line_that_cannot_be_read_is_quoted(line, complaint):
    with pytest.raises(ValueError, match=complaint) as caught:
        parse(line)
    assert line in str(caught.value)


@pytest.mark.parametrize(
    ("define", "complaint"),
    [
        ({"a": "<missing>"}, "no symbol 'missing'"),
        ({"a": "go +b", "b": "home"}, "a phrase to splice has no head"),
        ({"a": "go (obl to {b})", "b": "<c>", "c": "{d}", "d": "rome"}, "slot 'b' would hold another slot"),
    ],
)
def test_a_grammar_that_does_not_fit_together_is_refused(define, complaint):
    grammar = Grammar()
    for name, lines in define.items():
        grammar.define(name, lines)
    with pytest.raises(ValueError, match=complaint):
        check(grammar)


def test_a_symbol_is_defined_once():
    grammar = Grammar()
    grammar.compounds("room", "kitchen")
    with pytest.raises(ValueError, match="defined twice"):
        grammar.compounds("room", "hall")


def test_all_lines_of_all_intents_fit_the_shared_symbols():
    lines = [template.phrase for intent in intents() for template in intent.templates]
    check(english(), [*lines, *frames()[0]])
    assert all(phrase.head is not None for phrase in lines)
    assert {"root", "punct", "obj", "compound:prt"} <= set(dependency_labels())


@given(st.integers(0, 2**50), st.sampled_from(intents()))
def test_every_intent_gives_trees_whatever_the_dice_and_however_loud_the_noise(item, intent):
    sentence, asks = make_sentence(make_clause(intent, Dice(0, item, 1)), Dice(0, item, 2))
    sentence = disturb(sentence, Noise() * 100, Dice(0, item, 3))
    values = [" ".join(sentence.words[span.start : span.end]) for span in sentence.spans]
    text, words = render(sentence, asks, Dice(0, item, 4))
    assert [text[a:b] for a, b in words] == sentence.words
    assert "".join(sentence.words) == text.replace(" ", "")
    assert sentence.heads.count(-1) == 1
    assert sentence.labels[sentence.heads.index(-1)] == "root"
    assert all(sentence.labels)
    for span, value in zip(sentence.spans, values, strict=True):
        assert " ".join(sentence.words[span.start : span.end]).lower().replace("an ", "a ") == value.lower().replace(
            "an ", "a "
        )
    for word in range(len(sentence.words)):  # every way up ends
        steps = 0
        while word >= 0:
            word, steps = sentence.heads[word], steps + 1
            assert steps <= len(sentence.words)


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=SHORTEST_TYPO, max_size=12), st.integers(0, 10**6))
def test_a_typo_keeps_the_first_letter_and_changes_the_length_by_one_at_most(word, item):
    wrong = misspell(word, Dice(0, item, 0))
    assert wrong[0] == word[0]
    assert abs(len(wrong) - len(word)) <= 1


def test_articles_agree_with_the_word_that_follows():
    piece = said("set (obj a alarm) (obl in a hour) (obl with an friend)")
    assert render(piece, False, Dice(0, 5, 0))[0].lower().rstrip(".") == "set an alarm in an hour with a friend"


# -- relations ---------------------------------------------------------------------------------------------------
def links(line: str, **symbols: str) -> set[tuple[str, str, str]]:
    piece = said(line, symbols=symbols)
    return {
        (" ".join(piece.words[a.start : a.end]), label, " ".join(piece.words[b.start : b.end]))
        for a, b, label in relations_of(piece)
    }


def test_each_room_holds_the_device_that_it_modifies():
    line = "cut (obj the {device=x} (nmod in the {room=y}) (conj and the {device=v} (nmod in the {room=w})))"
    assert links(line, x="lamp", y="hall", v="fan", w="attic") == {
        ("hall", "location-of", "lamp"),
        ("attic", "location-of", "fan"),
    }


def test_a_room_that_modifies_the_verb_holds_all_devices_that_are_joined():
    line = "cut (obj the {device=x} (conj and the {device=v})) (obl in the {room=y})"
    assert links(line, x="lamp", v="fan", y="hall") == {("hall", "location-of", "lamp"), ("hall", "location-of", "fan")}


def test_each_quantity_counts_its_own_item():
    line = "buy (obj {quantity=n}/nummod {item=x} (conj and {quantity=m}/nummod {item=y}))"
    assert links(line, n="two", x="eggs", m="ten", y="pears") == {
        ("two", "quantity-of", "eggs"),
        ("ten", "quantity-of", "pears"),
    }


def test_old_and_new_times_are_told_apart_by_their_roles():
    line = "move (obj my {event=e}) (obl from {time:old=a}) (obl to {time:new=b})"
    assert links(line, e="lunch", a="one", b="two") == {
        ("one", "old-time-of", "lunch"),
        ("two", "new-time-of", "lunch"),
    }
