"""Cases that once went wrong: found by fuzzing, kept as claims."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bursar.selection import Candidates, Limit, Limits, PoolFeatures, make_strategy
from bursar.selection.modifiers import bin_surplus
from bursar.selection.spend.knapsack import Menu, solve
from bursar.tasks import Prices
from tests.selection.plain import best_by_table, price_of, random_menu


def test_a_step_that_ties_with_its_bundle_but_for_the_last_digit_is_not_bought_before_it():
    # 0.3 / 3 is a digit above (0.2 + 0.3) / 5: the second task was planned without paying for reading.
    menu = Menu(np.array([[0.2, 1 - 0.7]]), np.array([1]), np.array([[1, 3]]))
    assert price_of(menu, solve(menu, 4).chosen) <= 4


def test_values_in_tenths_of_prices_never_overspend():
    rng = np.random.default_rng(0)
    for _ in range(1000):
        tasks = int(rng.integers(2, 4))
        menu = random_menu(rng, 5, tasks, 9)
        menu = Menu(
            0.1 * menu.own + 0.1 * menu.reading[:, None] * (rng.random((5, tasks)) < 0.5), menu.reading, menu.own
        )
        budget = int(rng.integers(0, menu.reading.sum() + menu.own.sum() + 1))
        solved = solve(menu, budget)
        assert price_of(menu, solved.chosen) <= budget
        assert abs(solved.objective - best_by_table(menu, budget)) < 1e-9


def test_a_pool_without_an_open_item_is_bought_nothing_of_within_limits():
    prices = Prices(("x", "y"), np.array([4, 4]), np.ones((2, 2), int))
    pool = Candidates(["a", "b"], np.full((2, 2), 0.3), prices, open=np.array([[True, False]] * 2))
    pool = replace(pool, limits=Limits([Limit("labels", np.ones((2, 2)), 3.0)]))
    for name in ("MT-AVG", "MT-AVG+RATIO_AL", "MT-AVG+BLP_AL"):
        assert len(make_strategy(name).select(pool, 50)) == 0


def test_values_in_proportion_to_prices_are_proven_too():
    own = np.random.default_rng(0).integers(1, 60, (2000, 1))
    menu = Menu(own / 128, np.zeros(2000, dtype=np.int64), own)
    solved = solve(menu, int(0.7 * own.sum()))
    assert solved.optimal
    assert solved.objective == int(0.7 * own.sum()) / 128


def test_disjoint_matching_still_buys_what_is_open_for_some_task():
    prices = Prices(("x", "y"), np.array([4, 4]), np.ones((2, 2), int))
    pool = Candidates(["a", "b"], np.full((2, 2), 0.3), prices, open=np.array([[True, False]] * 2))
    pool = replace(pool, features=PoolFeatures(words=np.array([3, 5])))
    assert len(make_strategy("UDJS+BLP_AL").select(pool, 50)) == 2
    assert len(make_strategy("UDJS+BLP_AL+IDMR").select(pool, 50)) == 2


def test_of_items_that_are_alike_the_first_are_bought():
    rng = np.random.default_rng(0)
    for _ in range(1000):
        of = rng.integers(0, int(rng.integers(1, 5)), int(rng.integers(2, 9)))
        kinds = Menu(rng.random((4, 1)), rng.integers(0, 5, 4), rng.integers(1, 9, (4, 1)))
        menu = kinds.take(of)
        chosen = solve(menu, int(rng.integers(0, menu.reading.sum() + menu.own.sum() + 1))).chosen.ravel()
        for kind in range(4):
            assert (np.diff(chosen[of == kind].astype(int)) <= 0).all(), (menu, chosen)


def test_bins_that_lack_equally_much_are_taken_from_the_first_on():
    # 1/6 − 2/9 and 3/6 − 5/9 are both −1/18.
    assert bin_surplus(np.array([1, 3, 2]), np.array([2, 5, 2])).argsort(kind="stable")[0] == 0
