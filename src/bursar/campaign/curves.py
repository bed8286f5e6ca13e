"""Learning curves: scores against the money spent, and two strategies compared at equal money."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bursar.campaign.results import MeanScores, RunResult
from bursar.errors import ConfigError
from bursar.ragged import FloatArray

RANDOM = "RANDOM"

Curve = tuple[ArrayLike, ArrayLike]  # the money spent at each round, never falling, and the score then


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """The test scores of one strategy by the money spent, interpolated linearly between rounds."""

    arm: str
    rounds: tuple[int, ...]
    money: FloatArray  # (points,) in units, never falling
    scores: Mapping[str, FloatArray]  # task to (points,)

    @property
    def mean(self) -> FloatArray:
        """Over the tasks: (points,)."""
        mean: FloatArray = np.stack(list(self.scores.values()), axis=1).mean(axis=1)
        return mean

    def at(self, money: float) -> dict[str, float]:
        return {name: float(np.interp(money, self.money, scores)) for name, scores in self.scores.items()}


@dataclass(frozen=True)
class CurveComparison:
    """A strategy against another one, at the smaller of their two costs."""

    other: str
    money: float  # in units
    mine: Mapping[str, float]
    others: Mapping[str, float]
    gain: float  # difference of the mean scores over tasks
    saved: float  # share of the money at the score that both reach; negative if it cost more
    from_the_start: bool  # the other never scored above the strategy's first point


def curves_of(result: RunResult) -> dict[str, LearningCurve]:
    """The curve of every strategy that has test scores."""
    return {
        arm: LearningCurve(
            arm,
            tuple(r.round for r in found.tested),
            np.array([r.spent for r in found.tested], dtype=float),
            {name: np.array([r.test[name][metric] for r in found.tested]) for name, metric in result.metrics.items()},
        )
        for arm, found in result.arms.items()
        if found.tested
    }


def compare(mine: LearningCurve, other: LearningCurve) -> CurveComparison | None:
    """Compare two strategies at equal cost; ``None`` if one of them has a single point."""
    saving = saved_at_equal_money((mine.money, mine.mean), (other.money, other.mean))
    if saving is None:
        return None
    money = float(min(mine.money[-1], other.money[-1]))
    gain = float(np.interp(money, mine.money, mine.mean) - np.interp(money, other.money, other.mean))
    # The saving is read off monotone curves: a lucky round may give it the opposite sign of the gain.
    saved = saving.saved if saving.saved * gain > 0 else 0.0
    from_the_start = saving.money == mine.money[0]
    return CurveComparison(other.arm, money, mine.at(money), other.at(money), gain, saved, from_the_start)


def mean_scores(result: RunResult, arms: list[str]) -> dict[str, MeanScores]:
    """The mean scores of these arms over the money that all have spent; empty until all have two scored rounds."""
    curves = curves_of(result)
    if any(arm not in curves or len(curves[arm].rounds) < 2 for arm in arms):
        return {}
    low = max(curve.money[0] for curve in curves.values())
    high = min(curve.money[-1] for curve in curves.values())
    found = {}
    for arm, curve in curves.items():
        areas = {name: area(curve.money, scores, low, high) for name, scores in curve.scores.items()}
        found[arm] = MeanScores(area=areas, mean=float(np.mean(list(areas.values()))))
    return found


# -- curves as arrays --------------------------------------------------------------------------------------------------
def area(money: ArrayLike, score: ArrayLike, low: float, high: float) -> float:
    """The mean of a linearly interpolated curve between two amounts of money; its last score if they are equal."""
    x, y = np.asarray(money, dtype=float), np.asarray(score, dtype=float)
    if high <= low:
        return float(y[-1])
    at = np.unique(np.concatenate([[low, high], x[(x > low) & (x < high)]]))
    values = np.interp(at, x, y)
    return float(np.sum((values[1:] + values[:-1]) / 2 * np.diff(at)) / (high - low))


class Saving(NamedTuple):
    """The money that an arm and random needed for one score, and the share of random's that the arm saved."""

    score: float
    money: float
    random_money: float
    saved: float


def saved_at_equal_money(curve: Curve, random_curve: Curve) -> Saving | None:
    """The money saved at the lower of the two final scores, with both curves cut where the shorter one ends.

    Both reach that score, so nothing is extrapolated. ``None`` if a curve is a single point or starts at no cost.
    """
    both = [(np.asarray(money, dtype=float), np.asarray(score, dtype=float)) for money, score in (curve, random_curve)]
    first, most = [money[0] for money, _ in both], min(money[-1] for money, _ in both)
    if min(len(money) for money, _ in both) < 2 or most <= max(first) or min(first) <= 0:
        return None
    cut = []
    for money, score in both:
        before = money < most
        cut.append((np.append(money[before], most), rising(np.append(score[before], np.interp(most, money, score)))))
    lower = min(float(scores[-1]) for _, scores in cut)
    mine, random = (money_for(lower, money, scores) for money, scores in cut)
    return Saving(lower, mine, random, 1 - mine / random)


def rising(score: FloatArray) -> FloatArray:
    """Isotonic regression: the nearest scores, by least squares, that never fall."""
    levels: list[tuple[float, int]] = []
    for mean in score.tolist():
        count = 1
        while levels and levels[-1][0] > mean:
            before, points = levels.pop()
            mean = (before * points + mean * count) / (points + count)
            count += points
        levels.append((mean, count))
    return np.repeat([mean for mean, _ in levels], [count for _, count in levels])


def money_for(score: float, money: FloatArray, scores: FloatArray) -> float:
    """The money at which rising scores first reach a score; the nearest end of the curve if they do not cross it."""
    if not scores[0] < score < scores[-1]:
        return float(money[-1 if score >= scores[-1] else 0])
    at = int(np.searchsorted(scores, score))  # the first point that is as high
    step = (score - scores[at - 1]) / (scores[at] - scores[at - 1])
    return float(money[at - 1] + step * (money[at] - money[at - 1]))


CONFIDENCE = 0.9
POINTS = 60  # of a mean curve


@dataclass(frozen=True, eq=False)
class MeanCurve:
    """The mean score over seeds by the money spent, with a band that holds the mean with 90 % confidence."""

    arm: str
    seeds: tuple[int, ...]
    money: FloatArray  # (points,)
    mean: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class Difference:
    """Two arms on the same seeds: the mean of their paired differences with its 90 % interval."""

    arm: str
    other: str
    seeds: int
    mean: float
    low: float | None = None  # unknown with a single seed
    high: float | None = None

    @property
    def clear(self) -> bool:
        """Whether the interval does not hold 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def seeds_of(text: str) -> list[int]:
    """Seeds as they are typed."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        ends = (first, last if dash else first)
        if not all(end.isdecimal() and len(end) <= 9 for end in ends) or int(ends[0]) > int(ends[1]):
            raise ConfigError(f"--seeds {text}: not a list of seeds", fix="write 0-4, or 0,3,7")
        found += range(int(ends[0]), int(ends[1]) + 1)
        if len(found) > 1000:
            raise ConfigError(f"--seeds {text}: more than 1,000 seeds", fix="use fewer")
    if len(set(found)) < len(found):
        raise ConfigError(f"--seeds {text} names a seed twice", fix="name each once")
    return found


def mean_interval(values: Sequence[float]) -> tuple[float, float | None, float | None]:
    """The mean with its 90 % interval by Student's t; without one for a single value."""
    mean = fmean(values)
    if len(values) < 2:
        return mean, None, None
    from scipy.stats import t

    half = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def curves_by_arm(results: Sequence[RunResult]) -> dict[str, dict[int, LearningCurve]]:
    """The curves of every arm, by seed."""
    found: dict[str, dict[int, LearningCurve]] = {}
    for result in results:
        for arm, curve in curves_of(result).items():
            found.setdefault(arm, {})[result.config.seed] = curve
    return found


def mean_curve(arm: str, curves: Mapping[int, LearningCurve], task: str | None = None) -> MeanCurve:
    """The mean of the curves of some seeds, of a task or of the mean over tasks, over the money that all have spent."""
    scores = {seed: curve.mean if task is None else curve.scores[task] for seed, curve in curves.items()}
    low = max(float(curve.money[0]) for curve in curves.values())
    high = max(low, min(float(curve.money[-1]) for curve in curves.values()))
    grid: FloatArray = np.asarray(np.linspace(low, high, POINTS if high > low else 1), dtype=np.float64)
    values = np.stack([np.interp(grid, curves[seed].money, scores[seed]) for seed in curves])  # (seeds, points)
    bands = [mean_interval(column.tolist()) for column in values.T]
    ends = np.array([[mean if end is None else end for end in (mean, low, high)] for mean, low, high in bands])
    return MeanCurve(arm, tuple(curves), grid, *ends.T)


def area_by_seed(curves: Mapping[str, Mapping[int, LearningCurve]]) -> dict[str, dict[int, float]]:
    """The mean score along the curve of every arm and seed, over the money that all arms of the seed have spent."""
    found: dict[str, dict[int, float]] = {arm: {} for arm in curves}
    for seed in sorted({seed for by_seed in curves.values() for seed in by_seed}):
        there = {arm: by_seed[seed] for arm, by_seed in curves.items() if seed in by_seed}
        low = max(float(curve.money[0]) for curve in there.values())
        high = min(float(curve.money[-1]) for curve in there.values())
        for arm, curve in there.items():
            found[arm][seed] = area(curve.money, curve.mean, low, high)
    return found


def paired(arm: str, other: str, areas: Mapping[str, Mapping[int, float]]) -> Difference | None:
    """The paired difference of two arms over the seeds that both have; ``None`` if they share none."""
    shared = [seed for seed in areas[arm] if seed in areas[other]]
    if not shared:
        return None
    differences = [areas[arm][seed] - areas[other][seed] for seed in shared]
    return Difference(arm, other, len(shared), *mean_interval(differences))
