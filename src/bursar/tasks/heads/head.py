"""What a head is: the part of a model that knows one task."""

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

FEWEST_ROWS = 16  # in a matrix product whose rows must not depend on their company


class Encoded(NamedTuple):
    """A batch as an encoder leaves it: one vector an item, and one for each word of each item, item after item."""

    items: Tensor  # (items, width)
    words: Tensor  # (words of all items, width)
    counts: IntArray  # (items,): how many words each item has

    def take(self, items: IntArray) -> Encoded:
        """Some items of the batch."""
        if len(items) == len(self.counts) and (items == np.arange(len(items))).all():
            return self
        words = flat_positions(offsets_of(self.counts), items)
        return Encoded(
            self.items.index_select(0, torch.from_numpy(items)),
            self.words.index_select(0, torch.from_numpy(words)),
            self.counts[items],
        )


class Head(nn.Module, ABC):
    """Encoder vectors to what one task needs: scores to train on, and beliefs.

    ``forward`` may return whatever ``loss``, ``scaled`` and ``predict_proba`` of the same head understand.
    """

    tags_words = False  # whether it gives each word one tag, so that spans must not overlap

    def prepare(self, labels: Ragged, words: IntArray) -> None:
        """Look at the labels of all training items once, before training."""

    @abstractmethod
    def forward(self, encoded: Encoded, spans: Ragged | None = None) -> Any:
        """Scores for every unit of every item; ``spans`` are those of the partner task, where there is one."""

    @abstractmethod
    def targets(self, labels: Ragged, words: IntArray) -> Ragged:
        """The label rows of items of so many words as ``loss`` wants them: any number of rows an item."""

    @abstractmethod
    def loss(self, output: Any, targets: Ragged, smoothing: float) -> Tensor:
        """The mean loss over the units of the items that ``output`` is about; 0 where there are none."""

    def taught(self, output: Any, targets: Ragged) -> Any:
        """The output as ``loss`` and ``surprise`` want it: whatever takes chance and the gold labels is done here."""
        return output

    def surprise(self, output: Any, targets: Ragged) -> Tensor:
        """The mean negative log-likelihood of the gold labels over units: what a task policy is told of a step.

        ``exp(-surprise)`` is a probability, so that tasks of all kinds can be compared (paper 3, section 3.3.3). The
        plain loss is that; where it is not, because of a density or some other term, a head has its own.
        """
        return self.loss(output, targets, 0.0)

    @abstractmethod
    def scaled(self, output: Any, temperature: float) -> Any:
        """The same output with its scores divided by a temperature."""

    @abstractmethod
    def predict_proba(self, outputs: Sequence[Any]) -> AnyBeliefs:
        """Beliefs from the outputs of one or more passes over the same items."""


class Dropout(nn.Module):
    """Dropout that can also be held still: a sampled pass drops the same features for every word of every item.

    A pass is then one thinned model, asked about the whole pool, so its answers depend neither on the order of the
    items nor on their company.
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
        """Drop what this key says from now on; without a key, nothing."""
        self._key, self._masks = key, {}
        return self

    def _mask(self, width: int) -> Tensor:
        if width not in self._masks:
            keep = np.random.default_rng([*(self._key or ()), width]).random(width) >= self.p
            self._masks[width] = torch.from_numpy(keep.astype(np.float32) / (1 - self.p))
        return self._masks[width]


def apply(layer: nn.Linear, x: Tensor) -> Tensor:
    """A linear layer on rows. Few rows get blank ones below them: alone, they would have other last bits."""
    return torch.nn.functional.linear(enough_rows(x), layer.weight, layer.bias)[: len(x)]


def enough_rows(x: Tensor) -> Tensor:
    """The rows, with blank ones below where they are few: products of few rows are summed in another order."""
    if len(x) >= FEWEST_ROWS:
        return x
    return torch.cat([x, x.new_zeros(FEWEST_ROWS - len(x), x.shape[1])])


def random_mask(shape: Sequence[int], p: float) -> Tensor:
    """0 with chance p and 1 / (1 − p) otherwise, from 16 random bits a value: a third of the time that torch takes."""
    size = math.prod(shape)
    bits = torch.empty(-(-size // 4), dtype=torch.int64).random_(-(2**63), None)
    keep = bits.view(torch.int16)[:size].view(tuple(shape)) >= round(p * 2**16) - 2**15
    return keep.to(torch.float32).mul_(1 / (1 - p))


@contextmanager
def sampled(model: nn.Module, seed: int, number: int) -> Iterator[None]:
    """Run the model as one of its thinned versions: the same seed and number give the same one."""
    layers = [(name, layer) for name, layer in model.named_modules() if isinstance(layer, Dropout)]
    try:
        for name, layer in layers:
            layer.hold((crc32(f"{seed} {number}".encode()), crc32(name.encode())))
        yield
    finally:
        for _, layer in layers:
            layer.hold(None)
