"""The average of word vectors through two fully connected layers (paper 4's AOE)."""

from __future__ import annotations

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
    rectified,
    slopes,
    transposed,
)
from bursar.learners.lockstep.network import DECAYS, EPSILON, Draws, Lane, Parameters, Walk
from bursar.learners.lockstep.sums import flat, gathered
from bursar.learners.lockstep.texts import Packed, TextNetwork, tokens
from bursar.ragged import FloatArray, IntArray

HIDDEN = 100


class AverageNetwork(TextNetwork):
    """The mean vector of a text's words, two layers of 100, and the output layer.

    >>> import numpy as np
    >>> from bursar.learners.lockstep import Job, Settings, Texts, accuracy, train
    >>> texts = Texts(np.array([[1, 2], [2, 3], [3, 0], [1, 0]]), np.array([2, 2, 1, 1]), 4)
    >>> network = AverageNetwork(texts, np.array([0, 1, 1, 0]), 2, size=16)
    >>> (model,) = train(network, [Job(np.arange(4))], Settings(batch=2), select=np.arange(4), score=accuracy(network))
    >>> model.score
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
        kept = np.zeros((0, 0, 0), lane.values.dtype)
        if self.dropout:
            kept = np.stack([self.kept_in_step(*draw, walk.rows.shape[1]) for draw in walk.draws]).astype(kept.dtype)
        how = np.array([rate, *DECAYS, EPSILON])
        counts = walk.real.sum(axis=1)
        return trained(
            lane, self.texts.packed, self.targets, self.labels, walk.rows, counts, kept, walk.draws[0][1], how
        )

    def answered(self, lane: Lane, rows: IntArray) -> Tensor:
        return torch.from_numpy(answered(lane, self.texts.packed, self.labels, rows))


def _layer(parameters: Parameters, name: str, x: Tensor) -> Tensor:
    weight, bias = parameters[f"{name}.weight"], parameters[f"{name}.bias"]
    return torch.baddbmm(bias.unsqueeze(1), x, weight).relu_()


# -- compiled ----------------------------------------------------------------------------------------------------------
@compiled
def trained(
    lane: Lane,
    texts: Packed,
    targets: IntArray,
    labels: int,
    rows: IntArray,
    counts: IntArray,
    kept: Numbers,
    step: int,
    how: Numbers,
) -> FloatArray:
    """Train one model in place: rows (steps, batch), of which the first ``counts`` items are not padding."""
    size, one = lane.table.shape[1], lane.values.dtype.type(1)
    table = lane.table[: lane.learned]
    table_slope = np.zeros_like(table)
    nothing = np.zeros(max(size, HIDDEN, labels), table.dtype)
    losses = np.zeros(len(rows))
    w1, b1, w2, b2, w3, b3 = layers(lane.values, lane.starts, size, labels)
    s1, t1, s2, t2, s3, t3 = layers(lane.slopes, lane.starts, size, labels)
    for at in range(len(rows)):
        items = rows[at, : counts[at]]
        mean = averaged(lane, texts, items)
        first = rectified(mean, w1, b1)
        second = rectified(first, w2, b2)
        if kept.size:
            second *= kept[at, : len(items)]
        slope = affine(second, w3, b3)
        losses[at] = cross_entropy(slope, targets[items])

        slopes(second, slope, s3, t3, nothing)
        slope = backwards(slope, w3, second, nothing)
        if kept.size:
            slope *= kept[at, : len(items)]
        slopes(first, slope, s2, t2, nothing)
        slope = backwards(slope, w2, first, nothing)
        slopes(mean, slope, s1, t1, nothing)
        slope = affine(slope, transposed(w1), nothing[:size])
        for i, item in enumerate(items):
            slope[i] *= one / texts.lengths[item]
            for word in texts.words[texts.starts[item] : texts.starts[item] + texts.lengths[item]]:
                table_slope[lane.places[word]] += slope[i]
        adam(lane.values, lane.slopes, lane.fast, lane.slow, step + at + 1, how)
        adam(table.ravel(), table_slope.ravel(), lane.table_fast, lane.table_slow, step + at + 1, how)
    return losses


@compiled
def answered(lane: Lane, texts: Packed, labels: int, rows: IntArray) -> Numbers:
    """A model's logits for some items."""
    w1, b1, w2, b2, w3, b3 = layers(lane.values, lane.starts, lane.table.shape[1], labels)
    return affine(rectified(rectified(averaged(lane, texts, rows), w1, b1), w2, b2), w3, b3)


@compiled
def averaged(lane: Lane, texts: Packed, rows: IntArray) -> Numbers:
    """The mean vectors of some items' words."""
    found = np.zeros((len(rows), lane.table.shape[1]), lane.table.dtype)
    one = found.dtype.type(1)
    for i, item in enumerate(rows):
        for word in texts.words[texts.starts[item] : texts.starts[item] + texts.lengths[item]]:
            found[i] += lane.table[lane.places[word]]
        found[i] *= one / texts.lengths[item]
    return found


@compiled
def layers(values: Numbers, starts: IntArray, size: int, labels: int) -> tuple[Numbers, ...]:
    """Views of the weights and biases of the three layers in one flat array."""
    return (
        values[starts[0] : starts[0] + size * HIDDEN].reshape(size, HIDDEN),
        values[starts[1] : starts[1] + HIDDEN],
        values[starts[2] : starts[2] + HIDDEN * HIDDEN].reshape(HIDDEN, HIDDEN),
        values[starts[3] : starts[3] + HIDDEN],
        values[starts[4] : starts[4] + HIDDEN * labels].reshape(HIDDEN, labels),
        values[starts[5] : starts[5] + labels],
    )
