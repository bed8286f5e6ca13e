"""Regression: one number per item."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bursar.errors import LabelError, SchemaError
from bursar.ragged import BoolArray, FloatArray, IntArray, Ragged
from bursar.tasks.beliefs import AnyBeliefs, Estimates
from bursar.tasks.marks import Control
from bursar.tasks.task import KINDS, Row, Task, Vocabulary, ratio

NEAR = 0.1  # of the range: a number that is farther off is wrong
BINS = 5  # in which numbers are compared with the labels of other tasks


@dataclass(frozen=True)
class Regression(Task):
    """A number between ``low`` and ``high``; its JSON is the number."""

    low: float = 0.0
    high: float = 1.0

    kind = "regression"
    width = 1
    dtype: ClassVar[Any] = np.float64
    metric = "pearson"
    styles = {"normal": "bursar.tasks.heads.linear:NormalHead"}
    counted = "item"
    prices = {"per_item": 3}
    code_columns = {}
    vocabularies = ()
    seconds = (4.0, 0.0)
    form = "a number per item"
    control = Control(
        "Number",
        ("number", "rating"),
        labels="",
        attributes=lambda task: {"min": f"{task.low}", "max": f"{task.high}", "step": "any"},
    )

    def __post_init__(self) -> None:
        if not (_is_number(self.low) and _is_number(self.high)):
            raise SchemaError(f"task {self.name!r}: low and high must be numbers")
        if self.low >= self.high:
            raise SchemaError(f"task {self.name!r}: low ({self.low}) must be below high ({self.high})")

    def rows(self, value: Any, words: int, vocabulary: Mapping[str, Vocabulary]) -> list[Row]:
        if not _is_number(value):
            raise LabelError(f"a score must be a number, not {value!r}")
        if not self.low <= value <= self.high:
            message = f"the score {value} is outside {self.low} to {self.high}"
            raise LabelError(message, fix="correct it, or change the task's range")
        return [(float(value),)]

    def value(self, rows: NDArray[Any]) -> float:
        return float(rows[0, 0])

    @classmethod
    def recognises(cls, value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool)

    @classmethod
    def parse_options(cls, lists: Sequence[Sequence[str]]) -> dict[str, Any]:
        """The range; 0 to 1 by default."""
        try:
            ((low, high),) = [[float(end) for end in ends] for ends in lists] or [[0.0, 1.0]]
        except ValueError:
            raise SchemaError("regression needs a range", fix="as in urgency:regression:0,5") from None
        return {"low": low, "high": high}

    def show(self, value: Any, words: Sequence[str]) -> list[str]:
        return [f"{value:.3g}"]

    def cell(self, value: Any, words: Sequence[str], between: Callable[[int, int], str]) -> float:
        return float(f"{value:.6g}")

    def tally(self, gold: Ragged, guess: Ragged) -> FloatArray:
        """The moments for Pearson's correlation, about the middle of the range for precision."""
        middle = (self.low + self.high) / 2
        return _moments(gold.values[:, 0] - middle, guess.values[:, 0] - middle)

    def score(self, totals: FloatArray) -> FloatArray:
        n, x, y, xx, yy, xy = np.moveaxis(np.asarray(totals, dtype=float), -1, 0)
        spread = np.sqrt(_spread(n, x, xx)) * np.sqrt(_spread(n, y, yy))
        return np.clip(ratio(n * xy - x * y, spread), -1, 1)

    def evaluate(self, gold: Ragged, guess: Ragged, words: IntArray) -> dict[str, float]:
        ranked = _moments(_midranks(gold.values[:, 0]), _midranks(guess.values[:, 0]))
        pearson, spearman = (float(self.score(t.sum(axis=0))) for t in (self.tally(gold, guess), ranked))
        return {"pearson": pearson, "spearman": spearman}

    def accuracies(self, gold: Ragged, guess: Ragged, words: IntArray) -> FloatArray:
        """1 − a multiple of the error over the range, at least 0, on the scale of confidence.

        Confidence is 1 − √12 σ / range. The mean absolute error of a normal distribution is √(2/π) σ, so the accuracy
        of a calibrated prediction equals its confidence on average.
        """
        error: FloatArray = np.abs(gold.values[:, 0] - guess.values[:, 0]) / (self.high - self.low)
        return np.clip(1 - float(np.sqrt(12 * np.pi / 2)) * error, 0, 1)

    def targets(self, labels: Ragged, words: IntArray) -> FloatArray:
        """The numbers themselves."""
        return labels.values[:, 0]

    def codes(self, labels: Ragged, words: IntArray) -> IntArray:
        """The fifth of all numbers that each lies in."""
        values = labels.values[:, 0].astype(float)
        edges = np.unique(np.quantile(values, np.arange(1, BINS) / BINS)) if len(values) else values
        return np.searchsorted(edges, values, side="left").astype(np.int64)

    def agrees(self, gold: Ragged, guess: Ragged) -> BoolArray:
        """Whether each guess is at most a tenth of the range away."""
        return np.asarray(np.abs(gold.values[:, 0] - guess.values[:, 0]) <= NEAR * (self.high - self.low))

    def decode(self, beliefs: AnyBeliefs) -> Ragged:
        """The mean of the passes, within the range."""
        assert isinstance(beliefs, Estimates)
        mean = np.clip(beliefs.means.mean(axis=0, dtype=np.float64), self.low, self.high)
        return Ragged(mean[:, None], np.arange(len(mean) + 1))


def _is_number(value: Any) -> bool:
    """Whether the value is a number that a float can hold: not a boolean, NaN, or an integer too large."""
    largest = sys.float_info.max
    return isinstance(value, int | float) and not isinstance(value, bool) and -largest <= value <= largest


def _moments(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)


def _spread(n: FloatArray, x: FloatArray, xx: FloatArray) -> FloatArray:
    """n² times the variance; 0 where it is within the rounding of n summands, so that a constant correlates with 0."""
    spread = n * xx - x * x
    return np.where(spread > 4 * np.finfo(float).eps * n * (n * xx), spread, 0.0)


def _midranks(values: FloatArray) -> FloatArray:
    """Ranks with ties at their mean, scaled to -1/2 to 1/2 so that sums of squares stay small."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts + len(values)) / 2
    return np.asarray(middle[group] / max(len(values), 1))


KINDS.add(Regression.kind, Regression)
