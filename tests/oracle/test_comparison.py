"""Shares of the way from random to the best order found, with judges whose scores are known."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bursar.errors import ConfigError
from bursar.oracle.comparison import RANDOM_ORDERS, OrderComparison, compare_orders, plan_of, random_orders
from bursar.oracle.judge import Judge
from bursar.oracle.problem import Order, quality
from bursar.oracle.search import SearchOptions, SearchPlan, SearchState

PLAN = plan_of(150)


class Worth(Judge):
    """A set is worth its items' mean worth, which differs a little between validation and test."""

    def __init__(self, pool=40, test_like_validation=True):
        self.pool = pool
        rng = np.random.default_rng(3)
        worth = rng.random(pool)
        self.worth = {"validation": worth, "test": worth * 0.9 if test_like_validation else rng.permutation(worth)}

    def scores_on(self, sets, parts):
        return np.array([[self.one(items, self.worth[part]) for items in sets] for part in parts])

    def one(self, items, worth):
        return 0.2 + 0.5 * worth[items].mean() if len(items) else 0.1


class Flat(Worth):
    """Every order is as good as any other."""

    def scores_on(self, sets, parts):
        return np.full((len(parts), len(sets)), 0.5)


def ranked(judge, best_first=True, batches=3, size=4):
    order = np.argsort(judge.worth["test"])[:: -1 if best_first else 1]
    return Order.of(order[: batches * size].reshape(batches, size))


def test_the_share_is_what_is_gained_over_random_of_what_the_best_gains():
    judge = Worth()
    middle = Order.random(40, 3, 4, seed=9)
    gap = compare_orders(judge, {"MT-AVG": middle}, PLAN, seed=1)
    random = [
        quality(judge.scores([order.prefix(k) for k in (1, 2, 3)], "test")) for order in random_orders(40, 3, 4, seed=1)
    ]
    mine = quality(judge.scores([middle.prefix(k) for k in (1, 2, 3)], "test"))
    best = quality(judge.scores([gap.order.prefix(k) for k in (1, 2, 3)], "test"))
    assert gap.share("MT-AVG") == pytest.approx((mine - np.mean(random)) / (best - np.mean(random)))
    assert gap.random() == pytest.approx((np.mean(random), np.std(random, ddof=1)))
    assert len(gap.randoms) == RANDOM_ORDERS


def test_the_best_order_of_all_is_at_the_end_of_the_way_and_the_worst_before_its_beginning():
    judge = Worth()
    gap = compare_orders(judge, {"best": ranked(judge), "worst": ranked(judge, best_first=False)}, plan_of(700))
    assert gap.share("best") == pytest.approx(1, abs=0.15)
    assert gap.share("worst") < 0
    assert gap.share("best", "validation") == pytest.approx(gap.share("best"))  # test is validation, scaled


@pytest.mark.parametrize("judge", [Flat(), Worth(test_like_validation=False)])
def test_where_the_best_is_no_better_than_random_there_is_no_share(judge):
    gap = compare_orders(judge, {"MT-AVG": Order.random(40, 3, 4, seed=9)}, plan_of(100))
    assert gap.way() is None
    assert gap.share("MT-AVG") is None
    assert gap.as_json()["arms"]["MT-AVG"]["share"]["test"] is None


def test_a_stopped_search_ends_in_the_same_gap_to_the_bit():
    judge, orders = Worth(), {"MT-AVG": Order.random(40, 3, 4, seed=9)}
    saved = []

    def stop(state):
        saved.append(json.dumps(state.as_json()))
        if len(saved) == 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare_orders(judge, orders, PLAN, options=SearchOptions(callback=stop))
    again = compare_orders(
        judge, orders, PLAN, options=SearchOptions(state=SearchState.from_json(json.loads(saved[-1])))
    )
    whole = compare_orders(Worth(), orders, PLAN)
    assert json.dumps(again.as_json()) == json.dumps(whole.as_json())


def test_a_gap_comes_back_from_json_as_it_was():
    gap = compare_orders(Worth(), {"MT-AVG": Order.random(40, 3, 4, seed=9), "RANDOM": ranked(Worth())}, PLAN, seed=2)
    text = json.dumps(gap.as_json(), allow_nan=False)
    assert json.dumps(OrderComparison.from_json(json.loads(text)).as_json()) == text


def test_random_orders_are_those_of_the_seed():
    first, same, other = (random_orders(30, 2, 5, seed) for seed in (4, 4, 5))
    assert [o.items.tolist() for o in first] == [o.items.tolist() for o in same]
    assert first[0].items.tolist() != other[0].items.tolist()


@pytest.mark.parametrize(
    ("orders", "said"),
    [
        ({}, "no order"),
        ({"a": Order.random(40, 3, 4, 0), "b": Order.random(40, 4, 3, 0)}, "different numbers or sizes"),
    ],
)
def test_orders_that_cannot_be_compared_are_refused(orders, said):
    with pytest.raises(ConfigError, match=said):
        compare_orders(Worth(), orders, PLAN)


@pytest.mark.parametrize("steps", [1, 300, 25_000])
def test_every_plan_ends_as_cold(steps):
    plan = plan_of(steps)
    assert plan.cooling * plan.steps == pytest.approx(50_000)
    assert plan_of(steps, 7, 0.25) == SearchPlan(steps, 7, 0.25)


def test_a_search_of_no_steps_compares_with_a_random_order():
    gap = compare_orders(Worth(), {"MT-AVG": Order.random(40, 3, 4, seed=9)}, plan_of(0, 0))
    assert gap.order.items.tolist() == Order.random(40, 3, 4, seed=0).items.tolist()
