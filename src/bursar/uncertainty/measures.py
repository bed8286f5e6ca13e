"""Confidence measures: pure functions of predicted probabilities.

Each averages over the units of an item (words, not word-pieces: errata 1) or, for whole sequences, sums over them. A
confidence depends on the item's own probabilities alone, not on padding, batch or order. A unit with a single choice is
certain, and so is an item without units. For regression, measures of a single pass equal ``entropy_confidence``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.errors import SchemaError, SelectionError
from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.registry import Registry
from bursar.tasks import AnyBeliefs, Beliefs, Estimates, Task


@dataclass(frozen=True)
class Measure:
    """A confidence measure, and the number of dropout passes it needs; 1 is the model without dropout."""

    name: str
    kernel: Callable[[AnyBeliefs], FloatArray]
    passes: int = 1

    def __call__(self, beliefs: AnyBeliefs) -> FloatArray:
        return self.kernel(beliefs)


SURELY_NOTHING = 0.1  # doubt below which a unit predicted as nothing, such as a word outside all spans, is certain
MEASURES: Registry[Measure] = Registry("confidence measure", "bursar.measures")


def confidences(tasks: Mapping[str, Task], beliefs: Mapping[str, AnyBeliefs], measure: Measure) -> FloatArray:
    """(items, tasks), in the order of the tasks. Relations without a unit are as sure as their spans (errata 3)."""
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


# -- of numbers, and the registration of all ---------------------------------------------------------------------------
def _narrowness(estimates: Estimates) -> FloatArray:
    mean = _pass_mean(estimates.means)
    variance = _pass_mean(estimates.variances) + _pass_mean((estimates.means - mean) ** 2)
    widest = (estimates.high - estimates.low) / math.sqrt(12)  # the standard deviation of the uniform distribution
    return np.clip(1 - np.sqrt(variance) / widest, 0, 1)


def _nearness(estimates: Estimates) -> FloatArray:
    """1 − the mean difference of pairs: of sorted means, the i-th step is part of i(k − i) pairs' differences."""
    k = estimates.passes
    steps = np.diff(np.sort(estimates.means.astype(np.float64), axis=0), axis=0)  # (k - 1, items)
    pairs = np.arange(1, k) * np.arange(k - 1, 0, -1)
    difference = _pass_mean(pairs[:, None] * steps) / (k / 2)  # k - 1 steps, k(k - 1) / 2 pairs
    return np.clip(1 - difference / (estimates.high - estimates.low), 0, 1)


def _spread_of_means(estimates: Estimates) -> FloatArray:
    means = estimates.means.astype(np.float64)
    means = means - means[0]  # so that equal means have a spread of exactly 0
    return _narrowness(Estimates(means, np.zeros_like(means), estimates.low, estimates.high))


def _measure(
    name: str, passes: int = 1, of_numbers: Callable[[Estimates], FloatArray] = _narrowness
) -> Callable[[Callable[[Beliefs], FloatArray]], Callable[[AnyBeliefs], FloatArray]]:
    """Register a function of probabilities as a measure, with the one that replaces it for numbers."""

    def add(kernel: Callable[[Beliefs], FloatArray]) -> Callable[[AnyBeliefs], FloatArray]:
        @wraps(kernel)
        def measured(beliefs: AnyBeliefs) -> FloatArray:
            if passes > 1 and beliefs.passes < 2:
                raise SelectionError(
                    f"{name} needs at least two dropout passes, but there is one",
                    fix="use predict_proba(items, passes=10), or the measure entropy",
                )
            return of_numbers(beliefs) if isinstance(beliefs, Estimates) else kernel(beliefs)

        MEASURES.add(name, Measure(name, measured, passes))
        return measured

    return add


# -- of a single pass ------------------------------------------------------------------------------------------------
@_measure("entropy")
def entropy_confidence(beliefs: Beliefs) -> FloatArray:
    """1 − the mean over units of the entropy over the log of the number of choices (paper 1, eq. 1 and 2).

    Dropout passes are averaged first. For regression it is 1 − the predicted standard deviation over that of a uniform
    number in the range, at least 0 (errata 4). Several passes form one mixture.
    """
    entropy = _entropies(_pass_mean(beliefs.values), beliefs.choices)
    return np.clip(1 - _segment_means(entropy, beliefs.offsets), 0, 1)


@_measure("least-confidence")
def least_confidence(beliefs: Beliefs) -> FloatArray:
    """The probability of the most probable choice."""
    return _unit_means(_best(_pass_mean(beliefs.values), beliefs.choices), beliefs.offsets)


def above_chance(beliefs: AnyBeliefs, may_be_empty: bool = False) -> FloatArray:
    """The probability of the most probable of k choices, rescaled from 0 (chance) to 1 (certain).

    That is (p − 1/k) / (1 − 1/k), averaged over units, so that values are comparable for two labels and two hundred.

    In tasks that ``may_be_empty``, choice 0 means "nothing here". Most units are nothing and say little about the
    others, so the average is over the other units. If all units are nothing, it is the lowest of theirs.
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
    """Confidence in one task, from chance (0) to certainty (1), (items,); with nothing to link, that in the spans."""
    task, partner = tasks[name], tasks[name].partner(tasks)
    own = above_chance(beliefs[name], task.may_be_empty)
    if partner is None:
        return own
    return np.where(beliefs[name].units > 0, own, confidence_of(tasks, beliefs, partner))


@_measure("margin")
def margin(beliefs: Beliefs) -> FloatArray:
    """The difference between the two highest probabilities."""
    return _unit_means(unit_margins(beliefs)[0], beliefs.offsets)


def unit_margins(beliefs: Beliefs) -> tuple[FloatArray, IntArray]:
    """Of every unit, the margin of its most probable choice, and that choice: (units,), (units,)."""
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


# -- of a whole sequence ---------------------------------------------------------------------------------------------
@_measure("sequence")
def sequence_confidence(beliefs: Beliefs) -> FloatArray:
    """1 / (1 + s), with s = −log of the joint probability of every unit's best label (paper 4, section 5.3).

    It has the order of that probability, which would underflow in a long sentence.
    """
    logs = _log(_best(_pass_mean(beliefs.values), beliefs.choices))
    return 1 / (1 - _segment_sums(logs, beliefs.offsets))


@_measure("normalised-sequence")
def normalised_sequence_confidence(beliefs: Beliefs) -> FloatArray:
    """The geometric mean of the best labels' probabilities, which does not depend on length (paper 4)."""
    logs = _log(_best(_pass_mean(beliefs.values), beliefs.choices))
    return np.exp(_segment_means(logs, beliefs.offsets))


def length_confidence(words: IntArray) -> FloatArray:
    """1 / (1 + words): the longest sentence has the lowest confidence (paper 4). No ``Measure``: it needs no model."""
    return 1 / (1 + np.asarray(words))


# -- agreement of passes --------------------------------------------------------------------------------------------
@_measure("dropout-agreement", passes=10, of_numbers=_nearness)
def dropout_agreement(beliefs: Beliefs) -> FloatArray:
    """The share of pairs of passes that predict the same label, averaged over units (paper 1, eq. 3).

    With n_c of k passes voting for c, a unit's agreement is Σ n_c(n_c − 1) / (k(k − 1)), without a loop over pairs
    (errata 4). For regression it is 1 − the mean difference between two passes over the range.
    """
    k, votes = beliefs.passes, _votes(beliefs)
    pairs = _segment_sums(votes * (votes - 1), beliefs.choices) / (k * (k - 1))
    return 1 - _segment_means(1 - pairs, beliefs.offsets)


@_measure("variation-ratio", passes=10, of_numbers=_nearness)
def variation_ratio(beliefs: Beliefs) -> FloatArray:
    """1 − the variation ratio: the share of passes that vote for the modal label (paper 4's BALD, see errata 27)."""
    return _unit_means(_segment_maxima(_votes(beliefs), beliefs.choices) / beliefs.passes, beliefs.offsets)


@_measure("bald", passes=10, of_numbers=_spread_of_means)
def bald(beliefs: Beliefs) -> FloatArray:
    """1 − the mutual information of label and model over the log of the number of choices (Houlsby 2011, Gal 2017).

    That is the entropy of the mean minus the mean of the entropies: 0 if passes are certain of different labels, 1 if
    all passes agree, even if they are uncertain. For regression it is ``entropy_confidence`` of the passes' means,
    without their variances.
    """
    entropy = _entropies(_pass_mean(beliefs.values), beliefs.choices)
    information = np.zeros_like(entropy)
    for one in beliefs.values:  # term by term, so that equal passes sum to exactly 0
        information += entropy - _entropies(one.astype(np.float64), beliefs.choices)
    information /= beliefs.passes
    return np.clip(1 - _segment_means(information, beliefs.offsets), 0, 1)


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


# -- of single units, and the words that they are about ----------------------------------------------------------------
# A unit is one decision of the model: a sentence, a word, a word's head, a span, a pair of spans, a number. Doubts are
# neither averaged over an item nor normalised by words or choices: the value of an item is the sum over its units.
def unit_doubts(task: Task, beliefs: AnyBeliefs) -> FloatArray:
    """1 − (p₁ − p₂) of every unit, (units,): 0 is certain, 1 a tie of the two most probable choices.

    A unit that is surely nothing has a doubt of 0: most words are outside all spans, and their many small doubts would
    hide the others. For regression it is 1 − ``entropy_confidence``.
    """
    if isinstance(beliefs, Estimates):
        return 1 - entropy_confidence(beliefs)
    lead, best = unit_margins(beliefs)
    doubt = 1 - lead
    if task.may_be_empty:
        doubt[(best == 0) & (doubt < SURELY_NOTHING)] = 0
    return doubt


def unit_words(task: Task, beliefs: AnyBeliefs) -> IntArray | None:
    """The words of every unit, as positions in its item: (units, words). ``None`` if it is the whole item."""
    if not task.of_words or isinstance(beliefs, Estimates):
        return None
    if beliefs.subjects is None:
        starts = np.repeat(beliefs.offsets[:-1], beliefs.units)
        return (np.arange(len(beliefs.choices) - 1) - starts)[:, None]
    return _ends(beliefs.subjects, pairs=beliefs.subjects.shape[1] > 2)


def label_words(rows: Ragged) -> IntArray:
    """The first and last words of the spans, or pairs of spans, of label rows: (rows, words)."""
    return _ends(rows.values, pairs=rows.values.shape[1] > 3)


def _ends(rows: NDArray[Any], pairs: bool) -> IntArray:
    """The first and last word of each row's span, or of its two spans (start, end, type each)."""
    spans = [(0, 1), (3, 4)] if pairs else [(0, 1)]
    ends = [column for start, end in spans for column in (rows[:, start], rows[:, end] - 1)]
    return np.stack(ends, axis=1).astype(np.int64)


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
    return np.asarray(_segment_sums(values, offsets) / np.maximum(np.diff(offsets), 1))


def _unit_means(confidence: FloatArray, offsets: IntArray) -> FloatArray:
    """The mean confidence in the units of each item; 1 if it has none."""
    return np.where(np.diff(offsets) > 0, _segment_means(confidence, offsets), 1)


def _segment_maxima(values: NDArray[Any], offsets: IntArray) -> NDArray[Any]:
    return np.asarray(np.maximum.reduceat(values, offsets[:-1]))
