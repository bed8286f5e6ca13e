"""Two convolutions and two fully connected layers over small images (paper 4's CNN for images)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from bursar.errors import ConfigError
from bursar.learners.lockstep.network import Draws, Network, Parameters
from bursar.learners.lockstep.sums import product
from bursar.ragged import IntArray

SIDE = 28  # of an image
KERNEL = 5  # kernel size
CHANNELS = 32, 64
FLAT = 4 * 4 * CHANNELS[1]  # features after the convolutions
FULL = 128


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
            **draws.layer("first", KERNEL**2, CHANNELS[0]),
            **draws.layer("second", KERNEL**2 * CHANNELS[0], CHANNELS[1]),
            **draws.layer("full", FLAT, FULL),
            **draws.layer("output", FULL, self.labels),
        }

    def features(self, parameters: Parameters, rows: IntArray, places: IntArray) -> Tensor:
        items = rows.shape[1]
        filters = [
            (filters_of(parameters[f"{name}.weight"]), parameters[f"{name}.bias"]) for name in ("first", "second")
        ]
        seen = []
        for lane, some in enumerate(torch.from_numpy(rows)):
            x = self.images[some].unsqueeze(3).permute(0, 3, 1, 2)  # (items, channels, 28, 28), channels last in memory
            for weight, bias in filters:
                x = F.max_pool2d(F.conv2d(x, weight[lane], bias[lane]), 2).relu()
            seen.append(x.permute(0, 2, 3, 1).reshape(items, FLAT))
        return product(torch.stack(seen), parameters["full.weight"], parameters["full.bias"], (0, items)).relu()


def filters_of(weight: Tensor) -> Tensor:
    """(lanes, 25 × channels, outputs) to convolution filters (lanes, outputs, channels, 5, 5), channels last."""
    lanes, _, outputs = weight.shape
    return weight.view(lanes, KERNEL, KERNEL, -1, outputs).permute(0, 4, 3, 1, 2)
