"""Confidence and spending against the plain loops that they replace."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bursar.bench.harness import Case, Sides, bench_case
from bursar.selection import greedy_by_confidence
from bursar.tasks import Beliefs
from bursar.uncertainty import entropy_confidence

CASES: list[Case] = []


@bench_case(CASES, "entropy-100k", "entropy confidence of 100,000 items × 10 labels, arrays against a row at a time", 3)
def entropy() -> Sides:
    """The row-by-row way is what the field's libraries did for years."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(10), 100_000).astype(np.float32)
    beliefs = Beliefs.of(p, np.ones(len(p), dtype=np.int64))

    def theirs() -> Any:
        rows = p.tolist()
        return [1 + sum(x * math.log(x) for x in row if x > 0) / math.log(len(row)) for row in rows]

    return lambda: entropy_confidence(beliefs), theirs


@bench_case(CASES, "greedy-1m", "greedy spending on 1,000,000 items, sweeps against a loop over the ranking", 3)
def greedy() -> Sides:
    """Both skip what cannot be afforded and go on; both start from the ranking."""
    rng = np.random.default_rng(0)
    price = rng.integers(5, 60, 1_000_000)
    ranking = rng.permutation(1_000_000)

    def theirs() -> Any:
        left, bought = 500_000, []
        for item in ranking.tolist():
            if price[item] <= left:
                bought.append(item)
                left -= int(price[item])
        return bought

    return lambda: greedy_by_confidence(ranking, price, 500_000), theirs
