"""Batches whose items differ from each other: k-centre, BADGE and BatchBALD, each under prices and a budget.

Arrays in, positions out, in the order of picking. At every step the candidates are the items that are not picked and
cost no more than what is left; it ends when there are none. Scores that differ by no more than rounding are ties, and
ties go to the lowest position. With prices of 1 the budget is a number of items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.errors import SelectionError
from bursar.ragged import BoolArray, FloatArray, IntArray

Floats = NDArray[np.floating[Any]]  # single precision stays single
Weights = Sequence[float] | FloatArray | None  # of the tasks; None stands for 1 each

_CENTRES_AT_ONCE = 128
_CELLS_AT_ONCE = 1 << 16  # entries of a product of BatchBALD, so that it stays in the cache
_TIE = 1e-12  # nats


def k_center(
    features: Sequence[Floats],
    price: IntArray,
    budget: int,
    *,
    weights: Weights = None,
    centres: Sequence[Floats] | None = None,
) -> IntArray:
    """Farthest first (Sener and Savarese 2018): each pick is the item farthest from all picks and ``centres``.

    ``features`` are (items, width) arrays, one a task; the squared distance of two items is the sum of those of the
    tasks under ``weights``. ``centres``, the labelled items, have the same widths; without any, the first pick is the
    item farthest from the mean of the pool.

    >>> line = np.array([[0.0], [1.0], [5.0], [9.0]])
    >>> k_center([line], np.ones(4, dtype=np.int64), budget=3).tolist()
    [3, 0, 2]
    >>> k_center([line], np.array([1, 1, 1, 7]), budget=3, centres=[np.array([[4.0]])]).tolist()
    [0, 1, 2]
    """
    purse = _Purse(price, budget)
    points, known = _folded(features, centres, weights, len(purse.price))
    norms, known_norms, noise = _norms(points), _norms(known), _noise(points)
    nearest: Floats | None = None
    for start in range(0, len(known), _CENTRES_AT_ONCE):
        block = slice(start, start + _CENTRES_AT_ONCE)
        gaps = _squared_distances(norms[:, None], known_norms[block], points @ known[block].T, noise).min(axis=1)
        nearest = gaps if nearest is None else np.minimum(nearest, gaps)
    while purse.open.any():
        item = _largest(norms if nearest is None else nearest, purse.open, norms, noise)
        purse.buy(item)
        gaps = _squared_distances(norms, norms[item], points @ points[item], noise)
        nearest = gaps if nearest is None else np.minimum(nearest, gaps)
    return purse.bought()


def badge(
    features: Floats | Sequence[Floats],
    residuals: Sequence[Floats],
    price: IntArray,
    budget: int,
    rng: np.random.Generator,
    *,
    weights: Weights = None,
) -> IntArray:
    """BADGE (Ash et al. 2020): k-means++ seeding on the gradients that the likeliest labels would give.

    An item's gradient for a task is the outer product of its features (items, width), shared or one array a task, and
    its residuals (items, classes): probabilities minus the one-hot argmax. It is never formed, because inner products
    of outer products are products of inner products. The first pick has the largest gradient; the others are drawn in
    proportion to the squared distance to the nearest pick.

    >>> x, r = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([[-0.4, 0.4], [-0.4, 0.4], [0.1, -0.1]])
    >>> badge(x, [r], np.ones(3, dtype=np.int64), budget=3, rng=np.random.default_rng(0)).tolist()
    [0, 2, 1]
    """
    purse = _Purse(price, budget)
    factors = _factors(features, residuals, weights, len(purse.price))
    norms: Floats = np.sum([_norms(x) * _norms(r) for x, r in factors], axis=0)
    noise = max(_noise(x) + _noise(r) for x, r in factors)
    nearest: Floats | None = None
    while purse.open.any():
        item = _largest(norms, purse.open, norms, noise) if nearest is None else _draw(nearest, purse.open, rng)
        purse.buy(item)
        inner = np.sum([(x @ x[item]) * (r @ r[item]) for x, r in factors], axis=0)
        gaps = _squared_distances(norms, norms[item], inner, noise)
        nearest = gaps if nearest is None else np.minimum(nearest, gaps)
    return purse.bought()


def batch_bald(
    probabilities: Sequence[Floats],
    price: IntArray,
    budget: int,
    rng: np.random.Generator,
    *,
    weights: Weights = None,
    extra: FloatArray | None = None,
    samples: int = 1000,
    block: int = 32,
) -> IntArray:
    """BatchBALD (Kirsch et al. 2019): each pick adds most to what the batch's labels tell about the model.

    ``probabilities`` are (passes, items, classes) arrays, one a task, from dropout passes or an ensemble. An item's
    score is its gain in mutual information, summed over the tasks under ``weights``, plus ``extra`` (items,). All
    label configurations of the picks are followed while there are at most ``samples``, then a sample of that size.
    Gains only shrink as the batch grows, so an old gain is a bound: only the items, ``block`` at a time, whose bounds
    reach the best new score are scored again. No batch tells more than log(passes); once that is spent, which sharp
    models do in some ten picks, ``extra`` decides, and then the position.

    >>> first, second = np.array([0.95, 0.95, 0.05, 0.05]), np.array([0.9, 0.1, 0.9, 0.1])  # two bits in four passes
    >>> yes = np.stack([first, first, second], axis=1)  # items 0 and 1 are the same question
    >>> p = np.stack([yes, 1 - yes], axis=2)
    >>> batch_bald([p], np.ones(3, dtype=np.int64), budget=2, rng=np.random.default_rng(0)).tolist()
    [0, 2]
    """
    purse = _Purse(price, budget)
    n = len(purse.price)
    arrays = _checked_probabilities(probabilities, n)
    shares = _checked_weights(weights, len(arrays))
    fixed = np.zeros(n) if extra is None else np.asarray(extra, dtype=np.float64)
    if fixed.shape != (n,) or not np.isfinite(fixed).all():
        raise SelectionError(f"the extra scores must be {n} finite numbers, one an item")
    if samples < 1 or block < 1:
        raise SelectionError(f"samples and block must be at least 1, not {samples} and {block}")
    tasks = [(share, _Joint(array)) for share, array in zip(shares, arrays, strict=True) if share > 0]

    def score(items: IntArray) -> FloatArray:
        total: FloatArray = fixed[items]
        for share, task in tasks:
            total = total + share * task.gain(items)
        return total

    bounds = np.full(n, np.inf)
    while purse.open.any():
        item = _lazy_best(bounds, purse.open, score, block)
        purse.buy(item)
        for _, task in tasks:
            task.add(item, samples, rng)
    return purse.bought()


class _Purse:
    """What is bought and what still can be: prices are not negative, so what is too dear once stays too dear."""

    def __init__(self, price: IntArray, budget: int) -> None:
        self.price, self.left = np.asarray(price), int(budget)
        if self.price.ndim != 1 or self.price.dtype.kind not in "iu":
            raise SelectionError("prices must be whole numbers, one an item", fix="give an integer array (items,)")
        if (self.price < 0).any():
            raise SelectionError("a price is negative", fix="look at the cost model")
        self.open: BoolArray = self.price <= self.left
        self.picks: list[int] = []

    def buy(self, item: int) -> None:
        self.picks.append(item)
        self.left -= int(self.price[item])
        self.open &= self.price <= self.left
        self.open[item] = False

    def bought(self) -> IntArray:
        return np.array(self.picks, dtype=np.int64)


class _Joint:
    """What the labels of the picks would tell about the passes, for one task.

    Row m stands for a configuration of those labels: its probability ``weight[m]``, and ``posterior[m, k]``, that of
    pass k once it is seen. The posterior is the paper's P̂[m, k] = Π p(y_m | ω_k) with its rows scaled to a sum of 1,
    which cannot underflow; the gain of an item is then the mean over m of its BALD score under the posterior.
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
        else:  # A sampled row gets one successor, drawn from what it predicts.
            size = len(self.weight) if self.sampled else samples
            kept, self.weight, self.sampled = _stratified(mass, size, rng), np.full(size, mass.sum() / size), True
        rows, labels = np.divmod(kept, likelihood.shape[1])
        self.posterior = self.posterior[rows] * likelihood.T[labels]
        self.posterior /= self.posterior.sum(axis=1, keepdims=True)
        self._drop_settled()

    def _drop_settled(self) -> None:
        """Forget rows that tell the passes apart: in a sample, up to a ten-thousandth of what is left to learn."""
        left = self.weight * -_xlogx(self.posterior).sum(axis=1)  # no item can gain more in a row
        limit = max(1e-4 * left.sum(), 1e-9) if self.sampled else 0.1 * _TIE
        order = np.argsort(left, kind="stable")
        rows = np.sort(order[np.searchsorted(np.cumsum(left[order]), limit) :])
        self.weight, self.posterior = self.weight[rows], self.posterior[rows]


def _stratified(mass: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """Positions in proportion to ``mass``, one drawn in each of ``size`` equal slices of the total."""
    running = np.cumsum(mass)
    at = (np.arange(size) + rng.random(size)) / size * running[-1]
    drawn: IntArray = np.searchsorted(running, at, side="right")
    return drawn.clip(max=np.flatnonzero(mass)[-1])  # rounding may put the last one on the very end


def _lazy_best(bounds: FloatArray, open_: BoolArray, score: Callable[[IntArray], FloatArray], block: int) -> int:
    """The open item with the best score. ``bounds`` are no less than the scores, and become them where it looks."""
    candidates = np.flatnonzero(open_)
    candidates = candidates[np.argsort(-bounds[candidates], kind="stable")]
    best = -np.inf
    for start in range(0, len(candidates), block):
        top = candidates[start : start + block]
        if bounds[top[0]] < best - _TIE:
            break
        bounds[top] = score(top)
        best = max(best, float(bounds[top].max()))
    return int(np.argmax(open_ & (bounds >= best - _TIE)))


def _largest(score: Floats, open_: BoolArray, norms: Floats, noise: float) -> int:
    """The first open item whose squared distance, give or take the rounding, is the largest."""
    masked = np.where(open_, score, -np.inf)
    best = int(masked.argmax())
    slack = noise * (3 * norms + 2 * score)  # noise (|a|² + |b|²), where |b|² ≤ 2 |a|² + 2 |a - b|²
    return int(np.argmax(masked + np.where(score > 0, slack, 0) >= masked[best] - slack[best]))


def _draw(nearest: Floats, open_: BoolArray, rng: np.random.Generator) -> int:
    """An open item with probability in proportion to its squared distance; if all are 0, the first."""
    running = np.cumsum(np.where(open_, nearest, 0), dtype=np.float64)
    if running[-1] == 0:
        return int(open_.argmax())
    return int(np.searchsorted(running, rng.random() * running[-1], side="right"))


def _squared_distances(norms: Floats, others: Any, inner: Floats, noise: float) -> Floats:
    """From squared norms and inner products; what rounding cannot tell from 0 is 0."""
    total = norms + others
    gaps = total - 2 * inner
    return np.where(gaps > noise * total, gaps, 0)


def _noise(points: Floats) -> float:
    """How far rounding may put a squared distance off, relative to the squared norms."""
    return float(np.finfo(points.dtype).eps) * (2 + float(np.sqrt(points.shape[1])))


def _norms(points: Floats) -> Floats:
    squared: Floats = np.einsum("ij,ij->i", points, points)
    return squared


def _xlogx(p: FloatArray) -> FloatArray:
    logs: FloatArray = np.log(np.maximum(p, np.finfo(np.float64).tiny))
    logs *= p
    return logs


def _folded(
    features: Sequence[Floats], centres: Sequence[Floats] | None, weights: Weights, n: int
) -> tuple[Floats, Floats]:
    """All tasks side by side, scaled so that plain distances are the weighted ones; the mean of the pool is at 0.

    Distances do not mind the shift, and short vectors lose less of them to cancellation.
    """
    pool = _checked(features, "features", (n, None))
    known = _checked(centres, "centres", (None, None)) if centres else [part[:0] for part in pool]
    scales = np.sqrt(_checked_weights(weights, len(pool)))
    if len(known) != len(pool):
        raise SelectionError(
            f"{len(pool)} tasks have features and {len(known)} have centres", fix="give one array a task"
        )
    for task, (part, centre) in enumerate(zip(pool, known, strict=True)):
        if centre.shape[1] != part.shape[1] or len(centre) != len(known[0]):
            raise SelectionError(
                f"task {task}: centres of shape {centre.shape} do not fit {part.shape[1]} features of "
                f"{len(known[0])} centres"
            )
    shifts = [part.mean(axis=0, dtype=np.float64).astype(part.dtype) if n else part.dtype.type(0) for part in pool]
    folded = [
        np.concatenate([(x - m) * x.dtype.type(s) for x, m, s in zip(parts, shifts, scales, strict=True)], axis=1)
        for parts in (pool, known)
    ]
    return folded[0], folded[1]


def _factors(
    features: Floats | Sequence[Floats],
    residuals: Sequence[Floats],
    weights: Weights,
    n: int,
) -> list[tuple[Floats, Floats]]:
    """Features and weighted residuals, a pair a task; tasks that share their features become one."""
    shared = [features] if isinstance(features, np.ndarray) else features
    inputs = _checked(shared, "features", (n, None))
    errors = _checked(residuals, "residuals", (n, None))
    scaled = [r * r.dtype.type(s) for r, s in zip(errors, np.sqrt(_checked_weights(weights, len(errors))), strict=True)]
    if len(inputs) == 1:
        return [(inputs[0], np.concatenate(scaled, axis=1))]
    if len(inputs) != len(errors):
        raise SelectionError(
            f"{len(errors)} tasks have residuals and {len(inputs)} have features",
            fix="give one array a task, or one for all",
        )
    return list(zip(inputs, scaled, strict=True))


def _checked_probabilities(probabilities: Sequence[Floats], n: int) -> list[Floats]:
    arrays = _checked(probabilities, "probabilities", (None, n, None))
    for task, array in enumerate(arrays):
        if len(array) < 2:
            raise SelectionError(
                f"task {task}: BatchBALD needs at least 2 passes, not {len(array)}",
                fix="predict with dropout switched on several times, or with an ensemble",
            )
        if (array < 0).any() or (np.abs(array.sum(axis=2) - 1) > 1e-3).any():
            raise SelectionError(
                f"task {task}: the probabilities of an item do not sum to 1", fix="give them after softmax"
            )
    return arrays


def _checked_weights(weights: Weights, tasks: int) -> FloatArray:
    checked = np.ones(tasks) if weights is None else np.asarray(weights, dtype=np.float64)
    if checked.shape != (tasks,) or not (np.isfinite(checked) & (checked >= 0)).all():
        raise SelectionError(f"{tasks} tasks need as many weights, none below 0, not {checked.tolist()}")
    return checked


def _checked(arrays: Sequence[Floats], what: str, shape: tuple[int | None, ...]) -> list[Floats]:
    """The arrays, one a task, in single or double precision; None in ``shape`` stands for any length."""
    if not len(arrays):
        raise SelectionError(f"there are no {what}", fix="give one array a task")
    checked = []
    for task, given in enumerate(arrays):
        array = np.asarray(given)
        array = array if array.dtype == np.float32 else array.astype(np.float64, copy=False)
        if array.ndim != len(shape) or any(s is not None and s != a for s, a in zip(shape, array.shape, strict=True)):
            wanted = ", ".join("any" if length is None else str(length) for length in shape)
            raise SelectionError(f"task {task}: the {what} have the shape {array.shape}, not ({wanted})")
        if not np.isfinite(array).all():
            raise SelectionError(
                f"task {task}: the {what} hold NaN or infinity", fix="look at the learner that gave them"
            )
        checked.append(array)
    return checked
