"""What the scores of labels of many lanes are worth on some items: for the choice of the best epoch, and for judges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import Tensor

from bursar.learners.lockstep.network import Network
from bursar.ragged import FloatArray, IntArray

Score = Callable[[Tensor, IntArray], FloatArray]  # logits of every lane, and the items: a number a lane


def accuracy(network: Network) -> Score:
    """The share of units that are right."""

    def score(logits: Tensor, rows: IntArray) -> FloatArray:
        targets, guesses = _units(network, logits, rows)
        return np.asarray((guesses == targets).mean(axis=1))

    return score


def weighted_f1(network: Network) -> Score:
    """The F1 of the labels, each weighted by how many units have it, as scikit-learn counts it."""

    def score(logits: Tensor, rows: IntArray) -> FloatArray:
        targets, guesses = _units(network, logits, rows)
        labels, lanes = network.labels, len(guesses)
        shift = np.arange(lanes)[:, None] * labels
        guessed = np.bincount((guesses + shift).ravel(), minlength=lanes * labels).reshape(lanes, labels)
        right = np.where(guesses == targets, guesses + shift, lanes * labels)
        hits = np.bincount(right.ravel(), minlength=lanes * labels + 1)[:-1].reshape(lanes, labels)
        truth = np.bincount(targets, minlength=labels)
        f1 = 2 * hits / np.maximum(guessed + truth, 1)
        return np.asarray((f1 * truth).sum(axis=1) / truth.sum())

    return score


def _units(network: Network, logits: Tensor, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Targets (units,) and guesses (lanes, units) of what has a target."""
    targets = network.targets[rows]
    if targets.ndim == 2:  # of words; the logits end at the longest text
        targets = targets[:, : logits.shape[2]]
    counted = targets >= 0
    return targets[counted], logits.argmax(dim=-1).numpy()[:, counted]
