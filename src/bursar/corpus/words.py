"""Words of a text as character offsets: found by rule, or from tokens that came without a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bursar.ragged import IntArray, Ragged, Strings, offsets_of

# Letters and digits with inner apostrophes, hyphens and points are one word; every other mark is a word.
WORD = re.compile(r"\w+(?:['’.\-]\w+)*|[^\w\s]")


def find_words(text: str) -> list[tuple[int, int]]:
    """The start and (exclusive) end of each word of a text, in characters."""
    return [match.span() for match in WORD.finditer(text)]


def join_tokens(tokens: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Join tokens to a text with single spaces, and return the position of each."""
    spans, at = [], 0
    for token in tokens:
        spans.append((at, at + len(token)))
        at += len(token) + 1
    return " ".join(tokens), spans


def align(text: str, tokens: Iterable[tuple[str, Sequence[str]]]) -> list[tuple[int, int]] | None:
    """The positions of words in a text, given its tokens and their words; ``None`` if they do not fit the text.

    The words of one token share its characters: each takes its own length, and leaves one for each that follows.
    """
    spans = []
    at = 0
    for form, words in tokens:
        while not text.startswith(form, at):
            if not text[at : at + 1].isspace():
                return None
            at += 1
        end = at + len(form)
        for later in range(len(words) - 1, 0, -1):
            share = min(at + len(words[-1 - later]), end - later)
            spans.append((at, share))
            at = share
        spans.append((at, end))
        at = end
    return None if text[at:].strip() else spans


def align_words(text: str, words: Iterable[str]) -> list[tuple[int, int]] | None:
    """The positions of words in a text; ``None`` if the text is more than these words and the spaces between them."""
    return align(text, [(word, [word]) for word in words])


@dataclass(frozen=True, eq=False)
class Texts:
    """The texts of many items and the positions of their words."""

    strings: Strings
    spans: Ragged  # (words, 2): start and end in characters

    def __len__(self) -> int:
        return len(self.strings)

    @property
    def word_counts(self) -> IntArray:
        return self.spans.lengths

    def words(self, item: int) -> list[str]:
        text = self.strings[item]
        return [text[a:b] for a, b in self.spans[item].tolist()]

    def all_words(self) -> list[list[str]]:
        """The words of every item, as tokenizers need them."""
        bounds, spans = self.spans.offsets.tolist(), self.spans.values.tolist()
        items = zip(self.strings.tolist(), bounds, bounds[1:], strict=False)
        return [[text[a:b] for a, b in spans[start:end]] for text, start, end in items]

    def take(self, items: IntArray) -> Texts:
        return Texts(self.strings.take(items), self.spans.take(items))

    @staticmethod
    def concatenate(parts: Sequence[Texts]) -> Texts:
        strings = Strings.concatenate([part.strings for part in parts])
        return Texts(strings, Ragged.concatenate([part.spans for part in parts]))

    @staticmethod
    def of(texts: Sequence[str]) -> Texts:
        """Texts whose words are found by rule."""
        spans = [find_words(text) for text in texts]
        flat = np.array([end for words in spans for word in words for end in word], dtype=np.int32)
        return Texts(Strings.of(texts), Ragged(flat.reshape(-1, 2), offsets_of([len(words) for words in spans])))
