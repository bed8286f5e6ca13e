"""What an encoder is, and how texts become the word-pieces that most of them read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from copy import deepcopy
from itertools import groupby
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bursar.corpus import Corpus
from bursar.errors import LearnerError
from bursar.ragged import IntArray
from bursar.tasks.heads import Encoded


class Pieces(NamedTuple):
    """One item as an encoder reads it: word-pieces in one or more windows, and where each word begins."""

    ids: NDArray[np.int64]  # (pieces,), all windows one after the other
    types: NDArray[np.int64]  # (pieces,), 1 in the second text of a pair
    windows: tuple[int, ...]  # how many pieces each window has
    words: NDArray[np.int64]  # (words,), the place of each word's first piece

    @property
    def size(self) -> int:
        return len(self.ids)


class Batch(NamedTuple):
    """Items laid end to end, short ones first, so that windows of one length lie side by side: no padding anywhere.

    ``owners`` and ``words`` know the items in the order that they came in.
    """

    ids: Tensor  # (pieces,)
    types: Tensor  # (pieces,)
    places: Tensor  # (pieces,), the position of each piece in its window
    windows: list[int]  # the length of each window
    stretches: list[tuple[int, int]]  # windows of one length that lie side by side: that length, and their pieces
    order: IntArray  # (items,), the items as they lie
    owners: Tensor  # (pieces,), the item that each piece belongs to
    words: Tensor  # (words of all items,), the place of each word's first piece
    counts: IntArray  # (items,), how many words each item has
    items: int


def batch_of(items: Sequence[Pieces]) -> Batch:
    """Lay items end to end."""
    sizes = np.array([item.size for item in items])
    order = np.argsort(sizes, kind="stable")
    starts = np.empty_like(sizes)
    starts[order] = np.cumsum(sizes[order]) - sizes[order]
    laid = [items[i] for i in order]
    windows = [window for item in laid for window in item.windows]
    return Batch(
        torch.from_numpy(np.concatenate([item.ids for item in laid])),
        torch.from_numpy(np.concatenate([item.types for item in laid])),
        torch.from_numpy(np.concatenate([np.arange(window) for window in windows])),
        windows,
        [(length, length * len(list(run))) for length, run in groupby(windows)],
        order,
        torch.from_numpy(np.repeat(order, sizes[order])),
        torch.from_numpy(np.concatenate([item.words + start for item, start in zip(items, starts, strict=True)])),
        np.array([len(item.words) for item in items], dtype=np.int64),
        len(items),
    )


class Reading(Protocol):
    """One item as an encoder reads it: made once, kept, and put into many batches."""

    @property
    def size(self) -> int:
        """How many rows of hidden states it has, which is what its cost grows with."""
        ...


class Encoder(nn.Module, ABC):
    """Items to vectors, in steps: read, batch, embed, run the layers, pool.

    The layers can be run in stretches, so that those that are frozen need running only once, and so that the top ones
    can be there in several copies.
    """

    width: int
    depth: int = 0  # how many layers there are to freeze or to copy
    reads_words: bool = True  # whether it has vectors for words too
    pretrained: bool = False  # whether its layers know anything before they are trained

    @abstractmethod
    def keys(self, items: Corpus) -> list[Hashable]:
        """What the readings of these items depend on: equal keys, equal readings."""

    @abstractmethod
    def read(self, items: Corpus) -> Sequence[Any]:
        """A ``Reading`` of every item."""

    @abstractmethod
    def batch(self, readings: Sequence[Any]) -> Any:
        """Readings as the tensors that the other steps take."""

    @abstractmethod
    def embed(self, batch: Any) -> Tensor:
        """The hidden states below the first layer, one row for each of what ``size`` counts."""

    @abstractmethod
    def pool(self, hidden: Tensor, batch: Any) -> Encoded:
        """A vector for each item and for each word."""

    @abstractmethod
    def trainable(self, frozen: int) -> list[nn.Parameter]:
        """The parameters to train when the first ``frozen`` layers stay as they are."""

    def run(
        self, hidden: Tensor, batch: Any, start: int, stop: int, copies: Any = None, begun: Tensor | None = None
    ) -> Tensor:
        """Layers ``start`` to ``stop``, or copies of them; ``begun`` is what ``begin`` gave for them."""
        return hidden

    def begin(self, hidden: Tensor, batch: Any, start: int) -> Tensor | None:
        """What comes before the first dropout of layer ``start``: the same in every thinned version of it."""
        return None

    def compute_in(self, precision: torch.dtype) -> None:
        """Multiply by weights in this precision, where the encoder can; the weights themselves stay float32."""

    def shorten(self, layers: int) -> None:
        """Keep only the lowest layers."""
        raise LearnerError("the layers of this encoder cannot be left out", fix="take learner.layers away")

    def copy_layers(self, start: int) -> nn.ModuleList:
        """Copies of the layers from ``start`` up."""
        raise LearnerError("the layers of this encoder cannot be copied", fix='use learner.sharing = "shared"')

    def settle(self, readings: Sequence[Any]) -> None:
        """Look at the readings of all training items once, before training."""

    def settled(self) -> Any:
        """What ``settle`` found, as JSON, for ``resettle`` to take up in a saved model."""
        return None

    def resettle(self, found: Any) -> None:
        """As if ``settle`` had found this."""

    def twin(self) -> Self:
        """A copy to train; what is not trained is not copied but shared."""
        return deepcopy(self, {id(p): p for p in self.parameters() if not p.requires_grad})


class TextEncoder(Encoder):
    """An encoder that reads word-pieces."""

    pieces: PieceMaker

    def keys(self, items: Corpus) -> list[Hashable]:
        """An item's word-pieces depend on its text, where its words stand, and its pair."""
        return text_keys(items)

    def read(self, items: Corpus) -> list[Pieces]:
        return self.pieces.make(items)

    def batch(self, readings: Sequence[Pieces]) -> Batch:
        return batch_of(readings)

    def piece_embeddings(self) -> Tensor:
        """(pieces, width): the vector that every piece has before it is read in context."""
        raise LearnerError("this encoder has no embeddings of pieces to show", fix="set learner.pretraining_steps = 0")

    def pool(self, hidden: Tensor, batch: Batch) -> Encoded:
        """The mean of an item's pieces, and the first piece of each word."""
        sizes = torch.bincount(batch.owners, minlength=batch.items).unsqueeze(1)
        means = hidden.new_zeros(batch.items, hidden.shape[1]).index_add(0, batch.owners, hidden) / sizes
        return Encoded(means, hidden.index_select(0, batch.words), batch.counts)


def text_keys(items: Corpus) -> list[Hashable]:
    """The texts of items, where their words stand, and their pairs."""
    if items.texts is None:
        raise LearnerError("this learner reads texts, and the corpus has images", fix="use an image learner")
    texts, spans = items.texts.strings.tolist(), items.texts.spans
    pairs = items.pairs.strings.tolist() if items.pairs is not None else [""] * len(items)
    return [(text, spans[at].tobytes(), pair) for at, (text, pair) in enumerate(zip(texts, pairs, strict=True))]


class PieceMaker:
    """Items to word-pieces. Long items are read in several windows, never cut off."""

    def __init__(
        self, tokenizer: Any, *, start: int, end: int, unknown: int, longest: int, mask: int | None = None
    ) -> None:
        self._tokenizer = tokenizer
        self._known: dict[str, list[int]] = {}  # pieces of a word depend on that word alone
        self.start, self.end, self.unknown, self.longest = start, end, unknown, longest
        self.mask = mask  # the piece that hides others, if the encoder was pretrained with one

    def __deepcopy__(self, memo: dict[int, Any]) -> PieceMaker:
        """Copies of an encoder share what reads texts for them."""
        return self

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
