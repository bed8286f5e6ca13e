"""Learning curves against money, and what they say of two strategies at equal money."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bursar.campaign.curves import saved_at_equal_money
from bursar.campaign.savings import RANDOM as RANDOM
from bursar.ragged import FloatArray


@dataclass(frozen=True, eq=False)
class Curve:
    """One strategy's scores on the test set as its money was spent, by straight lines between the rounds."""

    arm: str
    rounds: tuple[int, ...]
    money: FloatArray  # (points,) in units, never falling
    scores: Mapping[str, FloatArray]  # task to (points,)

    def __len__(self) -> int:
        return len(self.money)

    @property
    def mean(self) -> FloatArray:
        """Over the tasks: (points,)."""
        mean: FloatArray = np.mean(list(self.scores.values()), axis=0)
        return mean

    def at(self, money: float, scores: FloatArray) -> float:
        """One of its scores at an amount of money."""
        return float(np.interp(money, self.money, scores))


@dataclass(frozen=True)
class Comparison:
    """The strategy against another, both with the money of the one that spent less."""

    other: str
    money: float  # in units
    mine: Mapping[str, float]
    others: Mapping[str, float]
    saved: float  # share of the money, at the score that both reach; below 0 where it cost more
    from_the_start: bool  # the other never had more than where the strategy began

    @property
    def gain(self) -> float:
        """How much higher the mean score over tasks is than the other's."""
        return float(np.mean(list(self.mine.values())) - np.mean(list(self.others.values())))


def curves_of(result: Mapping[str, Any]) -> dict[str, Curve]:
    """The curve of every strategy that has a score on the test set."""
    curves = {}
    for arm, found in result["arms"].items():
        rounds = [r for r in found["rounds"] if r["test"]]
        if rounds:
            curves[arm] = Curve(
                arm,
                tuple(r["round"] for r in rounds),
                np.array([r["spent"] for r in rounds], dtype=float),
                {n: np.array([r["test"][n][t["metric"]] for r in rounds]) for n, t in result["tasks"].items()},
            )
    return curves


def baseline(result: Mapping[str, Any]) -> str | None:
    """What the strategy is measured against: random if it ran beside it, else the first that did."""
    others = [arm for arm in result["arms"] if arm != result["strategy"]]
    return RANDOM if RANDOM in others else next(iter(others), None)


def compare(mine: Curve, other: Curve) -> Comparison | None:
    """Two strategies at equal money; ``None`` while one of them is a single point.

    >>> mine = Curve("MT-AVG", (0, 1), np.array([100.0, 200]), {"intent": np.array([0.5, 0.9])})
    >>> other = Curve("RANDOM", (0, 1), np.array([100.0, 200]), {"intent": np.array([0.5, 0.7])})
    >>> compare(mine, other).saved
    0.25
    """
    saving = saved_at_equal_money((mine.money, mine.mean), (other.money, other.mean))
    if saving is None:
        return None
    money = float(min(mine.money[-1], other.money[-1]))
    found = Comparison(
        other=other.arm,
        money=money,
        mine={name: mine.at(money, scores) for name, scores in mine.scores.items()},
        others={name: other.at(money, scores) for name, scores in other.scores.items()},
        saved=saving["saved"],
        from_the_start=saving["money"] == mine.money[0],
    )
    # Curves are made to rise before they are read, so a lucky round may decide who ended higher and not this.
    return found if found.saved * found.gain > 0 else replace(found, saved=0.0)
