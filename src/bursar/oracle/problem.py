"""Labelling problems (the role of each item, how many batches are bought), orders of labelling, moves between them.

A model depends on the *set* it was trained on (errata 25), so a batch is a set and its items are sorted. Random numbers
depend only on the seed and the number of the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from bursar.corpus import Corpus
from bursar.errors import ConfigError
from bursar.ragged import FloatArray, IntArray
from bursar.random_streams import rng

METRICS = ("accuracy", "weighted_f1")
PARTS = ("pool", "warm", "aside", "validation", "test")  # as in paper 4, Table 1


@dataclass(frozen=True)
class Order:
    """The items that each batch labels: (batches, size), positions in the pool, rows sorted."""

    batches: IntArray

    @classmethod
    def of(cls, batches: IntArray) -> Order:
        """Sort the items of each batch."""
        return cls(np.sort(np.asarray(batches, dtype=np.int64), axis=1))

    @classmethod
    def random(cls, pool: int, batches: int, size: int, seed: int) -> Order:
        """The first items of a random permutation of the pool."""
        check_shape(pool, batches, size)
        chosen = rng(seed, "random order").permutation(pool)[: batches * size]
        return cls.of(chosen.reshape(batches, size))

    @property
    def items(self) -> IntArray:
        return self.batches.ravel()

    def prefix(self, batches: int) -> IntArray:
        """The items of the first batches, sorted."""
        return np.sort(self.batches[:batches], axis=None)

    def prefixes(self) -> list[IntArray]:
        """The items of the first 1 to K batches."""
        return [self.prefix(batches) for batches in range(1, len(self.batches) + 1)]

    def moved(self, move: OrderMove) -> Order:
        batches = self.batches.copy()
        (first, at), new = move.place, move.item
        old = batches[first, at]
        batches[first, at] = new
        batches[first].sort()
        if move.other is not None:
            second, there = move.other
            batches[second, there] = old
            batches[second].sort()
        return Order(batches)


@dataclass(frozen=True)
class OrderMove:
    """Replaces an item by one from a later batch, which gets the old item in exchange, or by an unlabelled one."""

    place: tuple[int, int]  # batch and position of the old item
    item: int  # the new item
    other: tuple[int, int] | None = None  # place of the new item; None if it was unlabelled

    def changed(self, batches: int) -> range:
        """The prefixes that the move changes, by their number of batches (errata 25)."""
        first = self.place[0] + 1
        return range(first, batches + 1 if self.other is None else self.other[0] + 1)


def check_shape(pool: int, batches: int, size: int) -> None:
    """Refuse batches that the pool is too small for."""
    if batches < 1 or size < 1 or pool < batches * size:
        raise ConfigError(
            f"{batches} batches of {size} items from a pool of {pool}", fix="label fewer items, or use a larger pool"
        )


def propose(order: Order, pool: int, seed: int, step: int, draw: int = 0) -> tuple[OrderMove, float]:
    """Draw a move, and the uniform number that decides on it (paper 4, section 4.2).

    Two items of different batches are exchanged, or an item is replaced by an unlabelled one, with equal probability if
    both are possible. Each ``draw`` gives another move for the same step.
    """
    numbers = rng(seed, "order moves", step, *([draw] if draw else []))
    batches, size = order.batches.shape
    left = pool - batches * size
    swap, decisive = numbers.random(2)
    if batches == 1 and not left:
        raise ConfigError("all of the pool is one batch, so there is only one order")
    if left and (batches == 1 or swap >= 0.5):
        at = int(numbers.integers(batches * size))
        return OrderMove(divmod(at, size), _unlabelled(order, int(numbers.integers(left)))), float(decisive)
    first, second = sorted(numbers.choice(batches, size=2, replace=False).tolist())
    here, there = (int(place) for place in numbers.integers(size, size=2))
    return OrderMove((first, here), int(order.batches[second, there]), (second, there)), float(decisive)


def _unlabelled(order: Order, number: int) -> int:
    """The unlabelled item of this number, counted in the order of the pool."""
    labelled = np.sort(order.batches, axis=None)
    before = labelled - np.arange(len(labelled))  # unlabelled items before each labelled one
    return number + int(np.searchsorted(before, number, side="right"))


def quality(curve: FloatArray) -> FloatArray:
    """The mean score after 1 to K batches (paper 4, section 3.3); of several curves, along the last axis."""
    found: FloatArray = np.asarray(curve, dtype=float).mean(axis=-1)
    return found


# -- labelling problems ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class LabellingProblem:
    """Five disjoint sets of items (paper 4, section 5), as positions in a corpus.

    Models are trained on the warm start and the labelled items of the pool. ``aside`` is for decisions of a training
    (early stopping, the penalty), ``validation`` for the search, ``test`` for the report.
    """

    corpus: Corpus
    pool: IntArray
    warm: IntArray
    aside: IntArray
    validation: IntArray
    test: IntArray
    batches: int
    size: int  # items per batch
    metric: str = "weighted_f1"

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise ConfigError(f"metric = {self.metric!r}", fix=f"use {' or '.join(METRICS)}")
        times = np.bincount(self._all_items, minlength=1)
        if times.max(initial=0) > 1:
            raise ConfigError(
                f"item {self.corpus.ids[int(times.argmax())]!r} is in two parts", fix="put each item in one part"
            )
        for part in PARTS[1:]:
            if not len(getattr(self, part)):
                raise ConfigError(f"the {part} part has no items")
        check_shape(len(self.pool), self.batches, self.size)
        for name, column in self.corpus.labels.items():
            for part in PARTS:
                items = getattr(self, part)
                missing = items[~column.present[items]]
                if len(missing):
                    raise ConfigError(
                        f"item {self.corpus.ids[missing[0]]!r} of the {part} part has no label for task {name!r}",
                        fix="use items with all labels: the search for the best order needs them",
                    )

    @classmethod
    def draw(
        cls, corpus: Corpus, sizes: Mapping[str, int], *, shape: tuple[int, int], metric: str, seed: int
    ) -> LabellingProblem:
        """Shuffle the items of a corpus and cut them into parts; ``shape`` is batches and items per batch."""
        counts = [sizes[part] for part in PARTS]
        if sum(counts) > len(corpus):
            raise ConfigError(f"{sum(counts)} items are needed, and the corpus has {len(corpus)}", fix="use fewer")
        order = rng(seed, "problem parts").permutation(np.argsort(corpus.id_ranks))
        bounds = np.cumsum([0, *counts])
        drawn = {part: in_order(corpus, order[a:b]) for part, (a, b) in zip(PARTS, pairwise(bounds), strict=True)}
        return cls(corpus, **drawn, batches=shape[0], size=shape[1], metric=metric)

    def alone(self) -> LabellingProblem:
        """The same problem on a corpus that holds only its items, to send to another process."""
        bounds = np.cumsum([0, *self.counts.values()])
        places = {part: np.arange(a, b) for part, (a, b) in zip(PARTS, pairwise(bounds), strict=True)}
        corpus = self.corpus.take(self._all_items)
        return LabellingProblem(corpus, **places, batches=self.batches, size=self.size, metric=self.metric)

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.corpus.schema)

    @property
    def shape(self) -> tuple[int, int]:
        """Batches, and items per batch."""
        return self.batches, self.size

    @property
    def counts(self) -> dict[str, int]:
        return {part: len(getattr(self, part)) for part in PARTS}

    @property
    def _all_items(self) -> IntArray:
        return np.concatenate([getattr(self, part) for part in PARTS])

    @cached_property
    def parts(self) -> Mapping[str, Corpus]:
        return {part: self.corpus.take(getattr(self, part)) for part in PARTS}


def in_order(corpus: Corpus, items: IntArray) -> IntArray:
    """Sort items by split and id, so that models do not depend on their positions (errata 25)."""
    found: IntArray = items[np.lexsort((corpus.id_ranks[items], corpus.split_codes[items]))]
    return found
