"""A labelling problem: the role of each item, and how many batches of what size are bought."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from bursar.corpus import Corpus
from bursar.errors import ConfigError
from bursar.oracle.orders import check_shape
from bursar.ragged import IntArray
from bursar.random_streams import rng

METRICS = ("accuracy", "weighted_f1")
PARTS = ("pool", "warm", "aside", "validation", "test")  # as in paper 4, Table 1


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
