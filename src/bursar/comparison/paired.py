"""Two arms on the same cells (a data set and a seed, say): is one better, is that more than luck, and what did it save?

A curve is a pair ``(money, score)``: what had been spent at each round, never falling, and the score then.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
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
    n: int  # observations: pairs, or clusters of them
    pairs: int


def paired_test(a: ArrayLike, b: ArrayLike, cluster: Sequence[Hashable] | None = None) -> PairedTest:
    """The paired t-test of two arms. Pairs of a ``cluster`` rise and fall together: their mean is one observation."""
    x, y = matched(a, b)
    pairs, noise = len(x), 8 * np.finfo(float).eps * np.abs([x, y]).max(initial=0)
    gaps = cluster_means(x - y, cluster)
    n = len(gaps)
    mean = float(gaps.mean()) if n else None
    found = PairedTest(difference=mean, low=None, high=None, t=None, p=None, n=n, pairs=pairs)
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


def cluster_means(values: FloatArray, cluster: Sequence[Hashable] | None) -> FloatArray:
    """The mean of each cluster's values, clusters in the order in which they are met; the values if there are none."""
    if cluster is None:
        return values
    if len(cluster) != len(values):
        raise ValueError(f"every pair needs its cluster: {len(values)} pairs, {len(cluster)} clusters")
    members: dict[Hashable, list[float]] = {}
    for label, value in zip(cluster, values.tolist(), strict=True):
        members.setdefault(label, []).append(value)
    return np.array([np.mean(found) for found in members.values()])


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


# -- money saved -----------------------------------------------------------------------------------------------------
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

    ``at_arm_end`` asks what random would need for the score that the arm ends with, ``at_random_end`` what the arm
    needed for that of random. Curves are first made to rise by isotonic regression: lucky and unlucky rounds are noise.
    A curve's end costs all that was spent on it; a lower score costs the money that first reaches it.

    Where random never reaches the arm's end, "at least" so much was saved; that is 0 when both spent the same. An arm
    that starts above the score needs less than it started with, so again "at least"; the reverse is "at most".
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
    except where a curve starts above it. Cells are averaged as ratios of money, so that half and double cancel out.

    Noise pulls a saving towards 0, and so do straight lines between few points: a true third is read as 0.33 where the
    noise of scores is half of what the last round gained, and as 0.29 where it is three times that. Of many noisy cells
    the interval can therefore end short of the truth, on the side of 0.

    It is a percentile bootstrap over cells, or over the means of ``cluster``s, with its levels widened for few of them
    (Hesterberg 2015), and nowhere narrower than Student's, as three cells cannot be resampled into their doubt.
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
