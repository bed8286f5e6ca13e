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
from scipy.special import softmax

from bursar.errors import ConfigError
from bursar.learners.features import Components, classes_of, one_thread, pixels
from bursar.learners.frozen import frozen_encoder
from bursar.learners.learner import Progress, no_progress
from bursar.learners.probe import PENALTIES, fitted_factor
from bursar.oracle.judge import Judge
from bursar.oracle.problem import METRICS, PARTS, Problem
from bursar.ragged import BoolArray, FloatArray, IntArray, flat_positions, offsets_of
from bursar.tasks import Beliefs, Classification, Tagging
from bursar.tasks.task import class_f1

STEPS = 1024  # of a feature, from 0 to its largest value
KEPT = 64  # sums of sets that others may be made from, for each size, at most
KEPT_BYTES = 200_000_000  # and of all sizes together
EXACT = 2.0**53
LANES = 8  # labels are filled up to a multiple: products of such matrices are nearly twice as fast
WIDTH = 100  # directions that are kept of vectors and pixels


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

    def __init__(
        self,
        warm: Rows,
        pool: Rows,
        held: Mapping[str, Rows],
        labels: int,
        *,
        metric: str,
        penalty: float | None = None,
    ) -> None:
        if metric not in METRICS:
            raise ConfigError(f"metric = {metric!r}", fix=f"use {' or '.join(METRICS)}")
        self.labels, self.metric = labels, metric
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
        self.held = {part: (self._whole(rows.features).astype(np.float32), rows.codes) for part, rows in held.items()}
        self._sums: dict[int, OrderedDict[bytes, tuple[BoolArray, FloatArray, FloatArray]]] = {}
        self.penalty = self._fitting_penalty() if penalty is None else penalty

    def _whole(self, features: NDArray[np.floating]) -> FloatArray:
        """Features as whole numbers of the step, and a one for the level."""
        rounded = np.rint(np.asarray(features, dtype=np.float64) / self.step)
        return np.concatenate([rounded, np.ones((len(rounded), 1))], axis=1)

    def _fitting_penalty(self) -> float:
        """The one for which models of some random sets predict the items set aside best; it stays for all sets."""
        items = len(self.offsets) - 1
        rng = np.random.default_rng(67)
        sets = [np.sort(rng.permutation(items)[: max(1, items // share)]) for share in (16, 8, 8, 4)]
        variance = float(self.pool[:, :-1].var(axis=0).mean()) * self.step**2 or 1.0
        rows, codes = self.held["aside"]

        def loss(penalty: float) -> float:
            self.penalty = penalty
            return sum(fitted_factor(rows @ self.coefficients(some), codes)[1] for some in sets)

        return min((float(penalty * variance) for penalty in PENALTIES), key=loss)

    def scores(self, items: IntArray, parts: Sequence[str]) -> list[float]:
        """How well a model of the warm start and these items does on held-out ones, part by part."""
        solution = self.coefficients(items)
        padded = np.zeros((len(solution), -(-self.labels // LANES) * LANES), dtype=np.float32)
        padded[:, : self.labels] = solution
        padded[-1, self.labels :] = -np.inf  # the level of labels that there are not
        found = []
        for rows, codes in (self.held[part] for part in parts):
            found.append(score_of(codes, (rows @ padded).argmax(axis=1), self.labels, self.metric))
        return found

    def score(self, items: IntArray, part: str = "validation") -> float:
        """The same on one part."""
        return self.scores(items, [part])[0]

    def coefficients(self, items: IntArray) -> FloatArray:
        """(width + 1, labels), for features in whole steps; the last row is the level, which is not penalised."""
        gram, moment = self._summed(items)
        _, found, trouble = dposv(self._penalised(gram), moment, lower=1, overwrite_a=1)
        if trouble:
            raise ConfigError("the probe's equations have no single solution", fix="use a larger penalty")
        solution: FloatArray = found
        return solution

    def _penalised(self, gram: FloatArray) -> FloatArray:
        penalised = gram.copy()
        width = len(gram) - 1
        penalised.flat[: width * (width + 2) : width + 2] += self.penalty / self.step**2
        return penalised

    def predict_proba(self, items: IntArray, passes: int = 1, seed: int = 0) -> Beliefs:
        """Of the pool: the softmax of scores, as sharp as fits the items set aside best.

        Several passes are draws from what ridge regression leaves open of its coefficients, taken as Bayesian.
        """
        found = self.coefficients(items)
        rows, codes = self.held["aside"]
        scores = rows @ found
        factor, _ = fitted_factor(scores, codes)
        drawn = found[None]
        if passes > 1:
            noise = float(np.square(scores - np.eye(self.labels)[codes]).mean())
            root = np.linalg.cholesky(self._penalised(self._summed(items)[0]))
            normal = np.random.default_rng([seed, 71]).standard_normal((passes, *found.shape))
            drawn = found + np.sqrt(noise) * np.linalg.solve(root.T, normal)
        return Beliefs.of(softmax(factor * (self.pool @ drawn), axis=-1), np.diff(self.offsets))

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
        near = self._near(mask, kept)
        if near is None:
            gram, moment = self._from(self.warm, np.flatnonzero(mask), np.ones(len(items)))
        else:
            unlike = np.flatnonzero(mask != near[0])
            gram, moment = self._from(near[1:], unlike, np.where(mask[unlike], 1.0, -1.0))
        kept[key] = mask, gram, moment
        room = KEPT_BYTES // (len(self._sums) * (gram.nbytes + moment.nbytes))
        while len(kept) > max(4, min(KEPT, room)):
            kept.popitem(last=False)
        return gram, moment

    def _near(
        self, mask: BoolArray, kept: OrderedDict[bytes, tuple[BoolArray, FloatArray, FloatArray]]
    ) -> tuple[BoolArray, FloatArray, FloatArray] | None:
        """The sums of a kept set that differs in few items, looking at the latest first."""
        few = np.count_nonzero(mask) // 4
        return next((found for found in reversed(kept.values()) if np.count_nonzero(mask != found[0]) <= few), None)

    def _from(
        self, sums: tuple[FloatArray, FloatArray], items: IntArray, signs: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Sums with some items added (1) or taken away (−1)."""
        units = flat_positions(self.offsets, items)
        rows = self.pool[units]
        signed = (rows * np.repeat(signs, np.diff(self.offsets)[items])[:, None]).T
        return sums[0] + signed @ rows, sums[1] + signed @ self.targets[units]


def score_of(codes: IntArray, guesses: IntArray, labels: int, metric: str) -> float:
    """Accuracy, or F1 of every label weighted by how often it is the right one.

    >>> codes, guesses = np.array([0, 0, 0, 0]), np.array([0, 0, 0, 1])
    >>> round(score_of(codes, guesses, 2, "weighted_f1"), 6), score_of(codes, guesses, 2, "accuracy")
    (0.857143, 0.75)
    """
    if metric == "accuracy":
        return float((guesses == codes).mean())
    return class_f1(codes, guesses, labels)[1]


class ProbeJudge(Judge):
    """The mean score of one ridge regression a task."""

    def __init__(self, tasks: Mapping[str, RidgeTask]) -> None:
        self.tasks = dict(tasks)
        self.pool = len(next(iter(self.tasks.values())).offsets) - 1

    @classmethod
    def of(cls, problem: Problem, *, penalty: float | None = None, progress: Progress = no_progress) -> ProbeJudge:
        """The judge of a problem: on the bundled encoder's vectors, or on pixels, in their main directions."""
        refused = [
            name for name, task in problem.corpus.schema.items() if not isinstance(task, (Classification, Tagging))
        ]
        if refused:
            raise ConfigError(
                f"the probe cannot judge task {refused[0]!r} ({problem.corpus.schema[refused[0]].kind})",
                fix="name tasks of classification or tagging",
            )
        tasks = {}
        for name, rows in rows_of(problem, progress).items():
            held = {part: rows[part] for part in ("aside", "validation", "test")}
            labels = classes_of(problem.corpus.schema[name])
            with one_thread():  # here and below: the last bits of products depend on the number of threads
                tasks[name] = RidgeTask(
                    rows["warm"], rows["pool"], held, labels, metric=problem.metric, penalty=penalty
                )
        return cls(tasks)

    def scores_on(self, sets: Sequence[IntArray], parts: Sequence[str]) -> FloatArray:
        found = np.zeros((len(parts), len(sets)))
        with one_thread():
            for at, items in enumerate(sets):
                found[:, at] = np.mean([task.scores(items, parts) for task in self.tasks.values()], axis=0)
        return found

    def predict_proba(self, items: IntArray, passes: int = 1, seed: int = 0) -> dict[str, Beliefs]:
        with one_thread():
            return {name: task.predict_proba(items, passes, seed) for name, task in self.tasks.items()}


def rows_of(problem: Problem, progress: Progress = no_progress) -> dict[str, dict[str, Rows]]:
    """For each task the units of every part, with their features."""
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
    problem: Problem,
    *,
    by_word: bool = False,
    width: int = WIDTH,
    parts: Sequence[str] = PARTS,
    progress: Progress = no_progress,
) -> dict[str, NDArray[np.floating]]:
    """Where the items of parts lie, or their words: in the directions in which the items to choose from differ.

    ``parts`` must be among those: pool, warm start and aside.
    """
    if problem.corpus.images is not None:
        raw = {part: pixels(problem.parts[part]) for part in parts}
    else:
        encoder = frozen_encoder()
        look = encoder.word_vectors if by_word else encoder.item_vectors
        raw = {part: look(problem.parts[part], progress) for part in parts}
    directions = Components.of(np.concatenate([raw["pool"], raw["warm"], raw["aside"]]), width)
    return {part: directions.project(vectors) for part, vectors in raw.items()}
