"""What every strategy must do, whoever wrote it. A new one is tested by being registered."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.errors import ConfigError, SelectionError
from bursar.selection import STRATEGIES, Candidates, make_strategy
from bursar.tasks import Prices

TASKS = ("intent", "slots", "tree")


def pool_of(seed, items, tasks=2, dearest=9, tied=False, free=False):
    rng = np.random.default_rng(seed)
    confidence = rng.random((items, tasks))
    if tied:
        confidence = np.round(confidence * 2) / 2
    reading = rng.integers(0 if free else 1, dearest, items)
    own = rng.integers(0, dearest, (items, tasks)) * (0 if free else 1)
    ids = [f"u{n:04d}" for n in rng.permutation(items)]
    return Candidates(ids, confidence, Prices(TASKS[:tasks], reading * (0 if free else 1), own))


def chosen_ids(pool, selection):
    return {(pool.ids[at], tuple(tasks)) for at, tasks in zip(selection.items, selection.tasks.tolist(), strict=True)}


every_strategy = pytest.mark.parametrize("name", STRATEGIES.names())


@every_strategy
@given(seed=st.integers(0, 10**6), items=st.integers(0, 40), tasks=st.integers(1, 3), budget=st.integers(0, 200))
@settings(max_examples=30, deadline=None)
def test_a_selection_is_within_budget_without_doubles_and_priced_right(name, seed, items, tasks, budget):
    pool = pool_of(seed, items, tasks)
    chosen = make_strategy(name).select(pool, budget, seed=1)
    assert chosen.total <= budget
    assert len(set(chosen.items.tolist())) == len(chosen)
    assert chosen.tasks.any(axis=1).all()
    np.testing.assert_array_equal(chosen.cost, pool.prices.take(chosen.items).of(chosen.tasks))


@every_strategy
@given(seed=st.integers(0, 10**6), tied=st.booleans())
@settings(max_examples=30, deadline=None)
def test_permuting_the_pool_never_changes_the_selection(name, seed, tied):
    pool = pool_of(seed, 30, tied=tied)
    order = np.random.default_rng(seed + 1).permutation(len(pool))
    shuffled = Candidates([pool.ids[i] for i in order], pool.confidence[order], pool.prices.take(order))
    first, second = (make_strategy(name).select(p, 90, seed=3) for p in (pool, shuffled))
    assert chosen_ids(pool, first) == chosen_ids(shuffled, second)


@every_strategy
def test_the_same_seed_gives_the_same_selection(name):
    pool = pool_of(5, 50)
    first, second = (make_strategy(name).select(pool, 100, seed=8) for _ in range(2))
    np.testing.assert_array_equal(first.items, second.items)


@every_strategy
def test_an_empty_pool_gives_an_empty_selection(name):
    assert len(make_strategy(name).select(pool_of(0, 0), 100)) == 0


@every_strategy
def test_a_budget_of_nothing_buys_nothing_that_costs(name):
    assert make_strategy(name).select(pool_of(0, 20), 0).total == 0


@every_strategy
def test_a_pool_smaller_than_the_budget_is_bought_whole(name):
    pool = pool_of(1, 12)
    assert len(make_strategy(name).select(pool, 10**9)) == 12


@every_strategy
def test_the_one_affordable_item_is_bought(name):
    prices = Prices(TASKS[:2], np.array([50, 2, 50]), np.array([[1, 1], [1, 1], [1, 1]]))
    pool = Candidates(["a", "b", "c"], np.array([[0.1, 0.1], [0.9, 0.9], [0.2, 0.2]]), prices)
    assert make_strategy(name).select(pool, 10).items.tolist() == [1]


@every_strategy
def test_items_that_cost_nothing_are_no_trouble(name):
    chosen = make_strategy(name).select(pool_of(3, 15, free=True), 5)
    assert len(chosen) == 15
    assert chosen.total == 0


@every_strategy
def test_a_negative_budget_is_refused(name):
    with pytest.raises(SelectionError, match="negative"):
        make_strategy(name).select(pool_of(0, 5), -1)


def test_a_confidence_that_is_not_a_number_is_refused_by_item_and_task():
    prices = Prices(TASKS[:2], np.array([1, 1]), np.ones((2, 2), dtype=np.int64))
    with pytest.raises(SelectionError, match=r"'b'.*'slots'"):
        Candidates(["a", "b"], np.array([[0.5, 0.5], [0.5, np.nan]]), prices)


def test_shapes_that_do_not_fit_are_refused():
    prices = Prices(TASKS[:2], np.array([1, 1]), np.ones((2, 2), dtype=np.int64))
    with pytest.raises(SelectionError, match="shape"):
        Candidates(["a", "b"], np.zeros((2, 3)), prices)


def test_an_unknown_strategy_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="MT-AVG"):
        make_strategy("MT-AGV")
