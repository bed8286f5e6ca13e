"""Words of a text as character offsets: found by rule, or from tokens that came without a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bursar.ragged import IntArray, Ragged, Strings, offsets_of

# Letters and digits with inner apostrophes, hyphens and points are one word; every other mark is a word.
WORD = re.compile(r"\w+(?:['’.\-]\w+)*|[^\w\s]")


def find_words(text: str) -> list[tuple[int, int]]:
    """The start and (exclusive) end of each word of a text, in characters.

    >>> [("Don't wake me at 4.30!")[a:b] for a, b in find_words("Don't wake me at 4.30!")]
    ["Don't", 'wake', 'me', 'at', '4.30', '!']
    """
    return [match.span() for match in WORD.finditer(text)]


def join_tokens(tokens: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Join tokens to a text with single spaces, and return the position of each.

    >>> join_tokens(["book", "it"])
    ('book it', [(0, 4), (5, 7)])
    """
    spans, at = [], 0
    for token in tokens:
        spans.append((at, at + len(token)))
        at += len(token) + 1
    return " ".join(tokens), spans


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
