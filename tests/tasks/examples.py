"""A task of every kind, a few real-looking labels for it, and how to draw any number of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st

from bursar.ragged import Ragged
from bursar.tasks import Classification, Parsing, Regression, Relations, Tagging, Task

LABELS = ("city", "time-of.day", "größe")
Strategy = st.SearchStrategy[Any]


@dataclass(frozen=True)
class Example:
    """``items`` are (words, JSON label), enough of them that a perfect guess has a score of 1."""

    task: Task
    items: tuple[tuple[int, Any], ...]
    labels: Callable[[int], Strategy]  # any JSON label of an item of so many words

    @property
    def words(self) -> np.ndarray:
        return np.array([words for words, _ in self.items])

    @property
    def gold(self) -> Ragged:
        return column(self.task, self.items)


def column(task: Task, items: Sequence[tuple[int, Any]]) -> Ragged:
    """JSON labels of items of so many words as rows, one by one."""
    return Ragged.of([task.encode(label, words) for words, label in items], task.width, task.dtype)


@st.composite
def items_of(draw: Any, example: Example, least: int = 0, most: int = 5) -> list[tuple[int, Any, Any]]:
    """Items as (words, gold label, guessed label)."""
    words = draw(st.lists(st.integers(0, 6), min_size=least, max_size=most))
    return [(n, draw(example.labels(n)), draw(example.labels(n))) for n in words]


# -- labels of any kind --------------------------------------------------------------------------------------------
def any_spans(words: int) -> Strategy:
    """Spans that may nest, cross and repeat."""
    every = [[a, b, label] for b in range(words + 1) for a in range(b) for label in LABELS]
    return st.lists(st.sampled_from(every), max_size=4) if every else st.just([])


@st.composite
def flat_spans(draw: Any, words: int, labels: Sequence[str] = LABELS) -> list[list[Any]]:
    """Spans that do not overlap, in order; neighbours may touch."""
    cuts = sorted(draw(st.sets(st.integers(0, words)))) if words else []
    spans = [[a, b, draw(st.sampled_from(labels))] for a, b in pairwise(cuts)]
    return [span for span in spans if draw(st.booleans())]


@st.composite
def trees(draw: Any, words: int) -> list[list[Any]]:
    """A head for every word, drawn so that each chain of heads ends at the root."""
    heads, placed = [0] * words, [0]
    for word in draw(st.permutations(range(1, words + 1))):
        heads[word - 1] = draw(st.sampled_from(placed))
        placed.append(word)
    return [[head, draw(st.sampled_from(LABELS))] for head in heads]


@st.composite
def relations(draw: Any, words: int) -> list[list[Any]]:
    spans = draw(any_spans(words))
    if not spans:
        return []
    link = st.tuples(st.sampled_from(spans), st.sampled_from(spans), st.sampled_from(("used-for", "part-of")))
    return draw(st.lists(link.map(list), max_size=4))


EXAMPLES = {
    "classification": Example(
        Classification("intent", LABELS),
        ((3, "city"), (0, "größe"), (5, "time-of.day"), (2, "city")),
        lambda words: st.sampled_from(LABELS),
    ),
    "tagging": Example(
        Tagging("slots", LABELS),
        ((5, [[0, 2, "city"], [2, 3, "city"], [4, 5, "größe"]]), (0, []), (3, []), (2, [[0, 2, "time-of.day"]])),
        any_spans,
    ),
    "tagging every word": Example(
        Tagging("pos", LABELS, every_word=True),
        ((3, ["city", "city", "größe"]), (0, []), (2, ["time-of.day", "city"])),
        lambda words: st.lists(st.sampled_from(LABELS), min_size=words, max_size=words),
    ),
    "parsing": Example(
        Parsing("tree", LABELS),
        ((3, [[2, "city"], [0, "größe"], [2, "city"]]), (0, []), (1, [[0, "größe"]])),
        trees,
    ),
    "relations": Example(
        Relations("links", ("used-for", "part-of"), entity_types=LABELS),
        (
            (5, [[[0, 2, "city"], [3, 4, "größe"], "used-for"]]),
            (2, []),
            (2, [[[0, 1, "city"], [0, 2, "city"], "part-of"]]),
        ),
        relations,
    ),
    "regression": Example(
        Regression("similarity", low=-1, high=5),
        ((3, 0.5), (0, -1.0), (2, 5.0), (1, 0.5)),
        lambda words: st.integers(-8, 40).map(lambda eighths: eighths / 8),  # sums of which are exact
    ),
}
