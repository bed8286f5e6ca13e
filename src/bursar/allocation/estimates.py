"""The estimates that a split is computed from: informativeness between tasks, and reduction rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bursar.errors import AllocationError
from bursar.ragged import FloatArray


@dataclass(frozen=True, eq=False)
class Informativeness:
    """The value of one task's labels to another, in labels of its own (errata 29).

    Row *i*, column *j* is task *j*'s gain from labels of task *i*, divided by its gain from as many of its own. The
    diagonal is 1; a negative entry means that *i* harms *j*.

    >>> found = Informativeness(("intent", "slots"), np.array([[1, 0.5], [0.25, 1]]), np.array([[0, 0.1], [0.1, 0]]))
    >>> found.to("slots")
    {'intent': 0.5, 'slots': 1.0}
    """

    tasks: tuple[str, ...]
    value: FloatArray  # (from, to)
    error: FloatArray  # standard errors; 0 on the diagonal
    about: Mapping[str, Any] = field(default_factory=dict)  # how they were measured

    def __post_init__(self) -> None:
        shape = (len(self.tasks), len(self.tasks))
        if self.value.shape != shape or self.error.shape != shape:
            raise AllocationError(f"informativeness of {len(self.tasks)} tasks needs a {shape[0]} × {shape[0]} table")
        if len(set(self.tasks)) < len(self.tasks):
            raise AllocationError(f"a task occurs twice: {', '.join(self.tasks)}", fix="give each its own name")
        if not (np.isfinite(self.value).all() and np.isfinite(self.error).all() and (self.error >= 0).all()):
            raise AllocationError("informativeness and its standard errors must be numbers, the errors from 0 up")
        if not (self.value.diagonal() == 1).all():
            raise AllocationError("a task's informativeness for itself is 1", fix="divide each column by its diagonal")

    def to(self, task: str) -> dict[str, float]:
        """The value of every task's labels to one task."""
        column = self.value[:, self.tasks.index(task)]
        return dict(zip(self.tasks, column.tolist(), strict=True))


@dataclass(frozen=True)
class ReductionRate:
    """How fast labels of a task lose value: each block is worth ``beta`` times the block before (errata 30)."""

    beta: float
    low: float
    high: float
    block: float  # labels
    source: str = "given"  # or pseudo-labels, ledger, law

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.beta <= self.high <= 1:
            raise AllocationError(
                f"a reduction rate of {self.beta:g} ({self.low:g} to {self.high:g})",
                fix="give it and its interval above 0 and up to 1, in that order",
            )
        if not (np.isfinite(self.block) and self.block > 0):
            raise AllocationError(f"a block of {self.block:g} labels", fix="give a number above 0")


@dataclass(frozen=True)
class SplitEstimates:
    """Informativeness and rates of all tasks."""

    informativeness: Informativeness
    rates: Mapping[str, ReductionRate]

    def __post_init__(self) -> None:
        missing = [task for task in self.tasks if task not in self.rates]
        if missing:
            raise AllocationError(f"task {missing[0]!r} has no reduction rate")

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.informativeness.tasks

    @classmethod
    def unknown(cls, tasks: Sequence[str]) -> SplitEstimates:
        """Estimates for tasks about which nothing is known.

        >>> SplitEstimates.unknown(["intent", "slots"]).rates["slots"]
        ReductionRate(beta=0.5, low=1e-06, high=1.0, block=1, source='nothing')
        """
        none = Informativeness(tuple(tasks), np.eye(len(tasks)), 1 - np.eye(len(tasks)))
        return cls(none, dict.fromkeys(tasks, ReductionRate(0.5, 1e-6, 1.0, 1, "nothing")))

    def alone(self) -> SplitEstimates:
        """The same estimates without any effect of a task's labels on others."""
        known = self.informativeness
        return replace(self, informativeness=replace(known, value=np.eye(len(known.tasks))))

    def describe(self) -> dict[str, Any]:
        """As JSON: informativeness with standard errors, and rates."""
        known = self.informativeness
        return {
            "informativeness": {
                task: {
                    other: {"value": float(known.value[at, to]), "error": float(known.error[at, to])}
                    for to, other in enumerate(self.tasks)
                    if to != at
                }
                for at, task in enumerate(self.tasks)
            },
            "rates": {
                task: {"beta": rate.beta, "low": rate.low, "high": rate.high, "block": rate.block, "from": rate.source}
                for task, rate in self.rates.items()
            },
        }
