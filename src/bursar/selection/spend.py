"""Spending: a ranking, prices and a budget to the items that are bought."""

from __future__ import annotations

import numpy as np

from bursar.ragged import IntArray


def greedy_by_confidence(ranking: IntArray, price: IntArray, budget: int) -> IntArray:
    """Walk down the ranking, buy what is affordable, skip what is not, and go on (errata 13).

    Each sweep buys the longest affordable stretch at once; what stops it costs more than what is left, and so does
    everything as dear, so there are never more sweeps than there are different prices.

    >>> greedy_by_confidence(np.array([2, 0, 1]), np.array([5, 1, 6]), budget=8).tolist()
    [2, 1]
    """
    bought: list[IntArray] = []
    rest, left = ranking, int(budget)
    while len(rest := rest[price[rest] <= left]):
        running = np.cumsum(price[rest])
        fits = int(np.searchsorted(running, left, side="right"))
        bought.append(rest[:fits])
        left -= int(running[fits - 1])
        rest = rest[fits + 1 :]
    return np.concatenate([ranking[:0], *bought])
