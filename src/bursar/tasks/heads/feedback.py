"""The autoregressive LSTM head, which reads its own previous tag: paper 4's decoder (errata 26)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bursar.ragged import IntArray, Ragged
from bursar.tasks.beliefs import Beliefs
from bursar.tasks.heads.crf import Steps
from bursar.tasks.heads.head import Dropout, Encoded, Head

if TYPE_CHECKING:
    from bursar.tasks.tagging import Tagging

SIZE = 50  # of the cell's state and of the embedding of a tag


class Reading(NamedTuple):
    """The words to read, and the logits if the model is not in training."""

    words: Tensor  # (words of all items, width)
    counts: IntArray  # (items,)
    logits: Tensor | None  # (words of all items, tags)
    temperature: float = 1.0


class FeedbackHead(Head):
    """An LSTM cell that reads a word and the previous tag: the gold one in training, else its own best one."""

    tags_words = True

    def __init__(self, task: Tagging, width: int, dropout: float) -> None:
        super().__init__(task, dropout)
        self.tags = nn.Embedding(task.classes + 1, SIZE)  # the last one is the start symbol
        self.cell = nn.LSTMCell(width + SIZE, SIZE)
        self.within = Dropout(dropout)  # errata 27
        self.output = nn.Linear(SIZE, task.classes)

    def forward(self, encoded: Encoded, spans: Ragged | None = None) -> Reading:
        """In training, only ``teacher_forced`` knows the previous tags, and computes the logits."""
        words = self.dropout(encoded.words)
        logits = None if self.training else self.read(words, encoded.counts)
        return Reading(words, encoded.counts, logits)

    def read(self, words: Tensor, counts: IntArray, gold: Tensor | None = None) -> Tensor:
        """Logits for each word given the previous gold tag, or else the previous best tag: (words, tags)."""
        steps = Steps.of(counts)
        forced = None if gold is None else steps.split(gold)
        hidden = cell = words.new_zeros(len(counts), SIZE)
        before = torch.full((len(counts),), self.task.classes)
        found: list[Tensor] = [self.output(hidden[:0])]  # for batches without words
        for step, inputs in enumerate(steps.split(words)):
            n = len(inputs)
            inputs = torch.cat([inputs, self.tags(before[:n])], dim=1)
            hidden, cell = self.cell(inputs, (hidden[:n], cell[:n]))
            logits = self.output(self.within(hidden))
            before = logits.argmax(dim=1) if forced is None else forced[step]
            found.append(logits)
        return steps.join(found)

    def teacher_forced(self, output: Reading, targets: Ragged) -> Reading:
        """Read with the gold tags, in training: once, because every reading draws new dropout."""
        if output.logits is not None:
            return output
        return output._replace(logits=self.read(output.words, output.counts, torch.from_numpy(targets.values)))

    def loss(self, output: Reading, targets: Ragged, smoothing: float) -> Tensor:
        """Outside training, the loss of the head's own predictions, so that temperatures are fitted to those."""
        gold = torch.from_numpy(targets.values)
        logits = self.teacher_forced(output, targets).logits
        assert logits is not None
        if not len(gold):  # the mean of nothing would be NaN
            return logits.sum()
        return cross_entropy(logits / output.temperature, gold, label_smoothing=smoothing)

    def with_temperature(self, output: Reading, temperature: float) -> Reading:
        """The best tags are the same at every temperature, so the logits need no new reading."""
        return output._replace(temperature=output.temperature * temperature)

    def predict_proba(self, outputs: Sequence[Reading]) -> Beliefs:
        passes = [output.logits / output.temperature for output in outputs if output.logits is not None]
        if len(passes) < len(outputs):
            raise ValueError("this head predicts only outside training: call eval() on the model first")
        return Beliefs.of(torch.softmax(torch.stack(passes), dim=-1).numpy(), outputs[0].counts)
