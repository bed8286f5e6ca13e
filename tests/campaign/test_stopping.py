"""Advice on stopping: its interval covers the truth, it stops where nothing is left, and it never looks ahead."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.campaign.config import parse_config
from bursar.campaign.decisions import RoundRecord
from bursar.campaign.results import AuditScores, ScoreInterval
from bursar.campaign.runs import Run, run_campaign
from bursar.campaign.sections import StoppingSection
from bursar.campaign.stopping import KnownRound, advice_by_round, advise, forecast, known_rounds
from bursar.errors import ConfigError
from tests.campaign.small import config_of

MONEY = 500.0


def rounds_of(scores, agreement=None, first=800.0, **more):
    """Rounds of 500 with these development scores, and with this agreement from the second on."""
    agreements = {"intent": agreement, "slots": 1.0} if agreement is not None else None
    return [
        KnownRound(first + MONEY * number, score, agreements if number else None, **more)
        for number, score in enumerate(scores)
    ]


def power_law(rng, count):
    """A random inverse power law: money and true scores of so many rounds and one more."""
    money = rng.uniform(300, 1500) + MONEY * np.arange(count + 1)
    best = rng.uniform(0.6, 1.0)
    start, bend = rng.uniform(0.2, best), math.exp(rng.uniform(math.log(0.2), math.log(2.0)))
    return money, best - (best - start) * (money / money[0]) ** -bend


# -- what the next round brings --------------------------------------------------------------------------------------
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_the_interval_covers_the_next_rounds_true_gain_at_about_its_nominal_rate(share):
    """240 curves: a rate of 0.9 has a standard error of 0.02, one of 0.5 of 0.03. Three of them either way."""
    rng, draws = np.random.default_rng(11), 240
    covered = 0
    for _ in range(draws):
        count = int(rng.integers(3, 9))
        money, truth = power_law(rng, count)
        seen = np.clip(truth[:count] + rng.choice([0.005, 0.01, 0.02]) * rng.normal(size=count), 0, 1)
        rounds = [KnownRound(m, s) for m, s in zip(money[:count], seen, strict=True)]
        found = advise(rounds, next_money=MONEY, settings=StoppingSection(interval=share))
        covered += found.low <= truth[count] - truth[count - 1] <= found.high
    assert abs(covered / draws - share) <= 3 * math.sqrt(share * (1 - share) / draws)


def stopped_at(rounds, **settings) -> int | None:
    """The first round, counted from 0, after which the advice is to stop."""
    return next((at for at, advice in enumerate(advice_by_round(rounds, **settings)) if advice.stop), None)


def test_it_says_stop_on_saturated_curves_and_go_on_on_steep_ones():
    """Noise of a point. At the end 5,500 bring 0.02 points for another 500 on the one, and 1.3 on the other."""
    rng = np.random.default_rng(3)
    money = 800 + MONEY * np.arange(10)
    saturated, steep = 0.85 - 0.01 * 800 / money, 0.95 - 0.75 * (money / 800) ** -0.5
    stops = {"saturated": 0, "steep": 0}
    for _ in range(30):
        for name, truth in (("saturated", saturated), ("steep", steep)):
            noisy = np.clip(truth + 0.01 * rng.normal(size=10), 0, 1).tolist()
            stops[name] += stopped_at(rounds_of(noisy), next_money=MONEY) is not None
    assert stops["saturated"] >= 29
    assert stops["steep"] == 0


def test_the_expected_gain_of_a_clean_power_law_is_near_the_truth():
    scores = [0.9 - 0.5 * (1 + k * MONEY / 800) ** -0.7 for k in range(8)]
    found = advise(rounds_of(scores[:7]), next_money=MONEY)
    assert found.gain == pytest.approx(scores[7] - scores[6], abs=0.002)
    assert found.per_money == pytest.approx(found.gain / MONEY, rel=1e-4)


def test_judging_by_the_mean_stops_earlier_than_by_the_upper_end():
    scores = [0.80, 0.82, 0.825, 0.83, 0.83, 0.832, 0.834]
    high, mean = (stopped_at(rounds_of(scores), settings=StoppingSection(judge_by=by)) for by in ("high", "mean"))
    assert mean is not None
    assert high is None or mean < high


def test_a_larger_least_gain_never_stops_later():
    scores = [0.6, 0.7, 0.74, 0.77, 0.78, 0.79, 0.795]
    stops = [
        stopped_at(rounds_of(scores), settings=StoppingSection(least_gain=least)) for least in (0.001, 0.01, 0.03, 0.2)
    ]
    found = [len(scores) if stop is None else stop for stop in stops]
    assert found == sorted(found, reverse=True)
    assert found[-1] == 2


def test_fewer_than_three_scores_give_no_prediction_and_say_so():
    for count in (0, 1, 2):
        found = advise(rounds_of([0.5] * count), next_money=MONEY)
        assert (found.stop, found.gain, found.low, found.high, found.per_money) == (False, None, None, None, None)
        assert "fewer than three" in found.why


def test_a_flat_curve_is_over_and_a_falling_one_too():
    assert stopped_at(rounds_of([0.9] * 6)) == 3
    assert stopped_at(rounds_of([0.9, 0.89, 0.9, 0.88, 0.89, 0.88])) is not None


def test_a_curve_that_jumps_about_is_not_over():
    found = advise(rounds_of([0.6, 0.75, 0.5, 0.8, 0.6]), next_money=MONEY)
    assert not found.stop
    assert found.high - found.low > 0.02


@pytest.mark.parametrize("scores", [[1.0] * 5, [0.9, 1.0, 1.0, 1.0], [0.5, 0.8, 1.0, 1.0]])
def test_a_perfect_score_leaves_nothing_to_gain(scores):
    found = advise(rounds_of(scores), next_money=MONEY)
    assert 0 <= found.low <= found.high < 0.03
    assert advise(rounds_of([*scores, 1.0, 1.0, 1.0, 1.0]), next_money=MONEY).stop


def test_rounds_before_anything_was_learned_are_no_part_of_the_curve():
    late = rounds_of([0.0, 0.0, 0.4, 0.5, 0.55, 0.58])
    assert "above zero" in advise(late[:4], next_money=MONEY).why
    assert advise(late, next_money=MONEY) == advise(late[2:], next_money=MONEY)


def test_labels_that_cost_nothing_give_no_prediction():
    free = [KnownRound(0, 0.5 + 0.1 * k) for k in range(4)]
    assert advise(free).gain is None
    same = [KnownRound(100, 0.5 + 0.1 * k) for k in range(4)]
    assert advise(same).gain is None
    assert "costs nothing" in advise(rounds_of([0.5, 0.6, 0.7]), next_money=0).why


def test_the_next_round_is_taken_to_cost_what_the_latest_did():
    rounds = rounds_of([0.5, 0.6, 0.66, 0.7])
    assert advise(rounds) == advise(rounds, next_money=MONEY)


@given(st.lists(st.floats(0, 1), min_size=3, max_size=8), st.floats(0.01, 1000))
@settings(max_examples=30, deadline=None)
def test_whatever_the_scores_the_interval_is_one_and_the_unit_of_money_does_not_matter(scores, unit):
    rounds = rounds_of(scores)
    found = advise(rounds, next_money=MONEY)
    if found.gain is not None:
        assert 0 <= found.low <= found.high <= 1
        assert 0 < found.gain <= 1
        assert advise(rounds, next_money=2 * MONEY).gain >= found.gain
    scaled = advise([replace(r, spent=r.spent * unit) for r in rounds], next_money=MONEY * unit)
    assert scaled.gain == pytest.approx(found.gain, abs=2e-6)
    assert scaled.high == pytest.approx(found.high, abs=2e-6)


# -- settled predictions ---------------------------------------------------------------------------------------------
def test_agreement_alone_never_stops_a_campaign_that_has_learned_nothing():
    """At 0 there is no curve. Elsewhere a constant score may end it, but agreement has no part in that."""
    found = advise(rounds_of([0.0] * 8, agreement=1.0), next_money=MONEY)
    assert (found.stop, found.settled, found.gain) == (False, False, None)
    assert "the score is still zero" in found.why
    for score in (0.1, 0.35, 0.7):
        for count in range(1, 8):
            agreed = advise(rounds_of([score] * count, agreement=1.0), next_money=MONEY)
            alone = advise(rounds_of([score] * count), next_money=MONEY)
            assert not agreed.settled
            assert agreed.stop == alone.stop


def test_settled_predictions_let_the_expected_gain_decide():
    scores = [0.70, 0.76, 0.79, 0.80, 0.805, 0.81]
    settled, restless = (advise(rounds_of(scores, agreement=a), next_money=MONEY) for a in (0.995, 0.95))
    assert restless.gain < 0.005 <= restless.high
    assert (restless.settled, restless.stop) == (False, False)
    assert (settled.settled, settled.stop) == (True, True)
    assert "settled" in settled.why


def test_settled_predictions_do_not_stop_a_campaign_that_still_gains():
    found = advise(rounds_of([0.3, 0.4, 0.48, 0.55, 0.61], agreement=1.0), next_money=MONEY)
    assert (found.settled, found.stop) == (True, False)


def test_every_task_must_have_settled_for_as_long_as_is_asked():
    rounds = rounds_of([0.5, 0.6, 0.62, 0.63, 0.635], agreement=0.995)
    assert advise(rounds[:3]).settled is None  # two agreements so far
    assert advise(rounds[:4]).settled
    rounds[2] = replace(rounds[2], agreement={"intent": 1.0, "slots": 0.9})
    assert advise(rounds).settled is False
    assert advise(rounds, settings=StoppingSection(settled_rounds=2)).settled


def test_without_any_score_nobody_knows_what_was_settled_on():
    found = advise(rounds_of([None] * 6, agreement=1.0), next_money=MONEY)
    assert (found.stop, found.settled, found.gain) == (False, None, None)
    assert "no development items and no audit slices" in found.why


# -- audit slices ----------------------------------------------------------------------------------------------------
def audited(scores, items=40):
    """Rounds without development scores, and the slices of all models but the newest."""
    rounds = rounds_of([None] * (len(scores) + 1), agreement=0.9)
    slices = [
        AuditScores(
            round=number,
            spent=int(rounds[number].spent),
            items=items,
            scores={name: ScoreInterval(score=score) for name, score in found.items()},
        )
        for number, found in enumerate(scores)
    ]
    return [replace(record, audited=part) for record, part in zip(rounds, [None, *slices], strict=True)]


def test_audit_slices_take_the_place_of_development_scores():
    rounds = audited([{"intent": s, "slots": s} for s in (0.4, 0.55, 0.62, 0.66, 0.7)])
    found = advise(rounds, next_money=MONEY)
    assert found.gain > 0
    assert forecast(rounds).source == "audit"
    known = [replace(r, dev=0.9) for r in rounds]
    assert forecast(known).source == "dev"


def test_slices_too_small_to_tell_do_not_stop_what_large_ones_would():
    flat = [{"intent": 0.8}] * 6
    small, large = (advise(audited(flat, items), next_money=MONEY) for items in (5, 500))
    assert small.high - small.low > 1.5 * (large.high - large.low)
    assert (small.stop, large.stop) == (False, True)


def test_a_slice_counts_from_the_round_that_bought_it():
    scores = [{"intent": s} for s in (0.4, 0.5, 0.55, 0.6)]
    rounds = audited(scores)
    assert [advice.gain is not None for advice in advice_by_round(rounds)] == [False, False, False, True, True]


def test_a_task_at_zero_in_every_slice_has_not_been_learned():
    rounds = audited([{"entities": 0.7, "relations": 0.0}] * 6)
    found = advise(rounds, next_money=MONEY)
    assert not found.stop
    assert "the score of relations is still zero" in found.why


# -- honesty ---------------------------------------------------------------------------------------------------------
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.8, 1)), min_size=1, max_size=8))
@settings(max_examples=20, deadline=None)
def test_adding_a_round_never_changes_earlier_advice(found):
    rounds = [
        replace(record, agreement={"intent": agreed})
        for record, (_, agreed) in zip(rounds_of([score for score, _ in found]), found, strict=True)
    ]
    told = advice_by_round(rounds, next_money=MONEY)
    for count in range(len(rounds)):
        assert advice_by_round(rounds[:count], next_money=MONEY) == told[:count]


def test_test_scores_have_no_say():
    scores = [0.5, 0.6, 0.66, 0.7]
    for test in ({}, {"intent": {"accuracy": 0.1}}, {"intent": {"accuracy": 0.99}}):
        records = [
            RoundRecord(round=k, spent=800 + 500 * k, items=9, labels={}, test=test, dev=dev)
            for k, dev in enumerate(scores)
        ]
        assert advise(known_rounds(records, [])) == advise(rounds_of(scores))


def test_the_forecast_begins_where_the_curve_ends_and_says_what_the_advice_does():
    rounds = rounds_of([0.5, 0.6, 0.66, 0.7, 0.72])
    found, told = forecast(rounds, next_money=MONEY), advise(rounds, next_money=MONEY)
    ahead = found.ahead
    assert ahead.score[0] == found.curve.score[-1] == ahead.low[0] == ahead.high[0]
    after_one = ahead.money.index(rounds[-1].spent + MONEY)
    assert ahead.score[after_one] - ahead.score[0] == pytest.approx(told.gain, abs=3e-6)
    assert ahead.high[after_one] - ahead.score[0] == pytest.approx(told.high, abs=3e-6)
    assert np.all(np.diff(found.curve.score + ahead.score) >= 0)


# -- settings and runs -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("least_gain", 0.0),
        ("least_gain", 1.5),
        ("least_gain", "much"),
        ("judge_by", "hope"),
        ("interval", 1.0),
        ("interval", 90),
        ("agreement", 99.0),
        ("agreement", 0.0),
        ("settled_rounds", 0),
        ("settled_rounds", 2.5),
    ],
)
def test_a_malformed_threshold_is_refused_with_its_key(key, value):
    with pytest.raises(ConfigError, match=rf"stopping\.{key} = .* Fix: for instance stopping\.{key} = "):
        parse_config({"stopping": {key: value}})


def test_advice_is_no_part_of_what_a_result_depends_on():
    assert parse_config({}).digest == parse_config({"stopping": {"least_gain": 0.02}}).digest


def test_a_run_has_advice_after_every_round_and_can_be_asked_again_with_other_thresholds(tmp_path):
    strict = config_of(stopping={"least_gain": 0.5})
    first = run_campaign(Run(tmp_path / "run", config_of())).main
    again = run_campaign(Run(tmp_path / "run", strict)).main
    assert len(first.stopping) == len(first.rounds)
    assert first.stopping[-1].gain == again.stopping[-1].gain is not None
    assert again.stopping[-1].stop
    assert not first.stopping[-1].stop
    assert first.rounds == again.rounds
    assert first.forecast.source == "dev"


def test_a_run_without_development_items_is_advised_by_its_audit(tmp_path):
    config = config_of(corpus={"dev": None, "dev_items": None}, budget={"rounds": 4}, audit={"share": 0.3})
    found = run_campaign(Run(tmp_path / "run", config)).main
    assert found.forecast.source == "audit"
    assert [advice.gain is not None for advice in found.stopping] == [False, False, False, True, True]
