"""What a strategy is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bursar.errors import SelectionError
from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.tasks import Prices


@dataclass(frozen=True, eq=False)
class Candidates:
    """The pool as strategies see it: ids, how sure the model is of each item for each task, and prices.

    A strategy must treat it as a set: the order of the items means nothing, and ties are broken by id.
    """

    ids: Sequence[str]
    confidence: FloatArray  # (items, tasks)
    prices: Prices

    def __post_init__(self) -> None:
        shape = (len(self.ids), len(self.prices.tasks))
        if self.confidence.shape != shape or self.prices.own.shape != shape or len(self.prices) != shape[0]:
            raise SelectionError(
                f"{shape[0]} items and {shape[1]} tasks need confidences and prices of that shape, "
                f"not {self.confidence.shape} and {self.prices.own.shape}"
            )
        bad = ~np.isfinite(self.confidence)
        if bad.any():
            item, task = np.argwhere(bad)[0]
            raise SelectionError(
                f"item {self.ids[item]!r}: the confidence for task {self.tasks[task]!r} is not a number",
                fix="look at the learner that gave it",
            )
        if (self.prices.reading < 0).any() or (self.prices.own < 0).any():
            raise SelectionError("a price is negative", fix="look at the cost model")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.prices.tasks

    @cached_property
    def id_ranks(self) -> IntArray:
        """Each item's place in the order of ids."""
        ranks = np.empty(len(self), dtype=np.int64)
        ranks[np.argsort(np.array(self.ids, dtype=object), kind="stable")] = np.arange(len(self))
        return ranks

    def ranking(self, score: FloatArray) -> IntArray:
        """Positions from the lowest score to the highest, ties by id."""
        order: IntArray = np.lexsort((self.id_ranks, score))
        return order


@dataclass(frozen=True, eq=False)
class Selection:
    """Chosen items, best first, each with the tasks that it is to be annotated for and what that costs."""

    items: IntArray  # (chosen,) positions in the pool
    tasks: BoolArray  # (chosen, tasks)
    cost: IntArray  # (chosen,)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def total(self) -> int:
        return int(self.cost.sum())

    @classmethod
    def joint(cls, pool: Candidates, items: IntArray) -> Selection:
        """These items, each for all tasks."""
        every = np.ones((len(items), len(pool.tasks)), dtype=bool)
        return cls(items, every, pool.prices.take(items).of(every))
