"""Uncertainty of single units, and the words that they are about.

A unit is one decision of the model: a sentence, a word, a word's head, a span, a pair of spans, a number. Doubts are
neither averaged over an item nor normalised by words or choices: the value of an item is the sum over its units.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.tasks import AnyBeliefs, Estimates, Task
from bursar.uncertainty.measures import MEASURES, unit_margins

SURELY_NOTHING = 0.1  # doubt below which a unit predicted as nothing, such as a word outside all spans, is certain


def unit_doubts(task: Task, beliefs: AnyBeliefs) -> FloatArray:
    """1 − (p₁ − p₂) of every unit, (units,): 0 is certain, 1 a tie of the two most probable choices.

    A unit that is surely nothing has a doubt of 0: most words are outside all spans, and their many small doubts would
    hide the others. For regression it is 1 − ``entropy_confidence``.

    >>> from bursar.tasks import Beliefs, Classification, Tagging
    >>> beliefs = Beliefs.of([[0.97, 0.02, 0.01], [0.6, 0.3, 0.1], [0.0, 0.5, 0.5]], units=[3])
    >>> unit_doubts(Tagging("slots", ("city",)), beliefs).round(2).tolist()
    [0.0, 0.7, 1.0]
    >>> unit_doubts(Classification("intent", ("a", "b", "c")), beliefs).round(2).tolist()
    [0.05, 0.7, 1.0]
    """
    if isinstance(beliefs, Estimates):
        return 1 - MEASURES["entropy"](beliefs)
    margin, best = unit_margins(beliefs)
    doubt = 1 - margin
    if task.may_be_empty:
        doubt[(best == 0) & (doubt < SURELY_NOTHING)] = 0
    return doubt


def unit_words(task: Task, beliefs: AnyBeliefs) -> IntArray | None:
    """The words of every unit, as positions in its item: (units, words). ``None`` if it is the whole item.

    >>> from bursar.tasks import Beliefs, Tagging
    >>> unit_words(Tagging("slots", ("city",)), Beliefs.of(np.full((3, 3), 1 / 3), units=[2, 1])).ravel().tolist()
    [0, 1, 0]
    """
    if not task.of_words or isinstance(beliefs, Estimates):
        return None
    if beliefs.subjects is None:
        starts = np.repeat(beliefs.offsets[:-1], beliefs.units)
        return (np.arange(len(beliefs.choices) - 1) - starts)[:, None]
    return _ends(beliefs.subjects, pairs=beliefs.subjects.shape[1] > 2)


def label_words(rows: Ragged) -> IntArray:
    """The first and last words of the spans, or pairs of spans, of label rows: (rows, words).

    >>> label_words(Ragged.of([[(3, 5, 0)]], 3)).tolist()
    [[3, 4]]
    """
    return _ends(rows.values, pairs=rows.values.shape[1] > 3)


def _ends(rows: NDArray[Any], pairs: bool) -> IntArray:
    """The first and last word of each row's span, or of its two spans (start, end, type each)."""
    spans = [(0, 1), (3, 4)] if pairs else [(0, 1)]
    ends = [column for start, end in spans for column in (rows[:, start], rows[:, end] - 1)]
    return np.stack(ends, axis=1).astype(np.int64)
