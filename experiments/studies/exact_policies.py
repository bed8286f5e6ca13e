"""The best policies without a search, to check the search: a closed form, or a line search over sums of weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bursar.curriculum import StepLog
from bursar.curriculum.estimators import gather, weighed
from bursar.curriculum.improve import Linear, Ratio, closed_form, objective_of, regularised
from bursar.curriculum.policy import softmax
from bursar.errors import ConfigError
from bursar.ragged import BoolArray, FloatArray

SUMS, ZOOMS, TOPS = 66, 6, 3  # sums of weights tried at once, refinements of the best, and maxima that are refined
STEPS, FARTHEST = 60, 2.0**60


def best_policy(
    logs: Sequence[StepLog],
    entropy: float = 0.5,
    estimator: str = "self-normalised",
    reward: str = "prediction-gain",
) -> tuple[FloatArray, float]:
    """The best policy by logs, as the share of each task in their order, and its objective."""
    steps, _ = weighed(gather(logs, reward), "balanced", fixed=True)
    value = objective_of(steps, estimator)
    corner = value.corner() if entropy == 0 else None
    if corner is not None:
        best = corner
    elif isinstance(value, Linear):
        best = closed_form(value.gains, entropy)
    elif isinstance(value, Ratio):
        best = best_ratio(value.earned, value.weight, entropy)
    else:
        raise ConfigError(
            f"the estimator {estimator!r} has no exact solver", fix="search for the policy: improve(logs)"
        )
    return best, float(regularised(value, best[None], entropy)[0])


def best_ratio(earned: FloatArray, weight: FloatArray, entropy: float) -> FloatArray:
    """The policy that maximises π·earned / π·weight + λ H(π), to about 1e-8.

    For a given sum of weights s = π·weight the problem is concave, and its optimum is a softmax of earned / (λ s) minus
    a multiple of weight. The best s is found by a line search with refinement.

    >>> best_ratio(np.array([0.0, np.log(3)]), np.ones(2), entropy=1.0).round(6).tolist()
    [0.25, 0.75]
    """
    least, reach = weight.min(), np.ptp(weight)
    if reach <= 1e-12 * weight.max():
        return closed_form(earned / weight, entropy)
    value, places = Ratio(earned, weight), (weight - least) / reach

    def scanned(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The best policy for each sum but the ends, and its objective."""
        slopes = earned / (entropy * (least + reach * sums[1:-1, None]))
        policies = softmax(slopes - _multiples(slopes, places, sums[1:-1])[:, None] * places)
        return policies, regularised(value, policies, entropy)

    # Denser at the ends, where policies are sharp. There may be several maxima.
    sums = (1 - np.cos(np.linspace(0, np.pi, SUMS))) / 2
    policies, heights = scanned(sums)
    walled = np.concatenate([[-np.inf], heights, [-np.inf]])
    tops = np.flatnonzero((heights >= walled[:-2]) & (heights >= walled[2:]))
    found: list[tuple[float, FloatArray]] = []
    for top in tops[np.argsort(-heights[tops])][:TOPS]:
        near = np.linspace(sums[top], sums[top + 2], SUMS)
        for _ in range(ZOOMS):
            policies, heights = scanned(near)
            best = int(heights.argmax())
            near = np.linspace(near[best], near[best + 2], SUMS)
        found.append((float(heights[best]), policies[best]))
    return max(found, key=lambda one: one[0])[1]


def _multiples(slopes: FloatArray, places: FloatArray, sums: FloatArray) -> FloatArray:
    """For each sum, the x with softmax(slopes − x·places)·places = sum, which decreases in x.

    By Newton's method; the derivative is the variance of the places. Steps that leave the bracket are bisections.
    """
    low, high = _bracketed(slopes, places, sums)
    x = (low + high) / 2
    for _ in range(STEPS):
        policies = softmax(slopes - x[:, None] * places)
        mean = policies @ places
        miss = mean - sums
        low, high = np.where(miss > 0, x, low), np.where(miss > 0, high, x)
        if np.abs(miss).max() < 1e-13:
            break
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            stepped = x + miss / (policies @ places**2 - mean**2)
        x = np.where((stepped > low) & (stepped < high), stepped, (low + high) / 2)
    return x


def _bracketed(slopes: FloatArray, places: FloatArray, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A bracket of each x of ``_multiples``, found by doubling."""

    def above(x: FloatArray) -> BoolArray:
        return softmax(slopes - x[:, None] * places) @ places > sums

    low: FloatArray = np.full(len(sums), -1.0)
    high: FloatArray = np.full(len(sums), 1.0)
    while not (fine := above(low)).all() and low.min() > -FARTHEST:
        low = np.where(fine, low, 2 * low)
    while (short := above(high)).any() and high.max() < FARTHEST:
        high = np.where(short, 2 * high, high)
    return low, high
