"""Rows of different lengths in two flat arrays, and strings in one block of bytes.

All per-item data uses one of these: the words of a sentence, its labels for a task, a model's predictions, its text.
A million items are a handful of arrays, never a million lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def offsets_of(lengths: Any) -> IntArray:
    """The boundaries of rows of these lengths."""
    lengths = np.asarray(lengths)
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def flat_positions(offsets: IntArray, rows: IntArray) -> IntArray:
    """The positions of the values of these rows, row after row. Negative rows count from the end."""
    starts = offsets[:-1][rows]
    lengths = offsets[1:][rows] - starts
    total = offsets_of(lengths)
    return np.repeat(starts - total[:-1], lengths) + np.arange(total[-1])


@dataclass(frozen=True, eq=False)
class Ragged:
    """Rows of ``values``; row ``i`` is ``values[offsets[i]:offsets[i + 1]]``."""

    values: NDArray[Any]  # (entries,) or (entries, width)
    offsets: IntArray  # (rows + 1,)

    @classmethod
    def of(cls, rows: Sequence[Any], width: int | None = None, dtype: Any = np.int32) -> Ragged:
        """Make from sequences; for tests, examples and other small data."""
        arrays = [np.asarray(row, dtype=dtype).reshape((-1,) if width is None else (-1, width)) for row in rows]
        empty = np.zeros((0,) if width is None else (0, width), dtype=dtype)
        return cls(np.concatenate([empty, *arrays]), offsets_of([len(row) for row in arrays]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[Any]:
        return self.values[self.offsets[:-1][row] : self.offsets[1:][row]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self.values[a:b] for a, b in pairwise(self.offsets.tolist()))

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.offsets)

    @property
    def owners(self) -> IntArray:
        """The row of each entry."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def take(self, rows: IntArray) -> Ragged:
        rows = np.asarray(rows, dtype=np.int64)
        return Ragged(self.values[flat_positions(self.offsets, rows)], offsets_of(self.lengths[rows]))

    @staticmethod
    def concatenate(parts: Sequence[Ragged]) -> Ragged:
        return Ragged(
            np.concatenate([part.values[part.offsets[0] : part.offsets[-1]] for part in parts]),
            offsets_of(np.concatenate([part.lengths for part in parts])),
        )

    def equals(self, other: Ragged) -> bool:
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(
            self.values, other.values, equal_nan=self.values.dtype.kind == "f"
        )


@dataclass(frozen=True, eq=False)
class Strings:
    """Many strings as one block of UTF-8."""

    data: NDArray[np.uint8]
    offsets: IntArray

    @classmethod
    def of(cls, strings: Iterable[str]) -> Strings:
        encoded = [string.encode() for string in strings]
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets_of([len(e) for e in encoded]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> str:
        return self.data[self.offsets[:-1][row] : self.offsets[1:][row]].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def tolist(self) -> list[str]:
        block, bounds = self.data.tobytes(), self.offsets.tolist()
        return [block[a:b].decode() for a, b in pairwise(bounds)]

    def take(self, rows: IntArray) -> Strings:
        rows = np.asarray(rows, dtype=np.int64)
        lengths = np.diff(self.offsets)[rows]
        return Strings(self.data[flat_positions(self.offsets, rows)], offsets_of(lengths))

    @staticmethod
    def concatenate(parts: Sequence[Strings]) -> Strings:
        merged = Ragged.concatenate([Ragged(part.data, part.offsets) for part in parts])
        return Strings(merged.values, merged.offsets)

    def equals(self, other: Strings) -> bool:
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.data, other.data)
