"""Regression: a number an item."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bursar.errors import LabelError, SchemaError
from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.tasks.task import KINDS, Row, Task, Vocabulary, ratio


@dataclass(frozen=True)
class Regression(Task):
    """A number between ``low`` and ``high``; its JSON is the number.

    >>> task = Regression("urgency")
    >>> task.encode(0.25, words=3).tolist()
    [[0.25]]
    >>> gold, guess = (Ragged.of([[0.0], [0.5], [1.0]], 1, float), Ragged.of([[0.1], [0.2], [0.3]], 1, float))
    >>> {name: round(score, 6) for name, score in task.evaluate(gold, guess, np.array([3, 3, 3])).items()}
    {'pearson': 1.0, 'spearman': 1.0}
    """

    low: float = 0.0
    high: float = 1.0

    kind = "regression"
    width = 1
    dtype: ClassVar[Any] = np.float64
    metric = "pearson"
    counted = "item"
    prices = {"per_item": 3}
    vocabularies = ()

    def __post_init__(self) -> None:
        for end in (self.low, self.high):
            if isinstance(end, bool) or not isinstance(end, int | float) or not math.isfinite(end):
                raise SchemaError(f"task {self.name!r}: low and high must be numbers")
        if self.low >= self.high:
            raise SchemaError(f"task {self.name!r}: low ({self.low}) must be below high ({self.high})")

    def rows(self, value: Any, words: int, vocabulary: Mapping[str, Vocabulary]) -> list[Row]:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise LabelError(f"a score must be a number, not {value!r}")
        if not self.low <= value <= self.high:
            raise LabelError(
                f"the score {value} is outside {self.low} to {self.high}", fix="mend it, or the task's range"
            )
        return [(float(value),)]

    def value(self, rows: NDArray[Any]) -> float:
        return float(rows[0, 0])

    def tally(self, gold: Ragged, guess: Ragged) -> FloatArray:
        """The moments that Pearson's correlation is made of, from the middle of the range for precision."""
        middle = (self.low + self.high) / 2
        x, y = gold.values[:, 0] - middle, guess.values[:, 0] - middle
        return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)

    def score(self, totals: FloatArray) -> FloatArray:
        n, x, y, xx, yy, xy = np.moveaxis(np.asarray(totals, dtype=float), -1, 0)
        spread = np.maximum(n * xx - x * x, 0) * np.maximum(n * yy - y * y, 0)
        return ratio(n * xy - x * y, np.sqrt(spread))

    def evaluate(self, gold: Ragged, guess: Ragged, words: IntArray) -> dict[str, float]:
        ranks = [_midranks(r.values[:, 0])[:, None] for r in (gold, guess)]
        ranked = [Ragged(rank, r.offsets) for rank, r in zip(ranks, (gold, guess), strict=True)]
        pearson, spearman = (float(self.score(self.tally(*pair).sum(axis=0))) for pair in ((gold, guess), ranked))
        return {"pearson": pearson, "spearman": spearman}


def _midranks(values: FloatArray) -> FloatArray:
    """Ranks with ties at their mean, scaled to 0 .. 1 so that sums of squares stay small."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts + 1) / 2
    ranks: FloatArray = middle[group] / max(len(values), 1)
    return ranks


KINDS.add(Regression.kind, Regression)
