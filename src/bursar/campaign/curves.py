"""Learning curves against money."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


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
