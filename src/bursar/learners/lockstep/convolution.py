"""Convolutional networks for texts, over word vectors, and for small images (paper 4's CNNs)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from bursar.errors import ConfigError
from bursar.learners.lockstep.network import Draws, Network, Parameters
from bursar.learners.lockstep.sums import gathered, product
from bursar.learners.lockstep.texts import Pack, SequenceNetwork, pack
from bursar.ragged import IntArray

CHANNELS, LAYERS = 50, 3  # for texts
SIDE = 28  # of an image
KERNEL = 5
IMAGE_CHANNELS = 32, 64
FLAT = 4 * 4 * IMAGE_CHANNELS[1]  # features after the convolutions
FULL = 128


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
        mean = self.mean(gathered(x.reshape(-1, CHANNELS), *packed.sums()).view(lanes, items, CHANNELS), rows)
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
    return torch.cat([x, x.new_zeros(len(x), 1, x.shape[2])], dim=1)


class ImageConvolution(Network):
    """Convolutions of 5 × 5 with 32 and 64 channels, each with 2 × 2 max pooling; a layer of 128; the output layer.

    Images (items, 28, 28) should have values from about 0 to 1. One model's step is enough work for the library's own
    convolution, so lanes run one after the other; with few lanes a search speculates less far ahead.
    """

    width = FULL
    lanes = 4

    def __init__(
        self,
        images: NDArray[np.floating],
        targets: IntArray,
        labels: int,
        *,
        dropout: float = 0.0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(targets, labels, dropout=dropout, dtype=dtype)
        if images.shape[1:] != (SIDE, SIDE):
            raise ConfigError(f"images of {images.shape[1:]}", fix=f"use grey images of {SIDE} × {SIDE}")
        self.images = torch.from_numpy(np.ascontiguousarray(images)).to(dtype)

    def begin(self, seed: int) -> dict[str, Tensor]:
        draws = Draws(seed, self.dtype)
        return {
            **draws.layer("first", KERNEL**2, IMAGE_CHANNELS[0]),
            **draws.layer("second", KERNEL**2 * IMAGE_CHANNELS[0], IMAGE_CHANNELS[1]),
            **draws.layer("full", FLAT, FULL),
            **draws.layer("output", FULL, self.labels),
        }

    def features(self, parameters: Parameters, rows: IntArray, places: IntArray) -> Tensor:
        items = rows.shape[1]
        filters = []  # weights as (lanes, outputs, channels, 5, 5), channels last in memory
        for name in ("first", "second"):
            weight = parameters[f"{name}.weight"]  # (lanes, 25 × channels, outputs)
            kernels = weight.view(len(weight), KERNEL, KERNEL, -1, weight.shape[2]).permute(0, 4, 3, 1, 2)
            filters.append((kernels, parameters[f"{name}.bias"]))
        seen = []
        for lane, some in enumerate(torch.from_numpy(rows)):
            x = self.images[some].unsqueeze(3).permute(0, 3, 1, 2)  # (items, channels, 28, 28), channels last in memory
            for weight, bias in filters:
                x = F.max_pool2d(F.conv2d(x, weight[lane], bias[lane]), 2).relu()
            seen.append(x.permute(0, 2, 3, 1).reshape(items, FLAT))
        return product(torch.stack(seen), parameters["full.weight"], parameters["full.bias"], (0, items)).relu()
