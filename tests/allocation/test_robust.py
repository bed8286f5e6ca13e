"""What a split hangs on, and the split with the least to regret, against trying everything."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from bursar.allocation import exact, gain
from bursar.allocation import robust as room
from bursar.allocation.robust import least_regret, predicted, scenarios, sensitivity
from bursar.errors import AllocationError
from tests.allocation.problems import every_split, made, random_problem, worth


def unsure(budget=60, **more):
    return made(
        [0.5, 0.8],
        [10, 10],
        [[1, 0.5], [-0.2, 1]],
        [1, 2],
        budget,
        errors=[[0, 0.1], [0.3, 0]],
        ends=[(0.4, 0.7), (0.8, 0.9)],
        **more,
    )


def test_every_estimate_moves_both_ways_and_alone():
    found = scenarios(unsure())
    assert [(s.task, s.other, s.before, round(s.after, 9)) for s in found] == [
        ("intent", "slots", 0.5, 0.4),
        ("intent", "slots", 0.5, 0.6),
        ("intent", None, 0.5, 0.4),
        ("intent", None, 0.5, 0.7),
        ("slots", "intent", -0.2, -0.5),
        ("slots", "intent", -0.2, 0.1),
        ("slots", None, 0.8, 0.9),  # the low end is the estimate itself
    ]
    for scenario in found:
        changed = scenario.problem.estimates.informativeness.value != unsure().estimates.informativeness.value
        rates = [a != b for a, b in zip(scenario.problem.rates, unsure().rates, strict=True)]
        assert changed.sum() + sum(rates) == 1
    assert found[0].what == "intent informs slots by 0.4 instead of 0.5"
    assert found[-1].what == "reduction rate of slots 0.9 instead of 0.8"


def test_estimates_without_doubt_move_nothing():
    problem = made([0.5, 0.8], [10, 10], np.eye(2), [1, 2], 60)
    assert sensitivity(exact(problem)) == []
    found = least_regret(problem)
    assert found.split.counts == exact(problem).counts
    assert (found.regret, found.bound, found.nominal) == (0, 0, 0)


def test_regret_is_what_the_best_split_of_a_scenario_gains_more():
    split = exact(unsure())
    moves = sensitivity(split)
    assert len(moves) == 7
    assert [move.regret for move in moves] == sorted((move.regret for move in moves), reverse=True)
    for move in moves:
        then = move.scenario.problem
        best = max(worth(then, counts) for counts in every_split(then))
        assert move.best.total == pytest.approx(best)
        assert move.regret == pytest.approx(best - worth(then, split.counts), abs=1e-9)
    assert moves[0].regret > 0
    told = json.loads(json.dumps(moves[0].describe()))
    assert told["labels"] == dict(zip(split.tasks, moves[0].best.counts, strict=True))
    assert told["regret"] == moves[0].regret


def largest_regret(problem, counts):
    """Over all scenarios, and over the estimates as they are."""
    problems = [problem, *(scenario.problem for scenario in scenarios(problem))]
    return max(exact(then).total - worth(then, counts) for then in problems)


def least_by_trying(problem):
    problems = [problem, *(scenario.problem for scenario in scenarios(problem))]
    best = [exact(then).total for then in problems]
    return min(
        max(top - worth(then, counts) for top, then in zip(best, problems, strict=True))
        for counts in every_split(problem)
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_robust_split_has_the_least_to_regret_of_all(seed):
    rng = np.random.default_rng([seed, 7])
    problem = random_problem(rng, int(rng.integers(2, 4)), int(rng.integers(3, 14)), sure=False)
    found = least_regret(problem)
    least = least_by_trying(problem)
    assert found.regret == pytest.approx(largest_regret(problem, found.split.counts), abs=1e-9)
    assert found.bound <= least + 1e-9
    assert least - 1e-9 <= found.regret <= least * (1 + 2 * room.CLOSE) + 1e-9
    assert found.regret <= found.nominal + 1e-12
    assert found.nominal == pytest.approx(largest_regret(problem, exact(problem).counts), abs=1e-9)
    assert [move.regret for move in found.outcomes] == sorted((move.regret for move in found.outcomes), reverse=True)
    assert max([0, *(move.regret for move in found.outcomes)]) <= found.regret + 1e-9


def test_with_little_time_the_bound_still_holds(monkeypatch):
    problem = unsure(budget=23)
    least = least_by_trying(problem)
    for looks in (0, 1, 2, 4):
        monkeypatch.setattr(room, "LOOKS", looks)
        found = least_regret(problem)
        assert found.bound <= least + 1e-9 <= found.regret + 2e-9


def test_a_robust_split_hedges():
    # Whether labels of slots are worth more than those of intent is not known: the exact split bets, this one does not.
    problem = made([1.0, 1.0], [1, 1], [[1, 0.05], [0, 1]], [1, 1], 100, errors=[[0, 0], [0.2, 0]])
    assert exact(problem).counts == (100, 0)
    found = least_regret(problem)
    # All on intent regrets 100 (1.2 − 1.05) = 15 if slots are worth 1.2; N labels of slots regret 15 − 0.15 N then,
    # 0.05 N by the estimates as they are and 0.25 N if they are worth 0.8: even at N = 37.5.
    assert found.split.counts in ((62, 38), (63, 37))
    assert found.nominal == pytest.approx(15)
    assert found.regret == pytest.approx(min(max(15 - 0.15 * n, 0.25 * n) for n in (37, 38)))


def test_more_labels_than_can_be_looked_at_are_refused():
    with pytest.raises(AllocationError, match=r"task 'intent': 1,000,000,000 labels are affordable"):
        least_regret(unsure(budget=10**9))


# -- how sure the gains are ------------------------------------------------------------------------------------------
def test_gains_without_doubt_have_no_width():
    split = exact(made([0.5, 0.8], [10, 10], [[1, 0.5], [0, 1]], [1, 2], 60))
    each, whole = predicted(split)
    assert whole.low == pytest.approx(whole.value) == pytest.approx(whole.high) == pytest.approx(split.total)
    assert each["slots"].value == pytest.approx(split.gains[:, 1].sum())


def test_the_interval_of_a_gain_is_that_of_a_normal_informativeness(monkeypatch):
    monkeypatch.setattr(room, "DRAWS", 20_000)
    problem = made([1.0, 1.0], [1, 1], [[1, 0.5], [0, 1]], [1, 1], 100, errors=[[0, 0.1], [0, 0]])
    split = exact(problem)
    assert split.counts == (100, 0)
    each, whole = predicted(split)
    assert each["intent"].low == each["intent"].high == 100
    # 100 (0.5 ± 1.645 · 0.1)
    assert (each["slots"].low, each["slots"].high) == pytest.approx((33.55, 66.45), abs=0.6)
    assert (whole.low, whole.high) == pytest.approx((133.55, 166.45), abs=0.6)


def test_the_ends_of_a_rate_are_the_ends_of_its_gain(monkeypatch):
    monkeypatch.setattr(room, "DRAWS", 20_000)
    problem = made([0.6], [10], [[1]], [1], 100, ends=[(0.5, 0.8)])
    low, high = (float(gain(100, replace(problem.rates[0], beta=beta))) for beta in (0.5, 0.8))
    each, _ = predicted(exact(problem))
    assert (each["intent"].low, each["intent"].high) == pytest.approx((low, high), rel=0.02)


def test_the_same_seed_gives_the_same_intervals():
    split = exact(unsure())
    assert predicted(split, seed=4) == predicted(split, seed=4)
    assert predicted(split, seed=4) != predicted(split, seed=5)
