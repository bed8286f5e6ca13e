"""Confidence measures: pure functions of predicted probabilities.

Each averages over the units of an item (words, not word-pieces: errata 1) or, for whole sequences, sums over them. A
confidence depends on the item's own probabilities alone, not on padding, batch or order. A unit with a single choice is
certain, and so is an item without units. For regression, measures of a single pass equal ``entropy_confidence``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.errors import SchemaError, SelectionError
from bursar.ragged import FloatArray, IntArray
from bursar.registry import Registry
from bursar.tasks import AnyBeliefs, Beliefs, Estimates, Task


@dataclass(frozen=True)
class Measure:
    """A confidence measure, and the number of dropout passes it needs; 1 is the model without dropout.

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


def confidences(tasks: Mapping[str, Task], beliefs: Mapping[str, AnyBeliefs], measure: Measure) -> FloatArray:
    """Confidence by item and task: (items, tasks), in the order of the tasks.

    If relations have no unit, because fewer than two spans were found, the confidence in the spans is used (errata 3).

    >>> from bursar.tasks import make_task
    >>> tasks = {"intent": make_task("intent", {"kind": "classification", "labels": ["alarm", "music"]})}
    >>> confidences(tasks, {"intent": Beliefs.of([[1, 0], [0.5, 0.5]], units=[1, 1])}, MEASURES["entropy"]).tolist()
    [[1.0], [0.0]]
    """
    missing = [name for name in tasks if name not in beliefs]
    if missing or not tasks:
        raise SchemaError(
            f"there are no predictions of task {missing[0]!r}" if missing else "there are no tasks",
            fix="use a learner of these tasks",
        )
    own = {name: measure(beliefs[name]) for name in tasks}
    columns = []
    for name, task in tasks.items():
        partner = task.partner(tasks)
        columns.append(own[name] if partner is None else np.where(beliefs[name].units > 0, own[name], own[partner]))
    return np.stack(columns, axis=1)


# -- of a single pass ------------------------------------------------------------------------------------------------
def entropy_confidence(beliefs: AnyBeliefs) -> FloatArray:
    """1 − the mean over units of the entropy over the log of the number of choices (paper 1, eq. 1 and 2).

    Dropout passes are averaged first.

    >>> entropy_confidence(Beliefs.of([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]], units=[2, 1])).tolist()
    [0.5, 0.0]

    For regression it is 1 − the predicted standard deviation over that of a uniform number in the range, at least 0
    (errata 4). Several passes form one mixture.

    >>> entropy_confidence(Estimates(np.array([[2.0, 2.0]]), np.array([[0.0, 3.0]]), low=0, high=12)).tolist()
    [1.0, 0.5]
    """
    if isinstance(beliefs, Estimates):
        return _narrowness(beliefs)
    entropy = _entropies(_pass_mean(beliefs.values), beliefs.choices)
    return np.clip(1 - _segment_means(entropy, beliefs.offsets), 0, 1)


def least_confidence(beliefs: AnyBeliefs) -> FloatArray:
    """The probability of the most probable choice.

    >>> least_confidence(Beliefs.of([[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]], units=[2, 1])).tolist()
    [0.75, 0.5]
    """
    if isinstance(beliefs, Estimates):
        return _narrowness(beliefs)
    return _unit_means(_best(_pass_mean(beliefs.values), beliefs.choices), beliefs.offsets)


def above_chance(beliefs: AnyBeliefs, may_be_empty: bool = False) -> FloatArray:
    """The probability of the most probable of k choices, rescaled from 0 (chance) to 1 (certain).

    That is (p − 1/k) / (1 − 1/k), averaged over units, so that values are comparable for two labels and two hundred.
    >>> above_chance(Beliefs.of([[0.5, 0.5], [0.75, 0.25]], units=[1, 1])).tolist()
    [0.0, 0.5]
    >>> above_chance(Beliefs.of([[0.25, 0.25, 0.25, 0.25], [0.625, 0.125, 0.125, 0.125]], units=[1, 1])).tolist()
    [0.0, 0.5]

    In tasks that ``may_be_empty``, choice 0 means "nothing here". Most units are nothing and say little about the
    others, so the average is over the other units. If all units are nothing, it is the lowest of theirs.

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


def confidence_of(tasks: Mapping[str, Task], beliefs: Mapping[str, AnyBeliefs], name: str) -> FloatArray:
    """Confidence of a model's predictions for one task, from chance (0) to certainty (1): (items,).

    If there are fewer than two spans to link, the confidence in "no relations" is that of the spans.
    """
    task, partner = tasks[name], tasks[name].partner(tasks)
    own = above_chance(beliefs[name], task.may_be_empty)
    if partner is None:
        return own
    return np.where(beliefs[name].units > 0, own, confidence_of(tasks, beliefs, partner))


def margin(beliefs: AnyBeliefs) -> FloatArray:
    """The difference between the two highest probabilities.

    >>> margin(Beliefs.of([[0.75, 0.25, 0.0], [0.5, 0.5, 0.0]], units=[1, 1])).tolist()
    [0.5, 0.0]
    """
    if isinstance(beliefs, Estimates):
        return _narrowness(beliefs)
    return _unit_means(unit_margins(beliefs)[0], beliefs.offsets)


def unit_margins(beliefs: Beliefs) -> tuple[FloatArray, IntArray]:
    """Of every unit, the margin of its most probable choice, and that choice: (units,), (units,).

    >>> lead, choice = unit_margins(Beliefs.of([[0.75, 0.25, 0.0], [0.0, 0.5, 0.5]], units=[2]))
    >>> lead.tolist(), choice.tolist()
    ([0.5, 0.0], [0, 1])
    """
    p = _pass_mean(beliefs.values)
    best, winners = _best(p, beliefs.choices), _winners(p, beliefs.choices)
    p[winners] = 0
    return best - _segment_maxima(p, beliefs.choices), winners - beliefs.choices[:-1]


def _entropies(p: FloatArray, choices: IntArray) -> FloatArray:
    """The entropy of each unit over the log of the number of its choices."""
    widths = np.diff(choices)
    entropy = -_segment_sums(p * _log(p), choices)
    return np.asarray(np.divide(entropy, np.log(np.maximum(widths, 2)), out=np.zeros_like(entropy), where=widths > 1))


def _best(p: FloatArray, choices: IntArray) -> FloatArray:
    """The probability of each unit's most probable choice; at most 1 despite rounding."""
    return np.where(np.diff(choices) > 1, np.minimum(_segment_maxima(p, choices), 1), 1)


def _log(p: FloatArray) -> FloatArray:
    """The logarithm, finite at 0."""
    return np.asarray(np.log(np.maximum(p, 1e-300)))


def _narrowness(estimates: Estimates) -> FloatArray:
    mean = _pass_mean(estimates.means)
    variance = _pass_mean(estimates.variances) + _pass_mean((estimates.means - mean) ** 2)
    widest = (estimates.high - estimates.low) / math.sqrt(12)  # the standard deviation of the uniform distribution
    return np.clip(1 - np.sqrt(variance) / widest, 0, 1)


# -- of a whole sequence ---------------------------------------------------------------------------------------------
def sequence_confidence(beliefs: AnyBeliefs) -> FloatArray:
    """1 / (1 + s), with s = −log of the joint probability of every unit's best label (paper 4, section 5.3).

    It has the order of that probability, which would underflow in a long sentence.

    >>> sequence_confidence(Beliefs.of([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]], units=[1, 2])).round(3).tolist()
    [1.0, 0.419]
    """
    if isinstance(beliefs, Estimates):
        return _narrowness(beliefs)
    logs = _log(_best(_pass_mean(beliefs.values), beliefs.choices))
    return 1 / (1 - _segment_sums(logs, beliefs.offsets))


def normalised_sequence_confidence(beliefs: AnyBeliefs) -> FloatArray:
    """The geometric mean of the best labels' probabilities, which does not depend on length (paper 4).

    >>> normalised_sequence_confidence(Beliefs.of([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]], units=[1, 2])).tolist()
    [0.5, 0.5]
    """
    if isinstance(beliefs, Estimates):
        return _narrowness(beliefs)
    logs = _log(_best(_pass_mean(beliefs.values), beliefs.choices))
    return np.exp(_segment_means(logs, beliefs.offsets))


def length_confidence(words: IntArray) -> FloatArray:
    """1 / (1 + words): the longest sentence has the lowest confidence (paper 4). Not a ``Measure``: it needs no model.

    >>> length_confidence(np.array([0, 3, 9])).tolist()
    [1.0, 0.25, 0.1]
    """
    return 1 / (1 + np.asarray(words))


# -- agreement of passes --------------------------------------------------------------------------------------------
def dropout_agreement(beliefs: AnyBeliefs) -> FloatArray:
    """The share of pairs of passes that predict the same label, averaged over units (paper 1, eq. 3).

    With n_c of k passes voting for c, a unit's agreement is Σ n_c(n_c − 1) / (k(k − 1)), without a loop over pairs
    (errata 4).

    >>> votes = np.eye(2)[[[0], [0], [1]]]  # three passes over one unit: two say 0, one says 1
    >>> dropout_agreement(Beliefs.of(votes, units=[1])).round(3).tolist()
    [0.333]

    For regression it is 1 − the mean difference between two passes over the range.

    >>> dropout_agreement(Estimates(np.array([[1.0], [2.0], [4.0]]), np.zeros((3, 1)), low=0, high=4)).tolist()
    [0.5]
    """
    _require_two_passes("agreement", beliefs)
    if isinstance(beliefs, Estimates):
        return _nearness(beliefs)
    k, votes = beliefs.passes, _votes(beliefs)
    pairs = _segment_sums(votes * (votes - 1), beliefs.choices) / (k * (k - 1))
    return 1 - _segment_means(1 - pairs, beliefs.offsets)


def variation_ratio(beliefs: AnyBeliefs) -> FloatArray:
    """The share of passes that vote for the modal label: 1 − the variation ratio.

    The authors of paper 4 call it BALD for intents (errata 27). For regression it is the dropout agreement.

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

    That is the entropy of the mean minus the mean of the entropies: 0 if passes are certain of different labels, 1 if
    all passes agree, even if they are uncertain.

    >>> bald(Beliefs.of([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]], units=[1, 1])).tolist()
    [0.0, 1.0]

    For regression it is ``entropy_confidence`` of the passes' means, without their variances.

    >>> bald(Estimates(np.array([[2.0, 0.0], [2.0, 6.0]]), np.ones((2, 2)), low=0, high=12)).round(3).tolist()
    [1.0, 0.134]
    """
    _require_two_passes("BALD", beliefs)
    if isinstance(beliefs, Estimates):
        means = beliefs.means.astype(np.float64)
        means = means - means[0]  # so that equal means have a spread of exactly 0
        return _narrowness(Estimates(means, np.zeros_like(means), beliefs.low, beliefs.high))
    entropy = _entropies(_pass_mean(beliefs.values), beliefs.choices)
    information = np.zeros_like(entropy)
    for one in beliefs.values:  # term by term, so that equal passes sum to exactly 0
        information += entropy - _entropies(one.astype(np.float64), beliefs.choices)
    information /= beliefs.passes
    return np.clip(1 - _segment_means(information, beliefs.offsets), 0, 1)


def _require_two_passes(what: str, beliefs: AnyBeliefs) -> None:
    if beliefs.passes < 2:
        raise SelectionError(
            f"{what} needs at least two dropout passes, but there is one",
            fix="use predict_proba(items, passes=10), or the measure entropy",
        )


def _votes(beliefs: Beliefs) -> FloatArray:
    """The number of passes in which each choice is the most probable of its unit."""
    votes = np.zeros(beliefs.values.shape[1])
    for one in beliefs.values:
        votes[_winners(one, beliefs.choices)] += 1
    return votes


def _winners(values: NDArray[Any], choices: IntArray) -> IntArray:
    """The position of each unit's most probable choice; the first of ties."""
    best = np.flatnonzero(values == np.repeat(_segment_maxima(values, choices), np.diff(choices)))
    return best[np.searchsorted(best, choices[:-1])]


def _nearness(estimates: Estimates) -> FloatArray:
    """1 − the mean difference of pairs: of sorted means, the i-th step is part of i(k − i) pairs' differences."""
    k = estimates.passes
    steps = np.diff(np.sort(estimates.means.astype(np.float64), axis=0), axis=0)  # (k - 1, items)
    pairs = np.arange(1, k) * np.arange(k - 1, 0, -1)
    difference = _pass_mean(pairs[:, None] * steps) / (k / 2)  # k - 1 steps, k(k - 1) / 2 pairs
    return np.clip(1 - difference / (estimates.high - estimates.low), 0, 1)


# -- sums, the same bits in any batch --------------------------------------------------------------------------------
def _pass_mean(values: NDArray[Any]) -> FloatArray:
    """The mean over passes, summed pass by pass so that memory layout does not matter."""
    total = np.zeros(values.shape[1:])
    for one in values:
        total += one
    return total / len(values)


def _segment_sums(values: FloatArray, offsets: IntArray) -> FloatArray:
    """Sums of consecutive segments, each summed separately so that its neighbours do not affect its bits."""
    lengths = np.diff(offsets)
    sums = np.zeros(len(lengths))
    if len(values) and len(lengths):
        filled = np.flatnonzero(lengths > 0)
        sums[filled] = np.add.reduceat(values, offsets[:-1][filled])
    return sums


def _segment_means(values: FloatArray, offsets: IntArray) -> FloatArray:
    lengths = np.diff(offsets)
    return np.asarray(_segment_sums(values, offsets) / np.maximum(lengths, 1))


def _unit_means(confidence: FloatArray, offsets: IntArray) -> FloatArray:
    """The mean confidence in the units of each item; 1 if it has none."""
    return np.where(np.diff(offsets) > 0, _segment_means(confidence, offsets), 1)


def _segment_maxima(values: NDArray[Any], offsets: IntArray) -> NDArray[Any]:
    return np.asarray(np.maximum.reduceat(values, offsets[:-1]))


MEASURES.add("entropy", Measure("entropy", entropy_confidence))
MEASURES.add("dropout-agreement", Measure("dropout-agreement", dropout_agreement, passes=10))
MEASURES.add("least-confidence", Measure("least-confidence", least_confidence))
MEASURES.add("margin", Measure("margin", margin))
MEASURES.add("sequence", Measure("sequence", sequence_confidence))
MEASURES.add("normalised-sequence", Measure("normalised-sequence", normalised_sequence_confidence))
MEASURES.add("variation-ratio", Measure("variation-ratio", variation_ratio, passes=10))
MEASURES.add("bald", Measure("bald", bald, passes=10))
