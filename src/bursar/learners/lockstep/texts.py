"""Texts as word codes, packed for many lanes at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bursar.errors import ConfigError
from bursar.learners.lockstep.network import Draws, Network
from bursar.learners.lockstep.sums import quantum
from bursar.ragged import FloatArray, IntArray


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
            raise ConfigError(
                "word codes are out of range", fix="use 1 to vocabulary - 1 for words and 0 after each text"
            )

    @cached_property
    def flat(self) -> FlatTexts:
        """The texts without padding."""
        words = np.ascontiguousarray(self.codes[self.codes > 0], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]]).astype(np.int64)
        return FlatTexts(words, starts, np.ascontiguousarray(self.lengths, dtype=np.int64))


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
    offsets = np.zeros(len(chosen) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    owners = np.repeat(np.arange(len(chosen)), lengths)
    words = texts.flat.words[np.arange(offsets[-1]) + (texts.flat.starts[chosen] - offsets[:-1])[owners]]
    return places.reshape(-1)[words + owners // items * places.shape[1]], offsets
