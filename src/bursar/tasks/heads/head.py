"""The base class of heads: the part of a model that is specific to one task."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn

from bursar.ragged import IntArray, Ragged, flat_positions, offsets_of
from bursar.tasks.beliefs import AnyBeliefs

FEWEST_ROWS = 16  # in a matrix product whose rows must not depend on the batch size


class Encoded(NamedTuple):
    """An encoded batch: one vector per item, and one per word, item after item."""

    items: Tensor  # (items, width)
    words: Tensor  # (words of all items, width)
    counts: IntArray  # (items,): number of words

    def take(self, items: IntArray) -> Encoded:
        """Some items of the batch."""
        if len(items) == len(self.counts) and (items == np.arange(len(items))).all():
            return self
        words = flat_positions(offsets_of(self.counts), items)
        chosen, their_words = torch.from_numpy(items), torch.from_numpy(words)
        return Encoded(self.items.index_select(0, chosen), self.words.index_select(0, their_words), self.counts[items])


class Head(nn.Module, ABC):
    """Turns encoder vectors into scores to train on and predictions for one task; scores may be of any type."""

    tags_words = False  # whether every word gets one tag, so that spans must not overlap

    def __init__(self, task: Any, dropout: float) -> None:
        super().__init__()
        self.task = task
        self.dropout = Dropout(dropout)

    def prepare(self, labels: Ragged, words: IntArray) -> None:
        """Inspect the labels of all training items once, before training."""

    @abstractmethod
    def forward(self, encoded: Encoded, spans: Ragged | None = None) -> Any:
        """Scores for every unit of every item; ``spans`` are those of the partner task, if there is one."""

    def targets(self, labels: Ragged, words: IntArray) -> Ragged:
        """Label rows of items with these numbers of words in the form that ``loss`` needs: a code for every unit."""
        return Ragged(self.task.targets(labels, words), offsets_of(self.task.units(words)))

    @abstractmethod
    def loss(self, output: Any, targets: Ragged, smoothing: float) -> Tensor:
        """The mean loss over the units of the items of ``output``; 0 if there are none."""

    def teacher_forced(self, output: Any, targets: Ragged) -> Any:
        """The output for ``loss`` and ``surprise``, after any step that needs random numbers and the gold labels."""
        return output

    def surprise(self, output: Any, targets: Ragged) -> Tensor:
        """The mean negative log-likelihood of the gold labels over units, reported to task policies.

        ``exp(-surprise)`` is a probability, so that tasks of all kinds can be compared (paper 3, section 3.3.3). This
        is the loss without smoothing; a head whose loss is a density or has other terms overrides it.
        """
        return self.loss(output, targets, 0.0)

    @abstractmethod
    def with_temperature(self, output: Any, temperature: float) -> Any:
        """The same output with its scores divided by a temperature."""

    @abstractmethod
    def predict_proba(self, outputs: Sequence[Any]) -> AnyBeliefs:
        """Predictions from the outputs of one or more passes over the same items."""


class Dropout(nn.Module):
    """Dropout whose mask can be fixed: a sampled pass drops the same features for every word of every item.

    Such a pass is one thinned model applied to the whole pool, so its predictions do not depend on the order of the
    items or on the batches.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self._key: tuple[int, int] | None = None
        self._masks: dict[int, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        if not self.p:
            return x
        if self.training:
            return x * random_mask(x.shape, self.p)
        return x if self._key is None else x * self._mask(x.shape[-1])

    def hold(self, key: tuple[int, int] | None) -> Self:
        """Fix the mask by a key; ``None`` switches it off."""
        self._key, self._masks = key, {}
        return self

    def _mask(self, width: int) -> Tensor:
        if width not in self._masks:
            keep = np.random.default_rng([*(self._key or ()), width]).random(width) >= self.p
            self._masks[width] = torch.from_numpy(keep.astype(np.float32) / (1 - self.p))
        return self._masks[width]


def apply(layer: nn.Linear, x: Tensor) -> Tensor:
    """Apply a linear layer to rows. Few rows are padded, because results may differ in the last bits otherwise."""
    return torch.nn.functional.linear(enough_rows(x), layer.weight, layer.bias)[: len(x)]


def enough_rows(x: Tensor, multiple: int = 1) -> Tensor:
    """Pad few rows with zeros, because matrix products of few rows are summed in another order; or to a multiple."""
    rows = max(FEWEST_ROWS, -(-len(x) // multiple) * multiple)
    return x if len(x) == rows else torch.cat([x, x.new_zeros(rows - len(x), x.shape[1])])


def random_mask(shape: Sequence[int], p: float) -> Tensor:
    """0 with probability p, else 1 / (1 − p), from 16 random bits per value: in a third of torch's time."""
    size = math.prod(shape)
    bits = torch.empty(-(-size // 4), dtype=torch.int64).random_(-(2**63), None)
    keep = bits.view(torch.int16)[:size].view(tuple(shape)) >= round(p * 2**16) - 2**15
    return keep.to(torch.float32).mul_(1 / (1 - p))


@contextmanager
def dropout_sample(model: nn.Module, seed: int, number: int) -> Iterator[None]:
    """Run the model with fixed dropout masks: the same seed and number give the same masks."""
    layers = [(name, layer) for name, layer in model.named_modules() if isinstance(layer, Dropout)]
    try:
        for name, layer in layers:
            layer.hold((crc32(f"{seed} {number}".encode()), crc32(name.encode())))
        yield
    finally:
        for _, layer in layers:
            layer.hold(None)
