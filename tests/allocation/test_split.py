"""The split: exact against trying everything, the greedy within its bound, and clear answers where there is little."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.allocation import Informativeness, ReductionRate, Split, SplitEstimates, SplitProblem, exact, greedy
from bursar.allocation.concave import Good, _searched, best_steps, combined, greedy_steps
from bursar.errors import AllocationError
from bursar.tasks import CostModel
from tests.allocation.problems import NAMES, every_split, made, random_problem, six_tasks, two_alike, worth

often = settings(max_examples=80, deadline=None, derandomize=True)
seeds = st.integers(0, 10**6).map(np.random.default_rng)


# -- exact -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(120))
def test_the_exact_split_is_the_best_of_all(seed):
    problem = random_problem(np.random.default_rng(seed))
    found = exact(problem)
    best = max(worth(problem, counts) for counts in every_split(problem))
    assert found.total == pytest.approx(best, rel=1e-12, abs=1e-12)
    assert worth(problem, found.counts) == pytest.approx(found.total, rel=1e-9, abs=1e-12)
    assert found.counts in set(every_split(problem))
    assert found.bound == found.total


@often
@given(seeds, st.integers(0, 3000))
def test_a_split_never_exceeds_the_budget_nor_its_limits(rng, budget):
    problem = random_problem(rng, budget=budget)
    for split in (exact(problem), greedy(problem)):
        assert split.cost == sum(n * price for n, price in zip(split.counts, problem.prices, strict=True)) <= budget
        assert split.cost + split.unspent == budget
        for count, least, most in zip(split.counts, problem.least, problem.most, strict=True):
            assert least <= count
            assert most is None or count <= most


@often
@given(seeds)
def test_more_money_never_gains_less(rng):
    problem = random_problem(rng)
    totals = [exact(replace(problem, budget=problem.budget + more)).total for more in range(6)]
    assert all(after >= before - 1e-9 for before, after in pairwise(totals))


@often
@given(seeds, st.integers(2, 9))
def test_only_the_ratio_of_prices_to_the_budget_counts(rng, times):
    problem = random_problem(rng)
    dear = replace(problem, prices=tuple(times * price for price in problem.prices), budget=times * problem.budget + 1)
    assert exact(dear).counts == exact(problem).counts


def test_a_task_that_harms_more_than_it_helps_has_its_minimum():
    informs = [[1, -0.7, -0.5], [0.3, 1, 0], [0, 0.2, 1]]
    problem = made([0.5, 0.6, 0.7], [10, 10, 10], informs, [1, 1, 1], 100, least=(4, 0, 0))
    split = exact(problem)
    assert split.counts[0] == 4
    assert split.cost == 100
    assert any("A label of intent is worth -0.2" in note and "minimum of 4" in note for note in split.notes)


def test_the_gains_of_a_split_go_from_task_to_task():
    problem = made([0.5, 1.0], [10, 1], [[1, 0.5], [-0.25, 1]], [1, 1], 30, least=(20, 0), most=(20, None))
    split = exact(problem)
    assert split.counts == (20, 10)
    # g(20) = 10 (1 − 0.25) / 0.5 = 15 for intent, and 10 for slots, which loses nothing
    np.testing.assert_allclose(split.gains, [[15, 7.5], [-2.5, 10]])
    assert split.total == pytest.approx(30)
    told = json.loads(json.dumps(split.describe()))
    assert told["tasks"]["intent"] == {"labels": 20, "spent": 20, "gain": 15, "gain_to_others": {"slots": 7.5}}
    assert (told["cost"], told["unspent"], told["method"]) == (30, 0, "exact")


# -- ties ------------------------------------------------------------------------------------------------------------
def goods_of(rng):
    """Few different worths, so that ties are everywhere."""
    goods = []
    for _ in range(int(rng.integers(1, 5))):
        steps = np.sort(rng.integers(1, rng.choice([3, 6, 100]), int(rng.integers(0, 6))))[::-1]
        goods.append(Good(steps.astype(np.int64), int(rng.integers(1, 8))))
    return goods, int(rng.integers(0, 40))


def best_by_trying(goods, money):
    """The most worth; of that the cheapest; of that the most steps of the first good, then of the second …"""
    found = []
    for choice in np.ndindex(*(len(good.worth) + 1 for good in goods)):
        cost = sum(n * good.cost for n, good in zip(choice, goods, strict=True))
        if cost <= money:
            gained = sum(int(good.worth[:n].sum()) for n, good in zip(choice, goods, strict=True))
            found.append((-gained, cost, tuple(-n for n in choice)))
    return [-n for n in min(found)[2]]


def test_of_equal_splits_the_cheapest_is_taken_and_then_the_first_tasks_come_first():
    for seed in range(300):
        goods, money = goods_of(np.random.default_rng(seed))
        assert best_steps(goods, money) == best_by_trying(goods, money), f"seed {seed}"


def test_two_tasks_that_are_alike_share_and_the_odd_label_goes_to_the_first():
    assert exact(made([0.5, 0.5], [10, 10], np.eye(2), [1, 1], 21)).counts == (11, 10)
    assert exact(made([1, 1], [10, 10], np.eye(2), [1, 1], 21)).counts == (21, 0)


# -- the kernel at size ----------------------------------------------------------------------------------------------
@often
@given(seeds, st.integers(1, 60), st.integers(1, 9))
def test_combining_finds_the_best_number_of_steps_for_every_amount_of_money(rng, money, cost):
    before = np.sort(rng.integers(0, 30, money + 1))
    good = Good(np.sort(rng.integers(1, 12, int(rng.integers(0, 20))))[::-1].astype(np.int64), cost)
    expected = [
        max(before[m - k * cost] + good.totals[k] for k in range(min(len(good.worth), m // cost) + 1))
        for m in range(money + 1)
    ]
    assert combined(before, good).tolist() == expected


@pytest.mark.parametrize("beta", [0.5, 0.999, 1.0])
def test_leaving_out_what_cannot_be_best_changes_nothing(beta):
    rng = np.random.default_rng(5)
    goods = []
    for cost in (3, 5, 7):
        worths = np.rint(1e12 * rng.uniform(0.5, 2) * beta ** (np.arange(2000 // cost) / 50))
        goods.append(Good(worths.astype(np.int64), cost))
    assert best_steps(goods, 2000) == _searched(goods, 2000)


@pytest.mark.parametrize("betas", [[0.5, 0.6, 0.7, 0.8, 0.9, 0.95], [1.0] * 6])
def test_six_tasks_and_a_budget_of_100_000_take_little_time(betas):
    problem = six_tasks(betas)
    started = time.process_time()
    split = exact(problem)
    assert time.process_time() - started < 1  # a hundredth of a second; a fifth where nothing can be left out
    assert split.total >= greedy(problem).total - 1e-6
    assert split.total <= greedy(problem).bound + 1e-6


def test_where_worth_falls_with_the_price_no_reduction_helps_and_it_is_still_exact():
    # Every label is worth its price: whatever spends all money is best.
    informs = np.diag([1.0] * 3)
    prices = [6, 10, 15]
    for at, price in enumerate(prices):
        informs[at, (at + 1) % 3] = price - 1
    split = exact(made([1.0] * 3, [1] * 3, informs, prices, 30_029))
    assert split.cost == 30_029
    assert split.total == pytest.approx(30_029)


# -- greedy ----------------------------------------------------------------------------------------------------------
def first_that_does_not_fit(problem):
    """What the first label would gain that the greedy cannot pay, found label by label; None if all are bought."""
    counts, left, weights = list(problem.least), problem.spare, problem.worth
    while True:
        choices = []
        for at, (price, most) in enumerate(zip(problem.prices, problem.most, strict=True)):
            if weights[at] > 0 and (most is None or counts[at] < most):
                more = counts.copy()
                more[at] += 1
                gained = worth(problem, more) - worth(problem, counts)
                choices.append((-gained / price, at, gained))
        if not choices:
            return None
        _, at, gained = min(choices)
        if problem.prices[at] > left:
            return gained
        counts[at] += 1
        left -= problem.prices[at]


@often
@given(seeds, st.integers(1, 120))
def test_the_greedy_is_behind_by_less_than_the_first_label_that_does_not_fit(rng, budget):
    problem = random_problem(rng, budget=budget)
    best, quick = exact(problem), greedy(problem)
    missed = first_that_does_not_fit(problem)
    assert quick.total <= best.total + 1e-9
    assert best.total <= quick.bound + 1e-9
    if missed is None:
        assert quick.total == pytest.approx(best.total, abs=1e-9)
    else:
        assert best.total - quick.total < missed + 1e-9


@often
@given(seeds, st.integers(1, 120), st.integers(1, 5))
def test_with_equal_costs_the_greedy_is_exact(rng, budget, price):
    problem = random_problem(rng, budget=budget, limits=False)
    count = len(problem.tasks)
    problem = replace(problem, prices=(price,) * count)
    assert greedy(problem).total == pytest.approx(exact(problem).total, rel=1e-9, abs=1e-9)


def test_the_greedy_can_be_behind():
    # 6 for 3 is as dear as 4 for 2, and comes first: then nothing is left for the two of the other.
    steps, bound = greedy_steps([Good(np.array([6]), 3), Good(np.array([4, 4]), 2)], 4)
    assert (steps, bound) == ([1, 0], 8.0)
    assert best_steps([Good(np.array([6]), 3), Good(np.array([4, 4]), 2)], 4) == [0, 2]


def test_the_greedy_goes_on_with_what_still_fits():
    steps, _ = greedy_steps([Good(np.array([50, 40]), 10), Good(np.array([3, 3, 3]), 1)], 12)
    assert steps == [1, 2]


# -- clear answers ---------------------------------------------------------------------------------------------------
def test_a_budget_below_the_cheapest_label_buys_nothing_and_says_so():
    problem = made([0.5, 0.5], [10, 10], np.eye(2), [7, 9], 6, costs=CostModel({}, {}, currency="€"))
    for split in (exact(problem), greedy(problem)):
        assert (split.counts, split.cost, split.total) == ((0, 0), 0, 0)
        assert split.notes == ("€6 buys nothing: the cheapest label, of intent, costs €7.",)


@pytest.mark.parametrize("method", [exact, greedy])
def test_negative_transfer_from_every_task_buys_only_the_minimums(method):
    informs = [[1, -0.8, -0.4], [-0.9, 1, -0.4], [-0.5, -0.5, 1]]
    nothing = method(made([0.5] * 3, [10] * 3, informs, [1] * 3, 100))
    assert nothing.counts == (0, 0, 0)
    assert "Nothing is bought." in nothing.notes[0]
    some = method(made([0.5] * 3, [10] * 3, informs, [1] * 3, 100, least=(5, 0, 2)))
    assert some.counts == (5, 0, 2)
    assert "Only the minimums are bought." in some.notes[0]
    assert some.unspent == 93


def test_a_label_that_is_worth_nothing_to_all_is_not_bought():
    assert exact(made([0.5, 0.5], [10, 10], [[1, -1], [0, 1]], [1, 1], 10)).counts == (0, 10)


def test_money_that_caps_leave_is_told():
    split = exact(made([0.5, 0.5], [10, 10], np.eye(2), [1, 2], 100, most=(10, 20)))
    assert split.counts == (10, 20)
    assert split.notes == ("Every task is at its cap: 50 is left.",)


def test_money_that_would_gain_nothing_is_not_spent():
    split = exact(made([0.1], [1], [[1]], [1], 10_000))
    assert split.counts[0] < 100
    assert split.total == pytest.approx(1 / 0.9, rel=1e-15)
    assert "No further label would gain anything" in split.notes[0]


def test_minimums_that_take_all_money_are_told():
    split = exact(made([0.5, 0.5], [10, 10], np.eye(2), [1, 2], 30, least=(10, 10)))
    assert split.notes == ("The minimums take the whole budget.",)


def test_minimums_beyond_the_budget_are_refused_with_the_task_and_the_numbers():
    with pytest.raises(
        AllocationError, match=r"minimums cost 65, and the budget is 60: task 'slots' alone has 20 labels at 3"
    ):
        made([0.5, 0.5], [10, 10], np.eye(2), [1, 3], 60, least=(5, 20))


def test_a_budget_of_nothing_is_a_split_of_nothing():
    split = exact(made([0.5], [10], [[1]], [1], 0))
    assert (split.counts, split.total) == ((0,), 0)


def test_one_task_gets_all():
    assert exact(made([0.9], [100], [[1]], [3], 100)).counts == (33,)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"prices": (1,)}, "1 prices for 2 tasks"),
        ({"prices": (1, 0)}, "task 'slots': a price of 0"),
        ({"prices": (1, 0.5)}, "prices: 0.5 is not a whole number"),
        ({"budget": -1}, "a budget of -1"),
        ({"budget": 9.5}, "budget: 9.5 is not a whole number"),
        ({"least": (0, -1)}, "task 'slots': at least -1 labels"),
        (
            {"least": (0, 5), "most": (None, 4)},
            "task 'slots': at least 5 labels are asked for, and at most 4",
        ),
        ({"most": (1, 2, 3)}, "3 most for 2 tasks"),
        ({"joint": 0}, "an item for all tasks at 0"),
    ],
)
def test_a_problem_that_is_none_is_refused(change, said):
    problem = made([0.5, 0.5], [10, 10], np.eye(2), [1, 2], 60)
    with pytest.raises(AllocationError, match=said):
        replace(problem, **change)


def test_whole_numbers_of_numpy_are_whole_numbers():
    problem = made([0.5, 0.5], [10, 10], np.eye(2), np.array([1, 2]), np.int64(60))
    assert exact(problem).cost == 60


@pytest.mark.parametrize(
    ("counts", "together", "said"),
    [
        ((61, 0), 0, "61 is above the budget of 60"),
        ((1, 0), 0, "1 labels of task 'intent' are not within its limits"),
        ((40, 9), 0, "9 labels of task 'slots'"),
        ((5, 4), 5, "4 labels of task 'slots'"),
    ],
)
def test_a_split_that_does_not_keep_to_its_problem_cannot_be_made(counts, together, said):
    problem = made([0.5, 0.5], [10, 10], np.eye(2), [1, 2], 60, least=(2, 0), most=(None, 8), joint=2)
    with pytest.raises(AllocationError, match=said):
        Split(problem, counts, "mine", together=together)


def test_items_for_all_tasks_are_paid_at_their_own_price():
    problem = made([0.5, 0.5], [10, 10], np.eye(2), [3, 4], 60, joint=5)
    split = Split(problem, (10, 12), "mine", together=10)
    assert (split.spent, split.cost, split.unspent) == ((0, 8), 58, 2)


def test_money_beyond_all_counting_is_refused_rather_than_tried():
    with pytest.raises(AllocationError, match=r"task 'intent': 100,000,001 labels are affordable"):
        exact(made([1.0, 1.0], [1, 1], np.eye(2), [1, 2], 10**8 + 1))
    # All steps are worth what they cost, so nothing can be left out, and nothing divides the prices.
    goods = [Good(np.full(5, cost), cost) for cost in (9_999_991, 9_999_973)]
    with pytest.raises(AllocationError, match="60,000,000 times the common unit"):
        best_steps(goods, 60_000_000)


def test_a_large_budget_is_no_trouble_where_worth_falls():
    split = exact(made([0.5, 0.6], [10**3, 10**3], np.eye(2), [1, 3], 10**8 + 1))
    assert split.total == pytest.approx(10**3 * (2 + 2.5), rel=1e-12)


def test_tasks_are_named_in_the_order_of_the_estimates():
    problem = six_tasks([0.5] * 6)
    assert isinstance(problem, SplitProblem)
    assert exact(problem).tasks == NAMES


def test_a_note_says_that_nothing_gains_only_if_something_useful_is_affordable():
    problem = made([0.9, 0.9], [10, 10], np.eye(2), [1, 10], 58, most=(5, None))
    split = exact(problem)
    assert split.unspent == 3  # less than a label of the second costs, and the first is at its cap
    assert not any("No further label" in note for note in split.notes)


def test_a_task_that_counts_for_nothing_is_not_said_to_harm():
    known = two_alike()
    [note] = exact(SplitProblem(known, prices=(1, 1), budget=60, importance=(1.0, 0.0))).notes
    assert note == "A label of b is worth 0 to all tasks together: none are bought."


def test_greedy_counts_money_of_any_size_or_says_that_it_cannot():
    known = two_alike()
    large = SplitProblem(known, prices=(10**16, 9 * 10**15), budget=10**20)
    assert greedy(large).cost <= 10**20
    with pytest.raises(AllocationError, match=r"is too large\. Fix: use a larger unit"):
        greedy(SplitProblem(known, prices=(10**16 + 1, 9 * 10**15 + 3), budget=10**20))


def test_a_minimum_above_what_can_be_had_is_told_as_that():
    known = SplitEstimates(
        Informativeness(("a",), np.eye(1), np.zeros((1, 1))), {"a": ReductionRate(0.5, 0.5, 0.5, 50)}
    )
    with pytest.raises(AllocationError, match=r"at least 300 labels are asked for, and at most 189.*each round"):
        SplitProblem(known, (1,), 1000, least=(300,), most=(189,))
