"""Probes: linear models on frozen features, fitted in milliseconds.

Ridge regression on the labels is solved in closed form, and so are leave-one-out scores of every unit. Those scores
choose the penalty and the temperature, so no labelled item has to be held out for either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

from bursar.corpus import Corpus
from bursar.errors import ConfigError, LearnerError
from bursar.learners.encoders import BUNDLED
from bursar.learners.features import Components, FeatureLearner, Model, Vectors, classes_of, pixels, variance_of
from bursar.learners.frozen import FrozenEncoder, TextVectors, frozen
from bursar.learners.learner import Embeddings, Progress, check_number, no_progress
from bursar.ragged import FloatArray, IntArray
from bursar.tasks import Regression, Task

KINDS = ("ridge", "logistic")
PENALTIES = 10.0 ** np.arange(-2, 5)  # times the mean variance of a feature
LOGISTIC_PENALTY = 3.0
MOST_LEFT_OUT = 1000  # units: enough to choose two numbers, the penalty and the temperature
SHARPEST = 1000.0
CHUNK = 4096  # rows scored at a time


# -- ridge regression --------------------------------------------------------------------------------------------
class RidgeSolution(NamedTuple):
    """A ridge regression and its leave-one-out predictions."""

    weights: FloatArray  # (width, outputs)
    bias: FloatArray  # (outputs,)
    leverage: FloatArray  # (units left out,): the diagonal of the hat matrix
    left_out: FloatArray  # (units left out, outputs): the prediction for each from all other units


class Ridge:
    """Ridge regression with an unpenalised intercept. What does not depend on the penalty is computed once."""

    def __init__(self, features: NDArray[Any], targets: FloatArray, most_left_out: int = MOST_LEFT_OUT) -> None:
        self.units, self.width = features.shape
        self.middle = features.mean(axis=0, dtype=np.float64)
        self.level = targets.mean(axis=0)
        self.features = features - self.middle  # (units, width), float64
        self.targets = targets - self.level
        self.dual = self.units < self.width
        self.gram = self.features @ self.features.T if self.dual else self.features.T @ self.features
        self.moment = self.features.T @ self.targets  # (width, outputs)
        self.judged: IntArray = np.arange(self.units)  # the units left out, one at a time
        if not self.dual and self.units > most_left_out:
            self.judged = np.linspace(0, self.units - 1, most_left_out).astype(np.int64)
        self.judged_features, self.judged_targets = self.features[self.judged], self.targets[self.judged]

    @property
    def variance(self) -> float:
        """The mean variance of a feature. Penalties are multiples of it, so that they suit any features."""
        return float(np.trace(self.gram)) / (self.units * self.width) or 1.0

    def solve(self, penalty: float) -> RidgeSolution:
        """Solve (X'X + λ) w = X'y, or w = X'a with (XX' + λ) a = y, by a Cholesky factor of the Gram matrix."""
        root = _root(self.gram, penalty)
        if self.dual:
            dual = cho_solve((root, True), self.targets, check_finite=False)
            weights = self.features.T @ dual
            # The hat matrix is I − λ (XX' + λ)⁻¹.
            inverse = solve_triangular(root, np.eye(self.units), lower=True, check_finite=False)
            leverage = 1 - penalty * np.einsum("ij,ij->j", inverse, inverse)
            residual = penalty * dual
        else:
            weights = cho_solve((root, True), self.moment, check_finite=False)
            spread = solve_triangular(root, self.judged_features.T, lower=True, check_finite=False)
            leverage = np.einsum("ij,ij->j", spread, spread)
            residual = self.judged_targets - self.judged_features @ weights
        leverage = leverage + 1 / self.units  # the intercept's share
        others = np.maximum(1 - leverage, 1e-12)[:, None]
        left_out = self.judged_targets + self.level - residual / others
        return RidgeSolution(weights, self.level - self.middle @ weights, leverage, left_out)


def _root(gram: FloatArray, penalty: float) -> FloatArray:
    penalised = gram.copy()
    penalised.flat[:: len(gram) + 1] += penalty
    return np.asarray(cholesky(penalised, lower=True, overwrite_a=True, check_finite=False))


def fitted_factor(scores: FloatArray, codes: IntArray) -> tuple[float, float]:
    """The factor (one over the temperature) that minimises the loss of softmax(factor × scores), and that loss.

    The loss is the mean −log p. One more unit that has all labels equally keeps the factor finite.
    """
    units = len(scores)
    scores = scores - scores.max(axis=1, keepdims=True)
    wanted = (scores[np.arange(units), codes].sum() + scores.mean()) / (units + 1)  # Σ target × score
    share = np.full((units, 1), 1 / units)
    low, high, factor = 0.0, SHARPEST, 10.0
    for _ in range(60):  # Newton's method, with halving where it would leave the bracket
        weights = np.exp(factor * scores)
        totals = weights.sum(axis=1, keepdims=True)
        expected = (weights * scores).sum(axis=1, keepdims=True) / totals
        slope = float((share * expected).sum()) - wanted
        curvature = float((share * ((weights * scores**2).sum(axis=1, keepdims=True) / totals - expected**2)).sum())
        low, high = (low, factor) if slope > 0 else (factor, high)
        following = factor - slope / curvature if curvature > 0 else -1.0
        following = following if low < following < high else (low + high) / 2
        if abs(following - factor) <= 1e-6 * factor:
            break
        factor = following
    loss = float((share * np.log(np.exp(factor * scores).sum(axis=1, keepdims=True))).sum()) - factor * wanted
    return factor, loss


# -- models of one task --------------------------------------------------------------------------------------------
class LinearClassifier(NamedTuple):
    """A classifier: the softmax of linear scores."""

    weights: FloatArray  # (width, labels)
    bias: FloatArray  # (labels,)

    def predict_proba(self, rows: Vectors) -> tuple[NDArray[Any], ...]:
        found = np.zeros((len(rows), len(self.bias)), dtype=np.float32)
        for at in range(0, len(rows), CHUNK):
            scores = rows[at : at + CHUNK].astype(np.float64) @ self.weights + self.bias
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            found[at : at + CHUNK] = shares / shares.sum(axis=1, keepdims=True)
        return (found,)


class LinearRegressor(NamedTuple):
    """A regression whose variance grows with the distance from the training items: σ² (1 + 1/n + x (X'X + λ)⁻¹ x')."""

    weights: FloatArray  # (width, 1)
    bias: FloatArray  # (1,)
    middle: FloatArray  # (width,): the mean of the training items
    root: FloatArray  # (width, width), lower Cholesky factor of X'X + λ
    noise: FloatArray  # (2,): σ² and 1/n

    def predict_proba(self, rows: Vectors) -> tuple[NDArray[Any], ...]:
        means, variances = np.zeros(len(rows)), np.zeros(len(rows))
        for at in range(0, len(rows), CHUNK):
            some = rows[at : at + CHUNK].astype(np.float64)
            means[at : at + CHUNK] = (some @ self.weights + self.bias)[:, 0]
            distance = solve_triangular(self.root, (some - self.middle).T, lower=True)
            variances[at : at + CHUNK] = self.noise[0] * (1 + self.noise[1] + (distance**2).sum(axis=0))
        return means, variances


def ridge_classifier(rows: NDArray[Any], codes: IntArray, labels: int, penalty: float | None) -> LinearClassifier:
    """Ridge regression on label indicators; the temperature is fitted to leave-one-out scores."""
    ridge = Ridge(rows, np.eye(labels)[codes])
    judged = codes[ridge.judged]
    solution, _ = best_solution(ridge, penalty, lambda solution: fitted_factor(solution.left_out, judged)[1])
    factor, _ = fitted_factor(solution.left_out, judged)
    return LinearClassifier(solution.weights * factor, solution.bias * factor)


def ridge_regressor(
    rows: NDArray[Any], numbers: FloatArray, task: Regression, penalty: float | None
) -> LinearRegressor:
    """Ridge regression on numbers; σ² is fitted to leave-one-out errors."""
    ridge = Ridge(rows, numbers[:, None])
    judged = numbers[ridge.judged]
    solution, penalty = best_solution(
        ridge, penalty, lambda solution: float(np.square(solution.left_out[:, 0] - judged).sum())
    )
    # For a unit left out, 1 + 1/(n − 1) + x (X'X + λ)⁻¹ x' over the others is 1 / (1 − leverage).
    errors = (solution.left_out[:, 0] - judged) * np.sqrt(np.maximum(1 - solution.leverage, 0))
    noise = np.array([variance_of(errors, task), 1 / ridge.units])
    gram = ridge.features.T @ ridge.features if ridge.dual else ridge.gram
    root = _root(gram, penalty * ridge.variance)
    return LinearRegressor(solution.weights, solution.bias, ridge.middle, root, noise)


def best_solution(
    ridge: Ridge, penalty: float | None, loss: Callable[[RidgeSolution], float]
) -> tuple[RidgeSolution, float]:
    """The solution for a penalty, or for the best of ``PENALTIES``: every second one is tried, then its neighbours."""
    if penalty is not None:
        return ridge.solve(penalty * ridge.variance), penalty

    @cache
    def tried(at: int) -> tuple[float, RidgeSolution]:
        solution = ridge.solve(PENALTIES[at] * ridge.variance)
        return loss(solution), solution

    near = min(range(1, len(PENALTIES), 2), key=lambda at: tried(at)[0])
    best = min((near, near - 1, near + 1), key=lambda at: tried(at)[0])
    return tried(best)[1], float(PENALTIES[best])


def logistic_classifier(rows: NDArray[Any], codes: IntArray, labels: int, penalty: float | None) -> LinearClassifier:
    """Logistic regression. An unseen label gets a probability of at most 1 in n + 1."""
    from sklearn.linear_model import LogisticRegression

    seen = np.unique(codes)
    weights, bias = np.zeros((rows.shape[1], labels)), np.zeros(labels)
    if len(seen) > 1:
        middle, scale = rows.mean(axis=0, dtype=np.float64), np.sqrt(rows.var(axis=0, dtype=np.float64).mean()) or 1.0
        strength = 1 / (LOGISTIC_PENALTY if penalty is None else penalty)
        fitted = LogisticRegression(C=strength, max_iter=1000).fit((rows - middle) / scale, codes)
        slopes, levels = fitted.coef_, fitted.intercept_
        if len(seen) == 2:  # sklearn fits one score, that of the second label
            slopes, levels = np.concatenate([-slopes, slopes]) / 2, np.concatenate([-levels, levels]) / 2
        slopes, levels = slopes - slopes.mean(axis=0), levels - levels.mean()
        weights[:, seen] = slopes.T / scale
        bias[seen] = levels - middle @ weights[:, seen]
    # The scores of seen labels have mean 0, so one of them is at least 0.
    bias[np.setdiff1d(np.arange(labels), seen)] = -np.log(len(codes) + 1)
    return LinearClassifier(weights, bias)


# -- the learner -----------------------------------------------------------------------------------------------------
class ProbeLearner(FeatureLearner):
    """One linear model per task, on the vectors of a frozen encoder; for images, on their principal components.

    - ``kind``: "ridge" or "logistic"; numbers are always fitted by ridge
    - ``penalty``: a multiple of the features' mean variance; by default chosen by leave-one-out loss (ridge) or fixed
    - ``components``: number of principal components of images
    - ``layers``: number of the encoder's layers to run, half of them by default
    """

    name = "probe"
    pretrained = True

    def __init__(
        self,
        tasks: Mapping[str, Task],
        *,
        encoder: str | FrozenEncoder = BUNDLED,
        kind: str = "ridge",
        penalty: float | None = None,
        components: int = 50,
        layers: int | None = None,
    ) -> None:
        super().__init__(tasks)
        if kind not in KINDS:
            raise ConfigError(f"learner.kind = {kind!r}", fix=f"use {' or '.join(map(repr, KINDS))}")
        if penalty is not None:
            check_number("penalty", penalty, 1e-6, 10**9)
        check_number("components", components, 1, 10_000, whole=True)
        self.kind, self.penalty, self.components = kind, penalty, components
        self.encoder = frozen(encoder, layers)
        if isinstance(self.encoder, TextVectors):  # of whole texts
            self.refuse_unless({name: not task.of_words for name, task in tasks.items()})
        self._axes: Components | None = None

    def settle(self, annotated: Corpus) -> None:
        self._axes = None
        if annotated.images is not None:
            self._axes = Components.of(pixels(annotated), self.components)

    def rows(self, task: Task, items: Corpus, progress: Progress) -> Vectors:
        if items.images is not None:
            if self._axes is None:
                raise LearnerError("this probe was trained on texts, but the corpus has images")
            if task.of_words:
                raise LearnerError(f"task {task.name!r} labels words, but images have none")
            if items.images[0:1].size != self._axes.mean.size * len(items.images[0:1]):
                size = self._axes.mean.size
                raise LearnerError(f"this probe was trained on images of {size} pixels, not of this size")
            return self._axes.project(pixels(items))
        if self._axes is not None:
            raise LearnerError("this probe was trained on images, but the corpus has texts")
        return self.encoder.unit_vectors(task, items, progress)

    def vectors(self, items: Corpus, *, progress: Progress = no_progress) -> Vectors:
        """The frozen encoder's vectors of items; for images, their principal components."""
        if items.images is None:
            return self.encoder.item_vectors(items, progress)
        axes = self._axes or Components.of(pixels(items), self.components)
        return axes.project(pixels(items))

    def embeddings(self, items: Corpus, *, progress: Progress = no_progress) -> Embeddings:
        if items.images is not None:
            return super().embeddings(items, progress=progress)
        vectors = self.encoder.item_vectors(items, progress)
        words = None if isinstance(self.encoder, TextVectors) else self.encoder.word_vectors(items, progress)
        return Embeddings(vectors, words)

    def model(self, task: Task, rows: Vectors, targets: NDArray[Any], seed: int) -> Model:
        if isinstance(task, Regression):
            return ridge_regressor(rows, targets, task, self.penalty)
        classifier = ridge_classifier if self.kind == "ridge" else logistic_classifier
        return classifier(rows, targets, classes_of(task), self.penalty)

    # -- saved models ----------------------------------------------------------------------------------------------
    def options(self) -> dict[str, object]:
        encoder = {"encoder": self.encoder.name, "layers": self.encoder.layers}
        return {"kind": self.kind, "penalty": self.penalty, "components": self.components} | encoder

    def write(self, folder: Path) -> None:
        from safetensors.numpy import save_file

        parts: dict[str, Any] = dict(self.models) | ({} if self._axes is None else {"": self._axes})
        arrays = {f"{name}/{part}": value for name, model in parts.items() for part, value in model._asdict().items()}
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, folder / "weights.safetensors")

    def read(self, folder: Path, trust: bool) -> None:
        from safetensors.numpy import load_file

        arrays = load_file(folder / "weights.safetensors")

        def made(name: str, kind: Any) -> Any:
            return kind(**{part: arrays[f"{name}/{part}"] for part in kind._fields})

        axes = made("", Components) if "/axes" in arrays else None
        width = self.encoder.width if axes is None else axes.axes.shape[1]
        models: dict[str, Model] = {}
        for name, task in self.tasks.items():
            outputs = 1 if isinstance(task, Regression) else classes_of(task)
            models[name] = model = made(name, LinearRegressor if isinstance(task, Regression) else LinearClassifier)
            if model.weights.shape != (width, outputs) or model.bias.shape != (outputs,):
                raise LearnerError(f"the weights of task {name!r} have another shape")
        self._axes, self.models = axes, models
