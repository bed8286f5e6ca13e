"""The head that reads an item from left to right and hears its own last answer: paper 4's decoder (errata 26)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bursar.ragged import IntArray, Ragged, offsets_of
from bursar.tasks.beliefs import Beliefs
from bursar.tasks.heads.crf import Steps
from bursar.tasks.heads.head import Dropout, Encoded, Head

if TYPE_CHECKING:
    from bursar.tasks.tagging import Tagging

SIZE = 50  # of the cell's state, and of the vector that stands for a tag


class Reading(NamedTuple):
    """The words to read, and what was answered if the model is not in training."""

    words: Tensor  # (words of all items, width)
    counts: IntArray  # (items,)
    logits: Tensor | None  # (words of all items, tags)
    temperature: float = 1.0


class FeedbackHead(Head):
    """An LSTM cell that is fed a word and the tag before it: in training the gold tag, later the one it found best.

    What it believes of a word thus takes the tags that it chose before for granted.
    """

    tags_words = True

    def __init__(self, task: Tagging, width: int, dropout: float) -> None:
        super().__init__()
        self.task = task
        self.dropout = Dropout(dropout)
        self.tags = nn.Embedding(task.tags + 1, SIZE)  # the last one stands before the first word
        self.cell = nn.LSTMCell(width + SIZE, SIZE)
        self.within = Dropout(dropout)  # errata 27
        self.output = nn.Linear(SIZE, task.tags)

    def forward(self, encoded: Encoded, spans: Ragged | None = None) -> Reading:
        """In training the tags before are only known to ``loss``, which then does the reading."""
        words = self.dropout(encoded.words)
        logits = None if self.training else self.read(words, encoded.counts)
        return Reading(words, encoded.counts, logits)

    def read(self, words: Tensor, counts: IntArray, gold: Tensor | None = None) -> Tensor:
        """Logits for each word, given the gold tag before it, or else the best tag: (words of all items, tags)."""
        steps = Steps.of(counts)
        forced = None if gold is None else steps.split(gold)
        hidden = cell = words.new_zeros(len(counts), SIZE)
        before = torch.full((len(counts),), self.task.tags)
        found: list[Tensor] = [self.output(hidden[:0])]  # so that no words have logits, too
        for step, inputs in enumerate(steps.split(words)):
            n = len(inputs)
            inputs = torch.cat([inputs, self.tags(before[:n])], dim=1)
            hidden, cell = self.cell(inputs, (hidden[:n], cell[:n]))
            logits = self.output(self.within(hidden))
            before = logits.argmax(dim=1) if forced is None else forced[step]
            found.append(logits)
        return steps.join(found)

    def targets(self, labels: Ragged, words: IntArray) -> Ragged:
        return Ragged(self.task.targets(labels, words), offsets_of(words))

    def taught(self, output: Reading, targets: Ragged) -> Reading:
        """In training, the reading with the gold tags: once, for its dropout is drawn anew by every reading."""
        if output.logits is not None:
            return output
        return output._replace(logits=self.read(output.words, output.counts, torch.from_numpy(targets.values)))

    def loss(self, output: Reading, targets: Ragged, smoothing: float) -> Tensor:
        """Outside training it is the loss of the head's own answers, so that a temperature is fitted to beliefs."""
        gold = torch.from_numpy(targets.values)
        logits = self.taught(output, targets).logits
        assert logits is not None
        if not len(gold):  # the mean of nothing would be NaN
            return logits.sum()
        return cross_entropy(logits / output.temperature, gold, label_smoothing=smoothing)

    def scaled(self, output: Reading, temperature: float) -> Reading:
        """The best tag is the same at every temperature, so what was read stays as it is."""
        return output._replace(temperature=output.temperature * temperature)

    def predict_proba(self, outputs: Sequence[Reading]) -> Beliefs:
        passes = [output.logits / output.temperature for output in outputs if output.logits is not None]
        if len(passes) < len(outputs):
            raise ValueError("this head answers only outside training: call eval() on the model first")
        return Beliefs.of(torch.softmax(torch.stack(passes), dim=-1).numpy(), outputs[0].counts)
