"""Vectors of the units of a campaign's items, for coverage strategies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bursar.corpus import Corpus
from bursar.learners.features import Components
from bursar.learners.learner import Embeddings
from bursar.ragged import FloatArray, IntArray, Ragged, flat_positions, offsets_of
from bursar.selection import Units
from bursar.tasks import AnyBeliefs, Task
from bursar.uncertainty.measures import label_words, unit_doubts, unit_words

Vectors = NDArray[np.float32]

WIDTH = 64  # dimensions kept: as good as all of them on development sets, at a sixth of the time
PART = 20_000  # items embedded at a time, to limit memory
FITTED_ON = 20_000  # vectors that the components are fitted on


@dataclass(frozen=True, eq=False)
class UnitDoubts:
    """The units of one task with any doubt: its amount, the item and the words of each."""

    doubt: FloatArray  # (units,)
    offsets: IntArray  # (items + 1,)
    words: IntArray | None  # (units, words): places in the item; None if a unit is the whole item
    spans: bool  # whether units are spans or pairs of spans, rather than words

    @classmethod
    def of(cls, task: Task, beliefs: AnyBeliefs) -> UnitDoubts:
        doubt, words = unit_doubts(task, beliefs), unit_words(task, beliefs)
        kept = np.flatnonzero(doubt > 0)
        owners = np.repeat(np.arange(len(beliefs)), beliefs.units)
        offsets = offsets_of(np.bincount(owners[kept], minlength=len(beliefs)))
        spans = getattr(beliefs, "subjects", None) is not None
        return cls(doubt[kept], offsets, None if words is None else words[kept], spans)

    @property
    def totals(self) -> FloatArray:
        running = np.concatenate([[0.0], np.cumsum(self.doubt)])
        found: FloatArray = np.maximum(np.diff(running[self.offsets]), 0)
        return found

    @staticmethod
    def concatenate(parts: list[UnitDoubts]) -> UnitDoubts:
        words = [part.words for part in parts if part.words is not None]
        return UnitDoubts(
            np.concatenate([part.doubt for part in parts]),
            offsets_of(np.concatenate([np.diff(part.offsets) for part in parts])),
            np.concatenate(words) if words else None,
            any(part.spans for part in parts),
        )


class UnitSpace:
    """The vectors of items and of their words, reduced to few dimensions and to length 1."""

    def __init__(self, embed: Callable[[Corpus], Embeddings], items: Corpus) -> None:
        """Embed and reduce the items, large pools in parts."""
        count = len(items)
        first = embed(items if count <= PART else items.take(np.linspace(0, count - 1, PART).astype(np.int64)))
        reduce_items = _reduction(first.items)
        reduce_words = None if first.words is None else _reduction(first.words)
        parts = (embed(items.take(part)) for part in np.split(np.arange(count), range(PART, count, PART)))
        reduced, words = [], []
        for part in [first] if count <= PART else parts:
            reduced.append(reduce_items(part.items))
            if reduce_words is not None and part.words is not None:
                words.append(reduce_words(part.words))
        self.lasting = first.lasting
        self._place = {id: at for at, id in enumerate(items.ids.tolist())}
        self._items = np.concatenate(reduced)
        self._words = np.concatenate(words) if words else None
        self._offsets = offsets_of(items.words)

    def units(self, items: Corpus, doubts: UnitDoubts) -> Units:
        """The doubtful units of items; without vectors of words, each item is one unit with its total doubt."""
        rows = self._rows(items)
        if doubts.words is not None and self._words is not None:
            owners = np.repeat(rows, np.diff(doubts.offsets))
            return Units(self._mean_of(owners, doubts.words), doubts.offsets, doubts.doubt)
        return Units(self._items[rows], np.arange(len(items) + 1), doubts.totals)

    def all_units(self, task: Task, items: Corpus) -> Units:
        """Every unit of items with equal doubt, for use before there is a model."""
        rows = self._rows(items)
        if not task.of_words or self._words is None:
            return Units(self._items[rows], np.arange(len(items) + 1), np.ones(len(items)))
        vectors = self._words[flat_positions(self._offsets, rows)]
        return Units(vectors, offsets_of(items.words), np.ones(len(vectors)))

    def labelled(self, task: Task, items: Corpus, doubts: UnitDoubts) -> Units:
        """The units of items that have the task's label, without doubt."""
        items = items.take(np.flatnonzero(items.labels[task.name].present))
        rows = self._rows(items)
        if doubts.words is None or self._words is None:
            vectors, counts = self._items[rows], np.ones_like(items.words)
        elif doubts.spans:
            gold: Ragged = items.labels[task.name].rows
            vectors, counts = self._mean_of(np.repeat(rows, gold.lengths), label_words(gold)), gold.lengths
        else:
            vectors, counts = self._words[flat_positions(self._offsets, rows)], items.words
        return Units(vectors, offsets_of(counts), np.zeros(len(vectors)))

    def holds(self, items: Corpus) -> bool:
        return all(id in self._place for id in items.ids.tolist())

    def _rows(self, items: Corpus) -> IntArray:
        return np.array([self._place[id] for id in items.ids.tolist()], dtype=np.int64)

    def _mean_of(self, rows: IntArray, words: IntArray) -> Vectors:
        assert self._words is not None
        found: Vectors = self._words[self._offsets[rows][:, None] + words]
        return found[:, 0] if words.shape[1] == 1 else _of_length_1(found.mean(axis=1))


def _reduction(vectors: Vectors) -> Callable[[Vectors], Vectors]:
    """Projects vectors onto the principal components of these, each to length 1."""
    if not len(vectors):
        return lambda others: np.zeros((len(others), WIDTH), dtype=np.float32)
    some = vectors[np.linspace(0, len(vectors) - 1, min(len(vectors), FITTED_ON)).astype(np.int64)]
    components = Components.of(some, WIDTH)
    return lambda others: _of_length_1(components.project(others))


def _of_length_1(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: Vectors = vectors / np.maximum(lengths, 1e-9)
    return found
