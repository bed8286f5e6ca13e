"""Combining and spending, against their definitions."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.selection import Candidates, average, greedy_by_confidence, make_strategy, maximum, minimum
from bursar.tasks import Prices


def plain_greedy(ranking, price, budget):
    bought = []
    for item in ranking:
        if price[item] <= budget:
            bought.append(int(item))
            budget -= price[item]
    return bought


@given(st.lists(st.integers(0, 12), min_size=0, max_size=40), st.integers(0, 120), st.integers(0, 10**6))
@settings(max_examples=400, deadline=None)
def test_greedy_in_sweeps_buys_what_the_plain_loop_buys(prices, budget, seed):
    price = np.array(prices, dtype=np.int64)
    ranking = np.random.default_rng(seed).permutation(len(price))
    assert greedy_by_confidence(ranking, price, budget).tolist() == plain_greedy(ranking, price, budget)


def test_the_three_aggregations_are_those_of_the_paper():
    confidence = np.array([[0.2, 0.6], [0.9, 0.1]])
    np.testing.assert_allclose(average(confidence), [0.4, 0.5])
    assert maximum(confidence).tolist() == [0.6, 0.9]
    assert minimum(confidence).tolist() == [0.2, 0.1]


def test_strategies_rank_by_their_aggregation():
    confidence = np.array([[0.5, 0.5], [0.1, 0.8], [0.3, 0.55]])
    pool = Candidates(["a", "b", "c"], confidence, Prices(("x", "y"), np.ones(3, int), np.zeros((3, 2), int)))
    first = {name: pool.ids[make_strategy(name).select(pool, 1).items[0]] for name in ("MT-AVG", "MT-MAX", "MT-MIN")}
    assert first == {"MT-AVG": "c", "MT-MAX": "a", "MT-MIN": "b"}


def test_random_selections_are_uniform_over_items():
    pool = Candidates(
        [f"u{n}" for n in range(10)], np.zeros((10, 1)), Prices(("x",), np.ones(10, int), np.zeros((10, 1), int))
    )
    counts = np.zeros(10)
    for seed in range(600):
        counts[make_strategy("random").select(pool, 3, seed=seed).items] += 1
    # Each item is drawn 180 times on average, with a standard deviation of 11.2.
    assert (np.abs(counts - 180) < 5 * 11.3).all()


def test_a_strategy_in_a_few_lines_is_found_by_name():
    from bursar.selection.strategies import STRATEGIES, strategy

    @strategy("CHEAPEST", "the cheapest items first")
    def cheapest(pool, budget, rng):
        return greedy_by_confidence(pool.ranking(pool.prices.joint().astype(float)), pool.prices.joint(), budget)

    try:
        pool = Candidates(["a", "b"], np.zeros((2, 1)), Prices(("x",), np.array([5, 2]), np.zeros((2, 1), int)))
        assert make_strategy("cheapest").select(pool, 6).items.tolist() == [1]
    finally:
        STRATEGIES._entries.pop("CHEAPEST")
