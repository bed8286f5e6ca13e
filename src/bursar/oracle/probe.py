"""A judge that needs no training: ridge regression on frozen features, solved exactly for every set.

Features are rounded to whole numbers of a small step. Their products and sums are then exact in double precision, in
whatever order they are added, so the sums of a set can be had from those of a similar one by adding what came and
taking away what went: to the last bit what they would be from scratch. A search with it has no drift to correct.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from bursar.errors import ConfigError
from bursar.oracle.judge import Judge
from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.tasks.task import class_f1

STEPS = 1024  # of a feature, from 0 to its largest value
KEPT = 64  # sums of sets that others may be made from, for each size
EXACT = 2.0**53
METRICS = ("accuracy", "weighted_f1")


@dataclass(frozen=True)
class Rows:
    """The units of items for one task: an item has one (classification) or one a word (tagging)."""

    features: NDArray[np.floating]  # (units, width)
    codes: IntArray  # (units,)
    offsets: IntArray  # (items + 1,): where the units of each item begin

    @classmethod
    def single(cls, features: NDArray[np.floating], codes: IntArray) -> Rows:
        """One unit an item."""
        return cls(features, codes, np.arange(len(codes) + 1))

    def __len__(self) -> int:
        return len(self.offsets) - 1


class RidgeTask:
    """Ridge regression of one task's label indicators on any set of its items, and its score on held-out ones."""

    def __init__(self, warm: Rows, pool: Rows, held: Rows, labels: int, *, metric: str, penalty: float) -> None:
        if metric not in METRICS:
            raise ConfigError(f"metric = {metric!r}", fix=f"use {' or '.join(METRICS)}")
        self.labels, self.metric, self.penalty = labels, metric, penalty
        self.step = float(max(np.abs(pool.features).max(), np.abs(warm.features).max())) / STEPS or 1.0
        self.pool = self._whole(pool.features)
        self.targets = np.eye(labels)[pool.codes]  # (units, labels)
        self.offsets = pool.offsets
        if len(self.pool) * float(STEPS) ** 2 >= EXACT:
            raise ConfigError(
                f"a pool of {len(self.pool):,} units is too large for exact sums", fix="use a smaller one"
            )
        first = self._whole(warm.features)
        self.warm = first.T @ first, first.T @ np.eye(labels)[warm.codes]
        self.held = self._whole(held.features).astype(np.float32)
        self.held_codes = held.codes
        self._sums: dict[int, OrderedDict[bytes, tuple[BoolArray, FloatArray, FloatArray]]] = {}

    def _whole(self, features: NDArray[np.floating]) -> FloatArray:
        """Features as whole numbers of the step, and a one for the level."""
        rounded = np.rint(np.asarray(features, dtype=np.float64) / self.step)
        return np.concatenate([rounded, np.ones((len(rounded), 1))], axis=1)

    def score(self, items: IntArray) -> float:
        """How well a model of the warm start and these items does on the held-out ones."""
        return self.judged(self.coefficients(items))

    def coefficients(self, items: IntArray) -> FloatArray:
        """(width + 1, labels), for features in whole steps; the last row is the level, which is not penalised."""
        gram, moment = self._summed(items)
        penalised = gram.copy()
        width = len(gram) - 1
        penalised.flat[: width * (width + 2) : width + 2] += self.penalty / self.step**2
        _, found, trouble = dposv(penalised, moment, lower=1, overwrite_a=1)
        if trouble:
            raise ConfigError("the probe's equations have no single solution", fix="use a larger penalty")
        solution: FloatArray = found
        return solution

    def judged(self, coefficients: FloatArray) -> float:
        """The score on the held-out units."""
        guesses = (self.held @ coefficients.astype(np.float32)).argmax(axis=1)
        if self.metric == "accuracy":
            return float((guesses == self.held_codes).mean())
        return class_f1(self.held_codes, guesses, self.labels)[1]

    # -- exact sums ----------------------------------------------------------------------------------------------------
    def _summed(self, items: IntArray) -> tuple[FloatArray, FloatArray]:
        """X'X and X'Y of the warm start and a set: from the most similar set of its size that is kept."""
        mask = np.zeros(len(self.offsets) - 1, dtype=bool)
        mask[items] = True
        kept = self._sums.setdefault(len(items), OrderedDict())
        key = np.packbits(mask).tobytes()
        if key in kept:
            kept.move_to_end(key)
            return kept[key][1:]
        gram, moment = self._near(mask, kept) or self._from(self.warm, np.flatnonzero(mask), 1.0)
        kept[key] = mask, gram, moment
        if len(kept) > KEPT:
            kept.popitem(last=False)
        return gram, moment

    def _near(
        self, mask: BoolArray, kept: OrderedDict[bytes, tuple[BoolArray, FloatArray, FloatArray]]
    ) -> tuple[FloatArray, FloatArray] | None:
        """From a kept set that differs in few items, looking at the latest first."""
        few = mask.sum() // 4
        for other, gram, moment in reversed(kept.values()):
            unlike = np.flatnonzero(mask != other)
            if len(unlike) <= few:
                came, went = unlike[mask[unlike]], unlike[~mask[unlike]]
                return self._from(self._from((gram, moment), came, 1.0), went, -1.0)
        return None

    def _from(self, sums: tuple[FloatArray, FloatArray], items: IntArray, sign: float) -> tuple[FloatArray, FloatArray]:
        """Sums with some items added or taken away."""
        units = np.concatenate([np.arange(self.offsets[i], self.offsets[i + 1]) for i in items] or [np.zeros(0, int)])
        rows = self.pool[units]
        return sums[0] + sign * (rows.T @ rows), sums[1] + sign * (rows.T @ self.targets[units])


class ProbeJudge(Judge):
    """The mean score of one ridge regression a task."""

    def __init__(self, tasks: Mapping[str, RidgeTask]) -> None:
        self.tasks = dict(tasks)
        self.pool = len(next(iter(self.tasks.values())).offsets) - 1

    def scores(self, sets: Sequence[IntArray]) -> FloatArray:
        return np.array([np.mean([task.score(items) for task in self.tasks.values()]) for items in sets])
