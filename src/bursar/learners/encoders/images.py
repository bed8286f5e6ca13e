"""The small network for images (paper 4, section 5.1; errata 26): two convolutions and a feature layer."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bursar.corpus import Corpus
from bursar.errors import LearnerError
from bursar.learners.encoders.encoder import Encoder
from bursar.tasks.heads import Encoded

FEATURES = 128
CHANNELS = (32, 64)
SMALLEST = 16  # pixels: smaller images vanish in the two convolutions
PIXELS_AT_ONCE = 2**18  # the first convolution's output takes 32 times the memory of its image


class ImageReading(NamedTuple):
    """One image, not scaled yet."""

    pixels: NDArray[Any]  # (height, width) or (height, width, channels)

    @property
    def size(self) -> int:
        return 1


class ImageCnn(Encoder):
    """Convolutions of 5 × 5 with 32 and then 64 channels, each halved by pooling, and 128 features for all heads.

    The size of the images is taken from the training items, so the layers are created by ``settle``, from torch's
    current random state.
    """

    width = FEATURES
    reads_words = False

    def __init__(self) -> None:
        super().__init__()
        self.shape: tuple[int, ...] = ()

    def keys(self, items: Corpus) -> list[Hashable]:
        """The images' digests. A corpus of texts is refused."""
        images = items.images
        if images is None:
            raise LearnerError("this learner reads images, but the corpus has texts", fix="use a text learner")
        about = f"{images.shape[1:]} {images.dtype}".encode()
        return [blake2b(image.tobytes(), digest_size=16, key=about).digest() for image in images]

    def read(self, items: Corpus) -> list[ImageReading]:
        assert items.images is not None  # checked by ``keys``
        return [ImageReading(image) for image in items.images]

    def batch(self, readings: Sequence[ImageReading]) -> Tensor:
        """Images of one size, with values from 0 to 1: (items, channels, height, width)."""
        shapes = {reading.pixels.shape for reading in readings}
        if strange := shapes - {self.shape}:
            raise LearnerError(
                f"images of {_as_text(min(strange))}, but the model was trained on {_as_text(self.shape)}",
                fix="resize all images to one size",
            )
        stacked = np.stack([as_floats(reading.pixels) for reading in readings])
        pixels = torch.from_numpy(stacked).reshape(*stacked.shape[:3], -1)
        return pixels.permute(0, 3, 1, 2).contiguous()

    def embed(self, batch: Tensor) -> Tensor:
        at_once = max(1, PIXELS_AT_ONCE // (batch.shape[2] * batch.shape[3]))
        return torch.cat([self.layers(part) for part in torch.split(batch, at_once)])

    def pool(self, hidden: Tensor, batch: Tensor) -> Encoded:
        return Encoded(hidden, hidden.new_zeros(0, self.width), np.zeros(len(hidden), dtype=np.int64))

    def trainable(self, frozen: int) -> list[nn.Parameter]:
        return list(self.parameters())

    def settle(self, readings: Sequence[ImageReading]) -> None:
        self._make(readings[0].pixels.shape)

    def settled(self) -> list[int]:
        return list(self.shape)

    def resettle(self, found: list[int]) -> None:
        self._make(tuple(found))

    def _make(self, shape: tuple[int, ...]) -> None:
        if len(shape) not in (2, 3) or min(shape[:2]) < SMALLEST:
            raise LearnerError(
                f"images of {_as_text(shape)} pixels",
                fix=f"use images of at least {SMALLEST} × {SMALLEST}, grey or with channels last",
            )
        self.shape = shape
        first, second = CHANNELS
        height, width = (((side - 4) // 2 - 4) // 2 for side in shape[:2])
        self.layers = nn.Sequential(
            nn.Conv2d(shape[2] if len(shape) == 3 else 1, first, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(first, second, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(second * height * width, FEATURES),
            nn.ReLU(),
        )


def as_floats(pixels: NDArray[Any]) -> NDArray[np.float32]:
    """Scale whole numbers, up to 255 or with 16 bits 65,535, to 0 to 1; leave others unchanged."""
    floats: NDArray[np.float32] = pixels.astype(np.float32)
    if pixels.dtype.kind in "iu":
        floats /= 65_535 if pixels.dtype == np.uint16 else 255
    return floats


def _as_text(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape))
