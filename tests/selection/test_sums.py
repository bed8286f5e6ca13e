"""Doubts that add up over units: what an item is worth, and that it can be spent in any way."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from bursar.selection import Candidates, PoolFeatures, greedy_by_confidence, make_strategy
from bursar.tasks import Prices

WAYS = ("GRD_AL", "RATIO_AL", "BLP_AL")


def doubtful_pool(seed, items=9):
    rng = np.random.default_rng(seed)
    prices = Prices(("intent", "slots"), rng.integers(1, 6, items), rng.integers(1, 4, (items, 2)))
    doubt = rng.random((items, 2)) * [1, 10]
    return Candidates(
        [f"u{n}" for n in range(items)], rng.random((items, 2)), prices, features=PoolFeatures(doubt=doubt)
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("weights", [None, {"intent": 0.8, "slots": 0.2}])
def test_sums_of_doubts_are_spent_exactly_by_ratio_and_greedily(seed, weights):
    pool, budget = doubtful_pool(seed), 25
    share = np.array([0.5, 0.5] if weights is None else [0.8, 0.2])
    doubt = pool.features.doubt
    for name, value in (("MT-SUM", 2 * doubt @ share), ("MT-SHARE", (doubt / doubt.sum(axis=0)) @ share)):
        found = {how: make_strategy(f"{name}+{how}", weights=weights).select(pool, budget) for how in WAYS}
        price = pool.prices.joint()
        subsets = [list(some) for size in range(10) for some in itertools.combinations(range(9), size)]
        best = max(value[some].sum() for some in subsets if price[some].sum() <= budget)
        assert found["BLP_AL"].certificate.objective == pytest.approx(best)
        assert found["BLP_AL"].certificate.optimal
        for how, order in (("GRD_AL", value), ("RATIO_AL", value / price)):
            picks = greedy_by_confidence(np.argsort(-order), price, budget)
            assert sorted(found[how].items.tolist()) == sorted(picks.tolist())


def test_shares_count_tasks_alike_and_sums_count_units_alike():
    doubt = np.array([[1.0, 2.0], [0.0, 4.0], [0.5, 4.0]])
    one = np.ones(3, dtype=np.int64)
    pool = Candidates(
        ["a", "b", "c"],
        np.zeros((3, 2)),
        Prices(("x", "y"), one, np.ones((3, 2), int)),
        features=PoolFeatures(doubt=doubt),
    )
    assert make_strategy("MT-SUM").value(pool).tolist() == [3.0, 4.0, 4.5]
    assert make_strategy("MT-SHARE").value(pool) == pytest.approx([(1 / 1.5 + 0.2) / 2, 0.2, (0.5 / 1.5 + 0.4) / 2])
    assert make_strategy("MT-SUM").asks == frozenset()
    nothing = replace(pool, features=PoolFeatures(doubt=np.zeros((3, 2))))
    assert len(make_strategy("MT-SHARE").select(nothing, 100)) == 3
