"""What only some strategies look at: lengths, features, guesses, and what is labelled already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bursar.errors import SelectionError
from bursar.ragged import IntArray
from bursar.tasks import AnyBeliefs

Self = TypeVar("Self", bound="Facets")


@dataclass(frozen=True, eq=False)
class Facets:
    """Sides of items by which they can be told apart. What nobody asked for is not there."""

    words: IntArray | None = None  # (items,) how long they are
    features: NDArray[np.floating[Any]] | None = None  # (items, width) where the encoder puts them
    labels: IntArray | None = None  # (items, tasks) the label of each task, guessed or known; −1 if there is none

    def take(self: Self, items: IntArray) -> Self:
        """The facets of some of the items."""
        arrays = {name: getattr(self, name) for name in ("words", "features", "labels")}
        return replace(self, **{name: array[items] for name, array in arrays.items() if array is not None})

    def want(self, name: str) -> Any:
        """A facet that a strategy cannot do without."""
        found = getattr(self, name)
        if found is None:
            raise SelectionError(
                f"the strategy looks at the {name} of items, and the pool came without them",
                fix=f"give {name} in the pool's evidence, or choose a strategy that looks at confidence alone",
            )
        return found


@dataclass(frozen=True, eq=False)
class Evidence(Facets):
    """The facets of a pool, what the model believes of it, and the facets of items that are in no pool.

    ``labelled`` are the items annotated so far, ``aside`` those kept for development: input matching compares the
    first with all of them (paper 4, section 6.5).
    """

    beliefs: Mapping[str, AnyBeliefs] | None = None
    labelled: Facets = field(default_factory=Facets)
    aside: Facets = field(default_factory=Facets)

    def take(self, items: IntArray) -> Evidence:
        """The evidence of some of the pool's items."""
        some = super().take(items)
        beliefs = self.beliefs
        return some if beliefs is None else replace(some, beliefs={name: b.take(items) for name, b in beliefs.items()})


FACETS = frozenset(f.name for f in fields(Facets)) | {"beliefs"}
