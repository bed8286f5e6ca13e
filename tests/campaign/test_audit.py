"""The audit slice is a random part of the pool, and its scores have intervals."""

from __future__ import annotations

import numpy as np

from bursar.campaign.audit import AuditPlan, Slice, audit_scores
from bursar.campaign.config import parse_config
from bursar.simulation import assistant_corpus
from bursar.tasks import Classification

TASK = {"intent": Classification("intent", ("a", "b"))}


def slices_of(rng, sizes=(20,) * 6):
    """Slices of a model that gets better."""
    found = []
    for number, size in enumerate(sizes, start=1):
        right = rng.random(size) >= 0.5 / number
        tally = {"intent": np.stack([right, np.ones(size)], axis=1).astype(float)}
        found.append(Slice(number, 400 * number, 200 + 60 * number, tally, tally))
    return found


def test_audit_scores_have_intervals_around_them():
    rows = audit_scores(slices_of(np.random.default_rng(1)), TASK)
    assert [row.round for row in rows] == list(range(6))
    for row in rows:
        scores = row.scores["intent"]
        assert scores.low <= scores.score <= scores.high


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
