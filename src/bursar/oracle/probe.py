"""A judge that solves a ridge regression on frozen features exactly for every set.

Features are rounded to multiples of a small step, so that their products and sums are exact in double precision. The
sums of a set can then be updated from those of a similar set, with the same bits as from scratch, and a search never
drifts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from bursar.errors import ConfigError
from bursar.learners.features import Components, classes_of, one_thread, pixels
from bursar.learners.frozen import frozen_encoder
from bursar.learners.learner import Progress, no_progress
from bursar.learners.probe import PENALTIES, fitted_factor
from bursar.oracle.judge import Judge
from bursar.oracle.problem import METRICS, PARTS, LabellingProblem
from bursar.ragged import BoolArray, FloatArray, IntArray, flat_positions, offsets_of
from bursar.random_streams import rng
from bursar.tasks import Classification, Tagging
from bursar.tasks.task import class_f1

STEPS = 1024  # of a feature, from 0 to its largest value
KEPT = 64  # most sets of each size whose sums are kept
KEPT_BYTES = 200_000_000  # most memory for them
EXACT = 2.0**53  # whole numbers below this are exact
LANES = 8  # labels are padded to a multiple: such products are nearly twice as fast
WIDTH = 100  # principal components of vectors and pixels
PENALTY_SEED = 67  # of the sets that the penalty is chosen on

Sums = tuple[FloatArray, FloatArray]  # X'X and X'Y


@dataclass(frozen=True)
class Rows:
    """The units of one task: an item (classification) or a word (tagging) each."""

    features: NDArray[np.floating]  # (units, width)
    codes: IntArray  # (units,)
    offsets: IntArray  # (items + 1,): start of the units of each item

    def __len__(self) -> int:
        return len(self.offsets) - 1


class RidgeTask:
    """Ridge regression of a task's label indicators on any set of pool items, scored on held-out items."""

    def __init__(self, rows: Mapping[str, Rows], labels: int, *, metric: str, penalty: float | None = None) -> None:
        """``rows`` are those of each part; without a penalty, one is chosen on the items set aside."""
        if metric not in METRICS:
            raise ConfigError(f"metric = {metric!r}", fix=f"use {' or '.join(METRICS)}")
        self.labels, self.metric = labels, metric
        warm, pool = rows["warm"], rows["pool"]
        self.step = float(max(np.abs(pool.features).max(), np.abs(warm.features).max())) / STEPS or 1.0
        self.pool = self._whole(pool.features)
        self.targets = np.eye(labels)[pool.codes]  # (units, labels)
        self.offsets = pool.offsets
        if len(self.pool) * float(STEPS) ** 2 >= EXACT:
            message = f"a pool of {len(self.pool):,} units is too large for exact sums"
            raise ConfigError(message, fix="use a smaller pool")
        first = self._whole(warm.features)
        self.warm = first.T @ first, first.T @ np.eye(labels)[warm.codes]
        self.held = {
            part: (self._whole(some.features).astype(np.float32), some.codes)
            for part, some in rows.items()
            if part not in ("warm", "pool")
        }
        self.sums: dict[int, OrderedDict[bytes, tuple[BoolArray, Sums]]] = {}  # by size of the set
        self.penalty = self._best_penalty() if penalty is None else penalty

    def _whole(self, features: NDArray[np.floating]) -> FloatArray:
        """Features as multiples of the step, and a one for the intercept."""
        rounded = np.rint(np.asarray(features, dtype=np.float64) / self.step)
        return np.concatenate([rounded, np.ones((len(rounded), 1))], axis=1)

    def _best_penalty(self) -> float:
        """The penalty with which models of a few random sets predict the items set aside best."""
        items = len(self.offsets) - 1
        numbers = rng(PENALTY_SEED, "probe penalty")
        sets = [np.sort(numbers.permutation(items)[: max(1, items // share)]) for share in (16, 8, 8, 4)]
        variance = float(self.pool[:, :-1].var(axis=0).mean()) * self.step**2 or 1.0
        rows, codes = self.held["aside"]

        def loss(penalty: float) -> float:
            self.penalty = penalty
            return sum(fitted_factor(rows @ self.coefficients(some), codes)[1] for some in sets)

        return min((float(penalty * variance) for penalty in PENALTIES), key=loss)

    def scores(self, items: IntArray, parts: Sequence[str]) -> list[float]:
        """The scores of the model of these items on several parts."""
        solution = self.coefficients(items)
        padded = np.zeros((len(solution), -(-self.labels // LANES) * LANES), dtype=np.float32)
        padded[:, : self.labels] = solution
        padded[-1, self.labels :] = -np.inf  # the intercept of labels that do not exist
        held = (self.held[part] for part in parts)
        return [score_of(codes, (rows @ padded).argmax(axis=1), self.labels, self.metric) for rows, codes in held]

    def coefficients(self, items: IntArray) -> FloatArray:
        """(width + 1, labels), for features in steps; the last row is the intercept, which is not penalised."""
        _, found, failed = dposv(*self.equations(items), lower=1, overwrite_a=1)
        if failed:
            raise ConfigError("the probe's equations have no unique solution", fix="use a larger penalty")
        solution: FloatArray = found
        return solution

    def equations(self, items: IntArray) -> Sums:
        """X'X with the penalty on its diagonal, and X'Y, of the warm start and a set."""
        gram, moment = self._summed(items)
        penalised, width = gram.copy(), len(gram) - 1
        penalised.flat[: width * (width + 2) : width + 2] += self.penalty / self.step**2
        return penalised, moment

    # -- exact sums ----------------------------------------------------------------------------------------------------
    def _summed(self, items: IntArray) -> Sums:
        """The sums of the warm start and a set, updated from a similar set if there is one."""
        mask = np.zeros(len(self.offsets) - 1, dtype=bool)
        mask[items] = True
        kept = self.sums.setdefault(len(items), OrderedDict())
        key = np.packbits(mask).tobytes()
        if key in kept:
            kept.move_to_end(key)
            return kept[key][1]
        few = np.count_nonzero(mask) // 4  # the latest kept set that differs in few items
        near = next((found for found in reversed(kept.values()) if np.count_nonzero(mask != found[0]) <= few), None)
        if near is None:
            sums = self._updated(self.warm, np.flatnonzero(mask), np.ones(len(items)))
        else:
            unlike = np.flatnonzero(mask != near[0])
            sums = self._updated(near[1], unlike, np.where(mask[unlike], 1.0, -1.0))
        kept[key] = mask, sums
        room = KEPT_BYTES // (len(self.sums) * sum(some.nbytes for some in sums))
        while len(kept) > max(4, min(KEPT, room)):
            kept.popitem(last=False)
        return sums

    def _updated(self, sums: Sums, items: IntArray, signs: FloatArray) -> Sums:
        """Add (sign 1) or subtract (−1) items."""
        units = flat_positions(self.offsets, items)
        rows = self.pool[units]
        signed = (rows * np.repeat(signs, np.diff(self.offsets)[items])[:, None]).T
        return sums[0] + signed @ rows, sums[1] + signed @ self.targets[units]


def score_of(codes: IntArray, guesses: IntArray, labels: int, metric: str) -> float:
    """Accuracy, or F1 weighted by the frequency of labels."""
    if metric == "accuracy":
        return float((guesses == codes).mean())
    return class_f1(codes, guesses, labels)[1]


class ProbeJudge(Judge):
    """One ridge regression per task; the score is their mean."""

    def __init__(self, tasks: Mapping[str, RidgeTask]) -> None:
        self.tasks = dict(tasks)
        self.pool = len(next(iter(self.tasks.values())).offsets) - 1

    @classmethod
    def of(cls, problem: LabellingProblem, *, progress: Progress = no_progress) -> Self:
        """A judge on principal components of the bundled encoder's vectors, or of pixels."""
        schema = problem.corpus.schema
        for name, task in schema.items():
            if not isinstance(task, (Classification, Tagging)):
                message = f"the probe cannot judge task {name!r} ({task.kind})"
                raise ConfigError(message, fix="use classification or tagging tasks")
        tasks = {}
        for name, rows in rows_of(problem, progress).items():
            labels = classes_of(schema[name])
            with one_thread():  # here and below: the last bits of products depend on the number of threads
                tasks[name] = RidgeTask(rows, labels, metric=problem.metric)
        return cls(tasks)

    def scores_on(self, sets: Sequence[IntArray], parts: Sequence[str]) -> FloatArray:
        found = np.zeros((len(parts), len(sets)))
        with one_thread():
            for at, items in enumerate(sets):
                found[:, at] = np.mean([task.scores(items, parts) for task in self.tasks.values()], axis=0)
        return found


def rows_of(problem: LabellingProblem, progress: Progress = no_progress) -> dict[str, dict[str, Rows]]:
    """The units of each task and part."""
    found: dict[str, dict[str, Rows]] = {}
    made: dict[bool, dict[str, NDArray[np.floating]]] = {}
    for name, task in problem.corpus.schema.items():
        by_word = isinstance(task, Tagging)
        if by_word not in made:
            made[by_word] = vectors_of(problem, by_word=by_word, progress=progress)
        found[name] = {}
        for part, items in problem.parts.items():
            codes = task.targets(items.labels[name].rows, items.words)
            found[name][part] = Rows(made[by_word][part], codes, offsets_of(task.units(items.words)))
    return found


def vectors_of(
    problem: LabellingProblem,
    *,
    by_word: bool = False,
    width: int = WIDTH,
    parts: Sequence[str] = PARTS,
    progress: Progress = no_progress,
) -> dict[str, NDArray[np.floating]]:
    """Vectors of items or words by part: principal components of those of pool, warm start and aside."""
    if problem.corpus.images is not None:
        raw = {part: pixels(problem.parts[part]) for part in parts}
    else:
        encoder = frozen_encoder()
        look = encoder.word_vectors if by_word else encoder.item_vectors
        raw = {part: look(problem.parts[part], progress) for part in parts}
    directions = Components.of(np.concatenate([raw["pool"], raw["warm"], raw["aside"]]), width)
    return {part: directions.project(vectors) for part, vectors in raw.items()}
