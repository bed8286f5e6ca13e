"""Diminishing returns in blocks of labels: what so many are worth, and how fast that falls (errata 30).

With a block of ``u`` labels and a reduction rate ``β``, block *b* is worth ``β^(b − 1)`` of the first. So ``N`` labels
are worth ``g(N) = u(1 − β^(N/u)) / (1 − β)``, in labels of the first block, and ``N`` where nothing is lost (β = 1).

>>> slow = ReductionRate(0.5, 0.4, 0.6, block=100)
>>> gain([0, 100, 200, 300], slow).round(6).tolist()
[0.0, 100.0, 150.0, 175.0]
>>> labels_for([100, 175, 200], slow).round(6).tolist()
[100.0, 300.0, inf]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtri, fdtri

from bursar.allocation.estimates import ReductionRate
from bursar.errors import AllocationError
from bursar.ragged import BoolArray, FloatArray

SMALLEST = 1e-6  # the smallest reduction rate that is told apart: the first block is all there is
UNKNOWN = 0.5  # the rate of a curve that tells nothing
FEWEST = 3  # sizes: a start, a rise and how fast it ends
GRID = 400  # rates looked at before the best of them is refined
LEVEL = 0.9  # of intervals


# -- what labels are worth -------------------------------------------------------------------------------------------
def returns(labels: ArrayLike, beta: ArrayLike, block: ArrayLike) -> FloatArray:
    """``g`` for arrays of anything; exact to the last digits near β = 1, where the formula itself divides 0 by 0.

    >>> returns(1000, [1 - 1e-12, 1.0], block=10).round(3).tolist()
    [1000.0, 1000.0]
    """
    size, rate = np.asarray(block, dtype=float), np.asarray(beta, dtype=float)
    blocks = np.asarray(labels, dtype=float) / size
    lost = 1 - rate
    geometric = -np.expm1(blocks * np.log(rate)) / np.where(lost > 0, lost, 1.0)
    found: FloatArray = size * np.where(lost > 0, geometric, blocks)
    return found


def gain(labels: ArrayLike, rate: ReductionRate) -> FloatArray:
    """What so many labels are worth, in labels of the first block."""
    return returns(labels, rate.beta, rate.block)


def labels_for(worth: ArrayLike, rate: ReductionRate) -> FloatArray:
    """How many labels are worth so much: the inverse of ``gain``; endless for what no number of labels reaches."""
    wanted = np.asarray(worth, dtype=float)
    if rate.beta == 1:
        return wanted
    left = 1 - wanted * (1 - rate.beta) / rate.block
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log1p(-wanted * (1 - rate.beta) / rate.block) / math.log(rate.beta)
    return np.where(left > 0, rate.block * found, np.inf)


def half_life(rate: ReductionRate) -> float:
    """After how many labels one more is worth half as much as the first; endless if nothing is lost.

    >>> half_life(ReductionRate(0.25, 0.25, 0.25, block=100))
    50.0
    """
    return math.inf if rate.beta == 1 else rate.block * math.log(0.5) / math.log(rate.beta)


# -- how fast that falls ---------------------------------------------------------------------------------------------
def fit_rate(
    sizes: ArrayLike,
    scores: ArrayLike,
    errors: ArrayLike | None = None,
    *,
    freedom: int | None = None,
    block: float | None = None,
    level: float = LEVEL,
    source: str = "given",
) -> ReductionRate:
    """The reduction rate of a learning curve: ``score ≈ a + b·g(N)`` with ``b ≥ 0``, of which only the shape is used.

    ``errors`` are the standard errors of the scores (an error of 0 counts as the smallest of the others). Where scores
    scatter by more than their errors say, the errors are taken to be too small by as much; without any, the scatter
    tells them. The interval is that of the profile likelihood: each rate that, with the best ``a`` and ``b`` for it,
    fits not much worse than the best. ``freedom`` is the degrees of freedom that the errors were themselves estimated
    with, if they were: the fewer, the wider the interval, as Student's is. The block is the first step of the curve if
    it is not given.

    A curve of fewer than three sizes, or that rises by no more than its noise, tells nothing of the shape: then the
    rate is 0.5 and its interval from 0.000001 to 1 (``tells_nothing``). So it is where every rate fits well enough, and
    with three sizes whose errors nobody knows: the best of rates that could all be right is no estimate.

    >>> rate = fit_rate([0, 50, 100, 150, 200], [0.5, 0.6, 0.65, 0.675, 0.6875])
    >>> round(rate.beta, 4), rate.block
    (0.5, 50.0)
    >>> tells_nothing(fit_rate([0, 50, 100, 150], [0.6, 0.6, 0.58, 0.57]))
    True
    """
    at, score, weight = _checked(sizes, scores, errors)
    if weight is not None and freedom is not None and freedom < 1:
        raise AllocationError(
            f"errors with {freedom} degrees of freedom", fix="give 1 or more, or none if they are known"
        )
    apart = np.unique(at)
    if block is None:
        block = float(apart[1] - apart[0]) if len(apart) > 1 else 1.0
    unknown = ReductionRate(UNKNOWN, SMALLEST, 1.0, block, source)
    if len(apart) < FEWEST:
        return unknown
    curve = _Curve((at - at.min()) / block, score, np.ones_like(score) if weight is None else weight)
    decays = curve.decays()
    misfit = curve.misfit(decays)
    best, least = curve.refined(decays, misfit)
    spare = len(score) - FEWEST
    least = max(least, (1e-9 * float(np.ptp(score))) ** 2 * float(curve.weight.sum()))  # what rounding leaves
    if weight is None:
        limit = flat = least * (1 + float(fdtri(1, spare, level)) / spare) if spare > 0 else math.inf
    else:
        scatter = max(1.0, least / spare) if spare > 0 else 1.0
        flat = least + scatter * float(chdtri(1, 1 - level))
        limit = flat if freedom is None else least + scatter * float(fdtri(1, freedom, level))
    constant = curve.misfit_of_mean()
    if constant <= least or constant <= flat < math.inf:  # by errors as they are: the best guess may be little known
        return unknown
    slow, fast = curve.ends(decays, misfit <= limit, best, limit)
    low, beta, high = (min(1.0, max(SMALLEST, math.exp(-decay))) for decay in (fast, best, slow))
    found = ReductionRate(beta, low, high, block, source)
    return unknown if tells_nothing(found) else found


def tells_nothing(rate: ReductionRate) -> bool:
    """Whether nothing is known of a rate: its interval is all that a rate can be."""
    return rate.low <= SMALLEST and rate.high == 1


@dataclass(frozen=True, eq=False)
class _Curve:
    """Scores at sizes, and how badly each decay (``−log β``) fits them with the best start and the best rise."""

    blocks: FloatArray  # (points,) from 0
    score: FloatArray
    weight: FloatArray

    def decays(self) -> FloatArray:
        """From none (a straight line) to the fastest that is told apart, finer where they differ more."""
        fastest = -math.log(SMALLEST) * (1 + 1e-9)  # so that rates end at the smallest itself
        slowest = min(1e-4 / float(self.blocks.max()), fastest / 100)
        return np.concatenate([[0.0], np.geomspace(slowest, fastest, GRID)])

    def misfit(self, decays: FloatArray) -> FloatArray:
        """The weighted sum of squares that each leaves: (decays,)."""
        k, end = decays[:, None], float(self.blocks.max())
        with np.errstate(invalid="ignore"):
            shape = np.where(k > 0, np.expm1(-k * self.blocks) / np.expm1(-k * end), self.blocks / end)  # from 0 to 1
        share = self.weight / self.weight.sum()
        shape = shape - (shape @ share)[:, None]
        score = self.score - self.score @ share
        rise = np.maximum(0.0, (shape * score) @ self.weight / (shape**2 @ self.weight))
        left: FloatArray = (score - rise[:, None] * shape) ** 2 @ self.weight
        return left

    def misfit_of_mean(self) -> float:
        """What a flat curve leaves."""
        mean = self.score @ self.weight / self.weight.sum()
        return float((self.score - mean) ** 2 @ self.weight)

    def refined(self, decays: FloatArray, misfit: FloatArray) -> tuple[float, float]:
        """The best decay between those beside the best of the grid, and what it leaves."""
        at = int(misfit.argmin())
        for _ in range(4):
            decays = np.linspace(decays[max(0, at - 1)], decays[min(len(decays) - 1, at + 1)], 41)
            misfit = self.misfit(decays)
            at = int(misfit.argmin())
        return float(decays[at]), float(misfit[at])

    def ends(self, decays: FloatArray, fits: BoolArray, best: float, limit: float) -> tuple[float, float]:
        """The slowest and the fastest decay that still fit."""
        good = np.flatnonzero(fits)
        inside = [best, *decays[good[[0, -1]]]] if len(good) else [best]
        slow, fast = min(inside), max(inside)
        slower, faster = decays[decays < slow], decays[decays > fast]
        return (
            self._crossing(slow, float(slower[-1]), limit) if len(slower) else slow,
            self._crossing(fast, float(faster[0]), limit) if len(faster) else fast,
        )

    def _crossing(self, inside: float, outside: float, limit: float) -> float:
        """Where decays between one that fits and one that does not cease to."""
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
    """Sizes, scores and weights, all of one length and all numbers."""
    at, score = np.asarray(sizes, dtype=float).ravel(), np.asarray(scores, dtype=float).ravel()
    if len(at) != len(score) or not len(at):
        raise AllocationError(f"a curve of {len(at)} sizes and {len(score)} scores", fix="give one score a size")
    if not (np.isfinite(at).all() and np.isfinite(score).all() and (at >= 0).all()):
        raise AllocationError("the sizes and scores of a curve must be numbers, the sizes from 0 up")
    if errors is None:
        return at, score, None
    error = np.asarray(errors, dtype=float).ravel()
    if len(error) != len(score) or not (np.isfinite(error).all() and (error >= 0).all()):
        raise AllocationError("standard errors must be numbers from 0 up", fix="give one a score, or none at all")
    if not error.any():
        return at, score, None
    return at, score, np.maximum(error, error[error > 0].min()) ** -2.0
