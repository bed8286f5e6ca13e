"""The estimate of what was saved as it was before: least squares with one exponent, and intervals by resampling.

Kept to be compared with. Both errors are taken to fall as powers of money with one exponent, and nothing is believed
beforehand: the shadows' few items, where curves are steep, make the campaign's money look wasted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bursar.campaign.audit import Slice
from bursar.campaign.results import SavingsEstimate
from bursar.campaign.savings import is_known
from bursar.ragged import FloatArray
from bursar.tasks import Task

DRAWS = 1000
FEWEST_ITEMS, FEWEST_SLICES = 20, 3
LEAST_ERROR = 0.005


def savings_before(slices: Sequence[Slice], tasks: Mapping[str, Task], seed: int = 0) -> SavingsEstimate | None:
    """The share of the money saved against random labelling, with a 90 % interval; ``None`` if too little is known."""
    slices = [part for part in slices if part.shadow and part.shadow_spent and min(map(len, part.model.values()))]
    items = sum(len(next(iter(part.model.values()))) for part in slices)
    if len(slices) < FEWEST_SLICES or items < FEWEST_ITEMS:
        return None
    rng = np.random.default_rng(seed)
    money = np.array([[part.spent, part.shadow_spent] for part in slices], dtype=float)  # (slices, 2)
    sizes = np.array([len(next(iter(part.model.values()))) for part in slices], dtype=float)
    errors = np.stack([_errors(part, tasks, rng) for part in slices], axis=1)  # (draws + 1, slices, 2)
    worth = exchange_rate(errors, money, sizes)
    saved = 1 - 1 / worth
    low, high = np.quantile(saved[1:], [0.05, 0.95])
    known = is_known(float(low), float(high))
    return SavingsEstimate(
        saved=float(saved[0]), low=float(low), high=float(high), known=known, items=items, slices=len(slices)
    )


def _errors(part: Slice, tasks: Mapping[str, Task], rng: np.random.Generator) -> FloatArray:
    """1 − the mean score of the tasks, for the items as they are and for every bootstrap draw: (draws + 1, 2).

    Both models are scored on the same draws, so that what is easy for both cancels out.
    """
    weights = {}
    for size in {len(tally) for tally in part.model.values()}:
        draws = rng.multinomial(size, np.full(size, 1 / size), DRAWS)
        weights[size] = np.vstack([np.ones(size), draws]).astype(float)
    columns = []
    for tallies in (part.model, part.shadow or {}):
        scores = [tasks[name].score(weights[len(tally)] @ tally) for name, tally in tallies.items()]
        columns.append(1 - np.mean(scores, axis=0))
    return np.stack(columns, axis=-1)


def exchange_rate(errors: FloatArray, money: FloatArray, sizes: FloatArray) -> FloatArray:
    """How many units of random labelling one unit of the strategy's money was worth: (draws, slices, 2) to (draws,).

    Least squares of log error on log money with one slope and two intercepts, slices weighed by their size.

    >>> money = np.array([[100.0, 100], [200, 150], [400, 200]])
    >>> true = np.stack([(2 * money[:, 0]) ** -0.5, money[:, 1] ** -0.5], axis=1)
    >>> exchange_rate(true[None], money, np.ones(3)).round(6).tolist()
    [2.0]
    """
    y = np.log(np.maximum(errors, LEAST_ERROR))
    x = np.broadcast_to(np.log(money), y.shape)
    w = (sizes / sizes.sum())[None, :, None]
    x_mean, y_mean = (w * x).sum(axis=1, keepdims=True), (w * y).sum(axis=1, keepdims=True)
    slope = (w * (x - x_mean) * (y - y_mean)).sum(axis=(1, 2)) / (w * (x - x_mean) ** 2).sum(axis=(1, 2))
    # A curve that does not fall says nothing about savings; a flat slope would make them infinite.
    b = np.clip(-slope, 0.05, 3.0)
    level = y_mean[:, 0] + b[:, None] * x_mean[:, 0]  # log a − b·log c, and log a
    # Between a quarter and twenty times: further out the data say no more than "much less" and "much more".
    rate: FloatArray = np.clip(np.exp((level[:, 1] - level[:, 0]) / b), 0.25, 20)
    return rate
