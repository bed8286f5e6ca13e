"""The pace of annotators: found again in noise, not led astray by pauses, careful while little is known."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from bursar.campaign.config import parse_config
from bursar.campaign.pricing import TRUST, Rate, check_unit, measurements, non_negative, prices_at, rate_of, usual_rates
from bursar.campaign.state import CampaignState
from bursar.corpus import CorpusBuilder
from bursar.errors import ConfigError
from bursar.ledger import Annotation, Ledger, Submission
from bursar.tasks import Classification, Parsing, Regression, Relations, Tagging

TASKS = [Classification("intent", ("a", "b")), Tagging("slots", ("x",))]


def noisy(rng, per_item, per_count, items=400):
    counts = rng.integers(2, 30, items).astype(float)
    return (per_item + per_count * counts) * rng.lognormal(-(0.4**2) / 2, 0.4, items), counts


# -- rates ---
@pytest.mark.parametrize("seed", range(5))
def test_rates_are_found_again_within_their_errors(seed):
    seconds, counts = noisy(np.random.default_rng(seed), 2.0, 0.3)
    found = rate_of(seconds, counts)
    assert found.item_error < 0.5
    assert abs(found.per_item - 2.0) < 4 * found.item_error
    assert abs(found.per_count - 0.3) < 4 * found.count_error


def test_standard_errors_are_what_repeated_measuring_shows():
    found = [rate_of(*noisy(np.random.default_rng(seed), 2.0, 0.3, 150)) for seed in range(200)]
    spread = np.std([(rate.per_item, rate.per_count) for rate in found], axis=0)
    told = np.mean([(rate.item_error, rate.count_error) for rate in found], axis=0)
    assert told == pytest.approx(spread, rel=0.2)


def test_a_closed_laptop_does_not_count():
    seconds, counts = noisy(np.random.default_rng(0), 2.0, 0.3)
    paused = seconds.copy()
    paused[::25] += 8 * 3600
    clean, found = rate_of(seconds, counts), rate_of(paused, counts)
    assert found.paused == len(paused[::25])
    assert found.per_item == pytest.approx(clean.per_item, abs=0.3)
    assert found.per_count == pytest.approx(clean.per_count, abs=0.03)


def test_a_day_of_pauses_early_on_leaves_the_usual_pace():
    found = rate_of(np.array([3.0, 2.0, 90_000.0]), np.zeros(3), usual=(2.5, 0.0))
    assert found.paused == 1
    assert found.per_item == pytest.approx(2.5, abs=0.1)


def test_few_measurements_are_mixed_with_the_usual_pace_by_their_number():
    for items in (1, 5, 20, 500):
        found = rate_of(np.full(items, 6.0), np.zeros(items), usual=(2.0, 0.0))
        assert found.per_item == pytest.approx((items * 6.0 + TRUST * 2.0) / (items + TRUST))


def test_without_measurements_the_usual_pace_stands():
    assert rate_of(np.zeros(0), np.zeros(0), (3.0, 0.5)) == Rate(3.0, 0.5)
    assert rate_of(np.zeros(9), np.ones(9), (3.0, 0.5)).per_item == 3.0  # a clock that does not run


def test_where_all_items_are_alike_the_shape_of_the_usual_pace_is_kept():
    found = rate_of(np.full(10_000, 6.0), np.full(10_000, 4.0), usual=(1.0, 0.5))  # which would take 3 seconds
    assert found.per_item == pytest.approx(2.0, rel=0.01)
    assert found.per_count == pytest.approx(1.0, rel=0.01)


@settings(max_examples=60, deadline=None)
@example([(95907.76426974422, 125), (2.3411494964510734e-256, 200), (1.365843729875462e-287, 200)], (100.0, 2.7e-104))
@example([(2.2250738585072014e-308, 1), (1.2052819687080703e-169, 200)], (100.0, 10.0))
@given(
    st.lists(st.tuples(st.floats(0, 1e5, allow_subnormal=False), st.integers(0, 200)), min_size=1, max_size=30),
    st.tuples(st.floats(0, 100), st.floats(0, 10)),
)
def test_a_rate_is_never_negative_and_never_beyond_what_was_measured_and_usual(pairs, usual):
    seconds, counts = np.array(pairs, dtype=float).T
    found = rate_of(seconds, counts, usual)
    assert found.per_item >= 0
    assert found.per_count >= 0
    assert np.isfinite([found.per_item, found.per_count]).all()
    most = max(seconds.max(), usual[0] + usual[1] * counts.max())
    assert found.seconds(counts).min() <= most * (1 + 1e-6)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8))
def test_non_negative_least_squares_is_the_exact_one(seed, rows):
    rng = np.random.default_rng(seed)
    matrix, target = rng.normal(size=(rows, 2)), rng.normal(size=rows)
    found = non_negative(matrix.T @ matrix, matrix.T @ target)
    exact, _ = nnls(matrix, target)
    reached = [np.square(matrix @ x - target).sum() for x in (found, exact)]
    assert reached[0] == pytest.approx(reached[1], abs=1e-8)
    assert (found >= 0).all()


# -- money ---
def test_prices_and_seconds_are_each_others_inverse():
    costs = parse_config(
        {"costs": {"unit": 0.0001, "reading": {"per_word": 0.0014}, "slots": {"per_span": 0.02}}}
    ).costs
    model = costs.model(TASKS)
    rates = {what: Rate(*usual) for what, usual in usual_rates(model, TASKS, hourly=18.0).items()}
    assert rates["slots"].per_count == pytest.approx(4.0)  # two cents at half a cent a second
    prices = prices_at(rates, TASKS, 18.0, model.unit)
    assert prices["slots"] == {"per_item": 0.0, "per_span": 0.02}
    assert prices["reading"] == {"per_item": 0.0, "per_word": 0.0014}


def test_prices_are_whole_numbers_of_the_smallest_amount():
    rates = {"reading": Rate(1.0, 1 / 3), "intent": Rate(2 / 3, 0.0), "slots": Rate(0.1, 1e-9)}
    prices = prices_at(rates, TASKS, 17.0, Decimal("0.0001"))
    assert prices["intent"] == {"per_item": 0.0031}  # 2/3 s at 17 an hour: 0.003148
    assert prices["slots"] == {"per_item": 0.0005, "per_span": 0.0}
    parse_config({"costs": {"unit": 0.0001, **prices}}).costs.model(TASKS)


def test_an_amount_too_large_for_prices_of_seconds_is_refused():
    model = parse_config({"costs": {"unit": 0.01}}).costs.model(TASKS)
    with pytest.raises(ConfigError, match=r"costs\.unit"):
        check_unit(model, 20.0)


def test_measured_prices_need_an_hourly_rate():
    with pytest.raises(ConfigError, match=r"costs\.hourly"):
        parse_config({"costs": {"measured": True}})


# -- from a ledger ---
@pytest.fixture
def ledger():
    builder = CorpusBuilder(
        {
            "intent": {"kind": "classification", "labels": ["a"]},
            "slots": {"kind": "tagging", "labels": ["x"]},
            "tree": {"kind": "parsing", "labels": ["r", "d"]},
        }
    )
    for number in range(4):
        builder.add(f"u{number}", text=" ".join(["word"] * (2 + number)))
    return Ledger.open(":memory:", builder.build())


def test_what_is_measured_is_counted_as_it_is_paid_for(ledger):
    tree = [[0, "r"], [1, "d"], [1, "d"]]
    said = (Annotation("u1", "intent", "a"), Annotation("u1", "slots", [[0, 1, "x"], [2, 3, "x"]]))
    timings = (("reading", 1.5), ("intent", 0.5), ("slots", 4.0), ("tree", 9.0))
    ledger.submit(Submission("k", (*said, Annotation("u1", "tree", tree)), timings=timings))
    ledger.submit(Submission("untimed", (Annotation("u2", "intent", "a"),)))
    found = {what: [column.tolist() for column in pair] for what, pair in measurements(ledger).items()}
    assert found == {
        "reading": [[1.5], [3.0]],  # words
        "intent": [[0.5], [0.0]],  # nothing but the item
        "slots": [[4.0], [2.0]],  # spans
        "tree": [[9.0], [3.0]],  # words
    }


def test_terms_are_measured_only_where_that_is_asked_for(ledger):
    for number in range(4):
        ledger.submit(Submission(f"k{number}", (Annotation(f"u{number}", "intent", "a"),), timings=(("intent", 36.0),)))
    costs = {"unit": 0.0001, "hourly": 10.0, "intent": {"per_item": 0.01}}
    plain = CampaignState(parse_config({"costs": costs}), ledger).terms()
    measured = CampaignState(parse_config({"costs": {**costs, "measured": True}}), ledger).terms()
    assert plain.prices is None
    assert plain.costs.own["intent"]["per_item"] == 100
    # 36 seconds cost 10 cents; four such among twenty of the usual cent.
    assert measured.costs.own["intent"]["per_item"] == round((4 * 1000 + 20 * 100) / 24)
    assert measured.prices["intent"] == {"per_item": 0.025}


def test_every_kind_of_task_has_a_price(ledger):
    tasks = [*TASKS, Parsing("tree", ("r",)), Regression("n"), Relations("links", ("in",), ("x",))]
    rates = {"reading": Rate(1, 1)} | {task.name: Rate(1, 1) for task in tasks}
    prices = prices_at(rates, tasks, 3600, Decimal(1))
    assert prices["tree"] == {"per_item": 1.0, "per_word": 1.0}
    assert prices["n"] == {"per_item": 1.0}
    assert prices["links"] == {"per_item": 1.0, "per_relation": 1.0}
