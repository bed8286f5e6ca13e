"""Orders, moves between them, and the smaller parts of a search."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.errors import ConfigError
from bursar.oracle import LabellingProblem, Order, SearchPlan, quality
from bursar.oracle.comparison import OrderComparison, OrderScores, plan_of, random_orders
from bursar.oracle.judge import known_judge
from bursar.oracle.network import _padded
from bursar.oracle.probe import score_of
from bursar.oracle.problem import OrderMove, _unlabelled
from bursar.simulation import assistant_corpus


def test_a_random_order_has_the_batches_asked_for_and_random_orders_differ():
    assert Order.random(pool=9, batches=2, size=3, seed=0).batches.shape == (2, 3)
    assert len({tuple(order.items.tolist()) for order in random_orders(pool=50, batches=3, size=4, seed=0)}) == 20


def test_an_exchange_changes_the_prefixes_between_and_a_replacement_all_after():
    assert OrderMove((1, 0), 7, (3, 2)).changed(5) == range(2, 4)
    assert OrderMove((1, 0), 7).changed(5) == range(2, 6)


def test_unlabelled_items_are_counted_in_the_order_of_the_pool():
    order = Order.of(np.array([[1, 2], [5, 0]]))
    assert [_unlabelled(order, number) for number in (0, 2)] == [3, 6]


def test_quality_is_the_mean_over_the_batches():
    assert float(quality(np.array([0.5, 0.7]))) == pytest.approx(0.6)


def test_a_plan_ends_at_the_same_temperature_however_long_it_is():
    assert (plan_of().steps, plan_of().greedy_steps, plan_of().cooling) == (5000, 1000, 10.0)
    assert plan_of(25_000).cooling == 2.0
    assert plan_of(25_000, judge="lstm").cooling == 0.1


def test_a_share_is_of_the_way_from_random_to_the_best_order():
    low, high, best = (OrderScores({"test": np.array(curve)}) for curve in ([0.5, 0.5], [0.6, 0.6], [0.75, 0.75]))
    order = Order.of(np.array([[0], [1]]))
    found = OrderComparison(SearchPlan(), 0, {"test": 0.4}, (low, high), {"MT-AVG": high}, best, order)
    assert found.share("MT-AVG") == pytest.approx(0.25)
    assert found.random("test")[0] == pytest.approx(0.55)


def test_f1_is_weighted_by_the_frequency_of_labels():
    codes, guesses = np.array([0, 0, 0, 0]), np.array([0, 0, 0, 1])
    assert score_of(codes, guesses, 2, "weighted_f1") == pytest.approx(6 / 7)
    assert score_of(codes, guesses, 2, "accuracy") == 0.75


def test_a_problem_is_drawn_in_the_sizes_asked_for():
    sizes = {"pool": 60, "warm": 10, "aside": 10, "validation": 40, "test": 40}
    problem = LabellingProblem.draw(assistant_corpus(200), sizes, shape=(3, 5), metric="accuracy", seed=0)
    assert problem.counts == sizes


def test_an_unknown_judge_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"there is no judge 'encoder'. Fix: use probe, aoe, cnn, lstm, tagger"):
        known_judge("encoder")


def test_short_rows_are_padded():
    assert _padded(np.array([1, 2, 3]), np.array([1, 2]), -1).tolist() == [[1, -1], [2, 3]]
