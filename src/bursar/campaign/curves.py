"""Learning curves against money: their areas, and what one saved against another.

A curve is a pair ``(money, score)``: what had been spent at each round, never falling, and the score then.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from bursar.ragged import FloatArray

Curve = tuple[ArrayLike, ArrayLike]


def area(money: ArrayLike, score: ArrayLike, low: float, high: float) -> float:
    """The mean score between two amounts of money, by straight lines between the points.

    Where there is nothing between the two amounts, the last score.

    >>> area([0, 2, 4], [0.0, 0.5, 0.5], 0, 4), area([0, 2, 4], [0.0, 0.5, 0.5], 4, 4)
    (0.375, 0.5)
    """
    x, y = np.asarray(money, dtype=float), np.asarray(score, dtype=float)
    if high <= low:
        return float(y[-1])
    at = np.unique(np.concatenate([[low, high], x[(x > low) & (x < high)]]))
    values = np.interp(at, x, y)
    return float(np.sum((values[1:] + values[:-1]) / 2 * np.diff(at)) / (high - low))


def points_of(curve: Curve) -> tuple[FloatArray, FloatArray]:
    """The money and the scores of a curve, checked."""
    money, score = (np.asarray(values, dtype=float) for values in curve)
    if money.ndim != 1 or money.shape != score.shape or not len(money):
        raise ValueError(f"a curve is as many scores as amounts of money, not {score.shape} and {money.shape}")
    if not np.isfinite(score).all() or not (np.diff(money, prepend=-np.inf) >= 0).all():
        raise ValueError("a curve's scores are numbers and its money never falls")
    return money, score


class Saving(TypedDict):
    """What an arm and random needed for one score."""

    score: float
    money: float
    random_money: float
    saved: float  # 1 − money / random_money
    bound: str  # "exact"; "at least" or "at most" that, where one of them has no such score on its curve


class Savings(TypedDict):
    """What was saved at the scores that the two ended with."""

    at_arm_end: Saving
    at_random_end: Saving


def saved(curve: Curve, random_curve: Curve) -> Savings:
    """The share of the money that an arm saved against random at equal score, in both ways of asking.

    ``at_arm_end``: what would random need for the score that the arm ends with? ``at_random_end``: what did the arm
    need for the score that random ends with? Both curves are first made to rise, by isotonic regression, so that a
    lucky round or an unlucky one counts as the noise it is, and read by straight lines from then on. A curve's end
    costs all that was spent on it; a lower score costs the money at which the curve first reaches it.

    Where random never reaches the arm's end, it needs more than it spent, and "at least" so much was saved; that is 0
    when both spent the same. The other way of asking then has the exact answer. An arm that already starts above the
    score needs less than it started with, so again "at least"; the reverse of either is "at most".

    >>> found = saved(([100, 200, 300], [0.5, 0.7, 0.8]), ([100, 200, 300], [0.5, 0.6, 0.7]))
    >>> found["at_random_end"]["money"], round(found["at_random_end"]["saved"], 3), found["at_random_end"]["bound"]
    (200.0, 0.333, 'exact')
    >>> found["at_arm_end"]["saved"], found["at_arm_end"]["bound"]
    (0.0, 'at least')
    """
    (money, score), (random_money, random_score) = points_of(curve), points_of(random_curve)
    if money[0] <= 0 or random_money[0] <= 0:
        raise ValueError("savings are shares of money: curves must start with some spent")
    mine, other = (money, _rising(score)), (random_money, _rising(random_score))
    return Savings(
        at_arm_end=_saving(mine, other, float(mine[1][-1])), at_random_end=_saving(mine, other, float(other[1][-1]))
    )


def _rising(score: FloatArray) -> FloatArray:
    """The never falling scores that are nearest by least squares: neighbours that fall are levelled to their mean.

    >>> _rising(np.array([0.5, 0.9, 0.5, 0.8])).tolist()
    [0.5, 0.7, 0.7, 0.8]
    """
    levels: list[tuple[float, int]] = []
    for mean in score.tolist():
        count = 1
        while levels and levels[-1][0] > mean:
            before, points = levels.pop()
            mean = (before * points + mean * count) / (points + count)
            count += points
        levels.append((mean, count))
    return np.repeat([mean for mean, _ in levels], [count for _, count in levels])


def _saving(mine: tuple[FloatArray, FloatArray], other: tuple[FloatArray, FloatArray], score: float) -> Saving:
    (money, i_need), (random_money, it_needs) = _needed(*mine, score), _needed(*other, score)
    # At its own end a curve's money is exact, so at most one of the two is a bound.
    bound = {(0, 0): "exact", (0, 1): "at least", (-1, 0): "at least"}.get((i_need, it_needs), "at most")
    return Saving(score=score, money=money, random_money=random_money, saved=1 - money / random_money, bound=bound)


def _needed(money: FloatArray, rising: FloatArray, score: float) -> tuple[float, int]:
    """The money for a score, and 1 where more is needed than that, −1 where less is enough."""
    if score >= rising[-1]:
        return float(money[-1]), int(score > rising[-1])
    if score <= rising[0]:
        return float(money[0]), -int(score < rising[0])
    at = int(np.searchsorted(rising, score))  # the first point that is as high
    step = (score - rising[at - 1]) / (rising[at] - rising[at - 1])
    return float(money[at - 1] + step * (money[at] - money[at - 1])), 0


def saved_at_equal_money(curve: Curve, random_curve: Curve) -> Saving | None:
    """What was saved where both have spent as much as the one that spent less, at the lower of their two ends.

    That is the score that both reach, so nothing is cut off whoever is ahead. ``None`` while either is a single point,
    or begins with labels that cost nothing.

    >>> found = saved_at_equal_money(([100, 200, 300], [0.5, 0.7, 0.8]), ([100, 200, 400], [0.5, 0.6, 0.8]))
    >>> round(found["saved"], 3), round(saved_at_equal_money(([1, 2], [0.5, 0.6]), ([1, 2], [0.5, 0.7]))["saved"], 3)
    (0.333, -0.333)
    """
    both = [points_of(curve), points_of(random_curve)]
    most = min(money[-1] for money, _ in both)
    first = [money[0] for money, _ in both]
    if min(len(money) for money, _ in both) < 2 or most <= max(first) or min(first) <= 0:
        return None
    ends = saved(*(_until(money, score, most) for money, score in both))
    return min(ends["at_arm_end"], ends["at_random_end"], key=lambda end: end["score"])


def _until(money: FloatArray, score: FloatArray, most: float) -> tuple[FloatArray, FloatArray]:
    before = money < most
    return np.append(money[before], most), np.append(score[before], np.interp(most, money, score))
