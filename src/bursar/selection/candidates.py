"""The input of a strategy (``Candidates``) and its output (``Selection``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from bursar.errors import SelectionError
from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.selection.limits import Limits
from bursar.selection.pool_features import PoolFeatures
from bursar.tasks import Prices


@dataclass(frozen=True, eq=False)
class Candidates:
    """The pool: ids, the model's confidence for each item and task, and prices.

    ``open`` marks the labels that may still be bought, ``limits`` are constraints besides the budget, and ``features``
    holds what only some strategies use. A strategy must treat the pool as a set. It receives the pool sorted by id, so
    breaking ties by position breaks them by id.

    >>> prices = Prices(("intent",), reading=np.array([5, 7]), own=np.array([[3], [3]]))
    >>> pool = Candidates(["u1", "u2"], confidence=np.array([[0.9], [0.2]]), prices=prices)
    >>> len(pool), pool.tasks, pool.prices.joint().tolist()
    (2, ('intent',), [8, 10])
    """

    ids: Sequence[str]
    confidence: FloatArray  # (items, tasks)
    prices: Prices
    open: BoolArray = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))  # (items, tasks); default: all
    limits: Limits = field(default_factory=Limits)
    features: PoolFeatures = field(default_factory=PoolFeatures)
    weights: FloatArray | None = None  # (tasks,) summing to 1; equal if ``None``

    def __post_init__(self) -> None:
        shape = (len(self.ids), len(self.prices.tasks))
        if not self.open.size:
            object.__setattr__(self, "open", np.ones(shape, dtype=bool))
        if (
            not (self.confidence.shape == self.prices.own.shape == self.open.shape == shape)
            or len(self.prices) != shape[0]
        ):
            raise SelectionError(
                f"{shape[0]} items and {shape[1]} tasks need confidences and prices of that shape, "
                f"not {self.confidence.shape} and {self.prices.own.shape}"
            )
        bad = ~np.isfinite(self.confidence)
        if bad.any():
            item, task = np.argwhere(bad)[0]
            raise SelectionError(
                f"item {self.ids[item]!r}: the confidence for task {self.tasks[task]!r} is not a number",
                fix="check the learner",
            )
        if (self.prices.reading < 0).any() or (self.prices.own < 0).any():
            raise SelectionError("a price is negative", fix="check the cost model")
        self.limits.check(*shape)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.prices.tasks

    @cached_property
    def order(self) -> IntArray:
        """Positions sorted by id."""
        ids = np.asarray(self.ids, dtype=object)
        if len(ids) < 2 or bool((ids[:-1] < ids[1:]).all()):
            return np.arange(len(ids))
        order: IntArray = np.argsort(ids, kind="stable")
        twice = np.flatnonzero(ids[order[:-1]] == ids[order[1:]])
        if len(twice):
            raise SelectionError(f"item {ids[order[twice[0]]]!r} is in the pool twice", fix="make the ids unique")
        return order

    def take(self, items: IntArray) -> Candidates:
        """Some of the items, in this order."""
        return replace(
            self,
            ids=np.asarray(self.ids, dtype=object)[items],  # type: ignore[arg-type]
            confidence=self.confidence[items],
            prices=self.prices.take(items),
            open=self.open[items],
            limits=self.limits.take(items),
            features=self.features.take(items),
        )

    def priced_by_item(self) -> Candidates:
        """The same pool for a budget that counts items: each costs 1, whatever its tasks."""
        ones = np.ones(len(self), dtype=np.int64)
        return replace(self, prices=Prices(self.tasks, ones, np.zeros_like(self.prices.own)))

    def joint_price(self, budget: int) -> IntArray:
        """The price of all tasks of each item; above the budget where some are labelled already."""
        return np.where(self.open.all(axis=1), self.prices.joint(), budget + 1)

    def ranking(self, score: FloatArray) -> IntArray:
        """Positions from the lowest score to the highest; ties keep their order."""
        return np.argsort(score, kind="stable")


@dataclass(frozen=True)
class Certificate:
    """How good a selection is: the objective it reaches, an upper bound for any selection, and whether they meet.

    ``bound`` is ``None`` where nothing is proven, as for equal shares, which solve no single program (errata 12).
    """

    objective: float
    bound: float | None = None
    optimal: bool = False

    @property
    def gap(self) -> float | None:
        """The largest possible distance to the optimum, relative to the bound."""
        return None if self.bound is None else max(0.0, self.bound - self.objective) / max(abs(self.bound), 1e-300)


@dataclass(frozen=True, eq=False)
class Selection:
    """The chosen items, best first, each with the tasks to annotate and their cost.

    >>> prices = Prices(("intent",), reading=np.array([5, 7]), own=np.array([[3], [3]]))
    >>> pool = Candidates(["u1", "u2"], confidence=np.array([[0.9], [0.2]]), prices=prices)
    >>> chosen = Selection.joint(pool, np.array([1]))
    >>> chosen.items.tolist(), chosen.tasks.tolist(), chosen.total
    ([1], [[True]], 10)
    """

    items: IntArray  # (chosen,) positions in the pool
    tasks: BoolArray  # (chosen, tasks)
    cost: IntArray  # (chosen,)
    certificate: Certificate | None = None

    def __len__(self) -> int:
        return len(self.items)

    @property
    def total(self) -> int:
        return int(self.cost.sum())

    @classmethod
    def of(
        cls, pool: Candidates, items: IntArray, tasks: BoolArray, certificate: Certificate | None = None
    ) -> Selection:
        """These items for these tasks, at the pool's prices."""
        return cls(items, tasks, pool.prices.take(items).of(tasks), certificate)

    @classmethod
    def joint(cls, pool: Candidates, items: IntArray, certificate: Certificate | None = None) -> Selection:
        """These items, each for all tasks."""
        return cls.of(pool, items, np.ones((len(items), len(pool.tasks)), dtype=bool), certificate)
