"""Exact spending without limits, against trying everything and against a table over all amounts of money."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from bursar.selection import Limits
from bursar.selection.spend import knapsack
from bursar.selection.spend.knapsack import KnapsackSolution, Menu, losses, prefer_first_of_equals, relax, solve, steps
from tests.selection.plain import (
    best_by_states,
    best_by_table,
    best_of_all,
    price_of,
    random_budget,
    random_menu,
    subsets,
)

MODES = ("joint", "disjoint", "single")


def as_mode(menu, mode):
    """All tasks or none at one price, any subset of them, or the first task alone with its reading."""
    if mode == "joint":
        price = menu.reading + menu.own.sum(axis=1)
        return Menu(menu.value.mean(axis=1, keepdims=True), np.zeros_like(menu.reading), price[:, None])
    return menu if mode == "disjoint" else Menu(menu.value[:, :1], menu.reading, menu.own[:, :1])


def slack(best):
    return 1e-9 * max(1.0, abs(best))


def assert_affordable_and_added_up(solved: KnapsackSolution, menu, budget):
    assert price_of(menu, solved.chosen) <= budget
    assert not (solved.chosen & (menu.value <= 0)).any()
    assert abs(solved.objective - sum(menu.value[solved.chosen].tolist())) <= slack(solved.objective)


def assert_best(solved: KnapsackSolution, menu, budget, best):
    assert_affordable_and_added_up(solved, menu, budget)
    assert abs(solved.objective - best) <= slack(best)
    assert solved.optimal
    assert solved.bound == solved.objective


# -- against trying everything ---------------------------------------------------------------------------------------
def test_the_references_agree_with_each_other():
    rng = np.random.default_rng(0)
    for _ in range(200):
        menu = random_menu(rng, int(rng.integers(0, 5)), int(rng.integers(1, 4)), dearest=7)
        budget = random_budget(rng, menu)
        tried = best_of_all(menu, np.ones(menu.value.shape, dtype=bool), budget, Limits())
        assert best_by_states(menu, budget) == pytest.approx(tried, abs=1e-12)
        assert best_by_table(menu, budget) == pytest.approx(tried, abs=1e-12)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dearest", [6, 40, 10**9])
def test_exact_spending_finds_the_best_of_all_selections(mode, dearest):
    rng = np.random.default_rng([dearest, MODES.index(mode)])
    for _ in range(350):
        tasks = int(rng.integers(1, 5))
        menu = as_mode(random_menu(rng, int(rng.integers(0, 11 - 2 * tasks)), tasks, dearest), mode)
        budget = random_budget(rng, menu)
        assert_best(solve(menu, budget), menu, budget, best_by_states(menu, budget))


SIXTEENTHS = st.integers(0, 32).map(lambda n: n / 16)  # sums of these are exact, so ties are ties


@given(data=st.data(), items=st.integers(0, 5), tasks=st.integers(1, 3), dearest=st.sampled_from([1, 3, 9]))
@settings(max_examples=200, deadline=None)
def test_exact_spending_finds_the_best_of_all_selections_of_any_case(data, items, tasks, dearest):
    def drawn(kind, count):
        return data.draw(st.lists(kind, min_size=count, max_size=count))

    value = np.array(drawn(SIXTEENTHS, items * tasks)).reshape(items, tasks)
    reading = np.array(drawn(st.integers(0, dearest), items), dtype=np.int64)
    own = np.array(drawn(st.integers(0, dearest), items * tasks), dtype=np.int64).reshape(items, tasks)
    menu, budget = Menu(value, reading, own), data.draw(st.integers(0, 2 * dearest * max(1, items)))
    assert_best(solve(menu, budget), menu, budget, best_by_states(menu, budget))


VALUES = {
    "all equal": lambda rng, menu: np.full(menu.value.shape, 0.7),
    "thirds": lambda rng, menu: np.round(menu.value * 3) / 3,
    "many zeros": lambda rng, menu: np.where(rng.random(menu.value.shape) < 0.5, 0.0, menu.value),
    "all zero": lambda rng, menu: np.zeros(menu.value.shape),
    "as the price": lambda rng, menu: menu.own / 64,
    "as the price and a bit": lambda rng, menu: (menu.own + 5) / 64,
    "some below zero": lambda rng, menu: menu.value - 0.4,
    "tiny": lambda rng, menu: menu.value * 1e-9,
}
PRICES = {
    "as drawn": lambda menu: (menu.reading, menu.own),
    "constant": lambda menu: (np.full_like(menu.reading, 3), np.full_like(menu.own, 2)),
    "nothing": lambda menu: (np.zeros_like(menu.reading), np.zeros_like(menu.own)),
    "no reading": lambda menu: (np.zeros_like(menu.reading), menu.own),
    "reading alone": lambda menu: (menu.reading, np.zeros_like(menu.own)),
    "reading that is free for some": lambda menu: (menu.reading * (np.arange(len(menu.reading)) % 2), menu.own),
    "thousands of a unit": lambda menu: (menu.reading * 1000, menu.own * 1000),
}


@pytest.mark.parametrize("prices", PRICES)
@pytest.mark.parametrize("values", VALUES)
def test_ties_and_degenerate_cases_are_solved_too(values, prices):
    rng = np.random.default_rng([list(VALUES).index(values), list(PRICES).index(prices)])
    for _ in range(12):
        drawn = random_menu(rng, int(rng.integers(1, 6)), int(rng.integers(1, 4)), dearest=8)
        menu = Menu(VALUES[values](rng, drawn), *PRICES[prices](drawn))
        for budget in (0, 1, random_budget(rng, menu), random_budget(rng, menu) + 7):
            solved, best = solve(menu, budget), best_by_states(menu, budget)
            assert abs(solved.objective - best) <= 1e-12 * max(1.0, best)
            assert_best(solved, menu, budget, best)


def test_all_that_is_worth_something_is_bought_when_money_is_no_matter():
    rng = np.random.default_rng(1)
    menu = random_menu(rng, 40, 3, dearest=9)
    menu = Menu(np.where(rng.random(menu.value.shape) < 0.2, 0.0, menu.value), menu.reading, menu.own)
    for budget in (price_of(menu, menu.value > 0), 10**12):
        np.testing.assert_array_equal(solve(menu, budget).chosen, menu.value > 0)


def test_a_budget_of_nothing_buys_what_is_free():
    menu = Menu(np.array([[0.5, 0.4], [0.9, 0.9]]), reading=np.array([0, 1]), own=np.array([[0, 1], [0, 0]]))
    assert solve(menu, 0).chosen.tolist() == [[True, False], [False, False]]


@pytest.mark.parametrize("times", [1000, 10**7])
def test_prices_and_budget_in_a_smaller_unit_change_nothing(times):
    rng = np.random.default_rng(times)
    for _ in range(60):
        menu = random_menu(rng, 30, 2, dearest=12)
        budget = random_budget(rng, menu)
        finer = Menu(menu.value, menu.reading * times, menu.own * times)
        change = int(rng.integers(0, times))  # that no price is small enough for
        np.testing.assert_array_equal(solve(finer, budget * times + change).chosen, solve(menu, budget).chosen)


def test_more_money_is_never_worth_less():
    menu = random_menu(np.random.default_rng(2), 60, 3, dearest=30)
    worth = [solve(menu, budget).objective for budget in range(0, 600, 7)]
    assert (np.diff(worth) >= 0).all()


# -- against a table over all amounts of money -----------------------------------------------------------------------
HARD = {
    "unrelated": lambda rng, price: rng.random(price.shape),
    "weakly related": lambda rng, price: (price + 20 * rng.random(price.shape)) / 128,
    "strongly related": lambda rng, price: (price + 16) / 128,
    "nearly strongly related": lambda rng, price: (price + 16 + rng.random(price.shape) / 50) / 128,
    "the other way round": lambda rng, price: (80 - price) / 128,
    "the price itself": lambda rng, price: price / 128,
    "few values": lambda rng, price: np.ceil(4 * rng.random(price.shape)) / 4,
}


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("share", [0.01, 0.2, 0.6])
def test_thousands_of_whole_items_are_spent_on_as_a_table_over_money_would(kind, share):
    rng = np.random.default_rng([list(HARD).index(kind), int(100 * share)])
    items = 2000 if kind != "the price itself" else 500
    own = rng.integers(1, 60, (items, 1))
    menu = Menu(HARD[kind](rng, own), np.zeros(items, dtype=np.int64), own)
    budget = int(share * own.sum())
    assert_best(solve(menu, budget), menu, budget, best_by_table(menu, budget))


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize(("items", "tasks", "share"), [(600, 2, 0.05), (300, 3, 0.3), (400, 2, 0.6)])
def test_hundreds_of_items_for_any_tasks_are_spent_on_as_a_table_over_money_would(kind, items, tasks, share):
    rng = np.random.default_rng([list(HARD).index(kind), items])
    reading, own = rng.integers(1, 12, items), rng.integers(1, 9, (items, tasks))
    menu = Menu(HARD[kind](rng, own), reading, own)
    budget = int(share * (reading.sum() + own.sum()))
    assert_best(solve(menu, budget), menu, budget, best_by_table(menu, budget))


@pytest.mark.parametrize("mode", MODES)
def test_many_items_of_few_prices_are_spent_on_as_a_table_over_money_would(mode):
    """Then several deviations change the cost alike, and the best selection takes some of them together."""
    rng = np.random.default_rng(MODES.index(mode))
    for _ in range(250):
        few = rng.integers(3, 30, 3)
        reading, own = rng.choice(few, 24), rng.choice(few, (24, 2))
        menu = as_mode(Menu(0.3 + 0.1 * rng.random((24, 2)), reading, own), mode)
        budget = int(rng.integers(0, price_of(menu, np.ones(menu.value.shape, dtype=bool))))
        assert_best(solve(menu, budget), menu, budget, best_by_table(menu, budget))


@pytest.mark.parametrize(
    ("sixteenths", "reading", "own", "budget"),
    [
        ([[8, 5], [9, 4]], [0, 3], [[4, 3], [1, 1]], 11),
        ([[6, 1, 8], [7, 10, 7]], [1, 1], [[1, 3, 4], [1, 1, 2]], 9),
        ([[12, 10, 6], [10, 11, 3], [5, 12, 8]], [1, 2, 1], [[3, 3, 3], [1, 4, 4], [2, 2, 2]], 16),
        ([[5, 9, 5], [9, 1, 2], [9, 4, 5], [11, 1, 6]], [0, 2, 3, 2], [[4, 4, 3], [3, 4, 4], [2, 4, 3], [1, 4, 1]], 19),
    ],
)
def test_an_item_that_deviates_in_another_way_pays_no_more_than_its_least_loss(sixteenths, reading, own, budget):
    """Found by charging it the loss of the way that it did not take, which loses the best selection of these."""
    menu = Menu(np.array(sixteenths) / 16, np.array(reading), np.array(own))
    assert_best(solve(menu, budget), menu, budget, best_by_table(menu, budget))


def test_what_is_worth_nothing_or_cannot_be_afforded_alone_is_not_offered():
    menu = Menu(np.array([[0.5, 0.0], [0.5, -0.2]]), np.array([3, 1]), np.array([[2, 1], [4, 1]]))
    assert menu.within(5).value.tolist() == [[0.5, 0.0], [0.5, 0.0]]
    assert menu.within(4).value.tolist() == [[0.0, 0.0], [0.0, 0.0]]


# -- the search, looked at from close by -----------------------------------------------------------------------------
@pytest.mark.parametrize("first_look", [1, 2, 5])
def test_a_short_first_look_changes_nothing(monkeypatch, first_look):
    monkeypatch.setattr(knapsack, "FIRST_LOOK", first_look)
    rng = np.random.default_rng(first_look)
    for kind in HARD:
        for _ in range(20):
            reading, own = rng.integers(0, 9, 25), rng.integers(1, 20, (25, int(rng.integers(1, 4))))
            menu = Menu(HARD[kind](rng, own), reading, own)
            budget = random_budget(rng, menu)
            assert_best(solve(menu, budget), menu, budget, best_by_table(menu, budget))


@pytest.mark.parametrize("states", [0, 30, 300])
def test_a_search_cut_short_gives_a_bound_that_holds_and_claims_no_more(monkeypatch, states):
    monkeypatch.setattr(knapsack, "MOST_STATES", states)
    rng = np.random.default_rng(states)
    unproven = 0
    for _ in range(60):
        reading, own = rng.integers(0, 9, 60), rng.integers(1, 40, (60, int(rng.integers(1, 4))))
        menu = Menu((own + 9 * rng.random(own.shape)) / 64, reading, own)
        budget = random_budget(rng, menu)
        solved, best = solve(menu, budget), best_by_table(menu, budget)
        assert_affordable_and_added_up(solved, menu, budget)
        assert solved.objective <= best + slack(best)
        assert solved.bound >= best - slack(best)
        if solved.optimal:
            assert abs(solved.objective - best) <= slack(best)
            assert solved.bound == solved.objective
        unproven += not solved.optimal
    assert unproven > 10


# -- the relaxation --------------------------------------------------------------------------------------------------
def relaxed_by_program(menu, budget):
    """The linear program with a variable for every item and subset of its tasks."""
    items, tasks = menu.value.shape
    sets = subsets(tasks)
    value, cost = (menu.value @ sets.T).ravel(), (menu.reading[:, None] + menu.own @ sets.T).ravel()
    rows = np.vstack([np.repeat(np.eye(items), len(sets), axis=1), cost])
    return -linprog(-value, A_ub=rows, b_ub=np.append(np.ones(items), budget)).fun


def test_the_bound_of_the_relaxation_is_the_linear_program_s():
    rng = np.random.default_rng(3)
    for case in range(150):
        menu = random_menu(rng, int(rng.integers(1, 9)), int(rng.integers(1, 5)), dearest=9)
        if case % 2:
            menu = Menu(np.round(menu.value * 4) / 4, menu.reading, menu.own)
        budget = random_budget(rng, menu)
        offered = menu.within(budget)
        assert relax(offered, budget).bound == pytest.approx(relaxed_by_program(offered, budget), abs=1e-9)


def test_the_plan_costs_what_it_says_and_every_item_is_content_with_it():
    rng = np.random.default_rng(4)
    for case in range(300):
        menu = random_menu(rng, int(rng.integers(1, 12)), int(rng.integers(1, 5)), dearest=9)
        if case % 2:
            menu = Menu(np.round(menu.value * 4) / 4, menu.reading, menu.own)
        budget = random_budget(rng, menu)
        menu = menu.within(budget)
        plan = relax(menu, budget)
        assert plan.left == budget - price_of(menu, plan.chosen) >= 0
        assert plan.bound == pytest.approx(menu.value[plan.chosen].sum() + plan.price * plan.left)
        sets = np.vstack([np.zeros(menu.value.shape[1], dtype=bool), subsets(menu.value.shape[1])])
        for item, planned in enumerate(plan.chosen):
            possible = sets[~(sets & (menu.value[item] <= 0)).any(axis=1)]
            cost = np.where(possible.any(axis=1), menu.reading[item], 0) + possible @ menu.own[item]
            gain = possible @ menu.value[item] - plan.price * cost
            as_planned = gain[(possible == planned).all(axis=1)][0]
            assert as_planned == pytest.approx(gain.max(), abs=1e-9)
            others = gain[(possible != planned).any(axis=1)]
            if len(others):  # a loss is what the best of the other ways is behind
                assert losses(menu, plan)[item] == pytest.approx(as_planned - others.max(), abs=1e-9)


def price_by_sorting(menu, budget):
    worth, cost = steps(menu)
    order = np.argsort(-worth.ravel(), kind="stable")
    over = np.flatnonzero(np.cumsum(cost.ravel()[order]) > budget)
    return worth.ravel()[order[over[0]]] if len(over) else 0.0


@pytest.mark.parametrize("kind", ["unrelated", "few values"])
def test_the_price_of_money_is_found_without_sorting_all_steps(kind):
    rng = np.random.default_rng(5)
    reading, own = rng.integers(0, 30, 15_000), rng.integers(1, 30, (15_000, 2))
    menu = Menu(HARD[kind](rng, own), reading, own)
    everything = int(reading.sum() + own.sum())
    for budget in (0, 7, 1000, 50_000, 300_000, everything - 1, everything):
        assert relax(menu, budget).price == price_by_sorting(menu, budget)


def test_money_for_all_steps_of_a_ratio_and_no_more_has_the_price_of_the_next():
    ratio = np.random.default_rng(6).integers(1, 5, (30_000, 1)) / 4
    menu = Menu(ratio, np.zeros(30_000, dtype=np.int64), np.ones((30_000, 1), dtype=np.int64))
    for level in (1.0, 0.75, 0.5, 0.25):
        enough = int((ratio >= level).sum())
        assert relax(menu, enough - 1).price == level
        assert relax(menu, enough).price == level - 0.25


# -- ties ------------------------------------------------------------------------------------------------------------
def test_of_items_that_are_alike_the_first_are_bought():
    menu = Menu(np.full((7, 2), 0.5), np.full(7, 2), np.full((7, 2), 1))
    assert solve(menu, 4 * 3 + 3).chosen.tolist() == [[True, True]] * 3 + [[True, False]] + [[False, False]] * 3


def test_the_plan_buys_of_what_is_as_good_bought_as_not_the_first_that_fit():
    menu = Menu(np.full((7, 2), 0.5), np.full(7, 2), np.full((7, 2), 1))  # all for half a unit of value a label
    plan = relax(menu, 4 * 3 + 3)
    assert plan.chosen.tolist() == [[True, True]] * 3 + [[False, False]] * 4
    assert plan.left == 3


def test_bringing_alike_items_into_order_keeps_price_and_value():
    rng = np.random.default_rng(6)
    for _ in range(100):
        kinds = random_menu(rng, 3, 2, dearest=4)
        menu = kinds.take(rng.integers(0, 3, 12))
        chosen = rng.random((12, 2)) < 0.5
        ordered = prefer_first_of_equals(chosen, menu, np.arange(12))
        assert price_of(menu, ordered) == price_of(menu, chosen)
        assert menu.value[ordered].sum() == pytest.approx(menu.value[chosen].sum())
        for first in range(12):  # later items buy no more
            for later in range(first + 1, 12):
                if (menu.value[first] == menu.value[later]).all():
                    assert ordered[first].tolist()[::-1] >= ordered[later].tolist()[::-1]


def test_bringing_items_into_order_leaves_others_alone():
    menu = Menu(np.array([[2.0], [2], [1], [1]]), np.zeros(4, dtype=np.int64), np.ones((4, 1), dtype=np.int64))
    chosen = np.array([[False], [True], [False], [True]])
    assert prefer_first_of_equals(chosen, menu, np.array([3])).ravel().tolist() == [False, True, True, False]
    shades = np.array([0, 0, 0, 1])[:, None]
    assert prefer_first_of_equals(chosen, menu, np.arange(4), shades).ravel().tolist() == [True, False, False, True]
