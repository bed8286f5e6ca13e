"""A labelling problem: which part every item plays, and how many batches of what size are bought."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from bursar.corpus import Corpus
from bursar.errors import ConfigError
from bursar.ragged import IntArray

METRICS = ("accuracy", "weighted_f1")
PARTS = ("pool", "warm", "aside", "validation", "test")  # in the order of paper 4's Table 1


@dataclass(frozen=True, eq=False)
class Problem:
    """Five sets of items that do not overlap (paper 4, section 5), as positions in a corpus.

    Models are trained on the warm start and on what is labelled of the pool. ``aside`` is for whatever a training must
    decide (when to stop, how strong a penalty is), ``validation`` for the search, and ``test`` for what is reported.
    """

    corpus: Corpus
    pool: IntArray
    warm: IntArray
    aside: IntArray
    validation: IntArray
    test: IntArray
    batches: int
    size: int  # items a batch
    metric: str = "weighted_f1"

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise ConfigError(f"metric = {self.metric!r}", fix=f"use {' or '.join(METRICS)}")
        every = np.concatenate([getattr(self, part) for part in PARTS])
        times = np.bincount(every, minlength=1)
        if times.max(initial=0) > 1:
            raise ConfigError(
                f"item {self.corpus.ids[int(times.argmax())]!r} plays two parts",
                fix="an item that is trained on must not be judged by, nor stand in the pool twice",
            )
        for part in PARTS[1:]:
            if not len(getattr(self, part)):
                raise ConfigError(f"a labelling problem needs items for its {part} part")
        if self.batches < 1 or self.size < 1 or self.batches * self.size > len(self.pool):
            raise ConfigError(
                f"{self.batches} batches of {self.size} items from a pool of {len(self.pool)}",
                fix="label fewer items, or use a larger pool",
            )
        for name, column in self.corpus.labels.items():
            for part in PARTS:
                items = getattr(self, part)
                missing = items[~column.present[items]]
                if len(missing):
                    raise ConfigError(
                        f"item {self.corpus.ids[missing[0]]!r} of the {part} part has no label for task {name!r}",
                        fix="the best order can only be looked for where all labels are known",
                    )

    @classmethod
    def draw(
        cls, corpus: Corpus, sizes: Mapping[str, int], *, batches: int, size: int, metric: str, seed: int
    ) -> Problem:
        """Shuffle all items of a corpus and cut them into parts of these sizes; the seed and the ids decide.

        >>> from bursar.simulation import assistant_corpus
        >>> sizes = {"pool": 60, "warm": 10, "aside": 10, "validation": 40, "test": 40}
        >>> problem = Problem.draw(assistant_corpus(200), sizes, batches=3, size=5, metric="accuracy", seed=0)
        >>> len(problem.pool), len(problem.test)
        (60, 40)
        """
        counts = [sizes[part] for part in PARTS]
        if sum(counts) > len(corpus):
            raise ConfigError(f"{sum(counts)} items are wanted of {len(corpus)}", fix="ask for smaller parts")
        order = np.random.default_rng([seed, 61]).permutation(np.argsort(corpus.id_ranks))
        bounds = np.cumsum([0, *counts])
        drawn = {part: in_order(corpus, order[a:b]) for part, (a, b) in zip(PARTS, pairwise(bounds), strict=True)}
        return cls(corpus, **drawn, batches=batches, size=size, metric=metric)

    def alone(self) -> Problem:
        """The same problem on a corpus of nothing but its items: what a judge elsewhere needs of it."""
        bounds = np.cumsum([0, *(len(getattr(self, part)) for part in PARTS)])
        places = {part: np.arange(a, b) for part, (a, b) in zip(PARTS, pairwise(bounds), strict=True)}
        corpus = self.corpus.take(np.concatenate([getattr(self, part) for part in PARTS]))
        return Problem(corpus, **places, batches=self.batches, size=self.size, metric=self.metric)

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.corpus.schema)

    @cached_property
    def parts(self) -> Mapping[str, Corpus]:
        """The items of each part."""
        return {part: self.corpus.take(getattr(self, part)) for part in PARTS}


def in_order(corpus: Corpus, items: IntArray) -> IntArray:
    """Items by their splits and ids, not by where they happen to stand: what models depend on (errata 25)."""
    found: IntArray = items[np.lexsort((corpus.id_ranks[items], corpus.split_codes[items]))]
    return found
