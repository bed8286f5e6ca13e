"""Prices: the paper's formulas, whole units, and refusals that say what to do."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.errors import ConfigError
from bursar.tasks import Classification, CostModel, Parsing, Prices, Regression, Relations, Tagging
from bursar.tasks.costs import MOST_UNITS, counts_of
from tests.tasks.examples import column

INTENT, SLOTS = Classification("intent", ("a", "b")), Tagging("slots", ("c",))
TREE, LINKS, URGENCY = Parsing("tree", ("d",)), Relations("links", ("e",), ("c",)), Regression("urgency")

often = settings(deadline=None, max_examples=100)
sizes = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), min_size=1, max_size=6)


# -- paper 1, section 7 --------------------------------------------------------------------------------------------
@often
@given(sizes)
def test_slots_cost_m_plus_nt_intents_m_plus_3_and_both_m_plus_nt_plus_3(items):
    m, nt = np.array(items).T
    prices = CostModel.of([INTENT, SLOTS]).price([INTENT, SLOTS], m, {"slots": nt, "intent": np.ones_like(m)})

    def cost(intent: bool, slots: bool) -> list[int]:
        return prices.of(np.tile([intent, slots], (len(m), 1))).tolist()

    cost_sf, cost_id = (m + nt).tolist(), (m + 3).tolist()
    assert cost(intent=False, slots=True) == cost_sf
    assert cost(intent=True, slots=False) == cost_id
    assert cost(intent=True, slots=True) == [a + b - c for a, b, c in zip(cost_sf, cost_id, m.tolist(), strict=True)]
    assert cost(intent=True, slots=True) == (m + nt + 3).tolist() == prices.joint().tolist()
    assert cost(intent=False, slots=False) == [0] * len(m)


def test_simulated_prices_charge_the_gold_count():
    """Errata 11; the utterance has 5 words, an intent and 2 slots."""
    tasks = [INTENT, SLOTS]
    labels = {"intent": column(INTENT, [(5, "a")]), "slots": column(SLOTS, [(5, [[0, 1, "c"], [2, 4, "c"]])])}
    prices = CostModel.of(tasks).price(tasks, np.array([5]), counts_of(tasks, labels))
    assert prices.joint().tolist() == [5 + 2 + 3]


# -- errata 10: more than two tasks ----------------------------------------------------------------------------------
TASKS = [INTENT, SLOTS, TREE, LINKS, URGENCY]


@often
@given(sizes, st.integers(0, 9), st.integers(0, 9))
def test_every_subset_of_the_tasks_pays_reading_once_and_each_task_its_own(items, per_item, per_word):
    m, n = np.array(items).T
    model = CostModel.of(TASKS, {"reading": {"per_item": per_item, "per_word": per_word}, "tree": {"per_item": 7}})
    prices = model.price(TASKS, m, {"slots": n, "links": 2 * n})
    own = {"intent": 3 + 0 * m, "slots": n, "tree": 7 + m, "links": 2 * n, "urgency": 3 + 0 * m}
    for subset in product([False, True], repeat=len(TASKS)):
        chosen = [task.name for task, taken in zip(TASKS, subset, strict=True) if taken]
        expected = sum((own[name] for name in chosen), per_item + per_word * m) if chosen else 0 * m
        assert prices.of(np.tile(subset, (len(m), 1))).tolist() == expected.tolist()
    assert prices.reading.dtype == prices.own.dtype == np.int64


def test_each_item_may_be_bought_for_another_subset():
    prices = Prices(("x", "y", "z"), np.array([5, 6, 7]), np.array([[1, 2, 3]] * 3))
    subsets = np.array([[True, False, True], [False, False, False], [True, True, True]])
    assert prices.of(subsets).tolist() == [9, 0, 13]
    assert prices.take(np.array([2, 0])).of(subsets[[2, 0]]).tolist() == [13, 9]
    assert len(prices.take(np.array([1]))) == 1


# -- whole units -----------------------------------------------------------------------------------------------------
def test_fractional_prices_are_whole_numbers_of_a_smaller_unit():
    prices = {"reading": {"per_word": 0.02, "per_item": 0.1}, "slots": {"per_span": 0.29}, "intent": {"per_item": 1}}
    model = CostModel.of([INTENT, SLOTS], prices, unit=0.01, currency="€")
    assert model.reading == {"per_item": 10, "per_word": 2}
    assert model.own == {"intent": {"per_item": 100}, "slots": {"per_item": 0, "per_span": 29}}
    joint = model.price([INTENT, SLOTS], np.array([7]), {"slots": np.array([3])}).joint()
    assert joint.tolist() == [10 + 14 + 100 + 87]
    assert model.money(joint[0]) == Decimal("2.11")
    assert model.show(joint[0]) == "€2.11"


def test_what_is_not_given_keeps_its_default_in_units():
    model = CostModel.of(TASKS, {"slots": {"per_item": 2}}, unit=0.5)
    assert model.reading == {"per_item": 0, "per_word": 1}
    assert model.own == {
        "intent": {"per_item": 3},
        "slots": {"per_item": 4, "per_span": 1},
        "tree": {"per_item": 0, "per_word": 1},
        "links": {"per_item": 0, "per_relation": 1},
        "urgency": {"per_item": 3},
    }


@pytest.mark.parametrize(
    ("prices", "unit", "message"),
    [
        (
            {"slots": {"per_span": 0.5}},
            1,
            "costs.slots.per_span = 0.5 is not a whole number of units of 1. Fix: .*0.01",
        ),
        ({"slots": {"per_span": 0.015}}, 0.01, "costs.slots.per_span = 0.015 is not a whole number of units of 0.01"),
        ({"slots": {"per_span": -1}}, 1, "costs.slots.per_span = -1 is not a price. Fix: use a number from 0 up"),
        ({"slots": {"per_span": "3"}}, 1, "costs.slots.per_span = '3' is not a price"),
        ({"slots": {"per_span": True}}, 1, "costs.slots.per_span = True is not a price"),
        ({"slots": {"per_span": None}}, 1, "costs.slots.per_span = None is not a price"),
        ({"slots": {"per_span": float("nan")}}, 1, "costs.slots.per_span = nan is not a price"),
        ({"slots": {"per_span": float("inf")}}, 1, "costs.slots.per_span = inf is not a price"),
        ({"slots": {"per_span": 10**400}}, 1, "costs.slots.per_span = 10*0 is not a price"),
        (
            {"slots": {"per_span": 1000}},
            1e-9,
            "costs.slots.per_span = 1000 is more than .* units of 1E-9. Fix: .*costs.unit",
        ),
        ({"slots": {"per_word": 1}}, 1, "costs.slots.per_word: unknown price. Fix: use per_item, per_span"),
        ({"intent": {"per_span": 1}}, 1, "costs.intent.per_span: unknown price. Fix: use per_item"),
        (
            {"reading": {"per_span": 1}},
            1,
            "costs.reading.per_span: unknown price. Fix: use per_item, per_word",
        ),
        ({"slots": 3}, 1, "costs.slots must be a table. Fix: costs.slots = { per_item = 3 }"),
        (
            {"slot": {"per_item": 1}},
            1,
            r"costs.slot: there is no such task. Fix: did you mean 'slots'\? Use reading or one of",
        ),
        ({}, 0, "costs.unit = 0 is not a positive number. Fix: unit = 1, or 0.01 for cents"),
        ({}, -1, "costs.unit = -1 is not a positive number"),
        ({}, float("nan"), "costs.unit = nan is not a positive number"),
        ({}, float("inf"), "costs.unit = inf is not a positive number"),
        ({}, "cent", "costs.unit = 'cent' is not a positive number"),
        ({}, True, "costs.unit = True is not a positive number"),
        ({}, None, "costs.unit = None is not a positive number"),
    ],
)
def test_a_refused_price_is_named_by_its_key_with_the_way_out(prices, unit, message):
    with pytest.raises(ConfigError, match=message) as raised:
        CostModel.of([INTENT, SLOTS], prices, unit=unit)
    assert raised.value.fix


def test_a_task_called_reading_is_refused_once_reading_has_a_price():
    task = Classification("reading", ("a",))
    assert CostModel.of([task]).own == {"reading": {"per_item": 3}}
    with pytest.raises(ConfigError, match=r"costs.reading: a task is called .reading. too"):
        CostModel.of([task], {"reading": {"per_item": 1}})


def test_the_dearest_prices_of_a_large_pool_add_up_in_64_bits():
    model = CostModel.of([INTENT], {"reading": {"per_word": MOST_UNITS}, "intent": {"per_item": MOST_UNITS}})
    joint = model.price([INTENT], np.full(1_000_000, 1000), {}).joint()
    assert int(joint.sum()) == 1_000_000 * 1001 * MOST_UNITS


# -- budgets -----------------------------------------------------------------------------------------------------------
@often
@given(
    st.decimals(0, 10**9, places=4).map(float),
    st.sampled_from([1, 0.01, 0.05, 0.5, 3, 0.001]),
)
def test_a_budget_is_rounded_down_to_whole_units(money, unit):
    model = CostModel.of([INTENT], unit=unit)
    units = model.units(money)
    assert model.money(units) <= Decimal(str(money)) < model.money(units + 1)


@pytest.mark.parametrize(
    ("money", "unit", "units"),
    [
        (500, 1, 500),
        (0.29, 0.01, 29),
        (0.3, 0.1, 3),
        (1.999, 0.01, 199),
        (0, 1, 0),
        (0.009, 0.01, 0),
        (1e12, 1e-20, 10**32),
    ],
)
def test_a_budget_is_read_as_it_is_written(money, unit, units):
    """0.29 // 0.01 is 28 in binary; no cent may be lost to that."""
    assert CostModel.of([INTENT], unit=unit).units(money) == units


@pytest.mark.parametrize("money", [-1, -0.001, float("nan"), float("inf"), "much", None, True])
def test_what_is_no_amount_of_money_is_refused(money):
    with pytest.raises(ConfigError, match=r"is not an amount of money. Fix: use a number from 0 up"):
        CostModel.of([INTENT]).units(money)


def test_money_is_shown_as_people_write_it():
    assert CostModel.of([INTENT], unit=0.01, currency="$").show(123_456_789) == "$1,234,567.89"
    assert CostModel.of([INTENT]).show(1500) == "1,500"
    assert CostModel.of([INTENT], unit=0.01).show(5) == "0.05"
    fine = CostModel.of([INTENT], unit=0.0001, currency="€")  # two decimals are enough, but for small amounts
    assert (fine.show(12_345_678), fine.show(56)) == ("€1,234.57", "€0.0056")


def test_counts_are_those_of_the_labels_at_hand():
    labels = {
        "intent": column(INTENT, [(3, "a"), (0, "b")]),
        "slots": column(SLOTS, [(3, [[0, 1, "c"], [0, 2, "c"]]), (0, [])]),
        "tree": column(TREE, [(3, [[0, "d"], [1, "d"], [1, "d"]]), (0, [])]),
    }
    counts = counts_of(TASKS, labels)
    assert {name: count.tolist() for name, count in counts.items()} == {
        "intent": [1, 1],
        "slots": [2, 0],
        "tree": [3, 0],
    }
