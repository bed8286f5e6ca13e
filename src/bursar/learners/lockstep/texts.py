"""Texts as word codes, packed in time order for many lanes: no rows for texts that have ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bursar.corpus import CorpusBuilder
from bursar.errors import ConfigError
from bursar.learners.features import Components
from bursar.learners.frozen import FrozenEncoder
from bursar.learners.lockstep.network import Draws, Network, Parameters
from bursar.learners.lockstep.sums import SPAN, looked_up, quantum, rounded
from bursar.ragged import BoolArray, FloatArray, IntArray, offsets_of


class FlatTexts(NamedTuple):
    """Concatenated texts."""

    words: IntArray  # the codes of all words
    starts: IntArray  # (items,): where each text begins among them
    lengths: IntArray  # (items,)


@dataclass(frozen=True)
class CodedTexts:
    """Words of items as codes from 1; 0 is padding."""

    codes: IntArray  # (items, longest)
    lengths: IntArray  # (items,)
    vocabulary: int  # codes are below this

    def __post_init__(self) -> None:
        codes, lengths = self.codes, self.lengths
        if len(codes) != len(lengths) or lengths.min(initial=1) < 1 or lengths.max(initial=0) > codes.shape[1]:
            raise ConfigError("texts and their lengths do not match", fix="every text needs at least one word")
        inside = np.arange(codes.shape[1]) < lengths[:, None]
        if ((codes > 0) != inside).any() or codes.max(initial=0) >= self.vocabulary:
            fix = "use 1 to vocabulary - 1 for words and 0 after each text"
            raise ConfigError("word codes are out of range", fix=fix)

    @cached_property
    def flat(self) -> FlatTexts:
        words = np.ascontiguousarray(self.codes[self.codes > 0], dtype=np.int64)
        return FlatTexts(words, offsets_of(self.lengths)[:-1], np.ascontiguousarray(self.lengths, dtype=np.int64))


class TextNetwork(Network):
    """A network with a vector for each word. The vectors of a model's training words are trained."""

    table = "words"

    def __init__(
        self,
        texts: CodedTexts,
        targets: IntArray,
        labels: int,
        *,
        size: int = 64,
        vectors: FloatArray | None = None,
        dropout: float = 0.0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """``vectors`` (vocabulary, size) are the initial word vectors; by default random ones from the seed."""
        super().__init__(targets, labels, dropout=dropout, dtype=dtype)
        if vectors is not None and len(vectors) != texts.vocabulary:
            raise ConfigError(f"{len(vectors)} word vectors for {texts.vocabulary} words", fix="give one for each code")
        self.texts, self.vectors = texts, vectors
        self.size = size if vectors is None else vectors.shape[1]
        self.step = max(quantum(self.size), quantum(self.width))

    def first_vectors(self, draws: Draws) -> Tensor:
        """Initial word vectors: (vocabulary, size). The padding row is always zero."""
        found = draws.normal(self.texts.vocabulary, self.size)
        if self.vectors is not None:
            found = torch.from_numpy(np.array(self.vectors)).to(self.dtype)
        found[0] = 0
        return found

    def touched(self, rows: IntArray) -> IntArray:
        found = np.unique(self.texts.codes[rows])
        return found[found > 0].astype(np.int64)


def tokens(texts: CodedTexts, rows: IntArray, places: IntArray) -> tuple[IntArray, IntArray]:
    """The words of the items of every lane, rows (lanes, items), as rows of the flat table; where each item starts."""
    items = rows.shape[1]
    chosen = rows.reshape(-1)
    lengths = texts.lengths[chosen]
    offsets = offsets_of(lengths)
    owners = np.repeat(np.arange(len(chosen)), lengths)
    words = texts.flat.words[np.arange(offsets[-1]) + (texts.flat.starts[chosen] - offsets[:-1])[owners]]
    return places.reshape(-1)[words + owners // items * places.shape[1]], offsets


def word_vectors(words: Sequence[str], size: int) -> FloatArray:
    """Principal components of the bundled encoder's input vectors of words: (words + 1, size).

    They replace the GloVe vectors of paper 4 and the fastText vectors of paper 2 (errata 20). The first row is padding;
    the mean square is 1.
    """
    builder = CorpusBuilder({})
    for number, word in enumerate(words):
        builder.add(str(number), text=word)
    raw = FrozenEncoder(layers=0, cache_bytes=0).item_vectors(builder.build())
    found = Components.of(raw, size).project(raw).astype(np.float64)
    found = np.pad(found, ((1, 0), (0, size - found.shape[1])))
    return found / (np.sqrt(np.square(found[1:]).mean()) or 1.0)


@dataclass(frozen=True)
class Pack:
    """Rows are (time, text) with the longest texts of each lane first: all first words, then all second words, …

    At any time there are as many rows as the lane with the most texts needs. Padding rows are not ``real``.
    """

    sizes: list[int]  # (times,): rows at each time, never increasing
    starts: list[int]  # (times + 1,): start of the rows of each time
    cuts: list[int]  # where sums over rows are split: at the same times for any set of lanes
    times: IntArray  # (rows,)
    items: IntArray  # (lanes, rows): the text of each row, as its index in the lane's batch
    lengths: IntArray  # (lanes, rows): the length of that text
    count: int  # number of texts per lane

    @cached_property
    def real(self) -> BoolArray:
        return self.times < self.lengths

    @cached_property
    def before(self) -> IntArray:
        """For every row after the first time, the row of the previous word."""
        first = self.sizes[0]
        place = np.arange(first, len(self.times)) - np.array(self.starts)[self.times[first:]]
        return np.asarray(np.array(self.starts)[self.times[first:] - 1] + place)

    @cached_property
    def mirrored(self) -> IntArray:
        """For every row the row of the word at the same distance from the end, (lanes, rows); itself for padding."""
        starts = np.array(self.starts)
        place = np.arange(len(self.times)) - starts[self.times]
        there = starts[np.where(self.real, self.lengths - 1 - self.times, 0)] + place
        return np.where(self.real, there, np.arange(len(self.times)))

    def words(self, texts: CodedTexts, rows: IntArray, *, backwards: bool = False) -> IntArray:
        """The word codes of all rows, reading each text forwards or backwards: (lanes, rows)."""
        places = self.lengths - 1 - self.times if backwards else self.times
        chosen = np.take_along_axis(rows, self.items, axis=1)
        return np.where(self.real, texts.codes[chosen, np.where(self.real, places, 0)], 0)

    def sums(self, lanes_of: int = 1) -> tuple[IntArray, IntArray]:
        """Index and offsets for ``gathered``: sums over the words of every text, in batch order.

        With ``lanes_of`` 2 every lane has two consecutive sets of rows, and two sets of sums.
        """
        lanes, rows = self.items.shape
        twice = np.repeat(np.arange(lanes), lanes_of)
        copy, row = np.nonzero(self.real[twice])
        keys = copy * self.count + self.items[twice][copy, row]
        order = np.argsort(keys, kind="stable")
        return (copy * rows + row)[order], offsets_of(np.bincount(keys, minlength=len(twice) * self.count))


def pack(texts: CodedTexts, rows: IntArray, step: int) -> Pack:
    """Pack the texts of every lane, rows (lanes, items); rows per time are a multiple of ``step``."""
    lanes, count = rows.shape
    lengths = texts.lengths[rows]
    order = np.argsort(-lengths, axis=1, kind="stable")
    most = rounded(count, step)
    longest = np.zeros((lanes, most), dtype=np.int64)
    longest[:, :count] = np.take_along_axis(lengths, order, axis=1)
    items = np.zeros((lanes, most), dtype=np.int64)
    items[:, :count] = order
    times = int(longest[:, 0].max())
    busy = (longest[:, :, None] > np.arange(times)).sum(axis=1).max(axis=0)
    sizes = [rounded(int(size), step) for size in busy]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    time = np.repeat(np.arange(times), sizes)
    place = np.arange(starts[-1]) - starts[time]
    every = max(SPAN // most, 1)
    cuts = [*starts[:times:every].tolist(), int(starts[-1])]
    return Pack(sizes, starts.tolist(), cuts, time, items[:, place], longest[:, place], count)


class SequenceNetwork(TextNetwork):
    """A network that reads the words of a text in order."""

    def check(self, batch: int) -> None:
        """Refuse batches so large that sums would be split within a time."""
        if rounded(batch, self.step) > SPAN:
            fix = f"networks that read words in order take up to {SPAN} texts per batch"
            raise ConfigError(f"batch = {batch}", fix=fix)

    def vectors_of(self, parameters: Parameters, places: IntArray, words: IntArray) -> Tensor:
        """The vectors of words, (lanes, …): (lanes × …, size)."""
        index = np.take_along_axis(places, words.reshape(len(words), -1), axis=1).reshape(-1)
        return looked_up(parameters["words"], index, np.flatnonzero(words.reshape(-1)))

    def mean(self, sums: Tensor, rows: IntArray) -> Tensor:
        """The means over words from their sums: (lanes, items, width)."""
        return sums / torch.from_numpy(self.texts.lengths[rows]).to(self.dtype).unsqueeze(2)
