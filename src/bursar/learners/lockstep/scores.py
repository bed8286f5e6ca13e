"""Scores of many lanes' predictions, for choosing the best epoch and for judges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import Tensor

from bursar.learners.lockstep.network import Network
from bursar.ragged import FloatArray, IntArray

Score = Callable[[Tensor, IntArray], FloatArray]  # logits of every lane, and the items: a number per lane


def accuracy(network: Network) -> Score:
    """The share of correct units."""

    def score(logits: Tensor, rows: IntArray) -> FloatArray:
        targets, predicted = _units(network, logits, rows)
        return np.asarray((predicted == targets).mean(axis=1))

    return score


def weighted_f1(network: Network) -> Score:
    """The F1 of labels weighted by their number of units, as in scikit-learn."""

    def score(logits: Tensor, rows: IntArray) -> FloatArray:
        targets, predicted = _units(network, logits, rows)
        labels, lanes = network.labels, len(predicted)
        shift = np.arange(lanes)[:, None] * labels
        counts = np.bincount((predicted + shift).ravel(), minlength=lanes * labels).reshape(lanes, labels)
        right = np.where(predicted == targets, predicted + shift, lanes * labels)
        hits = np.bincount(right.ravel(), minlength=lanes * labels + 1)[:-1].reshape(lanes, labels)
        truth = np.bincount(targets, minlength=labels)
        f1 = 2 * hits / np.maximum(counts + truth, 1)
        return np.asarray((f1 * truth).sum(axis=1) / truth.sum())

    return score


def _units(network: Network, logits: Tensor, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Targets (units,) and predictions (lanes, units) of the units with a target."""
    targets = network.targets[rows]
    if targets.ndim == 2:  # of words; the logits end at the longest text
        targets = targets[:, : logits.shape[2]]
    counted = targets >= 0
    return targets[counted], logits.argmax(dim=-1).numpy()[:, counted]
