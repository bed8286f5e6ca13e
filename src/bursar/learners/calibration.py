"""Temperature scaling: one number per task that divides its scores, fitted on development items (Guo et al. 2017)."""

from __future__ import annotations

import math
from collections.abc import Callable

LOWEST, HIGHEST = 0.05, 20.0


def fit_temperature(loss: Callable[[float], float], steps: int = 40) -> float:
    """The temperature with the lowest loss, by golden-section search on its logarithm; the loss has one minimum.

    >>> round(fit_temperature(lambda t: (math.log(t) - math.log(1.7)) ** 2), 4)
    1.7
    >>> fit_temperature(lambda t: 0.0)  # all temperatures are equally good
    1.0
    """
    if loss(LOWEST) == loss(1.0) == loss(HIGHEST):
        return 1.0
    ratio = (math.sqrt(5) - 1) / 2
    low, high = math.log(LOWEST), math.log(HIGHEST)
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = loss(math.exp(left)), loss(math.exp(right))
    for _ in range(steps):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = loss(math.exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = loss(math.exp(right))
    return math.exp((low + high) / 2)
