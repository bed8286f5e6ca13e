"""Several runs of one campaign that differ in their seeds: mean curves with a band, and paired differences.

Runs are compared seed by seed: two strategies that saw the same seed items and splits differ by less than two runs
with different seeds do, so paired differences have shorter intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np

from bursar.campaign.curves import LearningCurve, area, curves_of
from bursar.campaign.results import RunResult
from bursar.errors import ConfigError
from bursar.ragged import FloatArray

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
    """Seeds as they are typed.

    >>> seeds_of("0-4"), seeds_of("3,7-8")
    ([0, 1, 2, 3, 4], [3, 7, 8])
    """
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
    """The mean with its 90 % interval by Student's t; without one for a single value.

    >>> mean, low, high = mean_interval([1.0, 2.0, 3.0])
    >>> mean, round(low, 3), round(high, 3)
    (2.0, 0.314, 3.686)
    """
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
    mean = np.array([found[0] for found in bands])
    lows = np.array([found[0] if found[1] is None else found[1] for found in bands])
    highs = np.array([found[0] if found[2] is None else found[2] for found in bands])
    return MeanCurve(arm, tuple(curves), grid, mean, lows, highs)


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
    """The paired difference of two arms over the seeds that both have; ``None`` if they share none.

    >>> found = paired("COVER", "RANDOM", {"COVER": {0: 0.8, 1: 0.7}, "RANDOM": {0: 0.7, 1: 0.6, 2: 0.1}})
    >>> found.seeds, round(found.mean, 3), found.clear
    (2, 0.1, True)
    """
    shared = [seed for seed in areas[arm] if seed in areas[other]]
    if not shared:
        return None
    differences = [areas[arm][seed] - areas[other][seed] for seed in shared]
    return Difference(arm, other, len(shared), *mean_interval(differences))
