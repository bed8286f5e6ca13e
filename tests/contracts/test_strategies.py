"""What every strategy must do. A new strategy is tested by being registered."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.errors import ConfigError, SelectionError
from bursar.selection import STRATEGIES, Candidates, ItemFeatures, PoolFeatures, Units, make_strategy
from bursar.tasks import Beliefs, Prices

TASKS = ("intent", "slots", "tree")
PASSES, LABELS, WIDTH = 4, 3, 5


def units_of(rng, items):
    """Up to three units an item, some of them without a doubt."""
    counts = rng.integers(0, 4, items)
    doubt = rng.random(counts.sum()).round(1)
    vectors = rng.normal(size=(counts.sum(), WIDTH)).astype(np.float32)
    return Units(vectors, np.concatenate([[0], np.cumsum(counts)]), doubt)


def pool_features_of(rng, items, tasks):
    """Everything that any strategy may look at; one label an item for each task."""

    def features(many):
        return {
            "words": rng.integers(1, 12, many),
            "vectors": rng.normal(size=(many, WIDTH)),
            "labels": rng.integers(0, LABELS, (many, tasks)),
            "units": {task: units_of(rng, many) for task in TASKS[:tasks]},
            "doubt": 4 * rng.random((many, tasks)),
        }

    beliefs = {
        task: Beliefs.of(rng.dirichlet(np.ones(LABELS), (PASSES, items)), np.ones(items, dtype=np.int64))
        for task in TASKS[:tasks]
    }
    return PoolFeatures(
        **features(items), beliefs=beliefs, labelled=ItemFeatures(**features(6)), aside=ItemFeatures(**features(4))
    )


def pool_of(seed, items, tasks=2, dearest=9, tied=False, free=False):
    rng = np.random.default_rng(seed)
    confidence = rng.random((items, tasks))
    if tied:
        confidence = np.round(confidence * 2) / 2
    reading = rng.integers(1, dearest, items)
    own = rng.integers(0, dearest, (items, tasks))
    if free:
        reading, own = reading * 0, own * 0
    ids = [f"u{n:04d}" for n in rng.permutation(items)]
    return Candidates(
        ids, confidence, Prices(TASKS[:tasks], reading, own), features=pool_features_of(rng, items, tasks)
    )


def chosen_ids(pool, selection):
    return {(pool.ids[at], tuple(tasks)) for at, tasks in zip(selection.items, selection.tasks.tolist(), strict=True)}


# Every base, every way to spend for some of them, and matching around one of each sort.
EVERY = [
    *STRATEGIES.names(),
    *("MT-EC-slots", "MT-DA-intent", "ST-EC-intent", "ST-DA-slots", "STCS-slots", "BALD-intent"),
    *("MT-AVG+BLP_AL", "MT-MAX+BLP_AL", "MT-MIN+BLP", "MT-RRF+BLP_AL", "MT-AVG+RATIO_AL", "STCS-slots+BLP_AL"),
    *("MT-SUM+BLP_AL", "MT-SUM+RATIO_AL", "MT-SHARE+BLP_AL", "MT-SUM+COVER"),
    *("UDJS+BLP_AL", "UDJS+RATIO_AL", "UDJS+BLP", "EQB-DJS+BLP_AL", "EQB-DJS+RATIO_AL"),
    *("BALD+IDMR", "MT-MIN+BLP_AL+IDMR", "UDJS+BLP_AL+IDMR", "MT-PAR+IDMR", "K-CENTER+IDMR", "RANDOM+IDMR"),
    *("COVER+IDMR", "COVER-LABELS+IDMR", "MT-AVG+COVER", "UDJS+COVER", "MT-EC-slots+COVER", "LONGEST+COVER"),
    *("COVER+GUARD", "COVER-LABELS+GUARD", "MT-AVG+GUARD", "MT-AVG+COVER+GUARD", "MT-MIN+BLP_AL+GUARD", "BADGE+GUARD"),
]
every_strategy = pytest.mark.parametrize("name", EVERY)


@every_strategy
@given(seed=st.integers(0, 10**6), items=st.integers(0, 40), tasks=st.integers(2, 3), budget=st.integers(0, 200))
@settings(max_examples=8, deadline=None)
def test_a_selection_is_within_budget_without_doubles_and_priced_right(name, seed, items, tasks, budget):
    pool = pool_of(seed, items, tasks)
    chosen = make_strategy(name).select(pool, budget, seed=1)
    assert chosen.total <= budget
    assert len(set(chosen.items.tolist())) == len(chosen)
    assert chosen.tasks.any(axis=1).all()
    np.testing.assert_array_equal(chosen.cost, pool.prices.take(chosen.items).of(chosen.tasks))


@every_strategy
@given(seed=st.integers(0, 10**6), tied=st.booleans())
@settings(max_examples=8, deadline=None)
def test_permuting_the_pool_never_changes_the_selection(name, seed, tied):
    pool = pool_of(seed, 30, tied=tied)
    shuffled = pool.take(np.random.default_rng(seed + 1).permutation(len(pool)))
    first, second = (make_strategy(name).select(p, 90, seed=3) for p in (pool, shuffled))
    assert [pool.ids[at] for at in first.items] == [shuffled.ids[at] for at in second.items]
    assert chosen_ids(pool, first) == chosen_ids(shuffled, second)


@every_strategy
def test_the_same_seed_gives_the_same_selection(name):
    pool = pool_of(5, 50)
    first, second = (make_strategy(name).select(pool, 100, seed=8) for _ in range(2))
    np.testing.assert_array_equal(first.items, second.items)


@pytest.mark.parametrize("name", [name for name in EVERY if not name.startswith(("MT-PAR", "BADGE", "RANDOM"))])
def test_ties_go_by_id(name):
    """Pareto fronts are thinned across ties, as the paper has it, and the others draw."""
    one = np.ones(6, dtype=np.int64)
    same = Beliefs.of(np.tile(np.eye(LABELS)[[0, 1, 2, 0]][:, None], (1, 6, 1)), one)
    units = Units(np.ones((6, WIDTH), dtype=np.float32), np.arange(7), np.ones(6))
    features = PoolFeatures(
        one,
        np.ones((6, WIDTH)),
        np.zeros((6, 2), dtype=np.int64),
        dict.fromkeys(TASKS[:2], same),
        units=dict.fromkeys(TASKS[:2], units),
        doubt=np.ones((6, 2)),
    )
    ids = ["f", "b", "e", "a", "d", "c"]
    pool = Candidates(ids, np.full((6, 2), 0.5), Prices(TASKS[:2], one, np.ones((6, 2), int)), features=features)
    chosen = make_strategy(name).select(pool, 6, seed=0)
    if name not in ("MT-R", "ST-R"):
        assert {ids[at] for at in chosen.items} == {"a", "b"}


@every_strategy
def test_an_empty_pool_gives_an_empty_selection(name):
    assert len(make_strategy(name).select(pool_of(0, 0), 100)) == 0


@every_strategy
def test_a_budget_of_nothing_buys_nothing_that_costs(name):
    assert make_strategy(name).select(pool_of(0, 20), 0).total == 0


@every_strategy
def test_a_pool_smaller_than_the_budget_is_bought_whole(name):
    pool = pool_of(1, 12)
    chosen = make_strategy(name).select(pool, 10**9)
    assert len(chosen) == 12
    assert chosen.tasks.all()


@every_strategy
def test_the_one_affordable_item_is_bought(name):
    prices = Prices(TASKS[:2], np.array([50, 2, 50]), np.array([[1, 1], [1, 1], [1, 1]]))
    features = pool_features_of(np.random.default_rng(0), 3, 2)
    pool = Candidates(["a", "b", "c"], np.array([[0.1, 0.1], [0.9, 0.9], [0.2, 0.2]]), prices, features=features)
    assert make_strategy(name).select(pool, 10).items.tolist() == [1]


@every_strategy
def test_items_that_cost_nothing_are_no_trouble(name):
    chosen = make_strategy(name).select(pool_of(3, 15, free=True), 5)
    assert len(chosen) == 15
    assert chosen.total == 0


@every_strategy
def test_what_is_labelled_already_is_never_bought_again(name):
    pool = pool_of(4, 20)
    open_ = np.random.default_rng(1).random((20, 2)) < 0.6
    pool = Candidates(pool.ids, pool.confidence, pool.prices, open_, features=pool.features)
    chosen = make_strategy(name).select(pool, 80)
    assert not (chosen.tasks & ~open_[chosen.items]).any()
    assert len(chosen)


@every_strategy
def test_a_budget_can_count_items(name):
    pool = pool_of(6, 25)
    chosen = make_strategy(name).select(pool, 7, in_items=True)
    assert len(chosen) == 7
    np.testing.assert_array_equal(chosen.cost, pool.prices.take(chosen.items).of(chosen.tasks))


@every_strategy
def test_a_negative_budget_is_refused(name):
    with pytest.raises(SelectionError, match="negative"):
        make_strategy(name).select(pool_of(0, 5), -1)


@every_strategy
def test_one_task_is_enough(name):
    task = make_strategy(name).task
    pool = pool_of(7, 20, tasks=1)
    if task not in (None, "intent"):
        with pytest.raises(SelectionError, match="intent"):
            make_strategy(name).select(pool, 30)
    else:
        assert len(make_strategy(name).select(pool, 30))


def test_a_confidence_that_is_not_a_number_is_refused_by_item_and_task():
    prices = Prices(TASKS[:2], np.array([1, 1]), np.ones((2, 2), dtype=np.int64))
    with pytest.raises(SelectionError, match=r"'b'.*'slots'"):
        Candidates(["a", "b"], np.array([[0.5, 0.5], [0.5, np.nan]]), prices)


def test_an_item_that_stands_in_the_pool_twice_is_refused():
    prices = Prices(TASKS[:1], np.array([1, 1, 1]), np.ones((3, 1), dtype=np.int64))
    with pytest.raises(SelectionError, match="'b'"):
        make_strategy("MT-AVG").select(Candidates(["b", "a", "b"], np.zeros((3, 1)), prices), 3)


def test_shapes_that_do_not_fit_are_refused():
    prices = Prices(TASKS[:2], np.array([1, 1]), np.ones((2, 2), dtype=np.int64))
    with pytest.raises(SelectionError, match="shape"):
        Candidates(["a", "b"], np.zeros((2, 3)), prices)


def test_an_unknown_strategy_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="MT-AVG"):
        make_strategy("MT-AGV")
