"""Two arms on the same cells (a data set and a seed, say): is one better, is that more than luck, and what did it save?

A curve is a pair ``(money, score)``: what had been spent at each round, never falling, and the score then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from bursar.campaign.curves import Curve, money_for, rising
from bursar.ragged import FloatArray


class PairedTest(TypedDict):
    """How much higher the first is, and how sure that is."""

    difference: float | None  # the mean of the first less the second; None without a pair
    low: float | None  # 95 % confidence interval by Student's t
    high: float | None
    t: float | None  # None also where all differences are the same, and t without a bound
    p: float | None  # two-sided
    n: int  # observations


def paired_test(a: ArrayLike, b: ArrayLike) -> PairedTest:
    """The paired t-test of two arms."""
    x, y = matched(a, b)
    return t_test(x - y, float(np.abs([x, y]).max(initial=0)))


def t_test(gaps: FloatArray, largest: float) -> PairedTest:
    """The t-test of differences of scores up to the largest, which tells how large rounding errors may be."""
    n, noise = len(gaps), 8 * np.finfo(float).eps * largest
    mean = float(gaps.mean()) if n else None
    found = PairedTest(difference=mean, low=None, high=None, t=None, p=None, n=n)
    if mean is None or n < 2:
        return found
    if np.all(np.abs(gaps) <= noise):
        return {**found, "difference": 0.0, "low": 0.0, "high": 0.0, "t": 0.0, "p": 1.0}
    deviation = float(gaps.std(ddof=1))
    if deviation <= noise:
        return {**found, "low": mean, "high": mean, "p": 0.0}
    error = deviation / n**0.5
    reach = float(special.stdtrit(n - 1, 0.975)) * error
    p = float(2 * special.stdtr(n - 1, -abs(mean / error)))
    return {**found, "low": mean - reach, "high": mean + reach, "t": mean / error, "p": p}


def matched(a: ArrayLike, b: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Two lists of pairs, checked."""
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"pairs need two lists of the same length, not of shapes {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError(f"pair {int(np.flatnonzero(~np.isfinite(x + y))[0])} has a score that is not a finite number")
    return x, y


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """P-values made larger for having looked at all of them (Holm 1979), in their order.

    The smallest of m is multiplied by m, the next by m − 1 and so on, and none may end below a smaller one: rejecting
    below 0.05 then errs anywhere in the family in at most 5 % of studies. ``None`` is no test, and stays.
    """
    known = [(p, at) for at, p in enumerate(p_values) if p is not None]
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for before, (p, at) in enumerate(sorted(known)):
        highest = max(highest, min(1.0, (len(known) - before) * p))
        corrected[at] = highest
    return corrected


# -- money saved -------------------------------------------------------------------------------------------------------
DRAWS = 2000


def points_of(curve: Curve) -> tuple[FloatArray, FloatArray]:
    """The money and the scores of a curve, checked."""
    money, score = (np.asarray(values, dtype=float) for values in curve)
    if money.ndim != 1 or money.shape != score.shape or not len(money):
        raise ValueError(f"a curve needs as many scores as amounts of money, not {score.shape} and {money.shape}")
    if not np.isfinite(score).all() or not (np.diff(money, prepend=-np.inf) >= 0).all():
        raise ValueError("a curve needs finite scores, and money that never falls")
    return money, score


class Saving(TypedDict):
    """What an arm and random needed for one score."""

    score: float
    money: float
    random_money: float
    saved: float  # 1 − money / random_money
    bound: str  # "exact"; "at least" or "at most" that, where one of them has no such score on its curve


def risen(curve: Curve) -> tuple[FloatArray, FloatArray]:
    """A curve made to rise by isotonic regression, so that lucky and unlucky rounds count as noise."""
    money, score = points_of(curve)
    if money[0] <= 0:
        raise ValueError("savings are shares of money: curves must start with some spent")
    return money, rising(score)


def saving(mine: tuple[FloatArray, FloatArray], other: tuple[FloatArray, FloatArray], score: float) -> Saving:
    """What two rising curves cost up to a score: all that was spent at its end, else what first reaches it."""
    money, random_money = money_for(score, *mine), money_for(score, *other)
    i_need, it_needs = (int(score > scores[-1]) - int(score < scores[0]) for _, scores in (mine, other))
    # At its own end a curve's money is exact, so at most one of the two is a bound.
    bound = {(0, 0): "exact", (0, 1): "at least", (-1, 0): "at least"}.get((i_need, it_needs), "at most")
    return Saving(score=score, money=money, random_money=random_money, saved=1 - money / random_money, bound=bound)


class SavedInterval(TypedDict):
    """The share of the money saved, with a 95 % interval."""

    saved: float
    low: float | None  # None for fewer than two observations
    high: float | None
    n: int


def saved_interval(curves: Sequence[Curve], random_curves: Sequence[Curve], seed: int = 0) -> SavedInterval:
    """The share of the money saved against random over cells, each with an arm's curve and random's.

    A cell is asked at the lower of the two ends, the score that both reach: nothing is cut off there whoever won,
    except where a curve starts above it. Cells are averaged as ratios of money, so that half and double cancel out.

    Noise pulls a saving towards 0, and so do straight lines between few points: a true third is read as 0.33 where the
    noise of scores is half of what the last round gained, and as 0.29 where it is three times that. Of many noisy cells
    the interval can therefore end short of the truth, on the side of 0.
    """
    pairs = [(risen(mine), risen(other)) for mine, other in zip(curves, random_curves, strict=True)]
    if not pairs:
        raise ValueError("there is no cell to tell savings from")
    cells = [saving(mine, other, min(float(mine[1][-1]), float(other[1][-1]))) for mine, other in pairs]
    return mean_saving(np.log([cell["money"] / cell["random_money"] for cell in cells]), seed)


def mean_saving(ratios: FloatArray, seed: int) -> SavedInterval:
    """The saving of a mean logarithm of ratios of money.

    The interval is a percentile bootstrap, with its levels widened for few observations (Hesterberg 2015), and nowhere
    narrower than Student's, as three cells cannot be resampled into their doubt.
    """
    low, high = _interval(ratios, seed) if len(ratios) > 1 else (None, None)
    return SavedInterval(
        saved=float(1 - np.exp(ratios.mean())),
        low=None if high is None else float(1 - np.exp(high)),
        high=None if low is None else float(1 - np.exp(low)),
        n=len(ratios),
    )


def _interval(values: FloatArray, seed: int) -> tuple[float, float]:
    """A 95 % interval of the mean: the widened percentile bootstrap's and Student's, at either end the further one."""
    n = len(values)
    quantile = float(special.stdtrit(n - 1, 0.975))
    tail = float(special.ndtr(-quantile * np.sqrt(n / (n - 1))))
    means = values[np.random.default_rng(seed).integers(0, n, (DRAWS, n))].mean(axis=1)
    low, high = np.quantile(means, [tail, 1 - tail]).tolist()
    reach = quantile * float(values.std(ddof=1)) / n**0.5
    return min(low, float(values.mean()) - reach), max(high, float(values.mean()) + reach)
