"""The average of word vectors through two fully connected layers (paper 4's AOE), compiled.

A step of a few layers on twenty items is about seventy microseconds of arithmetic. Calling a library for each of its
thirty operations takes longer than that, even for sixteen models at once. Compiled as one loop, one model at a time is
faster, and results cannot depend on other models. Numba compiles at first use and caches the result. Its fast-math
options stay off: with them, code from the cache computes other last digits than code that was just compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bursar.errors import ConfigError
from bursar.learners.lockstep.network import DECAYS, EPSILON, Draws, Lane, Moving, Parameters, Walk
from bursar.learners.lockstep.sums import flat, gathered
from bursar.learners.lockstep.texts import FlatTexts, TextNetwork, tokens
from bursar.ragged import FloatArray, IntArray

try:
    import numba
except ImportError:  # an optional dependency: only these networks need it
    HAS_NUMBA = False
else:
    HAS_NUMBA = True

Numbers = NDArray[np.floating[Any]]
HIDDEN = 100
F = TypeVar("F", bound=Callable[..., Any])


def _needs_numba(*_: Any) -> None:
    raise ConfigError("numba is not installed", fix="install it: pip install 'bursar[oracle]'")


def compiled(function: F) -> F:
    """Compile to machine code that releases the GIL."""
    if not HAS_NUMBA:
        return cast(F, _needs_numba)
    return cast(F, numba.njit(function, cache=True, nogil=True, error_model="numpy"))


@compiled
def affine(x: Numbers, weight: Numbers, bias: Numbers) -> Numbers:
    """x (rows, width) times weight (width, outputs) plus bias."""
    found = np.empty((x.shape[0], weight.shape[1]), x.dtype)
    into(found, x, weight, bias)
    return found


@compiled
def into(found: Numbers, x: Numbers, weight: Numbers, bias: Numbers) -> None:
    """``affine`` into an array, two rows and four columns of x at a time, so that what is read is used eight times."""
    rows, width = x.shape
    fours = width - width % 4
    for i in range(rows):
        for j in range(bias.size):
            found[i, j] = bias[j]
    for i in range(0, rows - 1, 2):
        for k in range(0, fours, 4):
            a0, a1, a2, a3 = x[i, k], x[i, k + 1], x[i, k + 2], x[i, k + 3]
            b0, b1, b2, b3 = x[i + 1, k], x[i + 1, k + 1], x[i + 1, k + 2], x[i + 1, k + 3]
            for j in range(bias.size):
                w0, w1, w2, w3 = weight[k, j], weight[k + 1, j], weight[k + 2, j], weight[k + 3, j]
                found[i, j] = found[i, j] + a0 * w0 + a1 * w1 + a2 * w2 + a3 * w3
                found[i + 1, j] = found[i + 1, j] + b0 * w0 + b1 * w1 + b2 * w2 + b3 * w3
        for k in range(fours, width):
            for j in range(bias.size):
                found[i, j] += x[i, k] * weight[k, j]
                found[i + 1, j] += x[i + 1, k] * weight[k, j]
    if rows % 2:
        for k in range(width):
            for j in range(bias.size):
                found[rows - 1, j] += x[rows - 1, k] * weight[k, j]


@compiled
def rectified(x: Numbers, weight: Numbers, bias: Numbers) -> Numbers:
    """``affine`` and ReLU."""
    return np.maximum(affine(x, weight, bias), x.dtype.type(0))


@compiled
def layer_grads(x: Numbers, grad: Numbers, weight: Numbers, bias: Numbers, nothing: Numbers) -> None:
    """The gradient of a layer's weight and bias, written to ``weight`` and ``bias``; ``nothing`` is zeros."""
    into(weight, np.ascontiguousarray(x.T), grad, nothing[: grad.shape[1]])
    bias[:] = 0
    for i in range(grad.shape[0]):
        for j in range(bias.size):
            bias[j] += grad[i, j]


@compiled
def backwards(grad: Numbers, weight: Numbers, seen: Numbers, nothing: Numbers) -> Numbers:
    """The gradient of a layer's input, which came through a ReLU: zero where ``seen`` is."""
    found = affine(grad, np.ascontiguousarray(weight.T), nothing[: weight.shape[0]])
    return np.where(seen > 0, found, found.dtype.type(0))


@compiled
def cross_entropy(scores: Numbers, targets: IntArray) -> float:
    """The mean −log p of the targets; scores are replaced by their gradient."""
    items, zero = scores.shape[0], scores.dtype.type(0)
    share = scores.dtype.type(1.0 / items)
    total = 0.0
    for i in range(items):
        most, mass = scores[i].max(), zero
        for j in range(scores.shape[1]):
            scores[i, j] = math.exp(scores[i, j] - most)
            mass += scores[i, j]
        total -= math.log(scores[i, targets[i]] / mass)
        for j in range(scores.shape[1]):
            scores[i, j] *= share / mass
        scores[i, targets[i]] -= share
    return total / items


@compiled
def adam(trained: Moving, step: int, rate: float) -> None:
    """One step of Adam, counted from 1. Sets the gradient to zero."""
    values, grad, fast, slow = trained
    first, second = DECAYS
    ahead = values.dtype.type(rate / (1 - first**step))
    wide = values.dtype.type(1 / math.sqrt(1 - second**step))
    keep, new = values.dtype.type(second), values.dtype.type(1 - second)
    towards, small, zero = values.dtype.type(1 - first), values.dtype.type(EPSILON), values.dtype.type(0)
    for i in range(values.size):
        fast[i] += towards * (grad[i] - fast[i])
        slow[i] = keep * slow[i] + new * grad[i] * grad[i]
        values[i] -= ahead * fast[i] / (np.sqrt(slow[i]) * wide + small)
        grad[i] = zero


class Batches(NamedTuple):
    """The batches of one model in one epoch, for compiled code."""

    rows: IntArray  # (steps, batch): item numbers
    targets: IntArray  # (steps, batch)
    counts: IntArray  # (steps,): the first items of a batch, which are not padding
    kept: Numbers  # (steps, batch, width): dropout factors; empty without dropout


class AverageNetwork(TextNetwork):
    """The mean vector of a text's words, two layers of 100, and the output layer."""

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
        kept = self.kept(walk.draws, walk.rows.shape[1])
        factors = np.zeros((0, 0, 0), lane.table.dtype) if kept is None else kept.numpy()
        batches = Batches(walk.rows, self.targets[walk.rows], walk.real.sum(axis=1), factors)
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
        grad = affine(grad, np.ascontiguousarray(w1.T), nothing[:size])
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
