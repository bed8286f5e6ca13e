"""What was saved against random: the estimate finds a known saving, covers it, and says when it cannot tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bursar.campaign.audit import Slice
from bursar.campaign.campaign import Campaign
from bursar.campaign.decisions import RoundRecord, ShadowScores
from bursar.campaign.participants import GoldAnnotator
from bursar.campaign.savings import (
    LEAST_SHARE,
    PRIOR,
    TEST,
    Points,
    ScoredRound,
    interval_of,
    is_known,
    labels_needed,
    noise_of,
    predict_proba,
    saved_against_random,
    savings,
    savings_by,
    savings_of,
)
from bursar.tasks import Classification
from experiments.studies.audit_simulated import simulate
from tests.campaign.small import config_of
from tests.report.results import make_result

TASK = {"intent": Classification("intent", ("a", "b"))}
SPENT = 4000.0


def points_of(worth: float, exponent: float = 0.4, share: float = 0.5, measured: int = 10_000) -> Points:
    """Curves without noise: a strategy whose money is worth so much random money, and shadows with a share of it."""
    rows = []
    for money in (1000, 2000, 3000, 4000):
        rows.append((money, money / 10, 1.0, 5 * (worth * money) ** -exponent, TEST, measured))
        rows.append((share * money, share * money / 10, 0.0, 5 * (share * money) ** -exponent, TEST, measured))
    return Points.of(rows)


def truth_of(worth: float) -> float:
    return 1 - 1 / worth


# -- finding it ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("worth", [0.8, 1.0, 1.3, 1.7])
def test_a_saving_is_found_where_curves_are_powers(worth):
    sure = PRIOR._replace(luck=0.001, gap=(0.0, 1.0), exponent=(0.25, 1.0), bend=(0.0, 0.001))
    _, middle, _ = interval_of(predict_proba(points_of(worth), SPENT, sure), 0.25)
    assert middle == pytest.approx(truth_of(worth), abs=0.02)


@pytest.mark.parametrize("worth", [0.8, 1.0, 1.3, 1.7])
def test_with_what_is_believed_beforehand_it_is_still_found_within_ten_points(worth):
    low, middle, high = interval_of(predict_proba(points_of(worth), SPENT), 0.25)
    assert low < truth_of(worth) < high
    assert middle == pytest.approx(truth_of(worth), abs=0.1)


@pytest.mark.parametrize("random_start", [True, False])
def test_nine_in_ten_intervals_cover_the_truth(random_start):
    found = simulate(120, share=0.2, test=1000, random_start=random_start)
    covered = [low <= truth <= high for truth, low, _, high, _ in found]
    # 108 expected; fewer than 96 of 120 about once in a thousand times.
    assert sum(covered) >= 96
    assert abs(np.mean([middle - truth for truth, _, middle, _, _ in found])) < 0.1


def test_models_measured_on_the_same_items_share_noise_and_the_last_model_has_no_luck():
    noise = noise_of(points_of(1.0, measured=100), SPENT)
    apart = noise_of(Points.of([(4000, 400, 1.0, 0.2, 1, 100), (2000, 200, 0.0, 0.2, 2, 100)]), SPENT)
    assert (noise > 0).all()
    assert apart[0, 1] == pytest.approx(0)
    assert apart[1, 1] - apart[0, 0] == pytest.approx(PRIOR.luck**2)
    assert np.linalg.eigvalsh(noise).min() > 0


# -- knowing it ------------------------------------------------------------------------------------------------------
def test_an_interval_that_holds_both_nothing_and_a_quarter_says_nothing():
    assert is_known(0.01, 0.9)
    assert is_known(-0.9, -0.01)
    assert is_known(-0.2, 0.2)
    assert not is_known(-0.1, 0.3)
    assert not is_known(-0.3, 0.1)


def test_more_audit_labels_make_a_large_saving_known():
    few = savings_by(points_of(1.5, share=0.1), SPENT, 1000.0)
    many = savings_by(points_of(1.5, share=0.6), SPENT, 1000.0)
    assert not few.known
    assert 40 < few.needed < 400
    assert many.known
    assert many.needed is None
    assert many.low > 0


def test_the_labels_that_are_said_to_be_needed_are_enough():
    """A campaign that has them, and saved a quarter, knows it: its estimate is drawn to nothing only a little."""
    needed = labels_needed(points_of(4 / 3, share=0.1), SPENT, 1000.0)
    share = min(0.95, 1.5 * needed * 10 / SPENT)
    assert savings_by(points_of(4 / 3, share=share), SPENT, 1000.0).low > -0.05


def test_no_number_of_labels_is_promised_that_the_money_does_not_buy():
    points = points_of(1.0, exponent=0.06, measured=20)
    assert labels_needed(points, SPENT, 1000.0) is None


# -- from a ledger ---------------------------------------------------------------------------------------------------
def rounds_of(errors, drawn, money=(1000, 2000, 3000, 4000)):
    return [
        ScoredRound(k, m, chosen=m - d, items=m // 10, test={"intent": {"accuracy": 1 - e}})
        for k, (m, d, e) in enumerate(zip(money, drawn, errors, strict=True))
    ]


def test_a_shadow_that_is_the_rounds_own_model_counts_once():
    rounds = rounds_of((0.3, 0.25, 0.22, 0.2), (1000, 1100, 1200, 1300))
    later = [ShadowScores(round=k, spent=1000 + 100 * k, items=110, test={"intent": 0.71}) for k in (1, 2, 3)]
    same = ShadowScores(round=0, spent=1000, items=100, test={"intent": 0.7})
    with_it, without = (savings(rounds, shadows, [], TASK, 500) for shadows in ([same, *later], later))
    assert with_it == without


def test_a_shadow_of_very_few_items_is_left_out():
    rounds = rounds_of((0.3, 0.25, 0.22, 0.2), (0, 100, 200, 300))
    tiny = [ShadowScores(round=3, spent=int(LEAST_SHARE * SPENT) - 1, items=30, test={"intent": 0.1})]
    assert savings(rounds, tiny, [], TASK, 500) == savings(rounds, [], [], TASK, 500)


def test_too_little_is_known_without_rounds_or_audit_items():
    assert savings([], [], [], TASK, 500) is None
    bare = [replace(record, test={}) for record in rounds_of((0.3, 0.25, 0.22, 0.2), (0, 100, 200, 300))]
    assert savings(bare, [], [], TASK, 0) is None
    right = {"intent": np.ones((6, 2))}
    slices = [Slice(k, 1000 * k, 400 * k, right, right) for k in (1, 2, 3)]  # 18 items
    assert savings(bare, [], slices, TASK, 0) is None
    assert savings(bare, [], [*slices, Slice(4, 4000, 1600, right, right)], TASK, 0).items == 24


def test_a_campaign_that_is_random_all_through_has_nothing_to_save():
    rounds = rounds_of((0.3, 0.25, 0.22, 0.2), (1000, 2000, 3000, 4000))
    assert savings(rounds, [], [], TASK, 500) is None


def test_every_round_scores_its_shadow_on_the_test_items_unless_it_would_say_nothing(tmp_path):
    config = config_of(audit={"share": 0.3}, strategy={"name": "MT-AVG"})
    campaign = Campaign(config, tmp_path / "run")
    campaign.run(GoldAnnotator(campaign.corpus))
    rounds, shadows = (
        {found.round: found.spent for found in campaign.ledger.decisions(kind)} for kind in (RoundRecord, ShadowScores)
    )
    assert list(shadows) == list(rounds)
    assert shadows[0] == rounds[0]  # the start is random
    assert all(spent < rounds[k] for k, spent in shadows.items() if k)
    found = savings_of(campaign.ledger, campaign.corpus.schema, len(campaign.parts.test))
    assert found.low <= found.saved <= found.high
    campaign.close()
    covering = config_of(
        audit={"share": 0.05}, strategy={"name": "MT-AVG", "start": "cover"}, learner={"name": "probe"}
    )
    campaign = Campaign(covering, tmp_path / "cover")
    campaign.run(GoldAnnotator(campaign.corpus))
    assert campaign.ledger.decisions(ShadowScores) == []
    campaign.close()


# -- one number ------------------------------------------------------------------------------------------------------
FOUND = {"saved": 0.31, "low": 0.05, "high": 0.44, "items": 75, "slices": 3, "needed": None}


def test_the_number_is_measured_where_random_ran_beside_it_and_estimated_otherwise():
    beside = {"MT-AVG": (0.4, 0.6, 0.72, 0.8), "RANDOM": (0.4, 0.5, 0.6, 0.7)}
    measured = saved_against_random(make_result(beside, audit=5, savings=FOUND))
    assert (measured.by, round(measured.share, 2)) == ("curves", 0.29)
    alone = saved_against_random(make_result(audit=5, savings=FOUND))
    assert (alone.by, alone.share, alone.low) == ("audit", 0.31, 0.05)
    vague = saved_against_random(make_result(audit=5, savings=FOUND | {"low": -0.4, "needed": 90}))
    assert (vague.share, vague.needed) == (None, 90)
    assert saved_against_random(make_result({"RANDOM": (0.4, 0.5)}, money=(100, 200))) is None
