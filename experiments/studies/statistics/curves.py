"""What else curves of scores against money say: areas, and what stopping early costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from bursar.campaign.curves import Curve, area
from bursar.comparison.paired import points_of


def areas(curves: Mapping[str, Curve]) -> dict[str, float]:
    """The mean score of every arm over the money that all of them have a score for.

    >>> areas({"MT-AVG": ([1, 2, 3], [0.5, 0.7, 0.8]), "RANDOM": ([1, 3, 4], [0.5, 0.6, 0.9])})
    {'MT-AVG': 0.675, 'RANDOM': 0.55}
    """
    points = {arm: points_of(curve) for arm, curve in curves.items()}
    low = max((money[0] for money, _ in points.values()), default=0.0)
    high = min((money[-1] for money, _ in points.values()), default=0.0)
    return {arm: area(money, score, low, high) for arm, (money, score) in points.items()}


class Regret(TypedDict):
    """What stopping cost, and what it saved."""

    score_lost: float  # the last score less the one at the stop; below 0 where going on would have hurt
    money_saved: float
    share_saved: float  # of what going on to the end costs


def regret(stopped_at: int | None, curve: Curve) -> Regret:
    """Stopping at a round against going on to the end; rounds count from 0, ``None`` never stopped.

    >>> found = regret(1, ([100, 200, 400], [0.5, 0.7, 0.75]))
    >>> round(found["score_lost"], 3), found["money_saved"], found["share_saved"]
    (0.05, 200.0, 0.5)
    >>> regret(None, ([100, 200, 400], [0.5, 0.7, 0.75]))
    {'score_lost': 0.0, 'money_saved': 0.0, 'share_saved': 0.0}
    """
    money, score = points_of(curve)
    at = len(money) - 1 if stopped_at is None else stopped_at
    if not 0 <= at < len(money):
        raise ValueError(f"the curve has rounds 0 to {len(money) - 1}; nothing can have stopped at {at}")
    left = float(money[-1] - money[at])
    return Regret(
        score_lost=float(score[-1] - score[at]),
        money_saved=left,
        share_saved=left / float(money[-1]) if left else 0.0,
    )
