"""Heads of one linear layer: a class for every item or every word, or a number for every item with its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, softplus

from bursar.ragged import IntArray, Ragged
from bursar.tasks.beliefs import Beliefs, Estimates
from bursar.tasks.heads.head import Encoded, Head, apply
from bursar.tasks.task import Task

if TYPE_CHECKING:
    from bursar.tasks.regression import Regression


class Scores(NamedTuple):
    """Logits for every unit, the number of units of each item, and the spans of units on spans."""

    logits: Tensor  # (units of all items, classes)
    units: IntArray  # (items,)
    subjects: NDArray[np.int32] | None = None  # (units, 2): start, end; of pairs (units, 6), twice start, end, type
    size: int = 0  # of units on spans, the divisor of the summed loss


class LogitHead(Head):
    """Base of heads with logits for the choices of every unit, as many for each."""

    def with_temperature(self, output: Scores, temperature: float) -> Scores:
        return output._replace(logits=output.logits / temperature)

    def predict_proba(self, outputs: Sequence[Scores]) -> Beliefs:
        probabilities = torch.stack([torch.softmax(output.logits, dim=-1) for output in outputs])
        return Beliefs.of(probabilities.numpy(), outputs[0].units, outputs[0].subjects)


class ItemHead(LogitHead):
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


class WordHead(ItemHead):
    """Logits for each word."""

    tags_words = True

    def forward(self, encoded: Encoded, spans: Ragged | None = None) -> Scores:
        return Scores(apply(self.output, self.dropout(encoded.words)), encoded.counts)


class Normal(NamedTuple):
    """A normal distribution per item, in units of the task's range."""

    mean: Tensor
    variance: Tensor


class NormalHead(Head):
    """A mean and a variance for each item (errata 4), trained by likelihood."""

    FLOOR = 1e-4  # smallest variance: a standard deviation of a hundredth of the range
    BIN = 0.1  # width of a bin, relative to the range

    def __init__(self, task: Regression, width: int, dropout: float) -> None:
        super().__init__(task, dropout)
        self.output = nn.Linear(width, 2)

    def forward(self, encoded: Encoded, spans: Ragged | None = None) -> Normal:
        mean, spread = apply(self.output, self.dropout(encoded.items)).unbind(dim=-1)
        return Normal(0.5 + mean, softplus(spread - 2.0) + self.FLOOR)

    def targets(self, labels: Ragged, words: IntArray) -> Ragged:
        unit = (labels.values[:, 0] - self.task.low) / (self.task.high - self.task.low)
        return Ragged(unit.astype(np.float32), labels.offsets)

    def loss(self, output: Normal, targets: Ragged, smoothing: float) -> Tensor:
        """The negative log-likelihood plus a squared error, which keeps the mean learning where the variance is large.

        Smoothing has no effect on numbers.
        """
        error = (output.mean - torch.from_numpy(targets.values)).square()
        likelihood = 0.5 * (error / output.variance + output.variance.log() + math.log(2 * math.pi))
        return (likelihood + 0.5 * error / 0.05).mean()

    def surprise(self, output: Normal, targets: Ragged) -> Tensor:
        """−log of the probability that the score is in a bin around the gold one, a tenth of the range wide.

        The loss consists of densities, which may exceed 1, and squared errors, so it is no likelihood (errata 21). All
        bins are equally wide: at the ends of the range they extend beyond it.
        """
        mean, spread = output.mean.double(), output.variance.double().sqrt()
        off = (mean - torch.from_numpy(targets.values)).abs()
        # Mirror the bin to the lower side of the mean, where the logarithms of both ends are accurate at any distance.
        low, high = (torch.special.log_ndtr((end - off) / spread) for end in (-self.BIN / 2, self.BIN / 2))
        mass: Tensor = high + (-torch.expm1(low - high)).log()
        return -mass.mean()

    def with_temperature(self, output: Normal, temperature: float) -> Normal:
        return Normal(output.mean, output.variance * temperature)

    def predict_proba(self, outputs: Sequence[Normal]) -> Estimates:
        low, size = self.task.low, self.task.high - self.task.low
        means = torch.stack([output.mean for output in outputs]).numpy() * size + low
        variances = torch.stack([output.variance for output in outputs]).numpy() * size**2
        return Estimates(means, variances, self.task.low, self.task.high)
