"""The audit slice is unbiased, and what it says of savings covers the truth."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.campaign.audit import AuditPlan, Slice, audit_scores, exchange_rate, savings
from bursar.campaign.config import parse_config
from bursar.simulation import assistant_corpus
from bursar.tasks import Classification

TASK = {"intent": Classification("intent", ("a", "b"))}


def slices_of(rng, worth, sizes=(20,) * 6, b=0.5):
    """Audits of a strategy whose money is worth so much random labelling."""
    found = []
    for number, size in enumerate(sizes, start=1):
        spent, shadow = 400 * number, 200 + 60 * number
        errors = (2.5 * (worth * spent) ** -b * 4, 2.5 * shadow**-b * 4)
        tallies = [{"intent": np.stack([rng.random(size) >= e, np.ones(size)], axis=1).astype(float)} for e in errors]
        found.append(Slice(number, spent, shadow, *tallies))
    return found


def test_the_exchange_rate_is_exact_without_noise():
    money = np.array([[300.0, 250], [600, 300], [1200, 360], [2000, 420]])
    for worth, b in ((0.5, 0.3), (1.0, 0.7), (3.0, 0.5)):
        errors = np.stack([2 * (worth * money[:, 0]) ** -b, 2 * money[:, 1] ** -b], axis=1)
        assert exchange_rate(errors[None], money, np.ones(4))[0] == pytest.approx(worth)


@pytest.mark.parametrize("worth", [1.0, 2.0])
def test_nine_in_ten_intervals_cover_the_truth(worth):
    rng = np.random.default_rng(5)
    truth = 1 - 1 / worth
    covered = 0
    for _ in range(100):
        found = savings(slices_of(rng, worth), TASK)
        covered += found["low"] <= truth <= found["high"]
    # 90 expected; 100 draws of a 90 % interval fall below 80 about once in a thousand times.
    assert covered >= 80


def test_too_little_is_known_with_few_items_or_slices():
    rng = np.random.default_rng(0)
    assert savings(slices_of(rng, 1.0, sizes=(3, 3, 3)), TASK) is None
    assert savings(slices_of(rng, 1.0, sizes=(50, 50)), TASK) is None
    assert savings([], TASK) is None


def test_audit_scores_have_intervals_around_them():
    rows = audit_scores(slices_of(np.random.default_rng(1), 1.0), TASK)
    assert [row["round"] for row in rows] == list(range(6))
    for row in rows:
        scores = row["scores"]["intent"]
        assert scores["low"] <= scores["score"] <= scores["high"]


def test_the_reserve_is_a_random_part_of_the_pool_whatever_its_order():
    corpus = assistant_corpus(500)
    config = parse_config({"audit": {"share": 0.2}})
    pool = np.arange(400)
    plan = AuditPlan.of(config, corpus, pool, typical_price=10.0)
    assert plan.count == 10
    shuffled = AuditPlan.of(config, corpus, np.random.default_rng(0).permutation(pool), typical_price=10.0)
    assert plan.reserve.tolist() == shuffled.reserve.tolist()
    assert len(np.unique(plan.reserve)) == 50
    assert not np.intersect1d(plan.outside_reserve(pool), plan.reserve).size
    draws = np.zeros(400)
    for seed in range(200):
        config = parse_config({"audit": {"share": 0.2}, "seed": seed})
        draws[AuditPlan.of(config, corpus, pool, 10.0).reserve] += 1
    # 25 draws an item on average, standard deviation 4.7.
    assert (np.abs(draws - 25) < 5 * 4.7).all()
