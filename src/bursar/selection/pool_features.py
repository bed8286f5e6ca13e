"""Optional features of a pool: lengths, vectors, guessed labels, and those of items that are labelled already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bursar.errors import SelectionError
from bursar.ragged import FloatArray, IntArray, flat_positions, offsets_of
from bursar.tasks import AnyBeliefs

Self = TypeVar("Self", bound="ItemFeatures")


@dataclass(frozen=True, eq=False)
class Units:
    """The units of items for one task: where each lies, how doubtful it is, and whose it is.

    >>> units = Units(np.eye(3, dtype=np.float32), np.array([0, 2, 3]), np.array([0.5, 0.0, 1.0]))
    >>> units.take(np.array([1, 0])).doubt.tolist()
    [1.0, 0.5, 0.0]
    """

    vectors: NDArray[np.float32]  # (units, width)
    offsets: IntArray  # (items + 1,)
    doubt: FloatArray  # (units,), 0 where a label would teach nothing

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, items: IntArray) -> Units:
        """The units of some of the items, in this order."""
        places = flat_positions(self.offsets, items)
        return Units(self.vectors[places], offsets_of(np.diff(self.offsets)[items]), self.doubt[places])


@dataclass(frozen=True, eq=False)
class ItemFeatures:
    """Optional per-item features; those that the strategy does not need are ``None``."""

    words: IntArray | None = None  # (items,) how long they are
    vectors: NDArray[np.floating[Any]] | None = None  # (items, width) where the encoder puts them
    labels: IntArray | None = None  # (items, tasks) the label of each task, guessed or known; −1 if there is none
    units: Mapping[str, Units] | None = field(default=None, kw_only=True)  # by task
    doubt: FloatArray | None = field(default=None, kw_only=True)  # (items, tasks) of all units of an item together

    def take(self: Self, items: IntArray) -> Self:
        """The features of some of the items, in this order."""
        arrays = {name: getattr(self, name) for name in ("words", "vectors", "labels", "doubt")}
        some: dict[str, Any] = {name: array[items] for name, array in arrays.items() if array is not None}
        if self.units is not None:
            some["units"] = {task: units.take(items) for task, units in self.units.items()}
        return replace(self, **some)

    def want(self, name: str) -> Any:
        """A feature that the strategy needs, or an error."""
        found = getattr(self, name)
        if found is None:
            raise SelectionError(
                f"the strategy looks at the {name} of items, and the pool came without them",
                fix=f"give {name} in the features of the pool, or choose a strategy that looks at confidence alone",
            )
        return found


@dataclass(frozen=True, eq=False)
class PoolFeatures(ItemFeatures):
    """The features of a pool, what the model predicts for it, and the features of items outside the pool.

    ``labelled`` are the items annotated so far, ``aside`` those kept for development: input matching compares the
    first with all of them (paper 4, section 6.5).
    """

    beliefs: Mapping[str, AnyBeliefs] | None = None
    labelled: ItemFeatures = field(default_factory=ItemFeatures)
    aside: ItemFeatures = field(default_factory=ItemFeatures)

    def take(self, items: IntArray) -> PoolFeatures:
        """The features of some of the pool's items."""
        some = super().take(items)
        beliefs = self.beliefs
        return some if beliefs is None else replace(some, beliefs={name: b.take(items) for name, b in beliefs.items()})


FEATURES = frozenset(f.name for f in fields(ItemFeatures)) | {"beliefs"}
