"""The search against enumeration, and against itself with everything that makes it fast switched off."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.errors import ConfigError
from bursar.oracle.judge import Judge, ScoreCache
from bursar.oracle.problem import Order, OrderMove, propose, quality
from bursar.oracle.search import SearchOptions, SearchPlan, SearchState, search
from tests.oracle.small import every_order


class Made(Judge):
    """Scores that follow from the set by a rule with ups and downs, and a count of what was asked."""

    at_once = 40

    def __init__(self, pool, seed=0, level=0.0):
        self.pool, self.seed, self.level, self.calls, self.sets = pool, seed, level, 0, 0
        self.worth = np.random.default_rng(seed).random(pool)

    def scores_on(self, sets, parts):
        self.calls += 1
        self.sets += len(sets)
        return np.array([[self.one(items) for items in sets] for _ in parts])

    def one(self, items):
        pairs = np.sin(np.add.outer(items, items) * (1.3 + self.seed)).mean()
        rough = 0.5 + 0.3 * self.worth[items].mean() + 0.2 * pairs * len(items) / self.pool
        return self.level + (1 - self.level) * min(max(rough, 0.0), 1.0)


class Spoiled(Made):
    """Nearly perfect, unless one of a few bad items is labelled."""

    def one(self, items):
        return 0.999 + 0.001 * super().one(items) - 0.2 * np.isin(items, range(8)).sum() / 8


def plainly(judge, batches, size, plan, seed):
    """Algorithm 1, line by line: every prefix of every proposal is judged."""

    def curve(order):
        return judge.scores(order.prefixes())

    order = best = Order.random(judge.pool, batches, size, seed)
    now = top = quality(curve(order))
    chain = []
    for t in range(1, plan.steps + 1):
        move, u = propose(order, judge.pool, seed, t)
        proposed = order.moved(move)
        reached = quality(curve(proposed))
        if u < math.exp(min(plan.cooling * t * (reached - now), 700)):
            order, now = proposed, reached
            if reached > top:
                best, top = proposed, reached
            chain.append(t)
    for t in range(plan.steps + 1, plan.all_steps + 1):
        move, _ = propose(best, judge.pool, seed, t)
        proposed = best.moved(move)
        reached = quality(curve(proposed))
        if reached > top:
            best, top = proposed, reached
            chain.append(t)
    return best, float(top), chain


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("pool", "batches", "size"), [(5, 2, 2), (6, 3, 1), (6, 2, 2), (4, 2, 2), (6, 1, 3)])
def test_in_small_pools_it_finds_the_best_of_all_orders(pool, batches, size, seed):
    judge = Made(pool, seed)
    curves = [judge.scores([o.prefix(k) for k in range(1, batches + 1)]) for o in every_order(pool, batches, size)]
    found = search(judge, (batches, size), SearchPlan(steps=1500, greedy_steps=300, cooling=1.0), seed=seed)
    assert quality(found.best_curve) == pytest.approx(max(quality(curve) for curve in curves), abs=1e-12)


@pytest.mark.parametrize("level", [0.0, 0.97])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "plan", [SearchPlan(150, 60, cooling=5.0), SearchPlan(0, 200), SearchPlan(200, 0, cooling=0.0)]
)
def test_memory_guessing_ahead_and_dropping_change_nothing_in_the_chain(plan, seed, level):
    best, top, chain = plainly(Made(30, seed, level), 4, 3, plan, seed)
    for ahead in (1, 7, 64):
        for drop in (True, False):
            how = SearchPlan(plan.steps, plan.greedy_steps, plan.cooling, ahead=ahead, drop=drop)
            found = search(Made(30, seed, level), (4, 3), how, seed=seed)
            assert [step for step, _, _ in found.history[1:]] == chain
            assert np.array_equal(found.best.batches, best.batches)
            assert quality(found.best_curve) == top


@pytest.mark.parametrize("cooling", [0.0, 5.0, 100.0])
def test_most_guesses_come_true_whether_proposals_are_mostly_accepted_or_mostly_refused(cooling):
    """So the judge is asked about many sets at a time, and about few in vain."""
    plain, ahead = Made(60, 1), Made(60, 1)
    search(plain, (6, 4), SearchPlan(600, 0, cooling=cooling, ahead=1), seed=2)
    search(ahead, (6, 4), SearchPlan(600, 0, cooling=cooling), seed=2)
    assert ahead.calls < plain.calls / 2.5
    assert ahead.sets < 1.6 * plain.sets


def test_a_surrogate_that_knows_the_truth_finds_better_orders_in_as_many_steps():
    plain = search(Made(60, 6), (4, 3), SearchPlan(150, 50, cooling=20.0), seed=4)
    judge = Made(60, 6)
    found = search(
        judge,
        (4, 3),
        SearchPlan(150, 50, cooling=20.0, screened=8),
        seed=4,
        options=SearchOptions(surrogate=Made(60, 6)),
    )
    assert quality(found.best_curve) > quality(plain.best_curve)
    assert np.array_equal(found.best_curve, judge.scores([found.best.prefix(k) for k in range(1, 5)]))


def test_screening_without_a_surrogate_is_refused():
    with pytest.raises(ConfigError, match="surrogate"):
        search(Made(20), (2, 2), SearchPlan(10, 0, screened=4))


def test_dropping_spares_judgements_where_scores_are_near_the_top():
    judge, spared = Spoiled(40, 1), Spoiled(40, 1)
    plan = SearchPlan(50, 400, cooling=50.0)
    without = search(judge, (6, 3), SearchPlan(50, 400, 50.0, drop=False), seed=1)
    found = search(spared, (6, 3), plan, seed=1)
    assert found.dropped > 0
    assert found.spared > 0
    assert spared.sets < judge.sets
    assert np.array_equal(found.best.batches, without.best.batches)


def test_a_proposal_asks_only_about_the_prefixes_that_it_changes():
    judge = Made(60, 2)
    memory = ScoreCache(judge)
    search(judge, (8, 3), SearchPlan(500, 0, ahead=1, drop=False), seed=3, options=SearchOptions(cache=memory))
    # A swap changes j − i prefixes, 3 on average of 8 batches; a replacement K − i, 4.5 on average: 3.75 of 8.
    assert memory.asked / 500 == pytest.approx(3.75, rel=0.1)
    assert memory.trained <= memory.asked


@pytest.mark.parametrize("stop", [1, 57, 150, 260])
def test_a_search_that_was_stopped_ends_as_one_that_was_not(stop):
    plan = SearchPlan(200, 100, cooling=3.0, ahead=5)
    whole = search(Made(25, 4), (3, 3), plan, seed=9)

    class Enough(Exception):
        pass

    kept = {}

    def told(state):
        kept["state"] = json.dumps(state.as_json())
        if state.step >= stop:
            raise Enough

    with pytest.raises(Enough):
        search(Made(25, 4), (3, 3), plan, seed=9, options=SearchOptions(callback=told))
    after = search(
        Made(25, 4), (3, 3), plan, seed=9, options=SearchOptions(state=SearchState.from_json(json.loads(kept["state"])))
    )
    assert after.as_json() == whole.as_json()


@given(pool=st.integers(4, 30), seed=st.integers(0, 1000), step=st.integers(0, 1000))
@settings(max_examples=200, deadline=None)
def test_a_move_leads_to_another_order_of_the_pool_and_changes_just_the_prefixes_it_says(pool, seed, step):
    batches, size = 2, max(1, pool // 3)
    order = Order.random(pool, batches, size, seed)
    move, u = propose(order, pool, seed, step)
    after = order.moved(move)
    assert 0 <= u < 1
    assert len(set(after.items.tolist())) == batches * size
    assert set(after.items.tolist()) <= set(range(pool))
    assert (np.diff(after.batches, axis=1) > 0).all()
    other = [k for k in range(1, batches + 1) if not np.array_equal(order.prefix(k), after.prefix(k))]
    assert other == list(move.changed(batches))


def test_moves_are_as_likely_as_the_kernel_says():
    order = Order.random(30, 4, 3, seed=0)
    moves = [propose(order, 30, 1, step)[0] for step in range(4000)]
    swaps = [move for move in moves if move.other is not None]
    assert len(swaps) / 4000 == pytest.approx(0.5, abs=0.03)
    pairs = np.array([(move.place[0], move.other[0]) for move in swaps])
    counts = np.array([((pairs == (i, j)).all(axis=1)).mean() for i in range(4) for j in range(i + 1, 4)])
    assert counts == pytest.approx(1 / 6, abs=0.04)
    newcomers = np.bincount([move.item for move in moves if move.other is None], minlength=30)
    assert (newcomers[order.items] == 0).all()
    assert newcomers[newcomers > 0].min() > 60  # 2,000 over 18 items
    assert len(newcomers[newcomers > 0]) == 18


def test_quality_is_the_mean_of_the_curve():
    assert quality(np.array([0.5, 0.6, 0.7])) == pytest.approx(0.6)


def test_the_memory_gives_what_the_judge_would_and_forgets_the_oldest():
    judge = Made(20)
    memory = ScoreCache(judge, size=3)
    sets = [np.array([i, i + 1]) for i in range(6)]
    assert memory.scores(sets) == pytest.approx(judge.scores(sets))
    assert [some in memory for some in sets] == [False, False, False, True, True, True]
    assert memory.scores([sets[5], sets[5], sets[0]]) == pytest.approx(judge.scores([sets[5], sets[5], sets[0]]))
    assert (memory.asked, memory.trained) == (9, 7)


@pytest.mark.parametrize("remembered", [1, 20, 200])
def test_a_memory_that_forgets_changes_nothing_in_the_chain(remembered):
    plan = SearchPlan(200, 60, cooling=5.0)
    whole = search(Made(30, 8), (4, 3), plan, seed=1)
    judge = Made(30, 8)
    assert (
        search(judge, (4, 3), plan, seed=1, options=SearchOptions(cache=ScoreCache(judge, remembered))).as_json()
        == whole.as_json()
    )


def test_a_state_that_is_handed_over_stays_as_it_was():
    begun = search(Made(25, 4), (3, 3), SearchPlan(20, 0), seed=9)
    before = begun.as_json()
    search(Made(25, 4), (3, 3), SearchPlan(60, 10), seed=9, options=SearchOptions(state=begun))
    assert begun.as_json() == before


def test_where_all_of_the_pool_is_one_batch_there_is_nothing_to_search():
    found = search(Made(6), (1, 6), SearchPlan(50, 10), seed=0)
    assert found.best.batches.tolist() == [[0, 1, 2, 3, 4, 5]]
    assert found.step == 60


def test_whole_numbers_are_scores_too():
    class Sure(Made):
        def scores_on(self, sets, parts):
            return np.array([[int(3 in items) for items in sets] for _ in parts])

    found = search(Sure(12), (3, 2), SearchPlan(200, 50, cooling=10.0), seed=0)
    assert found.best_curve.tolist() == [1.0, 1.0, 1.0]


def test_the_best_quality_never_falls():
    found = search(Made(30, 5), (4, 3), SearchPlan(400, 50, cooling=1.0), seed=2)
    assert all(first[2] <= second[2] for first, second in pairwise(found.history))


@pytest.mark.parametrize("wrong", [{"steps": -1}, {"cooling": -1.0}, {"ahead": 0}])
def test_plans_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ConfigError):
        SearchPlan(**wrong)


def test_a_pool_that_is_too_small_is_refused():
    with pytest.raises(ConfigError, match="from a pool of 5"):
        Order.random(5, 3, 2, seed=0)
    with pytest.raises(ConfigError, match="only one order"):
        propose(Order.random(4, 1, 4, seed=0), 4, 0, 1)


def test_a_swap_and_its_reverse_come_back():
    order = Order.of(np.array([[0, 1], [2, 3]]))
    there = order.moved(OrderMove((0, 1), 3, (1, 1)))
    assert there.batches.tolist() == [[0, 3], [1, 2]]
    back = there.moved(OrderMove((0, 1), 1, (1, 0)))
    assert np.array_equal(back.batches, order.batches)
