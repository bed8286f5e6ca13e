"""Greedy spending, against the plain loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.errors import SelectionError
from bursar.selection import GroupCap, Limit, Limits, greedy_by_confidence
from bursar.selection.spend import greedy
from bursar.selection.spend.greedy import best_ratio_first, least_confident_first, walk
from bursar.selection.spend.knapsack import Menu, solve
from tests.selection.plain import price_of, random_budget, random_menu, subsets, walk_bundles

seeds = st.integers(0, 10**6)


# -- whole items -----------------------------------------------------------------------------------------------------
def plain_greedy(ranking, price, budget):
    bought = []
    for item in ranking:
        if price[item] <= budget:
            bought.append(int(item))
            budget -= price[item]
    return bought


@given(st.lists(st.integers(0, 12), min_size=0, max_size=40), st.integers(0, 120), seeds)
@settings(max_examples=300, deadline=None)
def test_greedy_in_sweeps_buys_what_the_plain_loop_buys(prices, budget, seed):
    price = np.array(prices, dtype=np.int64)
    ranking = np.random.default_rng(seed).permutation(len(price))
    assert greedy_by_confidence(ranking, price, budget).tolist() == plain_greedy(ranking, price, budget)


# -- orders ----------------------------------------------------------------------------------------------------------
def test_least_confident_first_offers_label_after_label_by_value():
    rng = np.random.default_rng(0)
    for _ in range(100):
        menu = random_menu(rng, 6, 3, dearest=5)
        menu = Menu(np.round(menu.value, 1), menu.reading, menu.own)
        able = rng.random((6, 3)) < 0.7
        items, bundles = least_confident_first(menu, able)
        assert (bundles.sum(axis=1) == 1).all()
        labels = [(item, int(bundle.argmax())) for item, bundle in zip(items.tolist(), bundles, strict=True)]
        in_order = map(tuple, np.argwhere(able).tolist())
        assert labels == sorted(in_order, key=lambda label: -menu.value[label])  # which keeps ties in order


def steps_by_trying(value, reading, own):
    """The bundle with the most value per cost of all, then each further task by its own: (ratio, tasks) in order."""
    tasks = len(value)
    ratio = {tuple(s): (s @ value) / (reading + s @ own) for s in subsets(tasks)}
    best = max(ratio, key=ratio.get)
    further = sorted((t for t in range(tasks) if not best[t]), key=lambda t: -value[t] / own[t])
    return [(ratio[best], best), *((value[t] / own[t], tuple(np.arange(tasks) == t)) for t in further)]


def test_best_ratio_first_offers_the_best_bundle_of_each_item_and_then_its_further_tasks():
    rng = np.random.default_rng(1)
    for _ in range(150):
        items, tasks = 6, int(rng.integers(1, 5))
        menu = Menu(rng.random((items, tasks)), rng.integers(0, 9, items), rng.integers(1, 9, (items, tasks)))
        expected = [
            (ratio, item, bundle)
            for item in range(items)
            for ratio, bundle in steps_by_trying(menu.value[item], menu.reading[item], menu.own[item])
        ]
        expected.sort(key=lambda step: -step[0])
        offered = best_ratio_first(menu, np.ones((items, tasks), dtype=bool))
        found = [(item, tuple(bundle)) for item, bundle in zip(offered[0].tolist(), offered[1].tolist(), strict=True)]
        assert found == [(item, bundle) for _, item, bundle in expected]


@pytest.mark.parametrize("order", [least_confident_first, best_ratio_first])
def test_every_label_that_may_be_bought_is_offered_once_and_no_other(order):
    rng = np.random.default_rng(2)
    for _ in range(100):
        menu = random_menu(rng, 7, 3, dearest=4)
        menu = Menu(np.round(menu.value * 2) / 2, menu.reading, menu.own)
        able = rng.random((7, 3)) < 0.6
        items, bundles = order(menu, able)
        offered = np.zeros((7, 3), dtype=int)
        np.add.at(offered, items, bundles)
        np.testing.assert_array_equal(offered, able)


# -- the walk --------------------------------------------------------------------------------------------------------
def random_bundles(rng, items, tasks):
    """Every label in one bundle of its item, in any order."""
    part = rng.integers(0, tasks, (items, tasks))
    rows = [(item, part[item] == p) for item in range(items) for p in range(tasks) if (part[item] == p).any()]
    rows = [rows[at] for at in rng.permutation(len(rows))]
    return np.array([item for item, _ in rows], dtype=np.int64), np.array([b for _, b in rows]).reshape(-1, tasks)


@given(seed=seeds, items=st.integers(1, 12), tasks=st.integers(1, 4), stretch=st.sampled_from([1, 2, 3, 4096]))
@settings(max_examples=300, deadline=None)
def test_a_walk_in_stretches_buys_what_the_plain_loop_buys(seed, items, tasks, stretch):
    rng = np.random.default_rng(seed)
    menu = random_menu(rng, items, tasks, dearest=int(rng.choice([1, 3, 12])))
    bundles = random_bundles(rng, items, tasks)
    budget = random_budget(rng, menu)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(greedy, "STRETCH", stretch)
        chosen = walk(menu, *bundles, budget, Limits())
    np.testing.assert_array_equal(chosen, walk_bundles(menu, *bundles, budget, Limits()))


@given(seed=seeds, items=st.integers(1, 8), tasks=st.integers(1, 3))
@settings(max_examples=250, deadline=None)
def test_a_walk_within_limits_buys_what_the_plain_loop_buys(seed, items, tasks):
    rng = np.random.default_rng(seed)
    menu = random_menu(rng, items, tasks, dearest=6)
    bundles = random_bundles(rng, items, tasks)
    budget = random_budget(rng, menu)
    shape = (items, tasks)
    sums = [
        Limit(f"limit {n}", np.round(rng.random(shape) * (rng.random(shape) < 0.8), 1), *ends)
        for n, ends in enumerate(
            (float(rng.integers(1, 6)), float(rng.choice([0, 0, 0.5, 1]))) for _ in range(int(rng.integers(0, 3)))
        )
    ]
    cap = GroupCap(rng.integers(0, 3, items), rng.integers(0, 4, 3)) if rng.random() < 0.6 else None
    limits = Limits(sums, cap)
    expected = walk_bundles(menu, *bundles, budget, limits)
    if expected is None:
        with pytest.raises(SelectionError, match=r"greedy spending reached .* of limit \d, not"):
            walk(menu, *bundles, budget, limits)
    else:
        np.testing.assert_array_equal(walk(menu, *bundles, budget, limits), expected)


def test_reading_is_paid_with_the_first_bundle_of_an_item_that_is_bought():
    menu = Menu(np.array([[0.9, 0.8]]), reading=np.array([5]), own=np.array([[4, 1]]))
    order = least_confident_first(menu, menu.value > 0)
    assert walk(menu, *order, 10, Limits()).tolist() == [[True, True]]
    assert walk(menu, *order, 9, Limits()).tolist() == [[True, False]]
    assert walk(menu, *order, 8, Limits()).tolist() == [[False, True]]  # the dearer is skipped, the cheaper is not
    assert walk(menu, *order, 5, Limits()).tolist() == [[False, False]]


def test_minimums_are_met_before_the_rest_is_bought():
    menu = Menu(np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([0, 0]), np.array([[2, 2], [2, 2]]))
    order = least_confident_first(menu, menu.value > 0)
    assert walk(menu, *order, 4, Limits()).tolist() == [[True, False], [True, False]]
    slots = Limit("slots", np.array([[0.0, 1], [0, 1]]), at_least=1)
    assert walk(menu, *order, 4, Limits([slots])).tolist() == [[True, False], [False, True]]


def test_a_minimum_out_of_reach_is_refused_by_name():
    menu = Menu(np.ones((3, 1)), np.array([1, 1, 1]), np.array([[1], [1], [1]]))
    labels = Limit("labels", np.ones((3, 1)), at_least=3)
    with pytest.raises(SelectionError, match=r"reached 2 of labels, not 3\. Fix: raise the budget"):
        walk(menu, *least_confident_first(menu, menu.value > 0), 5, Limits([labels]))


# -- errata 13 -------------------------------------------------------------------------------------------------------
def pool_as_in_the_paper(rng, items):
    """Utterances of 3 to 25 words, an intent for 3 and slots for 1 each (paper 1, section 7)."""
    words = np.clip(np.rint(rng.lognormal(2.2, 0.5, items)), 3, 25).astype(np.int64)
    slots = rng.binomial(words, 0.25)
    return Menu(rng.beta(1, 3, (items, 2)), words, np.stack([np.full(items, 3), slots], axis=1))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("budget", [500, 2500])
def test_value_per_cost_comes_within_a_hundredth_of_exact_and_the_least_confident_do_not(seed, budget):
    menu = pool_as_in_the_paper(np.random.default_rng(seed), 2000)
    whole = Menu(menu.value.mean(axis=1)[:, None], 0 * menu.reading, (menu.reading + menu.own.sum(axis=1))[:, None])
    for offered in (menu, whole):
        able = np.ones(offered.value.shape, dtype=bool)
        exact = solve(offered, budget)
        reached = {
            order: walk(offered, *order(offered, able), budget, Limits())
            for order in (best_ratio_first, least_confident_first)
        }
        assert all(price_of(offered, chosen) <= budget for chosen in reached.values())
        assert exact.optimal
        assert offered.value[reached[best_ratio_first]].sum() >= 0.99 * exact.objective
        assert offered.value[reached[least_confident_first]].sum() < 0.9 * exact.objective
