"""Selections that are small enough to make by hand."""

from __future__ import annotations

import numpy as np

from bursar.selection import Units, average, greedy_by_confidence, reciprocal_rank_fusion
from bursar.selection.combine import fronts
from bursar.selection.diversify import BatchScores, badge, batch_bald, k_center
from bursar.selection.modifiers import Bins, most_doubtful
from bursar.selection.scores import Columns
from bursar.selection.spend.knapsack import _in_turns
from bursar.selection.strategy import name_of_strategy

ONES = np.ones(5, dtype=np.int64)


def test_tasks_are_averaged_by_weight_and_ranks_fused():
    assert average(np.array([[0.2, 0.6]])).tolist() == [0.4]
    assert average(np.array([[0.2, 0.6]]), np.array([1.0, 0.0])).tolist() == [0.2]
    assert reciprocal_rank_fusion(np.array([[0.1, 0.9], [0.5, 0.2]]), k=0).tolist() == [1.5, 1.5]


def test_equal_points_share_a_front():
    confidence = np.array([[0.1, 0.9], [0.5, 0.5], [0.5, 0.9], [0.1, 0.9]])
    assert [front.tolist() for front in fronts(confidence)] == [[0, 1, 3], [2]]


def test_centres_are_far_from_each_other_and_from_labelled_items():
    line = np.array([[0.0], [1.0], [5.0], [9.0]])
    assert k_center(line, ONES[:4], budget=3).tolist() == [3, 0, 2]
    assert k_center(line, np.array([1, 1, 1, 7]), budget=3, centres=np.array([[4.0]])).tolist() == [0, 1, 2]


def test_badge_takes_equal_gradients_last():
    x, r = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([[-0.4, 0.4], [-0.4, 0.4], [0.1, -0.1]])
    assert badge(x, [r], ONES[:3], budget=3, rng=np.random.default_rng(0)).tolist() == [0, 2, 1]


def test_batchbald_does_not_ask_the_same_question_twice():
    first, second = np.array([0.95, 0.95, 0.05, 0.05]), np.array([0.9, 0.1, 0.9, 0.1])  # two bits in four passes
    yes = np.stack([first, first, second], axis=1)  # items 0 and 1 are the same question
    scores = BatchScores([np.stack([yes, 1 - yes], axis=2)])
    assert batch_bald(scores, ONES[:3], budget=2, rng=np.random.default_rng(0)).tolist() == [0, 2]


def test_items_tied_across_the_edge_are_not_the_most_doubtful():
    assert most_doubtful(np.array([0.5] * 98 + [0.9, 0.8])).nonzero()[0].tolist() == [98, 99]
    assert not most_doubtful(np.full(100, 0.5)).any()


def test_the_next_item_comes_from_the_bin_farthest_below_its_share():
    bins = Bins(np.array([0, 0, 0, 0, 1]), labelled=np.array([1, 0]), total=np.array([4, 1]))
    assert bins.pick(np.arange(5), ONES, budget=3).tolist() == [4, 0, 1]


def test_units_follow_their_items():
    units = Units(np.eye(3, dtype=np.float32), np.array([0, 2, 3]), np.array([0.5, 0.0, 1.0]))
    assert units.take(np.array([1, 0])).doubt.tolist() == [1.0, 0.5, 0.0]


def test_columns_are_known_by_their_names():
    columns = Columns.of(["id", "text", "confidence:slots", "cost:reading", "hours:ana:slots"])
    assert (columns.tasks, columns.costs) == (("slots",), {"reading": "cost:reading"})
    assert (columns.hours, columns.ignored) == ({("ana", "slots"): "hours:ana:slots"}, ("text",))


def test_greedy_skips_what_does_not_fit():
    assert greedy_by_confidence(np.array([2, 0, 1]), np.array([5, 1, 6]), budget=8).tolist() == [2, 1]


def test_deviations_that_free_money_and_that_cost_it_alternate():
    assert _in_turns(np.array([0.0, 0, 0, 1]), np.array([True, True, False, False])).tolist() == [2, 0, 1, 3]


def test_a_function_is_a_strategy_of_its_own_name():
    def shortest(pool, budget, rng):
        return np.argsort(pool.prices.joint(), kind="stable")[:2]

    assert name_of_strategy(shortest) == "shortest"
    assert name_of_strategy("mt-avg") == "MT-AVG"
