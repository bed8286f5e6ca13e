"""Constraints on a selection besides its budget: labels per task, hours per annotator, items per group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from bursar.errors import SelectionError
from bursar.ragged import BoolArray, FloatArray, IntArray

SLACK = 1e-9  # relative, for rounding errors in sums


@dataclass(frozen=True, eq=False)
class Limit:
    """A sum over the bought labels that must lie between ``at_least`` and ``at_most``.

    ``use`` is what each label adds to the sum: 1 to count labels, its annotation time to count hours.
    """

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
        """The same limits on some of the items."""
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
