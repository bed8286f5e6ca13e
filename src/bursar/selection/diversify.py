"""Diverse batches under prices and a budget: k-centre, BADGE and BatchBALD.

Each function takes arrays and returns positions in the order of picking. Every step considers the items that are not
picked and cost no more than the remaining budget, until there are none. Scores that differ by rounding alone are ties,
and ties go to the lowest position. With prices of 1 the budget is a number of items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.errors import SelectionError
from bursar.ragged import BoolArray, FloatArray, IntArray

Floats = NDArray[np.floating[Any]]  # single precision stays single

SAMPLES = 1000  # label configurations of a batch
BLOCK = 32  # items scored together
_CENTRES_AT_ONCE = 128
_CELLS_AT_ONCE = 1 << 16  # entries of a matrix product of BatchBALD; it fits the cache
_TIE = 1e-12  # nats


def k_center(features: Floats, price: IntArray, budget: int, *, centres: Floats | None = None) -> IntArray:
    """Farthest first (Sener and Savarese 2018): each pick is the item farthest from all picks and ``centres``.

    ``features`` and ``centres`` (labelled items) are (items, width). Without centres, the first pick is the item
    farthest from the mean of the pool.
    """
    tracker = _BudgetTracker(price, budget)
    points = _check_array(features, "features", (len(tracker.price), None))
    known = points[:0] if centres is None else _check_array(centres, "centres", (None, points.shape[1]))
    if len(points):  # centring leaves distances unchanged and reduces cancellation
        mean = points.mean(axis=0, dtype=np.float64).astype(points.dtype)
        points, known = points - mean, known - mean
    norms, known_norms, noise = _norms(points), _norms(known), _noise(points)
    nearest = norms
    for start in range(0, len(known), _CENTRES_AT_ONCE):
        block = slice(start, start + _CENTRES_AT_ONCE)
        gaps = _squared_distances(norms[:, None], known_norms[block], points @ known[block].T, noise).min(axis=1)
        nearest = np.minimum(nearest, gaps) if start else gaps
    while tracker.open.any():
        item = _largest(nearest, tracker.open, norms, noise)
        gaps = _squared_distances(norms, norms[item], points @ points[item], noise)
        nearest = np.minimum(nearest, gaps) if tracker.picks or len(known) else gaps
        tracker.buy(item)
    return tracker.bought()


def badge(
    features: Floats, residuals: Sequence[Floats], price: IntArray, budget: int, rng: np.random.Generator
) -> IntArray:
    """BADGE (Ash et al. 2020): k-means++ seeding on the gradients of the loss for the predicted labels.

    An item's gradient for a task is the outer product of its features (items, width) and its residuals for the task
    (items, classes): probabilities minus the one-hot argmax, times the square root of the task's weight. The outer
    product is never formed: the inner product of two of them is the product of two inner products. The first pick has
    the largest gradient; the others are drawn in proportion to the squared distance to the nearest pick.
    """
    tracker = _BudgetTracker(price, budget)
    n = len(tracker.price)
    x, errors = _check_array(features, "features", (n, None)), _check_arrays(residuals, "residuals", (n, None))
    r = np.concatenate(errors, axis=1)
    norms: Floats = _norms(x) * _norms(r)
    noise = _noise(x) + _noise(r)
    nearest = norms
    while tracker.open.any():
        first = not tracker.picks
        item = _largest(norms, tracker.open, norms, noise) if first else _draw_by_distance(nearest, tracker.open, rng)
        gaps = _squared_distances(norms, norms[item], (x @ x[item]) * (r @ r[item]), noise)
        nearest = gaps if first else np.minimum(nearest, gaps)
        tracker.buy(item)
    return tracker.bought()


@dataclass(frozen=True, eq=False)
class BatchScores:
    """What a batch is scored by: the information of its labels about the model, and a score of each item."""

    probabilities: Sequence[Floats]  # (passes, items, classes) for each task, of dropout passes or an ensemble
    weights: Sequence[float] | FloatArray | None = None  # of the tasks; None means 1 each
    extra: FloatArray | None = None  # (items,)


def batch_bald(
    of: BatchScores, price: IntArray, budget: int, rng: np.random.Generator, *, samples: int = SAMPLES
) -> IntArray:
    """BatchBALD (Kirsch et al. 2019): each pick adds most mutual information between the batch's labels and the model.

    An item's score is its gain in mutual information, summed over the tasks by weight, plus its ``extra`` score. All
    label configurations of the picks are enumerated up to ``samples``, then sampled. Gains only shrink as the batch
    grows, so an old gain is an upper bound: only items whose bound reaches the best new score are scored again. The
    information of a batch is at most log(passes). Sharp models reach that in about ten picks; from then on ``extra``
    decides, and then the position.
    """
    tracker = _BudgetTracker(price, budget)
    n = len(tracker.price)
    arrays = _check_probabilities(of.probabilities, n)
    shares = np.ones(len(arrays)) if of.weights is None else np.asarray(of.weights, dtype=np.float64)
    if shares.shape != (len(arrays),) or not (np.isfinite(shares) & (shares >= 0)).all():
        raise SelectionError(f"{len(arrays)} tasks need one weight each, none below 0, not {shares.tolist()}")
    fixed = np.zeros(n) if of.extra is None else np.asarray(of.extra, dtype=np.float64)
    if fixed.shape != (n,) or not np.isfinite(fixed).all():
        raise SelectionError(f"the extra scores must be {n} finite numbers, one per item")
    if samples < 1:
        raise SelectionError(f"samples must be at least 1, not {samples}")
    tasks = [(share, JointDistribution(array)) for share, array in zip(shares, arrays, strict=True) if share > 0]

    def score(items: IntArray) -> FloatArray:
        total: FloatArray = fixed[items]
        for share, task in tasks:
            total = total + share * task.gain(items)
        return total

    bounds = np.full(n, np.inf)
    while tracker.open.any():
        item = _lazy_best(bounds, tracker.open, score)
        tracker.buy(item)
        for _, task in tasks:
            task.add(item, samples, rng)
    return tracker.bought()


class _BudgetTracker:
    """Tracks the picks and the items still affordable. Prices are not negative, so an item never becomes affordable."""

    def __init__(self, price: IntArray, budget: int) -> None:
        self.price, self.left = np.asarray(price), int(budget)
        if self.price.ndim != 1 or self.price.dtype.kind not in "iu":
            raise SelectionError("prices must be whole numbers, one per item", fix="give an integer array (items,)")
        if (self.price < 0).any():
            raise SelectionError("a price is negative", fix="check the cost model")
        self.open: BoolArray = self.price <= self.left
        self.picks: list[int] = []

    def buy(self, item: int) -> None:
        self.picks.append(item)
        self.left -= int(self.price[item])
        self.open &= self.price <= self.left
        self.open[item] = False

    def bought(self) -> IntArray:
        return np.array(self.picks, dtype=np.int64)


class JointDistribution:
    """The joint distribution of the picks' labels and the passes, for one task.

    Row m is a configuration of those labels with probability ``weight[m]``; ``posterior[m, k]`` is the probability of
    pass k given that configuration. The posterior is the paper's P̂[m, k] = Π p(y_m | ω_k) with rows scaled to sum to
    1, which cannot underflow. The gain of an item is the mean over m of its BALD score under the posterior.
    """

    def __init__(self, probabilities: Floats) -> None:
        passes = len(probabilities)
        self.probabilities = probabilities  # (passes, items, classes)
        self.entropy = np.stack([-_xlogx(p.astype(np.float64)).sum(axis=1) for p in probabilities])  # (passes, items)
        self.weight: FloatArray = np.ones(1)
        self.posterior: FloatArray = np.full((1, passes), 1 / passes)
        self.sampled = False

    def gain(self, items: IntArray) -> FloatArray:
        if not len(self.weight):
            return np.zeros(len(items))
        chosen = self.probabilities[:, items].astype(np.float64)  # (passes, chosen, classes)
        flat = chosen.reshape(len(chosen), -1)
        total = np.zeros(flat.shape[1])
        step = max(1, _CELLS_AT_ONCE // flat.shape[1])
        for start in range(0, len(self.weight), step):
            rows = slice(start, start + step)
            total -= self.weight[rows] @ _xlogx(self.posterior[rows] @ flat)
        gain: FloatArray = total.reshape(chosen.shape[1:]).sum(axis=1)
        gain -= (self.weight @ self.posterior) @ self.entropy[:, items]
        return gain

    def add(self, item: int, samples: int, rng: np.random.Generator) -> None:
        likelihood = self.probabilities[:, item].astype(np.float64)  # (passes, classes)
        mass = (self.weight[:, None] * (self.posterior @ likelihood)).ravel()
        mass[mass < 1e-30] = 0
        kept = np.flatnonzero(mass)
        if len(kept) <= samples:
            self.weight = mass[kept]
        else:  # a sampled row gets one successor, drawn from its prediction
            size = len(self.weight) if self.sampled else samples
            kept, self.sampled = _stratified_sample(mass, size, rng), True
            self.weight = np.full(size, mass.sum() / size)
        rows, labels = np.divmod(kept, likelihood.shape[1])
        self.posterior = self.posterior[rows] * likelihood.T[labels]
        self.posterior /= self.posterior.sum(axis=1, keepdims=True)
        self._drop_settled()

    def _drop_settled(self) -> None:
        """Drop rows whose posterior is settled: in a sample, up to 1e-4 of the remaining entropy."""
        left = self.weight * -_xlogx(self.posterior).sum(axis=1)  # bounds the gain of any item in a row
        limit = max(1e-4 * left.sum(), 1e-9) if self.sampled else 0.1 * _TIE
        order = np.argsort(left, kind="stable")
        rows = np.sort(order[np.searchsorted(np.cumsum(left[order]), limit) :])
        self.weight, self.posterior = self.weight[rows], self.posterior[rows]


def _stratified_sample(mass: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """Sample positions in proportion to ``mass``, one in each of ``size`` equal slices of the total."""
    running = np.cumsum(mass)
    at = (np.arange(size) + rng.random(size)) / size * running[-1]
    drawn: IntArray = np.searchsorted(running, at, side="right")
    return drawn.clip(max=np.flatnonzero(mass)[-1])  # rounding may put the last one past the end


def _lazy_best(bounds: FloatArray, open_: BoolArray, score: Callable[[IntArray], FloatArray]) -> int:
    """The open item with the best score. ``bounds`` are at least the scores, and are updated where it scores."""
    candidates = np.flatnonzero(open_)
    candidates = candidates[np.argsort(-bounds[candidates], kind="stable")]
    best = -np.inf
    for start in range(0, len(candidates), BLOCK):
        top = candidates[start : start + BLOCK]
        if bounds[top[0]] < best - _TIE:
            break
        bounds[top] = score(top)
        best = max(best, float(bounds[top].max()))
    return int(np.argmax(open_ & (bounds >= best - _TIE)))


def _largest(score: Floats, open_: BoolArray, norms: Floats, noise: float) -> int:
    """The first open item whose squared distance is the largest up to rounding."""
    masked = np.where(open_, score, -np.inf)
    best = int(masked.argmax())
    slack = noise * (3 * norms + 2 * score)  # noise (|a|² + |b|²), where |b|² ≤ 2 |a|² + 2 |a - b|²
    return int(np.argmax(masked + np.where(score > 0, slack, 0) >= masked[best] - slack[best]))


def _draw_by_distance(nearest: Floats, open_: BoolArray, rng: np.random.Generator) -> int:
    """Draw an open item in proportion to its squared distance; if all are 0, take the first."""
    running = np.cumsum(np.where(open_, nearest, 0), dtype=np.float64)
    if running[-1] == 0:
        return int(open_.argmax())
    return int(np.searchsorted(running, rng.random() * running[-1], side="right"))


def _squared_distances(norms: Floats, others: Any, inner: Floats, noise: float) -> Floats:
    """Squared distances from squared norms and inner products; 0 if within rounding of 0."""
    total = norms + others
    gaps = total - 2 * inner
    return np.where(gaps > noise * total, gaps, 0)


def _noise(points: Floats) -> float:
    """The rounding error of a squared distance relative to the squared norms."""
    return float(np.finfo(points.dtype).eps) * (2 + float(np.sqrt(points.shape[1])))


def _norms(points: Floats) -> Floats:
    squared: Floats = np.einsum("ij,ij->i", points, points)
    return squared


def _xlogx(p: FloatArray) -> FloatArray:
    logs: FloatArray = np.log(np.maximum(p, np.finfo(np.float64).tiny))
    logs *= p
    return logs


def _check_probabilities(probabilities: Sequence[Floats], n: int) -> list[Floats]:
    arrays = _check_arrays(probabilities, "probabilities", (None, n, None))
    for task, array in enumerate(arrays):
        if len(array) < 2:
            raise SelectionError(
                f"task {task}: BatchBALD needs at least 2 passes, not {len(array)}",
                fix="predict several times with dropout, or with an ensemble",
            )
        if (array < 0).any() or (np.abs(array.sum(axis=2) - 1) > 1e-3).any():
            raise SelectionError(
                f"task {task}: the probabilities of an item do not sum to 1", fix="give them after softmax"
            )
    return arrays


def _check_arrays(arrays: Sequence[Floats], what: str, shape: tuple[int | None, ...]) -> list[Floats]:
    """Check one array per task."""
    if not len(arrays):
        raise SelectionError(f"there are no {what}", fix="give one array per task")
    return [_check_array(array, f"{what} of task {task}", shape) for task, array in enumerate(arrays)]


def _check_array(given: Floats, what: str, shape: tuple[int | None, ...]) -> Floats:
    """Check an array and return it in single or double precision; None in ``shape`` is any length."""
    array = np.asarray(given)
    array = array if array.dtype == np.float32 else array.astype(np.float64, copy=False)
    if array.ndim != len(shape) or any(s is not None and s != a for s, a in zip(shape, array.shape, strict=True)):
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise SelectionError(f"the {what} have the shape {array.shape}, not ({wanted})")
    if not np.isfinite(array).all():
        raise SelectionError(f"the {what} contain NaN or infinity", fix="check the learner")
    return array
