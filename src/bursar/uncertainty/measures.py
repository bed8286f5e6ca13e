"""Confidence measures as pure functions of beliefs.

Each averages over the units of an item (words, not word-pieces: errata 1) or, of a whole sequence, adds up over them.
A score depends on nothing but the item's own probabilities: not on padding, the batch or the order of prediction. A
unit with a single choice is certain, and so is an item without units.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.errors import SelectionError
from bursar.ragged import FloatArray, IntArray
from bursar.registry import Registry
from bursar.tasks import AnyBeliefs, Beliefs, Estimates


@dataclass(frozen=True)
class Measure:
    """A way to read confidence off beliefs, and how many stochastic passes it wants: one is the model itself.

    >>> MEASURES["entropy"](Beliefs.of([[1.0, 0.0]], units=[1])).tolist()
    [1.0]
    >>> MEASURES["dropout-agreement"].passes
    10
    """

    name: str
    kernel: Callable[[AnyBeliefs], FloatArray]
    passes: int = 1

    def __call__(self, beliefs: AnyBeliefs) -> FloatArray:
        return self.kernel(beliefs)


MEASURES: Registry[Measure] = Registry("confidence measure", "bursar.measures")


# -- how sure a pass is ----------------------------------------------------------------------------------------------
def entropy_confidence(beliefs: AnyBeliefs) -> FloatArray:
    """1 − the mean over units of the entropy over the log of the number of choices (paper 1, eq. 1 and 2).

    Stochastic passes are averaged first.

    >>> entropy_confidence(Beliefs.of([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]], units=[2, 1])).tolist()
    [0.5, 0.0]

    A number has its predicted spread instead (errata 4): 1 − its standard deviation over the one of a number that may
    lie anywhere in the range, and 0 beyond that. Several passes are one mixture.

    >>> entropy_confidence(Estimates(np.array([[2.0, 2.0]]), np.array([[0.0, 3.0]]), low=0, high=12)).tolist()
    [1.0, 0.5]
    """
    if isinstance(beliefs, Estimates):
        return _narrowness(beliefs)
    entropy = _entropies(_pass_mean(beliefs.values), beliefs.choices)
    confidence: FloatArray = np.clip(1 - _segment_means(entropy, beliefs.offsets), 0, 1)
    return confidence


def least_confidence(beliefs: AnyBeliefs) -> FloatArray:
    """The probability of the most probable choice. Of a number, whose only doubt is its spread, as by entropy.

    >>> least_confidence(Beliefs.of([[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]], units=[2, 1])).tolist()
    [0.75, 0.5]
    """
    if isinstance(beliefs, Estimates):
        return _narrowness(beliefs)
    return _unit_means(_best(_pass_mean(beliefs.values), beliefs.choices), beliefs.offsets)


def above_chance(beliefs: AnyBeliefs, may_be_empty: bool = False) -> FloatArray:
    """How far the most probable choice is from a guess among k choices, 0, on the way to certainty, 1.

    That is (p − 1/k) / (1 − 1/k), averaged over units, so that it means the same for two labels and for two hundred.
    Of a number, where a guess may lie anywhere in the range, as by entropy.

    >>> above_chance(Beliefs.of([[0.5, 0.5], [0.75, 0.25]], units=[1, 1])).tolist()
    [0.0, 0.5]
    >>> above_chance(Beliefs.of([[0.25, 0.25, 0.25, 0.25], [0.625, 0.125, 0.125, 0.125]], units=[1, 1])).tolist()
    [0.0, 0.5]

    An answer that ``may_be_empty`` has choice 0 for "nothing here", which most units are and which says little about
    the others: the average is over units that are something. That all are nothing is as sure as the least sure unit.

    >>> words = Beliefs.of([[0.875, 0.125], [0.375, 0.625], [0.875, 0.125], [0.625, 0.375]], units=[2, 2])
    >>> above_chance(words, may_be_empty=True).tolist()
    [0.25, 0.25]
    """
    if isinstance(beliefs, Estimates):
        return _narrowness(beliefs)
    p = _pass_mean(beliefs.values)
    chance = 1 / np.maximum(np.diff(beliefs.choices), 2)  # a unit with a single choice is certain anyway
    lift: FloatArray = np.clip((_best(p, beliefs.choices) - chance) / (1 - chance), 0, 1)
    if not may_be_empty:
        return _unit_means(lift, beliefs.offsets)
    some = (_winners(p, beliefs.choices) > beliefs.choices[:-1]).astype(float)
    count = _segment_sums(some, beliefs.offsets)
    means = _segment_sums(lift * some, beliefs.offsets) / np.maximum(count, 1)
    least = np.ones(len(beliefs))
    filled = np.flatnonzero(beliefs.units > 0)
    if len(filled):
        least[filled] = np.minimum.reduceat(lift, beliefs.offsets[:-1][filled])
    return np.where(count > 0, means, least)


def margin(beliefs: AnyBeliefs) -> FloatArray:
    """The probability of the most probable choice less that of the runner-up. Of a number, as by entropy.

    >>> margin(Beliefs.of([[0.75, 0.25, 0.0], [0.5, 0.5, 0.0]], units=[1, 1])).tolist()
    [0.5, 0.0]
    """
    if isinstance(beliefs, Estimates):
        return _narrowness(beliefs)
    return _unit_means(unit_margins(beliefs)[0], beliefs.offsets)


def unit_margins(beliefs: Beliefs) -> tuple[FloatArray, IntArray]:
    """Of every unit, by how much its most probable choice leads, and which that is: (units,), (units,).

    >>> lead, choice = unit_margins(Beliefs.of([[0.75, 0.25, 0.0], [0.0, 0.5, 0.5]], units=[2]))
    >>> lead.tolist(), choice.tolist()
    ([0.5, 0.0], [0, 1])
    """
    p = _pass_mean(beliefs.values)
    best, winners = _best(p, beliefs.choices), _winners(p, beliefs.choices)
    p[winners] = 0
    return best - _segment_maxima(p, beliefs.choices), winners - beliefs.choices[:-1]


def _entropies(p: FloatArray, choices: IntArray) -> FloatArray:
    """Of each unit, over the log of the number of its choices."""
    widths = np.diff(choices)
    entropy = -_segment_sums(p * _log(p), choices)
    normal: FloatArray = np.divide(entropy, np.log(np.maximum(widths, 2)), out=np.zeros_like(entropy), where=widths > 1)
    return normal


def _best(p: FloatArray, choices: IntArray) -> FloatArray:
    """The probability of each unit's most probable choice: never above 1, as rounding may leave it."""
    return np.where(np.diff(choices) > 1, np.minimum(_segment_maxima(p, choices), 1), 1)


def _log(p: FloatArray) -> FloatArray:
    """Finite at 0."""
    logs: FloatArray = np.log(np.maximum(p, 1e-300))
    return logs


def _narrowness(estimates: Estimates) -> FloatArray:
    mean = _pass_mean(estimates.means)
    variance = _pass_mean(estimates.variances) + _pass_mean((estimates.means - mean) ** 2)
    widest = (estimates.high - estimates.low) / math.sqrt(12)  # of the uniform distribution
    confidence: FloatArray = np.clip(1 - np.sqrt(variance) / widest, 0, 1)
    return confidence


# -- how sure of a whole sequence ------------------------------------------------------------------------------------
def sequence_confidence(beliefs: AnyBeliefs) -> FloatArray:
    """1 / (1 + s), with s = −log of the joint probability of every unit's best label (paper 4, section 5.3).

    In the order of that probability, which itself would underflow in a long sentence. Of a number, as by entropy.

    >>> sequence_confidence(Beliefs.of([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]], units=[1, 2])).round(3).tolist()
    [1.0, 0.419]
    """
    if isinstance(beliefs, Estimates):
        return _narrowness(beliefs)
    logs = _log(_best(_pass_mean(beliefs.values), beliefs.choices))
    confidence: FloatArray = 1 / (1 - _segment_sums(logs, beliefs.offsets))
    return confidence


def normalised_sequence_confidence(beliefs: AnyBeliefs) -> FloatArray:
    """The geometric mean of the probabilities of the best labels, so that length does not count (paper 4).

    Of a number, as by entropy.

    >>> normalised_sequence_confidence(Beliefs.of([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]], units=[1, 2])).tolist()
    [0.5, 0.5]
    """
    if isinstance(beliefs, Estimates):
        return _narrowness(beliefs)
    logs = _log(_best(_pass_mean(beliefs.values), beliefs.choices))
    confidence: FloatArray = np.exp(_segment_means(logs, beliefs.offsets))
    return confidence


def length_confidence(words: IntArray) -> FloatArray:
    """1 / (1 + words): the longest sentence is the least sure (paper 4). Beliefs do not know it, so it is no measure.

    >>> length_confidence(np.array([0, 3, 9])).tolist()
    [1.0, 0.25, 0.1]
    """
    confidence: FloatArray = 1 / (1 + np.asarray(words))
    return confidence


# -- how far passes agree --------------------------------------------------------------------------------------------
def dropout_agreement(beliefs: AnyBeliefs) -> FloatArray:
    """The share of pairs of passes that predict the same label, averaged over units (paper 1, eq. 3).

    With n_c of k passes voting for c a unit's agreement is Σ n_c(n_c − 1) / (k(k − 1)): no loop over pairs (errata 4).

    >>> votes = np.eye(2)[[[0], [0], [1]]]  # three passes over one unit: two say 0, one says 1
    >>> dropout_agreement(Beliefs.of(votes, units=[1])).round(3).tolist()
    [0.333]

    Of numbers it is 1 − the mean difference between two passes over the range.

    >>> dropout_agreement(Estimates(np.array([[1.0], [2.0], [4.0]]), np.zeros((3, 1)), low=0, high=4)).tolist()
    [0.5]
    """
    _require_two_passes("agreement", beliefs)
    if isinstance(beliefs, Estimates):
        return _nearness(beliefs)
    k, votes = beliefs.passes, _votes(beliefs)
    pairs = _segment_sums(votes * (votes - 1), beliefs.choices) / (k * (k - 1))
    confidence: FloatArray = 1 - _segment_means(1 - pairs, beliefs.offsets)
    return confidence


def variation_ratio(beliefs: AnyBeliefs) -> FloatArray:
    """The share of passes that vote for the modal label: 1 − the variation ratio.

    What the authors of paper 4 call BALD for intents (errata 27). Of numbers it is their dropout agreement.

    >>> votes = np.eye(3)[[[0], [0], [1], [2]]]  # four passes over one unit: two say 0
    >>> variation_ratio(Beliefs.of(votes, units=[1])).tolist()
    [0.5]
    """
    _require_two_passes("the variation ratio", beliefs)
    if isinstance(beliefs, Estimates):
        return _nearness(beliefs)
    return _unit_means(_segment_maxima(_votes(beliefs), beliefs.choices) / beliefs.passes, beliefs.offsets)


def bald(beliefs: AnyBeliefs) -> FloatArray:
    """1 − the mutual information of label and model over the log of the number of choices (Houlsby 2011, Gal 2017).

    That is the entropy of the mean less the mean of the entropies: passes sure of different labels leave no
    confidence, passes that are alike all of it, however unsure they are.

    >>> bald(Beliefs.of([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]], units=[1, 1])).tolist()
    [0.0, 1.0]

    Of numbers it is the narrowness of the passes' means, whatever variance they predict.

    >>> bald(Estimates(np.array([[2.0, 0.0], [2.0, 6.0]]), np.ones((2, 2)), low=0, high=12)).round(3).tolist()
    [1.0, 0.134]
    """
    _require_two_passes("BALD", beliefs)
    if isinstance(beliefs, Estimates):
        means = beliefs.means.astype(np.float64)
        means = means - means[0]  # so that means that are all the same have exactly no spread
        return _narrowness(Estimates(means, np.zeros_like(means), beliefs.low, beliefs.high))
    entropy = _entropies(_pass_mean(beliefs.values), beliefs.choices)
    information = np.zeros_like(entropy)
    for one in beliefs.values:  # a term each, so that passes that are all the same add up to exactly nothing
        information += entropy - _entropies(one.astype(np.float64), beliefs.choices)
    information /= beliefs.passes
    confidence: FloatArray = np.clip(1 - _segment_means(information, beliefs.offsets), 0, 1)
    return confidence


def _require_two_passes(what: str, beliefs: AnyBeliefs) -> None:
    if beliefs.passes < 2:
        raise SelectionError(
            f"{what} needs at least two stochastic passes, and the model was asked once",
            fix="ask for more, as believe(items, passes=10) does, or measure confidence by entropy",
        )


def _votes(beliefs: Beliefs) -> FloatArray:
    """How many passes find each choice the most probable of its unit."""
    votes = np.zeros(beliefs.values.shape[1])
    for one in beliefs.values:
        votes[_winners(one, beliefs.choices)] += 1
    return votes


def _winners(values: NDArray[Any], choices: IntArray) -> IntArray:
    """Where the most probable choice of each unit stands; ties go to the first."""
    best = np.flatnonzero(values == np.repeat(_segment_maxima(values, choices), np.diff(choices)))
    return best[np.searchsorted(best, choices[:-1])]


def _nearness(estimates: Estimates) -> FloatArray:
    """In order of size, the step from the i-th mean to the next is part of the difference of i(k − i) pairs."""
    k = estimates.passes
    steps = np.diff(np.sort(estimates.means.astype(np.float64), axis=0), axis=0)  # (k - 1, items)
    pairs = np.arange(1, k) * np.arange(k - 1, 0, -1)
    difference = _pass_mean(pairs[:, None] * steps) / (k / 2)  # of k - 1 steps and k(k - 1) / 2 pairs
    confidence: FloatArray = np.clip(1 - difference / (estimates.high - estimates.low), 0, 1)
    return confidence


# -- sums whose bits depend on nothing else --------------------------------------------------------------------------
def _pass_mean(values: NDArray[Any]) -> FloatArray:
    """The mean over passes, added up pass after pass whatever lies beside them in memory."""
    total = np.zeros(values.shape[1:])
    for one in values:
        total += one
    return total / len(values)


def _segment_sums(values: FloatArray, offsets: IntArray) -> FloatArray:
    """Sums of consecutive stretches, each stretch added up by itself so that its neighbours cannot touch its bits."""
    lengths = np.diff(offsets)
    sums = np.zeros(len(lengths))
    if len(values) and len(lengths):
        filled = np.flatnonzero(lengths > 0)
        sums[filled] = np.add.reduceat(values, offsets[:-1][filled])
    return sums


def _segment_means(values: FloatArray, offsets: IntArray) -> FloatArray:
    lengths = np.diff(offsets)
    means: FloatArray = _segment_sums(values, offsets) / np.maximum(lengths, 1)
    return means


def _unit_means(confidence: FloatArray, offsets: IntArray) -> FloatArray:
    """The mean confidence in the units of each item: 1 where there are none."""
    return np.where(np.diff(offsets) > 0, _segment_means(confidence, offsets), 1)


def _segment_maxima(values: NDArray[Any], offsets: IntArray) -> NDArray[Any]:
    """Of stretches that are never empty, as the choices of a unit are not."""
    maxima: NDArray[Any] = np.maximum.reduceat(values, offsets[:-1])
    return maxima


MEASURES.add("entropy", Measure("entropy", entropy_confidence))
MEASURES.add("dropout-agreement", Measure("dropout-agreement", dropout_agreement, passes=10))
MEASURES.add("least-confidence", Measure("least-confidence", least_confidence))
MEASURES.add("margin", Measure("margin", margin))
MEASURES.add("sequence", Measure("sequence", sequence_confidence))
MEASURES.add("normalised-sequence", Measure("normalised-sequence", normalised_sequence_confidence))
MEASURES.add("variation-ratio", Measure("variation-ratio", variation_ratio, passes=10))
MEASURES.add("bald", Measure("bald", bald, passes=10))
