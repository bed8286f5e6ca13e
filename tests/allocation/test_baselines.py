"""Baselines: each does what it says, and all keep to budget, minimums and caps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.allocation import exact, greedy
from bursar.allocation.advice import BASELINES, Context, compare, missing, only
from bursar.errors import AllocationError, ConfigError
from tests.allocation.problems import NAMES, made, random_problem, worth

SCORES = Context({task: 0.9 - 0.1 * at for at, task in enumerate(NAMES)})


def split_by(name, problem, context=SCORES, seed=0):
    return BASELINES[name](problem, context, np.random.default_rng(seed))


def three(budget=120, **more):
    informs = [[1, 0.5, 0], [0, 1, 0.2], [-0.3, 0, 1]]
    return made([0.5, 0.7, 0.9], [10, 10, 20], informs, [1, 2, 3], budget, **more)


# -- the contract ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [*BASELINES, "only"])
@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(0, 400))
def test_every_baseline_keeps_to_budget_minimums_and_caps_and_leaves_no_money_for_a_label(name, seed, budget):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, budget=budget)
    problem = replace(problem, joint=int(rng.integers(1, 12)))
    split = only(problem, problem.tasks[-1]) if name == "only" else split_by(name, problem, seed=seed)
    together = problem.joint * split.together
    own = sum((n - split.together) * price for n, price in zip(split.counts, problem.prices, strict=True))
    assert split.cost == together + own <= budget
    for count, least, most in zip(split.counts, problem.least, problem.most, strict=True):
        assert max(least, split.together) <= count
        assert most is None or count <= most
    if name not in ("no transfer", "one rate"):  # which do not buy what they think is worth nothing
        for count, price, most in zip(split.counts, problem.prices, problem.most, strict=True):
            assert price > split.unspent or count == most


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_no_baseline_of_single_labels_gains_more_than_the_exact_split(seed):
    problem = random_problem(np.random.default_rng(seed), budget=60)
    best = exact(problem).total
    for split in compare(problem, SCORES):
        assert split.total <= best + 1e-9
        assert split.total == pytest.approx(worth(problem, split.counts), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", list(BASELINES))
def test_the_same_seed_gives_the_same_split(name):
    problem = three(joint=4)
    assert split_by(name, problem, seed=3).counts == split_by(name, problem, seed=3).counts


def test_all_of_them_are_compared_once():
    names = [split.method for split in compare(three(joint=4), SCORES)]
    assert names == [*(f"only {task}" for task in three().tasks), *BASELINES]
    assert len(set(names)) == len(names)


def test_what_is_not_known_leaves_baselines_out():
    names = [split.method for split in compare(three())]
    assert "same items" not in names
    assert "difficulty" not in names
    assert missing("same items", three(), SCORES) == "the price of an item labelled for all tasks is not known"
    assert missing("difficulty", three(), Context({"intent": 0.5})) == "the seed score of slots, urgency is not known"
    with pytest.raises(AllocationError, match="no split by difficulty: the seed score of urgency is not known"):
        split_by("difficulty", three(), Context({"intent": 0.5, "slots": 0.5}))
    with pytest.raises(AllocationError, match="have no price"):
        split_by("same items", three())


def test_an_unknown_baseline_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'equal money'"):
        BASELINES["equal_money"]


def test_where_only_shared_items_pay_for_the_minimums_nothing_else_is_compared():
    """20 labels of each cost 120 apart and 80 on the same items: 25 of these are 100."""
    problem = three(100, least=(20, 20, 20), joint=4)
    assert [(split.method, split.together, split.cost) for split in compare(problem, SCORES)] == [
        ("same items", 25, 100)
    ]
    with pytest.raises(AllocationError, match=r"where each label is of another item.*together"):
        only(problem, "slots")


def test_ablations_are_split_in_the_way_of_what_they_are_an_ablation_of():
    problem = three(joint=4)
    [apart], [shared] = (
        [split for split in compare(problem, Context(method=method)) if split.method == "no transfer"]
        for method in ("exact", "together")
    )
    assert apart.together == 0
    assert shared.together > 0
    assert shared.total > apart.total


# -- each by itself --------------------------------------------------------------------------------------------------
def test_all_money_goes_to_one_task():
    assert only(three(), "slots").counts == (0, 60, 0)
    assert only(three(121), "slots").counts == (1, 60, 0)  # what is left buys what fits
    assert only(three(least=(10, 0, 5)), "slots").counts == (11, 47, 5)
    with pytest.raises(AllocationError, match="there is no task 'mood'"):
        only(three(), "mood")


def test_beyond_a_cap_the_others_get_a_label_each_in_turn():
    # 20 for slots; 100 are left for 25 rounds of a label of intent (1) and one of urgency (3)
    assert only(three(most=(None, 10, None)), "slots").counts == (25, 10, 25)


def test_money_is_shared_equally():
    even = split_by("equal money", three(120))
    assert even.spent == (41, 40, 39)  # 40 each; the odd one buys an intent
    # A minimum counts for the share of its task. What it costs more than that, the others have less, in proportion.
    assert split_by("equal money", three(120, least=(10, 0, 0))).counts == even.counts
    assert split_by("equal money", three(120, least=(80, 0, 0))).spent == (80 + 2, 20, 18)


def test_labels_are_shared_equally():
    assert split_by("equal counts", three(120)).counts == (20, 20, 20)
    # 5 are left of 125: an intent (1) and a slots (2) in turn, then no second slots fits beside the next intent
    assert split_by("equal counts", three(125)).counts == (23, 21, 20)


def test_the_same_items_are_labelled_for_all_tasks():
    split = split_by("same items", three(120, joint=4))
    assert (split.together, split.counts, split.cost) == (30, (30, 30, 30), 120)
    assert split_by("same items", three(122, joint=4)).counts == (32, 30, 30)
    # 25 items, as slots has no more, and 15 intents for their minimum; 5 are left for those that are not at their cap
    limited = split_by("same items", three(120, joint=4, least=(40, 0, 0), most=(None, 25, None)))
    assert (limited.together, limited.counts, limited.cost) == (25, (42, 25, 26), 120)


def test_difficult_tasks_get_more_money():
    split = split_by("difficulty", three(120), Context({"intent": 0.9, "slots": 0.8, "urgency": 0.7}))
    assert split.spent == (20, 40, 60)
    even = split_by("difficulty", three(120), Context(dict.fromkeys(NAMES, 1.0)))
    assert even.counts == split_by("equal money", three(120)).counts


def test_random_splits_are_spread_over_all_divisions():
    shares = np.array([split_by("random", three(12_000), seed=seed).spent for seed in range(200)]) / 12_000
    np.testing.assert_allclose(shares.mean(axis=0), 1 / 3, atol=0.06)  # a standard deviation of 0.24 / √200, thrice
    assert shares.min() < 0.02
    assert shares.max() > 0.85


def test_without_transfer_only_the_own_gain_counts():
    problem = three()
    alone = replace(
        problem,
        estimates=replace(
            problem.estimates, informativeness=replace(problem.estimates.informativeness, value=np.eye(3))
        ),
    )
    split = split_by("no transfer", problem)
    assert split.counts == exact(alone).counts
    assert split.problem is problem


def test_one_rate_is_the_geometric_mean():
    problem = made([0.5, 0.8], [10, 10], np.eye(2), [1, 2], 100)
    shared = made([0.4**0.5, 0.4**0.5], [10, 10], np.eye(2), [1, 2], 100)
    assert split_by("one rate", problem).counts == exact(shared).counts
    # Blocks of 10 at 0.5 and of 20 at 0.25 lose as much a label, so the mean changes nothing.
    alike = made([0.5, 0.25], [10, 20], [[1, 0.3], [0, 1]], [1, 2], 100)
    assert split_by("one rate", alike).counts == exact(alike).counts


def test_a_baseline_of_ones_own_is_compared_too(monkeypatch):
    monkeypatch.setitem(BASELINES._entries, "mine", lambda problem, context, rng: greedy(problem))
    assert compare(three())[-1].method == "greedy"
