"""Optional features of a pool and of the labelled items: lengths, vectors, predicted labels, units."""

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


class MissingFeatureError(SelectionError):
    """A strategy asked for a feature that the pool does not have."""

    def __init__(self, feature: str, message: str, *, fix: str | None = None) -> None:
        self.feature = feature
        super().__init__(message, fix=fix)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.feature, self.message, self.fix)


def _restored(feature: str, message: str, fix: str | None) -> MissingFeatureError:
    return MissingFeatureError(feature, message, fix=fix)


@dataclass(frozen=True, eq=False)
class Units:
    """The units of items for one task: the vector, uncertainty and item of each.

    >>> units = Units(np.eye(3, dtype=np.float32), np.array([0, 2, 3]), np.array([0.5, 0.0, 1.0]))
    >>> units.take(np.array([1, 0])).doubt.tolist()
    [1.0, 0.5, 0.0]
    """

    vectors: NDArray[np.float32]  # (units, width)
    offsets: IntArray  # (items + 1,)
    doubt: FloatArray  # (units,) uncertainty; 0 where a label would teach nothing

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, items: IntArray) -> Units:
        """The units of some of the items, in this order."""
        places = flat_positions(self.offsets, items)
        return Units(self.vectors[places], offsets_of(np.diff(self.offsets)[items]), self.doubt[places])


@dataclass(frozen=True, eq=False)
class ItemFeatures:
    """Optional per-item features; ``None`` if the strategy does not need them."""

    words: IntArray | None = None  # (items,) length in words
    vectors: NDArray[np.floating[Any]] | None = None  # (items, width) from the encoder
    labels: IntArray | None = None  # (items, tasks) predicted or known label; −1 if there is none
    units: Mapping[str, Units] | None = field(default=None, kw_only=True)  # by task
    doubt: FloatArray | None = field(default=None, kw_only=True)  # (items, tasks) uncertainty summed over units

    def take(self: Self, items: IntArray) -> Self:
        """The features of some of the items, in this order."""
        arrays = {name: getattr(self, name) for name in ("words", "vectors", "labels", "doubt")}
        some: dict[str, Any] = {name: array[items] for name, array in arrays.items() if array is not None}
        if self.units is not None:
            some["units"] = {task: units.take(items) for task, units in self.units.items()}
        return replace(self, **some)

    def require(self, name: str) -> Any:
        """Return a feature, or raise an error if the pool lacks it."""
        found = getattr(self, name)
        if found is None:
            raise MissingFeatureError(
                name,
                f"the strategy needs the feature {name!r}, which the pool does not have",
                fix=f"give {name} in the features of the pool, or choose a strategy that needs only confidences",
            )
        return found


@dataclass(frozen=True, eq=False)
class PoolFeatures(ItemFeatures):
    """The features of a pool, the model's predictions for it, and the features of items outside it.

    ``labelled`` are the items annotated so far, ``aside`` those kept for development. Input matching compares the
    labelled items with all items (paper 4, section 6.5).
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
