"""One-dimensional convolutions over word vectors, averaged over the words (paper 4's CNN for texts)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from bursar.learners.lockstep.network import Draws, Parameters
from bursar.learners.lockstep.packs import Pack, SequenceNetwork, pack
from bursar.learners.lockstep.sums import pooled, product
from bursar.ragged import IntArray

CHANNELS = 50
LAYERS = 3


class TextConvolution(SequenceNetwork):
    """Three convolutions of 50 channels over three words each, their mean over the words, a layer of 50, the output."""

    width = CHANNELS

    def begin(self, seed: int) -> dict[str, Tensor]:
        draws = Draws(seed, self.dtype)
        found = {"words": self.first_vectors(draws)}
        for layer in range(LAYERS):
            found |= draws.layer(f"convolution{layer + 1}", 3 * (CHANNELS if layer else self.size), CHANNELS)
        return found | draws.layer("full", CHANNELS, CHANNELS) | draws.layer("output", CHANNELS, self.labels)

    def features(self, parameters: Parameters, rows: IntArray, places: IntArray) -> Tensor:
        lanes, items = rows.shape
        packed = pack(self.texts, rows, self.step)
        x = self.vectors_of(parameters, places, packed.words(self.texts, rows)).view(lanes, -1, self.size)
        real = torch.from_numpy(packed.real).to(self.dtype).unsqueeze(2)
        for layer in range(LAYERS):
            weight, bias = (parameters[f"convolution{layer + 1}.{part}"] for part in ("weight", "bias"))
            x = product(windows(x, packed), weight, bias, packed.cuts).relu() * real
        mean = self.mean(pooled(x.reshape(-1, CHANNELS), *packed.sums()).view(lanes, items, CHANNELS), rows)
        return product(mean, parameters["full.weight"], parameters["full.bias"], (0, items)).relu()


class _Windows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, before: Tensor, after: Tensor) -> Tensor:
        ctx.save_for_backward(before, after)
        longer = _with_zeros(x)
        return torch.cat([longer.index_select(1, before), x, longer.index_select(1, after)], dim=2)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        before, after = ctx.saved_tensors
        earlier, here, later = (_with_zeros(part) for part in grads[0].chunk(3, dim=2))
        return here[:, :-1] + earlier.index_select(1, after) + later.index_select(1, before), None, None


def windows(x: Tensor, packed: Pack) -> Tensor:
    """Every row with those of the previous and next word: (lanes, rows, width) to (lanes, rows, 3 × width)."""
    rows, first = len(packed.times), packed.sizes[0]
    before, after = np.full(rows, rows), np.full(rows, rows)  # the row of zeros, beyond the ends
    before[first:] = packed.before
    after[packed.before] = np.arange(first, rows)
    found: Tensor = _Windows.apply(x, torch.from_numpy(before), torch.from_numpy(after))  # type: ignore[no-untyped-call]
    return found


def _with_zeros(x: Tensor) -> Tensor:
    """Append a row of zeros."""
    return torch.cat([x, x.new_zeros(len(x), 1, x.shape[2])], dim=1)
