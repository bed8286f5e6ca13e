"""The input of a strategy (``Candidates``, with optional features and limits) and its output (``Selection``)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bursar.errors import SelectionError
from bursar.ragged import BoolArray, FloatArray, IntArray, flat_positions, offsets_of
from bursar.tasks import AnyBeliefs, Prices

SLACK = 1e-9  # relative, for rounding errors in sums


@dataclass(frozen=True, eq=False)
class Limit:
    """A sum of the ``use`` of bought labels (1 to count them, or hours) between ``at_least`` and ``at_most``."""

    name: str
    use: FloatArray  # (items, tasks)
    at_most: float = math.inf
    at_least: float = 0.0

    @property
    def ceiling(self) -> float:
        return self.at_most * (1 + SLACK) + SLACK

    @property
    def floor(self) -> float:
        return self.at_least * (1 - SLACK) - SLACK


@dataclass(frozen=True, eq=False)
class GroupCap:
    """A maximum number of items per group: a document, a source, a predicted label, a bin of lengths."""

    group: IntArray  # (items,) from 0
    at_most: IntArray  # (groups,)

    @classmethod
    def of(cls, labels: ArrayLike, at_most: int) -> GroupCap:
        """The same cap for every group, with groups given by any labels."""
        names, group = np.unique(np.asarray(labels), return_inverse=True)
        return cls(group.astype(np.int64), np.full(len(names), at_most, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Limits:
    """All limits of a selection; none by default."""

    sums: Sequence[Limit] = ()
    groups: GroupCap | None = None

    def __bool__(self) -> bool:
        return bool(self.sums) or self.groups is not None

    def take(self, items: IntArray) -> Limits:
        sums = tuple(replace(limit, use=limit.use[items]) for limit in self.sums)
        return Limits(sums, self.groups and replace(self.groups, group=self.groups.group[items]))

    def together(self, tasks: BoolArray | None = None) -> Limits:
        """The limits for items that are bought whole, for all tasks or for these (items, tasks): one column."""
        sums = [replace(s, use=(s.use if tasks is None else s.use * tasks).sum(axis=1)[:, None]) for s in self.sums]
        return replace(self, sums=tuple(sums))

    def check(self, items: int, tasks: int) -> None:
        """Reject limits that do not fit the pool."""
        for limit in self.sums:
            if limit.use.shape != (items, tasks) or not (np.isfinite(limit.use) & (limit.use >= 0)).all():
                raise SelectionError(
                    f"limit {limit.name!r} needs a number from 0 up for each of {items} items and {tasks} tasks"
                )
            if not 0 <= limit.at_least <= limit.at_most:
                raise SelectionError(
                    f"limit {limit.name!r}: at least {limit.at_least:g} and at most {limit.at_most:g} cannot both hold"
                )
        cap = self.groups
        if cap is not None:
            if cap.group.shape != (items,) or ((cap.group < 0) | (cap.group >= len(cap.at_most))).any():
                raise SelectionError(f"a group cap needs a group for each of {items} items")
            if (cap.at_most < 0).any():
                raise SelectionError("a group cannot be capped below 0")

    def broken(self, items: IntArray, tasks: BoolArray) -> str | None:
        """Describe a limit that buying these items for these tasks would break, or return ``None``."""
        for limit in self.sums:
            used = float(np.sum(limit.use[items] * tasks))
            if not limit.floor <= used <= limit.ceiling:
                return f"{limit.name} ({used:g}, not {limit.at_least:g} to {limit.at_most:g})"
        if self.groups is not None:
            counts = np.bincount(self.groups.group[items], minlength=len(self.groups.at_most))
            over = np.flatnonzero(counts > self.groups.at_most)
            if len(over):
                return f"the cap of {self.groups.at_most[over[0]]} on group {over[0]} ({counts[over[0]]} items)"
        return None


# -- features --------------------------------------------------------------------------------------------------------
class MissingFeatureError(SelectionError):
    """A strategy asked for a feature that the pool does not have."""

    def __init__(self, message: str, *, feature: str = "", fix: str | None = None) -> None:
        self.feature = feature
        super().__init__(message, fix=fix)


@dataclass(frozen=True, eq=False)
class Units:
    """The units of items for one task: the vector, uncertainty and item of each."""

    vectors: NDArray[np.float32]  # (units, width)
    offsets: IntArray  # (items + 1,)
    doubt: FloatArray  # (units,) uncertainty; 0 where a label would teach nothing

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, items: IntArray) -> Units:
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

    def take(self, items: IntArray) -> Self:
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
                f"the strategy needs the feature {name!r}, which the pool does not have",
                feature=name,
                fix=f"give {name} in the features of the pool, or choose a strategy that needs only confidences",
            )
        return found


@dataclass(frozen=True, eq=False)
class PoolFeatures(ItemFeatures):
    """The features of a pool, the model's predictions for it, and the features of items outside it."""

    beliefs: Mapping[str, AnyBeliefs] | None = None
    labelled: ItemFeatures = field(default_factory=ItemFeatures)  # items annotated so far (paper 4, section 6.5)
    aside: ItemFeatures = field(default_factory=ItemFeatures)  # items kept for development

    def take(self, items: IntArray) -> Self:
        some = super().take(items)
        beliefs = self.beliefs
        return some if beliefs is None else replace(some, beliefs={name: b.take(items) for name, b in beliefs.items()})


FEATURES = frozenset(f.name for f in fields(ItemFeatures)) | {"beliefs"}


# -- pool and selection ----------------------------------------------------------------------------------------------
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

    def joint_price(self, budget: int) -> IntArray:
        """The price of all tasks of each item; above the budget where some are labelled already."""
        return np.where(self.open.all(axis=1), self.prices.joint(), budget + 1)

    def ranking(self, score: FloatArray) -> IntArray:
        """Positions from the lowest score to the highest; ties keep their order."""
        return np.argsort(score, kind="stable")


@dataclass(frozen=True)
class Certificate:
    """How good a selection is: its objective, an upper bound for any selection (if proven), and whether they meet."""

    objective: float
    bound: float | None = None  # not for equal shares, which solve no single program (errata 12)
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
