"""The base class of heads that tag words, and the head that tags each word independently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bursar.ragged import IntArray, Ragged, offsets_of
from bursar.tasks.beliefs import Beliefs
from bursar.tasks.heads.head import Dropout, Encoded, Head, apply

if TYPE_CHECKING:
    from bursar.tasks.tagging import Tagging


class TagScores(NamedTuple):
    """Logits for every word, and the number of words of each item."""

    logits: Tensor  # (words of all items, tags)
    counts: IntArray  # (items,)


class TaggingHead(Head):
    """Base of heads that give each word one tag."""

    tags_words = True

    def __init__(self, task: Tagging, dropout: float) -> None:
        super().__init__()
        self.task = task
        self.dropout = Dropout(dropout)

    def targets(self, labels: Ragged, words: IntArray) -> Ragged:
        return Ragged(self.task.targets(labels, words), offsets_of(words))


class WordHead(TaggingHead):
    """Logits for each word."""

    def __init__(self, task: Tagging, width: int, dropout: float) -> None:
        super().__init__(task, dropout)
        self.output = nn.Linear(width, task.classes)

    def forward(self, encoded: Encoded, spans: Ragged | None = None) -> TagScores:
        return TagScores(apply(self.output, self.dropout(encoded.words)), encoded.counts)

    def loss(self, output: TagScores, targets: Ragged, smoothing: float) -> Tensor:
        if not len(targets.values):  # the mean of nothing would be NaN
            return output.logits.sum()
        return cross_entropy(output.logits, torch.from_numpy(targets.values), label_smoothing=smoothing)

    def with_temperature(self, output: TagScores, temperature: float) -> TagScores:
        return TagScores(output.logits / temperature, output.counts)

    def predict_proba(self, outputs: Sequence[TagScores]) -> Beliefs:
        probabilities = torch.stack([torch.softmax(output.logits, dim=-1) for output in outputs])
        return Beliefs.of(probabilities.numpy(), outputs[0].counts)
