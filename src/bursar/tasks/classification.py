"""Classification: one label per item."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.tasks.beliefs import AnyBeliefs, Beliefs
from bursar.tasks.marks import Control
from bursar.tasks.task import KINDS, Row, Task, Vocabulary, class_f1, ratio


@dataclass(frozen=True)
class Classification(Task):
    """One label per item; its JSON is the name of the label."""

    kind = "classification"
    width = 1
    metric = "accuracy"
    styles = {"linear": "bursar.tasks.heads.linear:ItemHead"}
    counted = "item"
    prices = {"per_item": 3}  # paper 1, section 7: ts = 3
    code_columns = {"labels": (0,)}
    seconds = (3.0, 0.0)
    form = "one label per item"
    control = Control("Choices", ("choices",), attributes=lambda task: {"choice": "single", "showInline": "true"})

    def rows(self, value: Any, words: int, vocabulary: Mapping[str, Vocabulary]) -> list[Row]:
        return [(vocabulary["labels"].code(value),)]

    def value(self, rows: NDArray[Any]) -> str:
        return self.labels[int(rows[0, 0])]

    @classmethod
    def recognises(cls, value: Any) -> bool:
        return isinstance(value, str)

    def show(self, value: Any, words: Sequence[str]) -> list[str]:
        return [str(value)]

    def cell(self, value: Any, words: Sequence[str], between: Callable[[int, int], str]) -> str:
        return str(value)

    def compared(self, value: Any, words: int) -> list[str]:
        return [str(value)]

    def tally(self, gold: Ragged, guess: Ragged) -> FloatArray:
        right = gold.values[:, 0] == guess.values[:, 0]
        return np.stack([right, np.ones_like(right)], axis=1).astype(float)

    def score(self, totals: FloatArray) -> FloatArray:
        return ratio(totals[..., 0], totals[..., 1])

    def evaluate(self, gold: Ragged, guess: Ragged, words: IntArray) -> dict[str, float]:
        macro, weighted = class_f1(gold.values[:, 0], guess.values[:, 0], len(self.labels))
        accuracy = float(self.score(self.tally(gold, guess).sum(axis=0)))
        return {"accuracy": accuracy, "macro_f1": macro, "weighted_f1": weighted}

    def accuracies(self, gold: Ragged, guess: Ragged, words: IntArray) -> FloatArray:
        return self.tally(gold, guess)[:, 0]

    @property
    def classes(self) -> int:
        return len(self.labels)

    def targets(self, labels: Ragged, words: IntArray) -> IntArray:
        return labels.values[:, 0].astype(np.int64)

    def decode(self, beliefs: AnyBeliefs) -> Ragged:
        assert isinstance(beliefs, Beliefs)
        best = beliefs.dense().mean(axis=0).argmax(axis=1).astype(np.int32)
        return Ragged(best[:, None], beliefs.offsets)


KINDS.add(Classification.kind, Classification)
