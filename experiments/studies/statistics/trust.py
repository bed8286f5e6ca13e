"""How well confidence tells accuracy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

ROUNDING = 1e-12  # values closer than this are equal


def r_squared(confidence: ArrayLike, accuracy: ArrayLike) -> float:
    """The share of the variance of accuracy that a linear function of confidence explains: paper 1, Figure 5.

    The squared correlation; 0 if either is constant.

    >>> round(r_squared([0.2, 0.4, 0.6], [0.1, 0.5, 0.9]), 6), r_squared([0.5, 0.5], [0.0, 1.0])
    (1.0, 0.0)
    """
    sure, right = np.asarray(confidence), np.asarray(accuracy)
    if min(np.ptp(sure), np.ptp(right)) <= ROUNDING:
        return 0.0
    x, y = sure - sure.mean(), right - right.mean()
    return float(min(1.0, (x @ y) ** 2 / ((x @ x) * (y @ y))))
