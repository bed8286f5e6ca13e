"""What may be bought together, against trying everything and against the procedure written out."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from bursar.errors import SelectionError
from bursar.selection import Candidates, GroupCap, Limit, Limits, spend
from bursar.selection.spend import spend_disjoint, spend_equal, spend_joint
from bursar.selection.spend.greedy import best_ratio_first, least_confident_first
from bursar.selection.spend.knapsack import Menu
from bursar.tasks import Prices
from tests.selection.plain import TASKS, best_of_all, every_selection, price_of, random_pool, walk_bundles

WAYS = ("exact", "greedy", "ratio")


def whole(pool, value):
    """The pool as a menu of items that are bought for all tasks."""
    return Menu(value[:, None], np.zeros(len(pool), dtype=np.int64), pool.prices.joint()[:, None])


def bought(pool, selection):
    chosen = np.zeros(pool.confidence.shape, dtype=bool)
    chosen[selection.items] = selection.tasks
    return chosen


def random_case(rng, limits=False, most=5):
    tasks = int(rng.integers(1, 4))
    items = int(rng.integers(1, most if tasks < 3 else most - 1))
    pool = random_pool(rng, items, tasks, dearest=7)
    pool = replace(pool, open=rng.random((items, tasks)) < rng.choice([0.7, 1.0]))
    pool.open[0] = True  # so that there is something to be had
    if limits:
        use = (np.arange(tasks) == int(rng.integers(0, tasks))) * np.ones((items, 1))
        cap = GroupCap(rng.integers(0, 2, items), rng.integers(1, 3, 2))
        pool = replace(pool, limits=Limits([Limit("labels", use, float(rng.integers(1, 4)))], cap))
    budget = int(rng.integers(0, pool.prices.joint().sum() + 2))
    return pool, rng.random((items, tasks)), budget


def assert_sound(pool, selection, value, budget):
    """Within budget, open, best first, and worth what the certificate says."""
    chosen = bought(pool, selection)
    assert selection.total == int(pool.prices.of(chosen).sum()) <= budget
    assert not (chosen & ~pool.open).any()
    assert selection.tasks.any(axis=1).all()
    worth = (value[selection.items] * selection.tasks).sum(axis=1)
    assert (np.diff(worth) <= 1e-12).all()
    assert selection.certificate.objective == pytest.approx(worth.sum(), abs=1e-9)


# -- joint and disjoint ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("limits", [False, True])
def test_any_tasks_of_an_item_are_bought_as_trying_everything_or_walking_would(how, limits):
    rng = np.random.default_rng([WAYS.index(how), limits])
    for _ in range(20 if limits else 100):
        pool, value, budget = random_case(rng, limits)
        menu = Menu(value, pool.prices.reading, pool.prices.own)
        selection = spend_disjoint(pool, value, budget, how)
        best = best_of_all(menu, pool.open, budget, pool.limits)
        assert_sound(pool, selection, value, budget)
        certificate = selection.certificate
        assert certificate.bound >= best - 1e-9
        if how == "exact":
            assert certificate.optimal
            assert certificate.objective == pytest.approx(best, abs=1e-9)
        else:
            order = (best_ratio_first if how == "ratio" else least_confident_first)(menu, pool.open)
            np.testing.assert_array_equal(bought(pool, selection), walk_bundles(menu, *order, budget, pool.limits))
        if certificate.optimal:
            assert certificate.objective == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("limits", [False, True])
def test_whole_items_are_bought_as_trying_everything_or_walking_would(how, limits):
    rng = np.random.default_rng([WAYS.index(how), limits, 1])
    for _ in range(20 if limits else 100):
        pool, value, budget = random_case(rng, limits, most=8)
        able = pool.open.all(axis=1)[:, None]
        menu = whole(pool, value[:, 0])
        selection = spend_joint(pool, value[:, 0], budget, how)
        best = best_of_all(menu, able, budget, pool.limits.together())
        assert selection.tasks.all()
        assert selection.total == int(pool.prices.joint()[selection.items].sum()) <= budget
        assert able[selection.items].all()
        assert (np.diff(value[selection.items, 0]) <= 0).all()
        assert selection.certificate.objective == pytest.approx(value[selection.items, 0].sum(), abs=1e-9)
        assert selection.certificate.bound >= best - 1e-9
        if how == "exact":
            assert selection.certificate.optimal
            assert selection.certificate.objective == pytest.approx(best, abs=1e-9)
        else:
            order = (best_ratio_first if how == "ratio" else least_confident_first)(menu, able)
            expected = walk_bundles(menu, *order, budget, pool.limits.together())
            assert sorted(selection.items.tolist()) == np.flatnonzero(expected).tolist()


@pytest.mark.parametrize("how", WAYS)
def test_with_one_task_all_modes_are_the_same(how):
    rng = np.random.default_rng(2)
    for _ in range(40):
        pool = random_pool(rng, 9, 1)
        value, budget = rng.random((9, 1)), int(rng.integers(0, 80))
        joint = spend(pool, value[:, 0], budget, "joint", how)
        for mode in ("disjoint", "equal"):
            assert spend(pool, value, budget, mode, how).items.tolist() == joint.items.tolist()


def test_spending_on_labels_is_never_worth_less_than_on_whole_items():
    rng = np.random.default_rng(3)
    for _ in range(60):
        pool = random_pool(rng, 25, 3)
        value, budget = rng.random((25, 3)), int(rng.integers(0, 300))
        joint = spend(pool, value.sum(axis=1), budget, "joint")
        disjoint = spend(pool, value, budget, "disjoint")
        assert disjoint.certificate.objective >= joint.certificate.objective - 1e-9


def test_limits_on_labels_hold_for_whole_items():
    prices = Prices(TASKS[:2], np.array([1, 1, 1]), np.ones((3, 2), dtype=np.int64))
    pool = Candidates(["a", "b", "c"], np.zeros((3, 2)), prices)
    use = np.array([[0.5, 0.5], [1, 1], [1, 0]])
    pool = replace(pool, limits=Limits([Limit("hours", use, at_most=2.0)]))
    assert sorted(spend_joint(pool, np.array([0.5, 0.9, 0.6]), 100).items.tolist()) == [0, 2]


# -- equal shares (errata 12) ----------------------------------------------------------------------------------------
def largest_remainder(total, parts):
    exact = [Fraction(total, parts)] * parts
    shares = [int(e) for e in exact]
    for place in sorted(range(parts), key=lambda p: shares[p] - exact[p])[: total - sum(shares)]:
        shares[place] += 1
    return shares


def best_set(menu, able, budget):
    """The best affordable selection by trying every one."""
    every = every_selection(*menu.value.shape)
    every = every[~(every & ~(able & (menu.value > 0))).any(axis=(1, 2))]
    price = every.any(axis=2) @ menu.reading + (every * menu.own).sum(axis=(1, 2))
    every = every[price <= budget]
    return every[(every * menu.value).sum(axis=(1, 2)).argmax()]


def spent_walking(order):
    return lambda menu, able, budget: walk_bundles(menu, *order(menu, able), budget, Limits())


SPENT = {"exact": best_set, "greedy": spent_walking(least_confident_first), "ratio": spent_walking(best_ratio_first)}


def equal_shares_written_out(pool, value, budget, spent):
    """Each task its share, marginal prices for what another has bought, what is freed shared again, the rest pooled."""
    items, tasks = value.shape
    chosen = np.zeros((items, tasks), dtype=bool)
    everything = Menu(value, pool.prices.reading, pool.prices.own)
    while True:
        left = budget - price_of(everything, chosen)
        now = chosen.copy()
        for task, share in enumerate(largest_remainder(left, tasks)):
            marginal = [0 if chosen[item].any() else pool.prices.reading[item] for item in range(items)]
            menu = Menu(value[:, [task]], np.array(marginal), pool.prices.own[:, [task]])
            now[:, [task]] |= spent(menu, (pool.open & ~chosen)[:, [task]], share)
        if (now == chosen).all():
            break
        chosen = now
    marginal = np.where(chosen.any(axis=1), 0, pool.prices.reading)
    return chosen | spent(Menu(value, marginal, pool.prices.own), pool.open & ~chosen, left)


@pytest.mark.parametrize("how", WAYS)
def test_equal_shares_follow_the_procedure(how):
    rng = np.random.default_rng(WAYS.index(how))
    shared = 0
    for _ in range(200):
        pool, value, budget = random_case(rng, most=5)
        selection = spend_equal(pool, value, budget, how)
        expected = equal_shares_written_out(pool, value, budget, SPENT[how])
        np.testing.assert_array_equal(bought(pool, selection), expected)
        assert_sound(pool, selection, value, budget)
        shared += bool((expected.sum(axis=1) > 1).any())
    assert shared > 20  # items that several tasks bought, so that money was freed


def test_two_tasks_that_buy_the_same_item_free_its_reading_once():
    # Each share is 6: both tasks buy item 0 for 4 + 1; that costs 6 in all and frees 6, which buys item 1 for both.
    prices = Prices(TASKS[:2], np.array([4, 4, 4]), np.ones((3, 2), dtype=np.int64))
    pool = Candidates(["a", "b", "c"], np.zeros((3, 2)), prices)
    value = np.array([[0.9, 0.9], [0.5, 0.4], [0.1, 0.2]])
    selection = spend_equal(pool, value, 12)
    assert selection.items.tolist() == [0, 1]
    assert selection.tasks.all()
    assert selection.total == 12


def test_equal_shares_claim_no_bound():
    rng = np.random.default_rng(4)
    pool = random_pool(rng, 6, 2)
    certificate = spend_equal(pool, rng.random((6, 2)), 30).certificate
    assert certificate.bound is None
    assert certificate.gap is None
    assert not certificate.optimal


@pytest.mark.parametrize("how", WAYS)
def test_equal_shares_are_never_over_budget_nor_worth_more_than_exact_spending(how):
    rng = np.random.default_rng(5)
    for _ in range(30):
        pool = random_pool(rng, 60, 3)
        pool = replace(pool, open=rng.random((60, 3)) < 0.8)
        value, budget = rng.random((60, 3)), int(rng.integers(0, 600))
        selection = spend_equal(pool, value, budget, how)
        assert_sound(pool, selection, value, budget)
        assert selection.certificate.objective <= spend_disjoint(pool, value, budget).certificate.objective + 1e-9


def test_equal_shares_refuse_limits():
    pool = random_pool(np.random.default_rng(6), 4, 2, limits=Limits([Limit("labels", np.ones((4, 2)), 3.0)]))
    with pytest.raises(SelectionError, match=r"equal shares cannot keep to limits\. Fix: use a disjoint strategy"):
        spend(pool, np.ones((4, 2)), 10, "equal")


# -- what is open ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("mode", ["joint", "disjoint", "equal"])
def test_what_is_labelled_already_is_never_bought_however_much_money_there_is(mode, how):
    rng = np.random.default_rng(7)
    pool = random_pool(rng, 40, 2)
    pool = replace(pool, open=rng.random((40, 2)) < 0.6)
    value = rng.random(40) if mode == "joint" else rng.random((40, 2))
    chosen = bought(pool, spend(pool, value, 10**6, mode, how))
    expected = np.repeat(pool.open.all(axis=1)[:, None], 2, axis=1) if mode == "joint" else pool.open
    np.testing.assert_array_equal(chosen, expected)
