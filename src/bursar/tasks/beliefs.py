"""What a model believes about the labels of many items, for one task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.ragged import IntArray, offsets_of


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Probabilities over the choices of every unit: a sentence, a word, a head, a span pair.

    ``values[p, choices[u]:choices[u + 1]]`` is what pass ``p`` believes about unit ``u``; the units of item ``i`` are
    ``offsets[i]`` to ``offsets[i + 1]``. A deterministic pass is one pass. Where all units have as many choices as
    there are labels, ``dense()`` is the plain array (passes, units, labels).

    >>> b = Beliefs.of(np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]), units=[1, 2])
    >>> len(b), b.units.tolist(), b.dense().shape
    (2, [1, 2], (1, 3, 2))
    """

    values: NDArray[np.float32]  # (passes, choices of all units)
    choices: IntArray  # (units + 1,)
    offsets: IntArray  # (items + 1,)

    @classmethod
    def of(cls, probabilities: Any, units: Any) -> Beliefs:
        """From (units, labels) or (passes, units, labels) and the number of units of each item."""
        dense = np.asarray(probabilities, dtype=np.float32)
        dense = dense[None] if dense.ndim == 2 else dense
        choices = np.arange(dense.shape[1] + 1, dtype=np.int64) * dense.shape[2]
        return cls(dense.reshape(dense.shape[0], -1), choices, offsets_of(units))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def units(self) -> IntArray:
        """How many units each item has."""
        return np.diff(self.offsets)

    @property
    def passes(self) -> int:
        return len(self.values)

    def dense(self) -> NDArray[np.float32]:
        """(passes, units, labels), where every unit has the same labels to choose from."""
        units = len(self.choices) - 1
        width = int(self.choices[1]) if units else 1
        if units and (np.diff(self.choices) != width).any():
            raise ValueError("these beliefs have units with different numbers of choices")
        return self.values.reshape(self.passes, units, width)

    @staticmethod
    def concatenate(parts: Sequence[Beliefs]) -> Beliefs:
        return Beliefs(
            np.concatenate([part.values for part in parts], axis=1),
            offsets_of(np.concatenate([np.diff(part.choices) for part in parts])),
            offsets_of(np.concatenate([part.units for part in parts])),
        )
