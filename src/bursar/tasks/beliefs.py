"""A model's predictions for many items and one task: probabilities (``Beliefs``), or for numbers ``Estimates``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bursar.ragged import IntArray, flat_positions, offsets_of


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Probabilities over the choices of every unit: a sentence, a word, a word's head, a span, a pair of spans.

    ``values[p, choices[u]:choices[u + 1]]`` are the probabilities of unit ``u`` in dropout pass ``p``; the units of
    item ``i`` are ``offsets[i]`` to ``offsets[i + 1]``. A deterministic prediction is one pass. If all units have the
    same choices, ``dense()`` is the plain array (passes, units, labels).

    >>> b = Beliefs.of(np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]), units=[1, 2])
    >>> len(b), b.units.tolist(), b.dense().shape
    (2, [1, 2], (1, 3, 2))
    >>> b.take(np.array([1])).dense()[0].tolist()
    [[0.5, 0.5], [0.20000000298023224, 0.800000011920929]]
    """

    values: NDArray[np.float32]  # (passes, choices of all units)
    choices: IntArray  # (units + 1,)
    offsets: IntArray  # (items + 1,)
    subjects: NDArray[np.int32] | None = None  # (units, columns): the spans of a unit, for tasks on spans
    labels: NDArray[np.int32] | None = None  # (choices,): a label that comes with a choice, such as an arc's

    @classmethod
    def of(cls, probabilities: Any, units: Any, subjects: Any = None) -> Beliefs:
        """From (units, labels) or (passes, units, labels) and the number of units of each item."""
        dense = np.asarray(probabilities, dtype=np.float32)
        dense = dense[None] if dense.ndim == 2 else dense
        choices = np.arange(dense.shape[1] + 1, dtype=np.int64) * dense.shape[2]
        return cls(dense.reshape(dense.shape[0], -1), choices, offsets_of(units), subjects)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def units(self) -> IntArray:
        """The number of units of each item."""
        return np.diff(self.offsets)

    @property
    def passes(self) -> int:
        return len(self.values)

    def dense(self) -> NDArray[np.float32]:
        """(passes, units, labels), if every unit has the same choices."""
        units = len(self.choices) - 1
        width = int(self.choices[1]) if units else 1
        if units and (np.diff(self.choices) != width).any():
            raise ValueError("these beliefs have units with different numbers of choices")
        return self.values.reshape(self.passes, units, width)

    def take(self, items: IntArray) -> Beliefs:
        """The predictions for the items at these positions, in this order."""
        units = flat_positions(self.offsets, items)
        places = flat_positions(self.choices, units)
        return Beliefs(
            self.values[:, places],
            offsets_of(np.diff(self.choices)[units]),
            offsets_of(self.units[items]),
            None if self.subjects is None else self.subjects[units],
            None if self.labels is None else self.labels[places],
        )

    @staticmethod
    def concatenate(parts: Sequence[Beliefs]) -> Beliefs:
        subjects = [part.subjects for part in parts if part.subjects is not None]
        labels = [part.labels for part in parts if part.labels is not None]
        return Beliefs(
            np.concatenate([part.values for part in parts], axis=1),
            offsets_of(np.concatenate([np.diff(part.choices) for part in parts])),
            offsets_of(np.concatenate([part.units for part in parts])),
            np.concatenate(subjects) if subjects else None,
            np.concatenate(labels) if labels else None,
        )


@dataclass(frozen=True, eq=False)
class Estimates:
    """Predictions of one number per item: mean and variance in every pass, on a known range."""

    means: NDArray[Any]  # (passes, items)
    variances: NDArray[Any]  # (passes, items)
    low: float
    high: float

    def __len__(self) -> int:
        return self.means.shape[1]

    @property
    def units(self) -> IntArray:
        """One unit per item."""
        return np.ones(len(self), dtype=np.int64)

    @property
    def passes(self) -> int:
        return len(self.means)

    def take(self, items: IntArray) -> Estimates:
        return Estimates(self.means[:, items], self.variances[:, items], self.low, self.high)

    @staticmethod
    def concatenate(parts: Sequence[Estimates]) -> Estimates:
        means, variances = (np.concatenate([getattr(p, of) for p in parts], axis=1) for of in ("means", "variances"))
        return Estimates(means, variances, parts[0].low, parts[0].high)


AnyBeliefs: TypeAlias = Beliefs | Estimates
