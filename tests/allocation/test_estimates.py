"""What is estimated of tasks, and small numbers that can be computed by hand."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from bursar.allocation import (
    Informativeness,
    ReductionRate,
    SplitEstimates,
    SplitProblem,
    exact,
    fit_rate,
    gain,
    half_life,
)
from bursar.allocation.advice import compare
from bursar.allocation.adviser import paid, payable
from bursar.allocation.estimates import returns, tells_nothing
from bursar.allocation.informativeness import make_informer
from bursar.allocation.rates import GivenRates
from bursar.allocation.robust import Scenario
from bursar.allocation.tables import number_in, shown
from bursar.errors import ConfigError
from bursar.selection import Candidates, Selection
from bursar.tasks import Prices

HALVES = ReductionRate(0.5, 0.5, 0.5, block=100)


def test_each_block_is_worth_half_of_the_one_before():
    assert gain([0, 100, 200, 300], HALVES).tolist() == pytest.approx([0.0, 100.0, 150.0, 175.0])
    assert half_life(ReductionRate(0.25, 0.25, 0.25, block=100)) == pytest.approx(50.0)


def test_returns_are_accurate_near_one():
    assert returns(1000, [1 - 1e-12, 1.0], block=10).round(3).tolist() == [1000.0, 1000.0]


def test_a_rate_is_read_off_the_shape_of_a_curve_and_a_falling_one_tells_nothing():
    rate = fit_rate([0, 50, 100, 150, 200], [0.5, 0.6, 0.65, 0.675, 0.6875])
    assert (round(rate.beta, 4), rate.block) == (0.5, 50.0)
    assert tells_nothing(fit_rate([0, 50, 100, 150], [0.6, 0.6, 0.58, 0.57]))
    assert tells_nothing(SplitEstimates.unknown(["intent", "slots"]).rates["slots"])


def test_baselines_divide_the_same_budget_otherwise():
    known = Informativeness(("intent", "slots"), np.array([[1, 0.5], [0.2, 1]]), np.zeros((2, 2)))
    estimates = SplitEstimates(known, {"intent": HALVES, "slots": HALVES})
    splits = {split.method: split.counts for split in compare(SplitProblem(estimates, prices=(1, 3), budget=600))}
    expected = {
        "only slots": (0, 200),
        "equal money": (300, 100),
        "equal counts": (150, 150),
        "no transfer": (270, 110),
    }
    assert {name: splits[name] for name in expected} == expected


def test_the_best_split_spends_all_on_what_is_worth_most():
    known = Informativeness(("intent", "slots"), np.array([[1, 0.5], [0.2, 1]]), np.zeros((2, 2)))
    estimates = SplitEstimates(known, {"intent": HALVES, "slots": HALVES})
    split = exact(SplitProblem(estimates, prices=(1, 3), budget=600))
    assert (split.counts, split.cost, round(split.total, 3)) == ((294, 102), 600, 382.56)


def test_an_unknown_informer_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match=r"there is no informer 'lookahed'. Fix: did you mean 'lookahead'"):
        make_informer("lookahed")


def test_a_scenario_names_the_estimate_that_it_changes():
    assert Scenario("intent", "slots", 0.5, 0.4, None).what == "intent informs slots by 0.4 instead of 0.5"


def test_minimums_are_reduced_to_what_the_budget_pays_for():
    assert payable((10, 20), (4, 2), 60) == (7, 15)
    assert payable((10, 20), (4, 2), 80) == (10, 20)


def test_the_tasks_of_an_item_share_the_price_of_reading_it():
    prices = Prices(("intent", "slots"), np.array([4, 4]), np.array([[3, 1], [3, 2]]))
    pool = Candidates(["u1", "u2"], np.zeros((2, 2)), prices)
    chosen = Selection.of(pool, np.array([0, 1]), np.array([[True, True], [True, False]]))
    assert paid(pool, chosen) == {"intent": 6, "slots": 3}


def test_values_of_a_file_are_shown_as_they_are_in_it():
    assert [shown([Decimal("0.25"), 1]), shown("0.05"), shown(True)] == ["[0.25, 1]", '"0.05"', "true"]


def test_a_number_is_finite_and_of_few_digits():
    assert number_in("0.05") == Decimal("0.05")
    assert [number_in(text) for text in ("1e-99999999", "many", "inf")] == [None, None, None]


def test_a_rate_given_outside_its_interval_is_refused():
    with pytest.raises(ConfigError) as refused:
        GivenRates({"intent": [0.5, 0.6, 0.7]})
    assert str(refused.value) == (
        "betas.intent = [0.5, 0.6, 0.7]. Fix: give a rate from 1e-06 to 1, or a rate and the low and the high end of "
        "its interval"
    )
