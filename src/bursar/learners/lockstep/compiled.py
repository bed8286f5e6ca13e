"""Compiled training steps of one small model.

A step of a few layers on twenty items is about seventy microseconds of arithmetic. Calling a library for each of its
thirty operations takes longer than that, even for sixteen models at once. Compiled as one loop, one model at a time is
faster, and results cannot depend on other models. Numba compiles at first use and caches the result. Its fast-math
options stay off: with them, code from the cache computes other last digits than code that was just compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from bursar.errors import ConfigError
from bursar.learners.lockstep.network import DECAYS, EPSILON, Moving
from bursar.ragged import IntArray

try:
    import numba
except ImportError:  # an optional dependency: only these networks need it
    HAS_NUMBA = False
else:
    HAS_NUMBA = True

Numbers = NDArray[np.floating[Any]]
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
    """x (rows, width) times weight (width, outputs) plus bias.

    >>> affine(np.ones((3, 5)), np.ones((5, 1)), np.ones(1)).ravel().tolist()
    [6.0, 6.0, 6.0]
    """
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
    found = affine(x, weight, bias)
    zero = found.dtype.type(0)
    for i in range(found.shape[0]):
        for j in range(found.shape[1]):
            found[i, j] = max(found[i, j], zero)
    return found


@compiled
def transposed(x: Numbers) -> Numbers:
    """The transpose."""
    found = np.empty((x.shape[1], x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            found[j, i] = x[i, j]
    return found


@compiled
def layer_grads(x: Numbers, grad: Numbers, weight: Numbers, bias: Numbers, nothing: Numbers) -> None:
    """The gradient of a layer's weight and bias, written to ``weight`` and ``bias``; ``nothing`` is zeros."""
    into(weight, transposed(x), grad, nothing[: grad.shape[1]])
    bias[:] = 0
    for i in range(grad.shape[0]):
        for j in range(bias.size):
            bias[j] += grad[i, j]


@compiled
def backwards(grad: Numbers, weight: Numbers, seen: Numbers, nothing: Numbers) -> Numbers:
    """The gradient of a layer's input, which came through a ReLU: zero where ``seen`` is."""
    found = affine(grad, transposed(weight), nothing[: weight.shape[0]])
    zero = found.dtype.type(0)
    for i in range(found.shape[0]):
        for k in range(found.shape[1]):
            found[i, k] = found[i, k] if seen[i, k] > 0 else zero
    return found


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
