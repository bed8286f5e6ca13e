"""Learning curves: scores against cost, and two strategies compared at equal cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bursar.campaign.curves import saved_at_equal_money
from bursar.campaign.results import RunResult
from bursar.campaign.savings import RANDOM as RANDOM
from bursar.ragged import FloatArray


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
        mean: FloatArray = np.mean(list(self.scores.values()), axis=0)
        return mean

    def at(self, money: float) -> dict[str, float]:
        """The score of each task at an amount of money."""
        return {name: float(np.interp(money, self.money, scores)) for name, scores in self.scores.items()}


@dataclass(frozen=True)
class CurveComparison:
    """The strategy against another one, at the smaller of their two costs."""

    other: str
    money: float  # in units
    mine: Mapping[str, float]
    others: Mapping[str, float]
    saved: float  # share of the money at the score that both reach; negative if it cost more
    from_the_start: bool  # the other never scored above the strategy's first point

    @property
    def gain(self) -> float:
        """Difference of the mean scores over tasks."""
        return float(np.mean(list(self.mine.values())) - np.mean(list(self.others.values())))


def curves_of(result: RunResult) -> dict[str, LearningCurve]:
    """The curve of every strategy that has test scores."""
    curves = {}
    for arm, found in result.arms.items():
        rounds = [r for r in found.rounds if r.test]
        if rounds:
            curves[arm] = LearningCurve(
                arm,
                tuple(r.round for r in rounds),
                np.array([r.spent for r in rounds], dtype=float),
                {n: np.array([r.test[n][t.metric] for r in rounds]) for n, t in result.tasks.items()},
            )
    return curves


def baseline(result: RunResult) -> str | None:
    """The strategy to compare with: random if it was run, else the first other one."""
    others = [arm for arm in result.arms if arm != result.strategy]
    return RANDOM if RANDOM in others else next(iter(others), None)


def compare(mine: LearningCurve, other: LearningCurve) -> CurveComparison | None:
    """Compare two strategies at equal cost; ``None`` if one of them has a single point.

    >>> mine = LearningCurve("MT-AVG", (0, 1), np.array([100.0, 200]), {"intent": np.array([0.5, 0.9])})
    >>> other = LearningCurve("RANDOM", (0, 1), np.array([100.0, 200]), {"intent": np.array([0.5, 0.7])})
    >>> compare(mine, other).saved
    0.25
    """
    saving = saved_at_equal_money((mine.money, mine.mean), (other.money, other.mean))
    if saving is None:
        return None
    money = float(min(mine.money[-1], other.money[-1]))
    at_start = saving["money"] == mine.money[0]
    found = CurveComparison(other.arm, money, mine.at(money), other.at(money), saving["saved"], at_start)
    # The saving is read off monotone curves: a lucky round may give it the opposite sign of the gain.
    return found if found.saved * found.gain > 0 else replace(found, saved=0.0)
