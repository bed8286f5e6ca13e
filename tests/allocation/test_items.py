"""Items that are labelled for all tasks at once: how many, at which price, and that no other number is better."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.allocation import Informativeness, ReductionRate, SplitEstimates, SplitProblem, exact, together
from bursar.allocation.items import with_items
from bursar.errors import AllocationError
from tests.allocation.problems import made, six_tasks, two_alike

often = settings(max_examples=80, deadline=None, derandomize=True)
seeds = st.integers(0, 10**6).map(np.random.default_rng)


def test_together_is_the_best_over_all_numbers_of_shared_items():
    rng = np.random.default_rng(8)
    for _ in range(25):
        value = rng.uniform(-0.2, 0.8, (2, 2))
        np.fill_diagonal(value, 1.0)
        rates = {name: ReductionRate(b, b, b, 4) for name, b in zip("ab", rng.uniform(0.3, 1.0, 2), strict=True)}
        prices = tuple(rng.integers(3, 9, 2).tolist())
        joint = int(rng.integers(max(prices), sum(prices) + 2))
        known = SplitEstimates(Informativeness(("a", "b"), value, np.zeros((2, 2))), rates)
        problem = SplitProblem(known, prices, int(rng.integers(10, 120)), joint=joint)
        best = max(
            float(problem.gains((a, b)).sum())
            for shared in range(problem.budget // joint + 1)
            for a in range(shared, shared + problem.budget // prices[0] + 1)
            for b in range(shared, shared + problem.budget // prices[1] + 1)
            if shared * joint + (a - shared) * prices[0] + (b - shared) * prices[1] <= problem.budget
        )
        found = together(problem)
        assert found.total == pytest.approx(best, rel=1e-9)
        assert found.cost <= problem.budget


@given(st.integers(0, 10**6))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_together_is_at_least_as_good_as_every_number_of_shared_items_with_caps_and_minimums(seed):
    rng = np.random.default_rng(seed)
    tasks = int(rng.integers(2, 5))
    value = rng.uniform(-0.3 if seed % 3 == 0 else 0.0, 0.6, (tasks, tasks))
    np.fill_diagonal(value, 1.0)
    prices = rng.integers(2, 12, tasks).tolist()
    problem = made(
        rng.uniform(0.3, 1.0, tasks).tolist(),
        rng.integers(3, 20, tasks).tolist(),
        value,
        prices,
        int(rng.integers(200, 700)),  # enough for all minimums
        least=tuple(rng.integers(0, 5, tasks).tolist()) if seed % 2 else (),
        most=tuple(None if rng.random() < 0.5 else int(rng.integers(5, 80)) for _ in range(tasks)),
        joint=int(rng.integers(max(prices), sum(prices) + 1)),
    )
    found, best = together(problem), -np.inf
    for items in range(problem.budget // problem.joint + 1):
        if items <= min(problem.caps, default=items) and problem.minimums(items) <= problem.budget:
            best = max(best, with_items(problem, items).total)
    assert found.total >= best - 1e-9 * abs(best)


@often
@given(seeds)
def test_the_items_for_all_tasks_that_the_money_pays_for_are_those_that_trying_finds(rng):
    tasks = int(rng.integers(1, 4))
    least = tuple(rng.integers(0, 12, tasks).tolist())
    most = tuple(None if rng.random() < 0.5 else int(low + rng.integers(0, 9)) for low in least)
    prices = rng.integers(1, 9, tasks).tolist()
    made_of = {"least": least, "most": most, "joint": int(rng.integers(1, 20))}
    budget = int(rng.integers(1, 200))
    tried = [
        items
        for items in range(budget // made_of["joint"] + 1)
        if items <= min((cap for cap in most if cap is not None), default=items)
        and items * made_of["joint"] + sum(p * max(0, n - items) for p, n in zip(prices, least, strict=True)) <= budget
    ]
    try:
        problem = made([0.5] * tasks, [10] * tasks, np.eye(tasks), prices, budget, **made_of)
    except AllocationError:
        assert not tried
    else:
        assert problem.shared_items() == (tried[0], tried[-1])


def test_minimums_that_only_items_for_all_tasks_can_pay_for_are_paid_so():
    """20 labels of each apart cost 440; 20 items for both at 13 cost 260, and 60 are left."""
    problem = made([0.5, 0.5], [20, 20], np.eye(2), [10, 12], 320, least=(20, 20), joint=13)
    found = together(problem)
    assert found.together == 24
    assert found.cost <= 320
    with pytest.raises(AllocationError, match=r"cost 440 where each label is of another item.*together"):
        exact(problem)
    with pytest.raises(AllocationError, match="the minimums cost 260, and the budget is 250"):
        replace(problem, budget=250)


def test_together_needs_the_price_of_an_item_for_all_tasks():
    known = SplitEstimates(Informativeness(("a",), np.eye(1), np.zeros((1, 1))), {"a": ReductionRate(0.5, 0.5, 0.5, 4)})
    with pytest.raises(AllocationError, match="labelled for all tasks is not known"):
        together(SplitProblem(known, (3,), 12))


@pytest.mark.parametrize("seed", range(40))
def test_together_is_the_best_where_labels_of_some_tasks_harm_and_tasks_count_differently(seed):
    """Harm makes the gain neither rise nor fall evenly with the number of items for all tasks."""
    rng = np.random.default_rng([seed, 11])
    count = int(rng.integers(2, 5))
    informs = rng.uniform(-1.2, 0.4, (count, count))
    np.fill_diagonal(informs, 1)
    prices = rng.integers(3, 25, count).tolist()
    problem = made(
        rng.choice([0.01, 0.4, 0.8, 1.0], count).tolist(),
        rng.integers(2, 80, count).tolist(),
        informs,
        prices,
        int(rng.integers(300, 2500)),
        least=tuple((rng.integers(0, 12, count) * (rng.random(count) < 0.5)).tolist()),
        most=tuple(None if rng.random() < 0.5 else int(rng.integers(12, 90)) for _ in range(count)),
        joint=int(rng.integers(max(prices), sum(prices) + 1)),
        importance=tuple(rng.choice([0.0, 0.2, 1.0, 3.0], count).tolist()),
    )
    first, last = problem.shared_items()
    tried = [with_items(problem, items) for items in range(first, last + 1)]
    best, found = max(split.total for split in tried), together(problem)
    assert found.total == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert found.bound == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert found.cost == min(split.cost for split in tried if split.total >= best - 1e-12 * abs(best))


def test_six_tasks_and_a_budget_of_100_000_take_little_time_with_items_for_all_tasks():
    problem = replace(six_tasks([0.5, 0.6, 0.7, 0.8, 0.9, 0.95]), joint=21)
    started = time.process_time()
    assert together(problem).together > 0
    assert time.process_time() - started < 1  # a twentieth of a second


def test_what_the_notes_say_counts_items_for_all_tasks():
    known = two_alike()
    cheap = together(SplitProblem(known, prices=(7, 9), budget=6, joint=5))
    assert (cheap.counts, cheap.notes) == ((1, 1), ())
    minimums = together(SplitProblem(known, prices=(10, 12), budget=440, joint=13, least=(20, 20)))
    assert min(minimums.counts) > 20
    assert minimums.notes == ()
    tight = together(SplitProblem(known, prices=(10, 12), budget=260, joint=13, least=(20, 20)))
    assert tight.notes == ("The minimums take the whole budget.",)


@pytest.mark.parametrize(
    ("betas", "blocks", "prices", "joint", "budget", "most", "cost"),
    [
        ([0.5, 0.9], [10, 1000], [10, 10], 15, 100_000, (None, 1000), 12_625),
        ([0.5, 0.5], [10, 10], [12, 10], 13, 12_000, (435, 435), 5_655),
    ],
)
def test_money_that_is_not_needed_is_not_spent_on_labels_apart(betas, blocks, prices, joint, budget, most, cost):
    assert together(made(betas, blocks, np.eye(2), prices, budget, joint=joint, most=most)).cost == cost


@pytest.mark.parametrize("beta", [1 - 1e-12, 1 - 1e-13, 0.999999])
@pytest.mark.parametrize("budget", [1378, 1379, 1381, 2400])
def test_labels_that_hardly_lose_worth_are_split_as_well(beta, budget):
    rate = ReductionRate(beta, beta, beta, 1000)
    known = SplitEstimates(Informativeness(("a", "b"), np.eye(2), np.zeros((2, 2))), dict.fromkeys("ab", rate))
    assert together(SplitProblem(known, (24, 24), budget, joint=27)).cost <= budget
