"""The interface of encoders, and the tokenisation of texts to word-pieces."""

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
    """One item as word-pieces, in one or more windows, with the start of each word."""

    ids: NDArray[np.int64]  # (pieces,), all windows concatenated
    types: NDArray[np.int64]  # (pieces,), 1 in the second text of a pair
    windows: tuple[int, ...]  # number of pieces of each window
    words: NDArray[np.int64]  # (words,), the position of each word's first piece

    @property
    def size(self) -> int:
        return len(self.ids)


class PieceBatch(NamedTuple):
    """Items laid end to end without padding, short ones first, so that windows of one length are adjacent.

    ``owners`` and ``words`` refer to the items in their original order.
    """

    ids: Tensor  # (pieces,)
    types: Tensor  # (pieces,)
    places: Tensor  # (pieces,), the position of each piece in its window
    windows: list[int]  # the length of each window
    runs: list[tuple[int, int]]  # runs of windows of one length: that length, and the number of pieces
    order: IntArray  # (items,), the items in batch order
    owners: Tensor  # (pieces,), the item of each piece
    words: Tensor  # (words of all items,), the position of each word's first piece
    counts: IntArray  # (items,), number of words
    items: int


Layers = range | nn.ModuleList  # of an encoder: their numbers, or copies of them


class ItemReading(Protocol):
    """One item as an encoder reads it: computed once and used in many batches."""

    @property
    def size(self) -> int:
        """The number of rows of hidden states, which determines its cost."""
        ...


class Encoder(nn.Module, ABC):
    """Items to vectors, in steps: read, batch, embed, run the layers, pool.

    The layers can be run in parts, so that frozen layers run only once and the top layers can have several copies.
    """

    width: int
    depth: int = 0  # number of layers that can be frozen or copied
    reads_words: bool = True  # whether it has vectors of words
    pretrained: bool = False  # whether its weights are pretrained

    @abstractmethod
    def keys(self, items: Corpus) -> list[Hashable]:
        """A key for every item: equal keys, equal readings."""

    @abstractmethod
    def read(self, items: Corpus) -> Sequence[Any]:
        """A ``ItemReading`` of every item."""

    @abstractmethod
    def batch(self, readings: Sequence[Any]) -> Any:
        """Readings as tensors for the other steps."""

    @abstractmethod
    def embed(self, batch: Any) -> Tensor:
        """The hidden states below the first layer; a reading has ``size`` rows."""

    @abstractmethod
    def pool(self, hidden: Tensor, batch: Any) -> Encoded:
        """A vector for each item and for each word."""

    @abstractmethod
    def trainable(self, frozen: int) -> list[nn.Parameter]:
        """The parameters to train if the first ``frozen`` layers are frozen."""

    def run(self, hidden: Tensor, batch: Any, layers: Layers, begun: Tensor | None = None) -> Tensor:
        """Run some layers; ``begun`` is the result of ``begin`` for the first of them, if known."""
        return hidden

    def begin(self, hidden: Tensor, batch: Any, start: int) -> Tensor | None:
        """The part of layer ``start`` before its first dropout, which all dropout passes share."""
        return None

    def compute_in(self, precision: torch.dtype) -> None:
        """Compute products with weights in this precision, if supported; the weights stay float32."""

    def shorten(self, layers: int) -> None:
        raise LearnerError("the layers of this encoder cannot be left out", fix="remove learner.layers")

    def copy_layers(self, start: int) -> nn.ModuleList:
        raise LearnerError("the layers of this encoder cannot be copied", fix='use learner.sharing = "shared"')

    def settle(self, readings: Sequence[Any]) -> None:
        """Prepare for training on these readings."""

    def settled(self) -> Any:
        return None

    def resettle(self, found: Any) -> None:
        """Restore the result of ``settle``."""

    def twin(self) -> Self:
        """A copy to train, which shares all frozen parameters."""
        return deepcopy(self, {id(p): p for p in self.parameters() if not p.requires_grad})


class TextEncoder(Encoder):
    """An encoder that reads word-pieces."""

    pieces: PieceMaker

    def keys(self, items: Corpus) -> list[Hashable]:
        return text_keys(items)

    def read(self, items: Corpus) -> list[Pieces]:
        return self.pieces.make(items)

    def batch(self, readings: Sequence[Pieces]) -> PieceBatch:
        sizes = np.array([item.size for item in readings])
        order = np.argsort(sizes, kind="stable")
        starts = np.empty_like(sizes)
        starts[order] = np.cumsum(sizes[order]) - sizes[order]
        laid = [readings[i] for i in order]
        windows = [window for item in laid for window in item.windows]
        words = [item.words + start for item, start in zip(readings, starts, strict=True)]
        return PieceBatch(
            ids=torch.from_numpy(np.concatenate([item.ids for item in laid])),
            types=torch.from_numpy(np.concatenate([item.types for item in laid])),
            places=torch.from_numpy(np.concatenate([np.arange(window) for window in windows])),
            windows=windows,
            runs=[(length, length * len(list(run))) for length, run in groupby(windows)],
            order=order,
            owners=torch.from_numpy(np.repeat(order, sizes[order])),
            words=torch.from_numpy(np.concatenate(words)),
            counts=np.array([len(item.words) for item in readings], dtype=np.int64),
            items=len(readings),
        )

    def piece_embeddings(self) -> Tensor:
        """The input embeddings of all pieces: (pieces, width)."""
        raise LearnerError("this encoder does not expose its piece embeddings", fix="set learner.pretraining_steps = 0")

    def pool(self, hidden: Tensor, batch: PieceBatch) -> Encoded:
        """The mean over an item's pieces, and the first piece of each word."""
        sizes = torch.bincount(batch.owners, minlength=batch.items).unsqueeze(1)
        means = hidden.new_zeros(batch.items, hidden.shape[1]).index_add(0, batch.owners, hidden) / sizes
        return Encoded(means, hidden.index_select(0, batch.words), batch.counts)


def text_keys(items: Corpus) -> list[Hashable]:
    """The texts of items, the offsets of their words, and their pairs."""
    if items.texts is None:
        raise LearnerError("this learner reads texts, but the corpus has images", fix="use an image learner")
    texts, spans = items.texts.strings.tolist(), items.texts.spans
    pairs = items.pairs.strings.tolist() if items.pairs is not None else [""] * len(items)
    return [(text, spans[at].tobytes(), pair) for at, (text, pair) in enumerate(zip(texts, pairs, strict=True))]


class PieceMaker:
    """Splits items into word-pieces. Long items get several windows and are not truncated."""

    def __init__(
        self, tokenizer: Any, *, start: int, end: int, unknown: int, longest: int, mask: int | None = None
    ) -> None:
        self._tokenizer = tokenizer
        self._known: dict[str, list[int]] = {}  # a word's pieces depend on that word alone
        self.start, self.end, self.unknown, self.longest = start, end, unknown, longest
        self.mask = mask  # the mask token, if the encoder was pretrained with one

    def __deepcopy__(self, memo: dict[int, Any]) -> PieceMaker:
        return self

    def make(self, items: Corpus) -> list[Pieces]:
        """The word-pieces of every item; words are those of the corpus."""
        assert items.texts is not None  # checked by ``keys``
        texts = self._encode(items.texts.all_words())
        pairs = self._encode(items.pairs.all_words()) if items.pairs is not None else [None] * len(items)
        return [
            self._pair(text, pair, items.ids[at]) if pair is not None and len(pair[0]) else self._windows(*text)
            for at, (text, pair) in enumerate(zip(texts, pairs, strict=True))
        ]

    def _encode(self, items: list[list[str]]) -> list[tuple[list[int], list[int]]]:
        """Per item: the ids of its pieces, and the number of pieces of each word (at least one)."""
        new = list({word for words in items for word in words if word not in self._known})
        words_alone = [[word] for word in new]
        encoded = self._tokenizer.encode_batch_fast(words_alone, is_pretokenized=True, add_special_tokens=False)
        for word, tokens in zip(new, encoded, strict=True):
            # A word without pieces, such as a lone joiner, becomes the unknown token.
            self._known[word] = tokens.ids or [self.unknown]
        known = self._known
        return [
            ([piece for word in words for piece in known[word]], [len(known[word]) for word in words])
            for words in items
        ]

    def _windows(self, ids: list[int], counts: list[int]) -> Pieces:
        """One window, or several for an item that is longer than the encoder reads at a time."""
        limit = self.longest - 2
        flat: list[int] = []
        windows: list[int] = []
        words: list[int] = []
        window: list[int] = []
        at = 0
        for count in counts:
            kept = min(count, limit)  # a word longer than a window is truncated
            if len(window) + kept > limit:
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
