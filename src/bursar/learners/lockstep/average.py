"""The average of word vectors through two fully connected layers (paper 4's AOE)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bursar.learners.lockstep.compiled import (
    Numbers,
    adam,
    affine,
    backwards,
    compiled,
    cross_entropy,
    layer_grads,
    rectified,
    transposed,
)
from bursar.learners.lockstep.network import Draws, Lane, Parameters, Walk
from bursar.learners.lockstep.sums import flat, gathered
from bursar.learners.lockstep.texts import FlatTexts, TextNetwork, tokens
from bursar.ragged import FloatArray, IntArray

HIDDEN = 100


class Batches(NamedTuple):
    """The batches of one model in one epoch, for compiled code."""

    rows: IntArray  # (steps, batch): item numbers
    targets: IntArray  # (steps, batch)
    counts: IntArray  # (steps,): the first items of a batch, which are not padding
    kept: Numbers  # (steps, batch, width): dropout factors; empty without dropout


class AverageNetwork(TextNetwork):
    """The mean vector of a text's words, two layers of 100, and the output layer.

    >>> import numpy as np
    >>> from bursar.learners.lockstep import FitJob, Settings, CodedTexts, accuracy, train
    >>> texts = CodedTexts(np.array([[1, 2], [2, 3], [3, 0], [1, 0]]), np.array([2, 2, 1, 1]), 4)
    >>> network = AverageNetwork(texts, np.array([0, 1, 1, 0]), 2, size=16)
    >>> jobs, settings = [FitJob(np.arange(4))], Settings(batch=2)
    >>> train(network, jobs, settings, select=np.arange(4), score=accuracy(network))[0].score
    1.0
    """

    width = HIDDEN
    compiled = True
    lanes = 4

    def begin(self, seed: int) -> dict[str, Tensor]:
        draws = Draws(seed, self.dtype)
        return {
            "words": self.first_vectors(draws),
            **draws.layer("first", self.size, HIDDEN),
            **draws.layer("second", HIDDEN, HIDDEN),
            **draws.layer("output", HIDDEN, self.labels),
        }

    def features(self, parameters: Parameters, rows: IntArray, places: IntArray) -> Tensor:
        total = gathered(flat(parameters["words"]), *tokens(self.texts, rows, places))
        over = torch.from_numpy(1 / self.texts.lengths[rows]).to(self.dtype).unsqueeze(2)  # (lanes, items, 1)
        mean = total.view(*rows.shape, self.size).mul_(over)
        return _layer(parameters, "second", _layer(parameters, "first", mean))

    def epoch(self, lane: Lane, walk: Walk, rate: float) -> FloatArray:
        kept = np.zeros((0, 0, 0), lane.table.dtype)
        if self.dropout:
            kept = np.stack([self.kept_in_step(*draw, walk.rows.shape[1]) for draw in walk.draws]).astype(kept.dtype)
        batches = Batches(walk.rows, self.targets[walk.rows], walk.real.sum(axis=1), kept)
        return train_epoch(lane, self.texts.flat, batches, walk.draws[0][1], rate)

    def compiled_logits(self, lane: Lane, rows: IntArray) -> Tensor:
        return torch.from_numpy(compiled_logits(lane, self.texts.flat, rows))


def _layer(parameters: Parameters, name: str, x: Tensor) -> Tensor:
    weight, bias = parameters[f"{name}.weight"], parameters[f"{name}.bias"]
    return torch.baddbmm(bias.unsqueeze(1), x, weight).relu_()


# -- compiled ----------------------------------------------------------------------------------------------------------
@compiled
def train_epoch(lane: Lane, texts: FlatTexts, batches: Batches, step: int, rate: float) -> FloatArray:
    """Train one model in place for an epoch; ``step`` is the number of earlier steps. The loss of each step."""
    size, labels = lane.table.shape[1], lane.sizes[-1]
    one, table_grads = lane.table.dtype.type(1), lane.words.grads.reshape(-1, size)
    nothing = np.zeros(max(size, HIDDEN, labels), lane.table.dtype)
    losses = np.zeros(len(batches.rows))
    w1, b1, w2, b2, w3, b3 = layers(lane.dense.values, lane, size)
    s1, t1, s2, t2, s3, t3 = layers(lane.dense.grads, lane, size)
    for at in range(len(batches.rows)):
        count = batches.counts[at]
        items = batches.rows[at, :count]
        mean = averaged(lane, texts, items)
        first = rectified(mean, w1, b1)
        second = rectified(first, w2, b2)
        if batches.kept.size:
            second *= batches.kept[at, :count]
        grad = affine(second, w3, b3)
        losses[at] = cross_entropy(grad, batches.targets[at, :count])

        layer_grads(second, grad, s3, t3, nothing)
        grad = backwards(grad, w3, second, nothing)
        if batches.kept.size:
            grad *= batches.kept[at, :count]
        layer_grads(first, grad, s2, t2, nothing)
        grad = backwards(grad, w2, first, nothing)
        layer_grads(mean, grad, s1, t1, nothing)
        grad = affine(grad, transposed(w1), nothing[:size])
        for i, item in enumerate(items):
            grad[i] *= one / texts.lengths[item]
            for word in texts.words[texts.starts[item] : texts.starts[item] + texts.lengths[item]]:
                table_grads[lane.places[word]] += grad[i]
        adam(lane.dense, step + at + 1, rate)
        adam(lane.words, step + at + 1, rate)
    return losses


@compiled
def compiled_logits(lane: Lane, texts: FlatTexts, rows: IntArray) -> Numbers:
    """A model's logits for some items."""
    w1, b1, w2, b2, w3, b3 = layers(lane.dense.values, lane, lane.table.shape[1])
    return affine(rectified(rectified(averaged(lane, texts, rows), w1, b1), w2, b2), w3, b3)


@compiled
def averaged(lane: Lane, texts: FlatTexts, rows: IntArray) -> Numbers:
    """The mean vectors of some items' words."""
    found = np.zeros((len(rows), lane.table.shape[1]), lane.table.dtype)
    one = found.dtype.type(1)
    for i, item in enumerate(rows):
        for word in texts.words[texts.starts[item] : texts.starts[item] + texts.lengths[item]]:
            found[i] += lane.table[lane.places[word]]
        found[i] *= one / texts.lengths[item]
    return found


@compiled
def layers(values: Numbers, lane: Lane, size: int) -> tuple[Numbers, ...]:
    """Views of the weights and biases of the three layers in one flat array."""
    starts, labels = lane.starts, lane.sizes[-1]
    return (
        values[starts[0] : starts[0] + size * HIDDEN].reshape(size, HIDDEN),
        values[starts[1] : starts[1] + HIDDEN],
        values[starts[2] : starts[2] + HIDDEN * HIDDEN].reshape(HIDDEN, HIDDEN),
        values[starts[3] : starts[3] + HIDDEN],
        values[starts[4] : starts[4] + HIDDEN * labels].reshape(HIDDEN, labels),
        values[starts[5] : starts[5] + labels],
    )
