"""Encodes image arrays as PNG."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}  # channels to PNG colour types: grey, grey with alpha, RGB, RGB with alpha


def png(image: NDArray[Any]) -> bytes:
    """A PNG file of an image, (height, width) or (height, width, channels)."""
    pixels = image if image.dtype == np.uint8 else _bytes_of(image)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)  # no filter
    body = zlib.compress(rows.tobytes(), 6)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _bytes_of(image: NDArray[Any]) -> NDArray[np.uint8]:
    """Values scaled to bytes, from the lowest (black) to the highest (white)."""
    low, high = float(image.min(initial=np.inf)), float(image.max(initial=-np.inf))
    scaled = (image - low) / (high - low) if high > low else np.zeros(image.shape)
    return np.asarray(np.rint(255 * scaled), dtype=np.uint8)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
