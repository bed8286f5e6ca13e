"""Convert spans in characters, as annotation tools count, to spans in words, as labels do, and back."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from bursar.corpus.words import find_words
from bursar.errors import ConfigError, LabelError

T = TypeVar("T")
WordSpans = Sequence[Sequence[int]]  # start and end of each word in characters, in order, without overlap
ToWords = Callable[[Any, Any], tuple[int, int]]  # converts the start and end of a span from characters to words
CUTS = ("refuse", "widen")
SEVERAL = ("refuse", "first", "last")


def check_cut(cut: str) -> str:
    """Check the option for spans that end inside a word: they are an error, or widened to whole words."""
    if cut not in CUTS:
        raise ConfigError(f"cut = {cut!r}", fix=f"use {' or '.join(CUTS)}")
    return cut


@dataclass(frozen=True)
class AnnotationOptions:
    """How to read what an annotation tool exports.

    If ``several`` annotations of an item disagree, that is an error, or the first or last counts. A span that ends
    inside a word is an error, or is widened to whole words (``cut``). ``skip`` names questions that are not tasks.
    """

    several: str = "refuse"
    cut: str = "refuse"
    skip: Collection[str] = ()

    def __post_init__(self) -> None:
        if self.several not in SEVERAL:
            raise ConfigError(f"several = {self.several!r}", fix=f"use {', '.join(SEVERAL)}")
        check_cut(self.cut)

    def pick(self, answers: Sequence[T], what: str) -> T:
        if self.several == "refuse" and any(answer != answers[0] for answer in answers):
            raise LabelError(f"two {what} disagree", fix="several = first or last says which one counts")
        return answers[-1 if self.several == "last" else 0]


def words_of(about: Mapping[str, Any], text: str) -> Sequence[Sequence[int]]:
    """The words of an item: those that its record states, else those found by rule."""
    return check_word_spans(about["words"], text) if "words" in about else find_words(text)


def check_word_spans(words: Any, text: str) -> list[list[int]]:
    """Check the words of a file: ``[[start, end], …]`` within the text, in order, without overlap."""
    last, length = 0, len(text)
    word, spans = words, words if isinstance(words, list) else [words]
    try:
        for word in spans:
            start, end = word
            if type(start) is not int or type(end) is not int or not last <= start < end <= length:
                raise ValueError
            last = end
    except (TypeError, ValueError):
        message = f"words must be [start, end] in characters, in order, without overlap; {word!r} is not"
        raise LabelError(message) from None
    return spans


def in_characters(words_at: WordSpans, start: int, end: int) -> tuple[int, int]:
    """Convert a span of words to a span of characters."""
    return words_at[start][0], words_at[end - 1][1]


def in_words(text: str, words_at: WordSpans, start: Any, end: Any, cut: str = "refuse") -> tuple[int, int]:
    """Convert a span of characters to words. It may include spaces around them, but not part of a word."""
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(text):
        raise LabelError(f"a span must be two numbers within the {len(text)} characters, not {start!r} and {end!r}")
    first = bisect_right([word[1] for word in words_at], start)
    last = bisect_left([word[0] for word in words_at], end)
    said = f"the span {start} to {end} ({_short(text[start:end])})"
    if first >= last:
        raise LabelError(f"{said} holds no word")
    for word in (words_at[first], words_at[last - 1]):
        if cut != "widen" and not (start <= word[0] and word[1] <= end):
            message = f"{said} cuts the word {_short(text[word[0] : word[1]])} in two"
            raise LabelError(message, fix="cut = widen takes whole words")
    return first, last


def read_span(span: Any, to_words: ToWords, what: str = "a span") -> list[Any]:
    """A span in words from an object with start and end in characters, and a label."""
    match span:
        case {"start": start, "end": end, "label": label}:
            return [*to_words(start, end), label]
    raise LabelError(f"{what} must have start, end and label, not {span!r}")


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "…")


def from_utf16(text: str, start: int, end: int, said: str) -> tuple[int, int]:
    """Correct a span that was counted in UTF-16 units, as browsers count; the quoted text shows which."""
    if text[start:end] == said:
        return start, end
    units = text.encode("utf-16-le")
    try:
        if units[2 * start : 2 * end].decode("utf-16-le") == said:
            before = len(units[: 2 * start].decode("utf-16-le"))
            return before, before + len(said)
    except UnicodeDecodeError:  # half a surrogate pair, so it was not counted in UTF-16
        pass
    return start, end
