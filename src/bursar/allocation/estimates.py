"""The estimates that a split is computed from: informativeness between tasks, and reduction rates.

With a block of ``u`` labels and a reduction rate ``β``, block *b* is worth ``β^(b − 1)`` times the first (errata 30).
So ``N`` labels are worth ``g(N) = u(1 − β^(N/u)) / (1 − β)``, in labels of the first block, or ``N`` if β = 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtri, fdtri

from bursar.errors import AllocationError
from bursar.ragged import BoolArray, FloatArray

SMALLEST = 1e-6  # smallest reduction rate: practically, only the first block has any value
UNKNOWN = 0.5  # the rate of a curve without information
FEWEST = 3  # sizes of a curve: its start, its rise and how fast it flattens
GRID = 400  # rates of the grid search, whose best is refined
LEVEL = 0.9  # of intervals


@dataclass(frozen=True, eq=False)
class Informativeness:
    """The value of one task's labels to another, in labels of its own (errata 29).

    Row *i*, column *j* is task *j*'s gain from labels of task *i*, divided by its gain from as many of its own. A
    negative entry means that *i* harms *j*.
    """

    tasks: tuple[str, ...]
    value: FloatArray  # (from, to)
    error: FloatArray  # standard errors; 0 on the diagonal
    about: Mapping[str, Any] = field(default_factory=dict)  # how they were measured

    def __post_init__(self) -> None:
        shape = (len(self.tasks), len(self.tasks))
        if self.value.shape != shape or self.error.shape != shape:
            raise AllocationError(f"informativeness of {len(self.tasks)} tasks needs a {shape[0]} × {shape[0]} table")
        if len(set(self.tasks)) < len(self.tasks):
            raise AllocationError(f"a task occurs twice: {', '.join(self.tasks)}", fix="give each its own name")
        if not (np.isfinite(self.value).all() and np.isfinite(self.error).all() and (self.error >= 0).all()):
            raise AllocationError("informativeness and its standard errors must be numbers, the errors from 0 up")
        if not (self.value.diagonal() == 1).all():
            raise AllocationError("a task's informativeness for itself is 1", fix="divide each column by its diagonal")


@dataclass(frozen=True)
class ReductionRate:
    """How fast labels of a task lose value: each block is worth ``beta`` times the block before (errata 30)."""

    beta: float
    low: float
    high: float
    block: float  # labels
    source: str = "given"  # or pseudo-labels, ledger, law

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.beta <= self.high <= 1:
            raise AllocationError(
                f"a reduction rate of {self.beta:g} ({self.low:g} to {self.high:g})",
                fix="give it and its interval above 0 and up to 1, in that order",
            )
        if not (np.isfinite(self.block) and self.block > 0):
            raise AllocationError(f"a block of {self.block:g} labels", fix="give a number above 0")


@dataclass(frozen=True)
class SplitEstimates:
    """Informativeness and rates of all tasks."""

    informativeness: Informativeness
    rates: Mapping[str, ReductionRate]

    def __post_init__(self) -> None:
        missing = [task for task in self.tasks if task not in self.rates]
        if missing:
            raise AllocationError(f"task {missing[0]!r} has no reduction rate")

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.informativeness.tasks

    @classmethod
    def unknown(cls, tasks: Sequence[str]) -> SplitEstimates:
        """Estimates for tasks about which nothing is known."""
        none = Informativeness(tuple(tasks), np.eye(len(tasks)), 1 - np.eye(len(tasks)))
        return cls(none, dict.fromkeys(tasks, ReductionRate(0.5, 1e-6, 1.0, 1, "nothing")))

    def alone(self) -> SplitEstimates:
        """The same estimates without any effect of a task's labels on others."""
        known = self.informativeness
        return replace(self, informativeness=replace(known, value=np.eye(len(known.tasks))))

    def describe(self) -> dict[str, Any]:
        known = self.informativeness
        pairs = zip(self.tasks, np.stack([known.value, known.error], axis=2).tolist(), strict=True)
        informs = {
            task: {
                other: {"value": v, "error": e} for other, (v, e) in zip(self.tasks, row, strict=True) if other != task
            }
            for task, row in pairs
        }
        rates = {
            task: {"beta": rate.beta, "low": rate.low, "high": rate.high, "block": rate.block, "from": rate.source}
            for task, rate in self.rates.items()
        }
        return {"informativeness": informs, "rates": rates}


# -- the value of labels ---------------------------------------------------------------------------------------------
def returns(labels: ArrayLike, beta: ArrayLike, block: ArrayLike) -> FloatArray:
    """``g`` of arrays; accurate near β = 1, where the formula itself divides 0 by 0."""
    size, rate = np.asarray(block, dtype=float), np.asarray(beta, dtype=float)
    blocks = np.asarray(labels, dtype=float) / size
    lost = 1 - rate
    geometric = -np.expm1(blocks * np.log(rate)) / np.where(lost > 0, lost, 1.0)
    found: FloatArray = size * np.where(lost > 0, geometric, blocks)
    return found


def gain(labels: ArrayLike, rate: ReductionRate) -> FloatArray:
    """The value of some labels, in labels of the first block."""
    return returns(labels, rate.beta, rate.block)


def half_life(rate: ReductionRate) -> float:
    """The number of labels after which one more is worth half of the first; infinity if β = 1."""
    return math.inf if rate.beta == 1 else rate.block * math.log(0.5) / math.log(rate.beta)


# -- fitting rates ---------------------------------------------------------------------------------------------------
def fit_rate(
    sizes: ArrayLike,
    scores: ArrayLike,
    errors: ArrayLike | None = None,
    *,
    freedom: int | None = None,
    block: float | None = None,
) -> ReductionRate:
    """The reduction rate of a learning curve: ``score ≈ a + b·g(N)`` with ``b ≥ 0``, of which only the shape is used.

    Standard ``errors`` of the scores (0 counts as the smallest of the others) are scaled up if scores scatter by more,
    and estimated from the scatter if not given. The interval is that of the profile likelihood; fewer degrees of
    ``freedom`` of the errors widen it, as with Student's. The default block is the first step of the curve.

    The rate is 0.5 with an interval from 0.000001 to 1 (``tells_nothing``) if the curve has fewer than three sizes,
    rises by no more than its noise, has three sizes without errors, or if every rate fits well enough.
    """
    at, score, weight = _checked(sizes, scores, errors)
    if weight is not None and freedom is not None and freedom < 1:
        raise AllocationError(
            f"errors with {freedom} degrees of freedom", fix="give 1 or more, or None if the errors are exact"
        )
    apart = np.unique(at)
    if block is None:
        block = float(apart[1] - apart[0]) if len(apart) > 1 else 1.0
    unknown = ReductionRate(UNKNOWN, SMALLEST, 1.0, block)
    if len(apart) < FEWEST:
        return unknown
    curve = _Curve((at - at.min()) / block, score, np.ones_like(score) if weight is None else weight)
    decays = curve.decays()
    misfit = curve.misfit(decays)
    best, least = curve.refined(decays, misfit)
    spare = len(score) - FEWEST
    least = max(least, (1e-9 * float(np.ptp(score))) ** 2 * float(curve.weight.sum()))  # rounding errors
    if weight is None:
        limit = flat = least * (1 + float(fdtri(1, spare, LEVEL)) / spare) if spare > 0 else math.inf
    else:
        scatter = max(1.0, least / spare) if spare > 0 else 1.0
        flat = least + scatter * float(chdtri(1, 1 - LEVEL))
        limit = flat if freedom is None else least + scatter * float(fdtri(1, freedom, LEVEL))
    mean = score @ curve.weight / curve.weight.sum()
    constant = float((score - mean) ** 2 @ curve.weight)  # the misfit of a flat curve
    if constant <= least or constant <= flat < math.inf:  # without ``freedom``, which only widens intervals
        return unknown
    slow, fast = curve.ends(decays, misfit <= limit, best, limit)
    low, beta, high = (min(1.0, max(SMALLEST, math.exp(-decay))) for decay in (fast, best, slow))
    found = ReductionRate(beta, low, high, block)
    return unknown if tells_nothing(found) else found


def tells_nothing(rate: ReductionRate) -> bool:
    """Whether nothing is known about a rate: its interval covers all possible rates."""
    return rate.low <= SMALLEST and rate.high == 1


@dataclass(frozen=True, eq=False)
class _Curve:
    """Scores at sizes, and how well each decay (``−log β``) fits them with the best ``a`` and ``b``."""

    blocks: FloatArray  # (points,) from 0
    score: FloatArray
    weight: FloatArray

    def decays(self) -> FloatArray:
        """The grid: from 0 (a straight line) to the fastest decay, on a logarithmic scale."""
        fastest = -math.log(SMALLEST) * (1 + 1e-9)  # so that rates reach the smallest despite rounding
        slowest = min(1e-4 / float(self.blocks.max()), fastest / 100)
        return np.concatenate([[0.0], np.geomspace(slowest, fastest, GRID)])

    def misfit(self, decays: FloatArray) -> FloatArray:
        """The weighted sum of squared residuals of each: (decays,)."""
        k, end = decays[:, None], float(self.blocks.max())
        with np.errstate(invalid="ignore"):
            shape = np.where(k > 0, np.expm1(-k * self.blocks) / np.expm1(-k * end), self.blocks / end)  # from 0 to 1
        share = self.weight / self.weight.sum()
        shape = shape - (shape @ share)[:, None]
        score = self.score - self.score @ share
        rise = np.maximum(0.0, (shape * score) @ self.weight / (shape**2 @ self.weight))
        left: FloatArray = (score - rise[:, None] * shape) ** 2 @ self.weight
        return left

    def refined(self, decays: FloatArray, misfit: FloatArray) -> tuple[float, float]:
        """The best decay around the best of the grid, and its misfit."""
        at = int(misfit.argmin())
        for _ in range(4):
            decays = np.linspace(decays[max(0, at - 1)], decays[min(len(decays) - 1, at + 1)], 41)
            misfit = self.misfit(decays)
            at = int(misfit.argmin())
        return float(decays[at]), float(misfit[at])

    def ends(self, decays: FloatArray, fits: BoolArray, best: float, limit: float) -> tuple[float, float]:
        """The slowest and the fastest decay with a misfit up to the limit."""
        good = np.flatnonzero(fits)
        inside = [best, *decays[good[[0, -1]]]] if len(good) else [best]
        slow, fast = min(inside), max(inside)
        slower, faster = decays[decays < slow], decays[decays > fast]
        return (
            self._crossing(slow, float(slower[-1]), limit) if len(slower) else slow,
            self._crossing(fast, float(faster[0]), limit) if len(faster) else fast,
        )

    def _crossing(self, inside: float, outside: float, limit: float) -> float:
        """The last decay that fits, between one that fits and one that does not."""
        steps = np.arange(41.0) / 40
        for _ in range(6):
            decays = inside + (outside - inside) * steps
            fits = np.flatnonzero(self.misfit(decays[1:-1]) <= limit)
            last = int(fits[-1]) + 1 if len(fits) else 0
            inside, outside = float(decays[last]), float(decays[last + 1])
        return inside


def _checked(
    sizes: ArrayLike, scores: ArrayLike, errors: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Check sizes, scores and errors, and turn errors into weights."""
    at, score = np.asarray(sizes, dtype=float).ravel(), np.asarray(scores, dtype=float).ravel()
    if len(at) != len(score) or not len(at):
        raise AllocationError(f"a curve of {len(at)} sizes and {len(score)} scores", fix="give one score per size")
    if not (np.isfinite(at).all() and np.isfinite(score).all() and (at >= 0).all()):
        raise AllocationError("the sizes and scores of a curve must be numbers, the sizes from 0 up")
    if errors is None:
        return at, score, None
    error = np.asarray(errors, dtype=float).ravel()
    if len(error) != len(score) or not (np.isfinite(error).all() and (error >= 0).all()):
        raise AllocationError("standard errors must be numbers from 0 up", fix="give one per score, or none at all")
    if not error.any():
        return at, score, None
    return at, score, np.maximum(error, error[error > 0].min()) ** -2.0
