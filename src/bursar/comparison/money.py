"""What curves of scores against money say of the money that was saved against random.

A curve is a pair ``(money, score)``: what had been spent at each round, never falling, and the score then.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypedDict

import numpy as np
from scipy import special

from bursar.campaign.curves import Curve, money_for, rising
from bursar.comparison.paired import cluster_means
from bursar.ragged import FloatArray

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


class Savings(TypedDict):
    """What was saved at the scores that the two ended with."""

    at_arm_end: Saving
    at_random_end: Saving


def saved(curve: Curve, random_curve: Curve) -> Savings:
    """The share of the money that an arm saved against random at equal score, at the end of either curve.

    ``at_arm_end``: what would random need for the score that the arm ends with? ``at_random_end``: what did the arm
    need for the score that random ends with? Both curves are first made to rise by isotonic regression, so that lucky
    and unlucky rounds count as noise. A curve's end costs all that was spent on it; a lower score costs the money at
    which the curve first reaches it.

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
    mine, other = (money, rising(score)), (random_money, rising(random_score))
    return Savings(
        at_arm_end=_saving(mine, other, float(mine[1][-1])), at_random_end=_saving(mine, other, float(other[1][-1]))
    )


def _saving(mine: tuple[FloatArray, FloatArray], other: tuple[FloatArray, FloatArray], score: float) -> Saving:
    money, random_money = money_for(score, *mine), money_for(score, *other)
    i_need, it_needs = (int(score > scores[-1]) - int(score < scores[0]) for _, scores in (mine, other))
    # At its own end a curve's money is exact, so at most one of the two is a bound.
    bound = {(0, 0): "exact", (0, 1): "at least", (-1, 0): "at least"}.get((i_need, it_needs), "at most")
    return Saving(score=score, money=money, random_money=random_money, saved=1 - money / random_money, bound=bound)


class SavedInterval(TypedDict):
    """The share of the money saved over cells, with a 95 % interval."""

    saved: float
    low: float | None  # None for fewer than two cells or clusters
    high: float | None
    n: int  # observations: cells, or clusters of them
    cells: int
    ahead: int  # cells in which random never reaches the arm's end
    behind: int  # cells in which the arm never reaches random's end
    at_least: int  # cells that could only be counted with the least that was saved
    at_most: int


def saved_interval(
    curves: Sequence[Curve], random_curves: Sequence[Curve], seed: int = 0, cluster: Sequence[Hashable] | None = None
) -> SavedInterval:
    """The share of the money saved against random over cells, each with an arm's curve and random's.

    A cell is asked at the lower of the two ends, the score that both reach: nothing is cut off there whoever won,
    except where a curve starts above it. Cells are averaged as ratios of money (a geometric mean), so that needing half
    and needing double cancel out; ``1 − ratio`` itself would lean to losses.

    Noise pulls a saving towards 0, and so do straight lines between few points, as they run below curves that flatten:
    a true third is read as 0.33 where the noise of scores is half of what the last round gained, and as 0.29 where it
    is three times that. Of many noisy cells the interval can therefore end short of the truth, on the side of 0.

    The interval is a percentile bootstrap over cells, or over the means of ``cluster``s, with its levels widened for
    few of them (Hesterberg 2015), and nowhere narrower than Student's: three cells cannot be resampled into the doubt
    that there is about them.

    >>> arm, random = ([50, 100, 200], [0.5, 0.6, 0.7]), ([100, 200, 400], [0.5, 0.6, 0.7])
    >>> found = saved_interval([arm, random, arm], [random, random, random])
    >>> round(found["saved"], 3), found["n"], found["ahead"]
    (0.37, 3, 0)
    """
    pairs = [saved(mine, other) for mine, other in zip(curves, random_curves, strict=True)]
    if not pairs:
        raise ValueError("there is no cell to tell savings from")
    cells = [min(pair["at_arm_end"], pair["at_random_end"], key=lambda saving: saving["score"]) for pair in pairs]
    ratios = cluster_means(np.log([cell["money"] / cell["random_money"] for cell in cells]), cluster)
    ends = [(pair["at_arm_end"]["score"], pair["at_random_end"]["score"]) for pair in pairs]
    low, high = _interval(ratios, seed) if len(ratios) > 1 else (None, None)
    return SavedInterval(
        saved=float(1 - np.exp(ratios.mean())),
        low=None if high is None else float(1 - np.exp(high)),
        high=None if low is None else float(1 - np.exp(low)),
        n=len(ratios),
        cells=len(cells),
        ahead=sum(mine > other for mine, other in ends),
        behind=sum(mine < other for mine, other in ends),
        at_least=sum(cell["bound"] == "at least" for cell in cells),
        at_most=sum(cell["bound"] == "at most" for cell in cells),
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
