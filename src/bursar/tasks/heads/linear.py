"""Heads that classify every item, or every word, independently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bursar.ragged import IntArray, Ragged
from bursar.tasks.beliefs import Beliefs
from bursar.tasks.heads.head import Encoded, Head, apply
from bursar.tasks.task import Task


class Scores(NamedTuple):
    """Logits for every unit, and the number of units of each item."""

    logits: Tensor  # (units of all items, classes)
    counts: IntArray  # (items,)


class ItemHead(Head):
    """Logits for each item."""

    def __init__(self, task: Task, width: int, dropout: float) -> None:
        super().__init__(task, dropout)
        self.output = nn.Linear(width, task.classes or 0)

    def forward(self, encoded: Encoded, spans: Ragged | None = None) -> Scores:
        return Scores(apply(self.output, self.dropout(encoded.items)), np.ones(len(encoded.items), dtype=np.int64))

    def loss(self, output: Scores, targets: Ragged, smoothing: float) -> Tensor:
        if not len(targets.values):  # the mean of nothing would be NaN
            return output.logits.sum()
        return cross_entropy(output.logits, torch.from_numpy(targets.values), label_smoothing=smoothing)

    def with_temperature(self, output: Scores, temperature: float) -> Scores:
        return output._replace(logits=output.logits / temperature)

    def predict_proba(self, outputs: Sequence[Scores]) -> Beliefs:
        probabilities = torch.stack([torch.softmax(output.logits, dim=-1) for output in outputs])
        return Beliefs.of(probabilities.numpy(), outputs[0].counts)


class WordHead(ItemHead):
    """Logits for each word."""

    tags_words = True

    def forward(self, encoded: Encoded, spans: Ragged | None = None) -> Scores:
        return Scores(apply(self.output, self.dropout(encoded.words)), encoded.counts)
