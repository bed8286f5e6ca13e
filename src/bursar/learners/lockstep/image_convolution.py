"""Two convolutions and two fully connected layers over small images (paper 4's CNN for images)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bursar.errors import ConfigError
from bursar.learners.lockstep.network import Draws, Network, Parameters
from bursar.learners.lockstep.sums import product
from bursar.ragged import IntArray

SIDE = 28  # of an image
REACH = 5  # of a convolution
CHANNELS = 32, 64
FLAT = 4 * 4 * CHANNELS[1]  # numbers that are left of an image
FULL = 128


class ImageConvolution(Network):
    """Convolutions of 5 × 5 with 32 and 64 channels, the largest of every 2 × 2 after each, a layer of 128, the output.

    Images (items, 28, 28) should lie between 0 and 1 or so.
    """

    width = FULL

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
            **draws.layer("first", REACH**2, CHANNELS[0]),
            **draws.layer("second", REACH**2 * CHANNELS[0], CHANNELS[1]),
            **draws.layer("full", FLAT, FULL),
            **draws.layer("output", FULL, self.labels),
        }

    def features(self, parameters: Parameters, rows: IntArray, places: IntArray) -> Tensor:
        lanes, items = rows.shape
        x = self.images[torch.from_numpy(rows)].unsqueeze(-1)  # (lanes, items, 28, 28, 1)
        for name in ("first", "second"):
            side = x.shape[2] - REACH + 1
            parts = patches(x).view(lanes, items * side * side, -1)
            weight, bias = parameters[f"{name}.weight"], parameters[f"{name}.bias"]
            x = largest(product(parts, weight, bias, (0, parts.shape[1])).view(lanes, items, side, side, -1)).relu()
        x = x.reshape(lanes, items, FLAT)
        return product(x, parameters["full.weight"], parameters["full.bias"], (0, items)).relu()


class _Patches(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.shape = x.shape
        lanes, items, side, _, channels = x.shape
        there = side - REACH + 1
        seen = x.unfold(2, REACH, 1).unfold(3, REACH, 1)  # (lanes, items, there, there, channels, 5, 5)
        return seen.permute(0, 1, 2, 3, 5, 6, 4).reshape(lanes, items, there, there, REACH**2 * channels)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Tensor:
        there = slopes[0].shape[2]
        parts = slopes[0].view(*slopes[0].shape[:4], REACH, REACH, ctx.shape[4])
        found = slopes[0].new_zeros(ctx.shape)
        for i in range(REACH):
            for j in range(REACH):
                found[:, :, i : i + there, j : j + there] += parts[..., i, j, :]
        return found


def patches(x: Tensor) -> Tensor:
    """What a convolution sees from every place: (…, side, side, channels) to (…, side − 4, side − 4, 25 × channels)."""
    found: Tensor = _Patches.apply(x)  # type: ignore[no-untyped-call]
    return found


def largest(x: Tensor) -> Tensor:
    """Of every 2 × 2 places the largest value: (lanes, items, side, side, channels), half as many each way."""
    upper = torch.maximum(x[:, :, ::2, ::2], x[:, :, ::2, 1::2])
    lower = torch.maximum(x[:, :, 1::2, ::2], x[:, :, 1::2, 1::2])
    return torch.maximum(upper, lower)
