"""Task policies: a distribution over tasks for the next training step, and what is learned from each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from bursar.errors import ConfigError
from bursar.ragged import FloatArray


class Policy(Protocol):
    """What a training loop asks of a policy: probabilities now, and to be told how the step went."""

    def probabilities(self, tasks: Sequence[str], step: int) -> FloatArray:
        """How likely each task should be trained next; they sum to 1."""
        ...

    def observe(self, task: str, before: float, after: float | None, step: int) -> None:
        """The task that was trained and its loss before the step (and after it, where that was measured)."""
        ...


class FixedPolicy:
    """The same distribution at every step.

    >>> FixedPolicy({"slots": 3, "intent": 1}).probabilities(["intent", "slots"], step=0).tolist()
    [0.25, 0.75]
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        if any(not weight >= 0 for weight in weights.values()):
            raise ConfigError(f"task weights must be from 0 up: {dict(weights)}")
        self.weights = dict(weights)

    def probabilities(self, tasks: Sequence[str], step: int) -> FloatArray:
        weights = np.array([self.weights.get(task, 0.0) for task in tasks], dtype=float)
        if not weights.sum() > 0:
            raise ConfigError(f"the policy gives no weight to any of {', '.join(tasks)}")
        share: FloatArray = weights / weights.sum()
        return share

    def observe(self, task: str, before: float, after: float | None, step: int) -> None:
        """Nothing is learned."""
