"""What a label could teach: how doubtful each unit of an item is, and which words it is about.

One contract for all kinds of task. A unit is what a model decides at once: a sentence, a word, a word's head, a span, a
pair of spans, a number. Doubts are not averaged over an item, and not divided by the number of words or choices: an
item is worth what its units are worth together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.tasks import AnyBeliefs, Estimates, Task
from bursar.uncertainty.measures import MEASURES, unit_margins

SURELY_NOTHING = 0.1  # a unit that is taken for nothing, such as a word outside all spans, with less doubt than this


def unit_doubts(task: Task, beliefs: AnyBeliefs) -> FloatArray:
    """1 − (p₁ − p₂) of every unit: 0 is certain, 1 a tie of the two likeliest choices. (units,)

    A unit that is surely nothing has no doubt: most words are outside all spans and most spans are none, and together
    their small doubts would drown the others. A number has the spread of its estimate instead, as a share of the one
    that it could have at most.

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
    """The words that every unit is about, as places in its item: (units, words). ``None`` if it is the whole item.

    >>> from bursar.tasks import Beliefs, Tagging
    >>> unit_words(Tagging("slots", ("city",)), Beliefs.of(np.full((3, 3), 1 / 3), units=[2, 1])).ravel().tolist()
    [0, 1, 0]
    """
    if task.counted == "item" or isinstance(beliefs, Estimates):
        return None
    if beliefs.subjects is None:
        starts = np.repeat(beliefs.offsets[:-1], beliefs.units)
        return (np.arange(len(beliefs.choices) - 1) - starts)[:, None]
    return _ends(beliefs.subjects, pairs=beliefs.subjects.shape[1] > 2)


def label_words(rows: Ragged) -> IntArray:
    """The words that the spans of label rows, or their pairs of spans, begin and end with: (rows, words).

    >>> label_words(Ragged.of([[(3, 5, 0)]], 3)).tolist()
    [[3, 4]]
    """
    return _ends(rows.values, pairs=rows.values.shape[1] > 3)


def _ends(rows: NDArray[Any], pairs: bool) -> IntArray:
    """The first and the last word of each row's span, or of its two spans (start, end, type each)."""
    spans = [(0, 1), (3, 4)] if pairs else [(0, 1)]
    ends = [column for start, end in spans for column in (rows[:, start], rows[:, end] - 1)]
    return np.stack(ends, axis=1).astype(np.int64)
