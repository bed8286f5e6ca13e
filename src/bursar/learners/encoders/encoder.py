"""What an encoder is, and how items become the word-pieces it reads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bursar.corpus import Corpus
from bursar.errors import LearnerError


class Pieces(NamedTuple):
    """One item as an encoder reads it: word-pieces in one or more windows, and where each word begins."""

    ids: NDArray[np.int64]  # (pieces,), all windows one after the other
    types: NDArray[np.int64]  # (pieces,), 1 in the second text of a pair
    windows: tuple[int, ...]  # how many pieces each window has
    words: NDArray[np.int64]  # (words,), the place of each word's first piece


class Batch(NamedTuple):
    """Items laid end to end: no padding anywhere."""

    ids: Tensor  # (pieces,)
    types: Tensor  # (pieces,)
    places: Tensor  # (pieces,), the position of each piece in its window
    windows: list[int]  # the length of each window
    owners: Tensor  # (pieces,), the item that each piece belongs to
    words: Tensor  # (words of all items,), the place of each word's first piece
    items: int


def batch_of(items: Sequence[Pieces]) -> Batch:
    """Lay items end to end."""
    sizes = np.array([len(item.ids) for item in items])
    starts = np.cumsum(sizes) - sizes
    windows = [window for item in items for window in item.windows]
    places = np.concatenate([np.arange(window) for window in windows])
    words = [item.words + start for item, start in zip(items, starts, strict=True)]
    return Batch(
        torch.from_numpy(np.concatenate([item.ids for item in items])),
        torch.from_numpy(np.concatenate([item.types for item in items])),
        torch.from_numpy(places),
        windows,
        torch.from_numpy(np.repeat(np.arange(len(items)), sizes)),
        torch.from_numpy(np.concatenate(words)),
        len(items),
    )


class Encoder(nn.Module):
    """Word-pieces to vectors: (pieces,) to (pieces, width)."""

    width: int
    depth: int  # how many layers can be frozen
    pieces: PieceMaker

    @abstractmethod
    def lower(self, batch: Batch, layers: int) -> Tensor:
        """The vectors after the embeddings and the first ``layers`` layers."""

    @abstractmethod
    def upper(self, hidden: Tensor, batch: Batch, layers: int) -> Tensor:
        """The vectors after the remaining layers."""

    @abstractmethod
    def trainable(self, layers: int) -> list[nn.Parameter]:
        """The parameters above the first ``layers`` layers; embeddings never are among them."""


class PieceMaker:
    """Items to word-pieces. Long items are read in several windows, never cut off."""

    def __init__(self, tokenizer: Any, *, start: int, end: int, unknown: int, longest: int) -> None:
        self._tokenizer = tokenizer
        self._known: dict[str, list[int]] = {}  # pieces of a word depend on that word alone
        self.start, self.end, self.unknown, self.longest = start, end, unknown, longest

    def make(self, items: Corpus) -> list[Pieces]:
        """The word-pieces of every item, words kept as the corpus has them."""
        if items.texts is None:
            raise LearnerError("this encoder reads texts, and the corpus has images", fix="use an image learner")
        texts = self._encode(items.texts.all_words())
        pairs = self._encode(items.pairs.all_words()) if items.pairs is not None else [None] * len(items)
        return [
            self._pair(text, pair, items.ids[at]) if pair is not None and len(pair[0]) else self._windows(*text)
            for at, (text, pair) in enumerate(zip(texts, pairs, strict=True))
        ]

    def _encode(self, items: list[list[str]]) -> list[tuple[list[int], list[int]]]:
        """Per item: the ids of its pieces, and for each word how many pieces it has (at least one)."""
        new = list({word for words in items for word in words if word not in self._known})
        for word, tokens in zip(new, self._tokenize([[word] for word in new]), strict=True):
            # A word of which the tokeniser leaves nothing, such as a lone joiner, is an unknown one.
            self._known[word] = tokens.ids or [self.unknown]
        known = self._known
        return [
            ([piece for word in words for piece in known[word]], [len(known[word]) for word in words])
            for words in items
        ]

    def _tokenize(self, words: list[list[str]]) -> list[Any]:
        encoded: list[Any] = self._tokenizer.encode_batch_fast(words, is_pretokenized=True, add_special_tokens=False)
        return encoded

    def _windows(self, ids: list[int], counts: list[int]) -> Pieces:
        room = self.longest - 2
        if len(ids) <= room:
            flat = np.array([self.start, *ids, self.end])
            firsts = 1 + np.cumsum([0, *counts[:-1]]) if counts else np.zeros(0)
            return Pieces(flat, np.zeros_like(flat), (len(flat),), firsts.astype(np.int64))
        return self._many_windows(ids, counts, room)

    def _many_windows(self, ids: list[int], counts: list[int], room: int) -> Pieces:
        flat: list[int] = []
        windows: list[int] = []
        words: list[int] = []
        window: list[int] = []
        at = 0
        for count in counts:
            kept = min(count, room)  # a single word longer than a window keeps its beginning
            if len(window) + kept > room:
                flat += [self.start, *window, self.end]
                windows.append(len(window) + 2)
                window = []
            words.append(len(flat) + 1 + len(window))
            window += ids[at : at + kept]
            at += count
        flat += [self.start, *window, self.end]
        windows.append(len(window) + 2)
        array = np.array(flat)
        return Pieces(array, np.zeros_like(array), tuple(windows), np.array(words, dtype=np.int64))

    def _pair(self, text: tuple[list[int], list[int]], pair: tuple[list[int], list[int]], id: str) -> Pieces:
        first, second = [self.start, *text[0], self.end], [*pair[0], self.end]
        flat = np.array(first + second)
        if len(flat) > self.longest:
            raise LearnerError(
                f"item {id!r}: the two texts have {len(flat)} word-pieces together, the encoder reads {self.longest}",
                fix="shorten one of them",
            )
        types = np.repeat([0, 1], [len(first), len(second)])
        words = 1 + np.cumsum([0, *text[1][:-1]]) if text[1] else np.zeros(0)
        return Pieces(flat, types, (len(flat),), words.astype(np.int64))
