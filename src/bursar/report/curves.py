"""Learning curves against money, and what they say of two strategies at equal money."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bursar.ragged import FloatArray

RANDOM = "RANDOM"


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
    enough: float | None  # the money from which on the strategy stayed at or above the other's mean score
    from_the_start: bool  # its first point was that good already

    @property
    def gain(self) -> float:
        """How much higher the mean score over tasks is than the other's."""
        return float(np.mean(list(self.mine.values())) - np.mean(list(self.others.values())))

    @property
    def saved(self) -> float | None:
        """The share of the money that was not needed for the other's score; ``None`` where that was not reached."""
        return None if self.enough is None else 1 - self.enough / self.money


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
    >>> compare(mine, other).enough, compare(mine, other).saved
    (150.0, 0.25)
    """
    money = float(min(mine.money[-1], other.money[-1]))
    if len(mine) < 2 or len(other) < 2 or money <= max(mine.money[0], other.money[0]):
        return None
    wanted = other.at(money, other.mean)
    enough, from_the_start = enough_money(mine.money, mine.mean, wanted, money)
    return Comparison(
        other=other.arm,
        money=money,
        mine={name: mine.at(money, scores) for name, scores in mine.scores.items()},
        others={name: other.at(money, scores) for name, scores in other.scores.items()},
        enough=enough,
        from_the_start=from_the_start,
    )


def enough_money(money: FloatArray, scores: FloatArray, wanted: float, most: float) -> tuple[float | None, bool]:
    """From which money on, up to ``most``, a curve stays at or above a score; and whether it always did.

    The last crossing counts, not the first: a score that was touched once by luck and lost again was not reached.

    >>> enough_money(np.array([1.0, 2, 3, 4]), np.array([0.1, 0.6, 0.3, 0.7]), 0.5, 4.0)
    (3.5, False)
    >>> enough_money(np.array([1.0, 2]), np.array([0.1, 0.2]), 0.5, 2.0)
    (None, False)
    """
    inside = money < most
    x = np.append(money[inside], most)
    y = np.append(scores[inside], np.interp(most, money, scores))
    below = np.flatnonzero(y < wanted)
    if not len(below):
        return float(x[0]), True
    last = int(below[-1])
    if last == len(x) - 1:
        return None, False
    step = (wanted - y[last]) / (y[last + 1] - y[last])
    return float(x[last] + step * (x[last + 1] - x[last])), False
