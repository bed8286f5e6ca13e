"""Campaigns whose first items cover the pool, and what auto falls back to."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.campaign.campaign import Campaign
from bursar.campaign.checks import fallback_notice, strategy_in_use
from bursar.campaign.config import parse_config
from bursar.campaign.decisions import RoundSelection
from bursar.campaign.participants import GoldAnnotator
from bursar.campaign.start import CANDIDATES, FEWEST_CANDIDATES, cover_candidates, start_candidates
from bursar.campaign.unit_space import UnitSpace
from bursar.errors import ConfigError
from bursar.learners import make_learner
from bursar.selection import make_strategy
from bursar.simulation import assistant_corpus
from bursar.tasks import CostModel

pytestmark = pytest.mark.usefixtures("one_thread")


def config_of(learner="probe", strategy=None, **budget):
    return parse_config(
        {
            "tasks": ["intent", "slots"],
            "corpus": {"items": 600, "pool_items": 200, "dev": None, "test_items": 40},
            "budget": {"seed_items": 20, "per_round": 120, "rounds": 1, **budget},
            "strategy": strategy or {},
            "learner": {"name": learner},
        }
    )


def covering(learner, corpus, items, labelled, prices, budget):
    """The items that a covering start selects."""
    pool = cover_candidates(corpus, items, labelled, prices, lambda part: learner.embeddings(part.unlabelled()))
    return items[make_strategy("COVER").select(pool, budget, 0).items]


def first_items(config, folder):
    campaign = Campaign(config, folder)
    try:
        campaign.begin()
        return campaign.ledger.decision(RoundSelection, 0).items, campaign
    finally:
        campaign.close()


def price_of(entries):
    return sum(sum(entry.estimate.values()) for entry in entries)


def test_auto_starts_with_items_that_cover_for_the_price_of_typical_ones(tmp_path):
    entries, campaign = first_items(config_of(), tmp_path)
    assert {entry.purpose for entry in entries} == {"start"}
    assert 0.9 * 20 * campaign.start.typical_price < price_of(entries) <= 20 * campaign.start.typical_price + 1


def test_a_start_counts_items_where_the_budget_does(tmp_path):
    entries, _ = first_items(config_of(counts="items", per_round=8), tmp_path)
    assert len(entries) == 20


def test_a_covering_start_takes_nothing_of_the_audit_and_draws_development_items(tmp_path):
    entries, campaign = first_items(config_of(dev_items=10), tmp_path)
    reserve = set(campaign.corpus.take(campaign.audit.reserve).ids.tolist())
    drawn = {entry.id for entry in entries if entry.purpose == "dev"}
    assert reserve
    assert not reserve & {entry.id for entry in entries}
    assert drawn == set(campaign.corpus.take(campaign.start.dev).ids.tolist())


def test_the_same_seed_gives_the_same_start_and_another_may_not(tmp_path):
    once, again = (first_items(config_of(), tmp_path / name)[0] for name in ("a", "b"))
    assert once == again
    random = first_items(config_of(strategy={"name": "AUTO", "start": "random"}), tmp_path / "c")[0]
    assert {entry.purpose for entry in random} == {"seed"}
    assert len(random) == 20


def test_a_covering_start_leaves_less_of_the_pool_uncovered_than_a_random_one():
    corpus = assistant_corpus(800, seed=1).with_tasks(["intent", "slots"])
    tasks = list(corpus.schema.values())
    pool = corpus.in_split("train")[:300]
    part = corpus.take(pool)
    counts = {name: part.labels[name].rows.lengths for name in corpus.schema}
    prices = CostModel.of(tasks).price(tasks, part.words, counts)
    learner = make_learner("probe", corpus.schema)
    chosen = covering(learner, corpus, pool, pool[:0], prices, 300)
    space = UnitSpace(learner.embeddings, part.unlabelled())

    def uncovered(items):
        units = space.all_units(corpus.schema["slots"], part).vectors
        near = space.all_units(corpus.schema["slots"], corpus.take(items)).vectors
        return float((1 - (units @ near.T).max(axis=1)).mean())

    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(5):
        order = rng.permutation(300)
        drawn.append(uncovered(pool[order[np.cumsum(prices.joint()[order]) <= 300]]))
    assert uncovered(chosen) < min(drawn)


def test_what_is_labelled_already_is_not_covered_again():
    corpus = assistant_corpus(300, seed=1).with_tasks(["intent", "slots"])
    tasks, pool = list(corpus.schema.values()), corpus.in_split("train")[:100]
    part = corpus.take(pool)
    prices = CostModel.of(tasks).price(tasks, part.words, {})
    learner = make_learner("probe", corpus.schema)
    first = covering(learner, corpus, pool, pool[:0], prices, 60)
    rest = np.setdiff1d(pool, first)
    keep = np.isin(pool, rest)
    after = covering(learner, corpus, rest, first, prices.take(np.flatnonzero(keep)), 60)
    again = covering(learner, corpus, rest, first[:0], prices.take(np.flatnonzero(keep)), 60)
    assert not np.array_equal(np.sort(after), np.sort(again))


def test_a_large_pool_is_sampled_for_a_start():
    items = np.arange(3 * CANDIDATES)
    sample = start_candidates(items, seed=1)
    assert len(np.unique(sample)) == CANDIDATES
    assert np.array_equal(sample, start_candidates(items, seed=1))
    assert np.array_equal(start_candidates(items[:10], seed=1), items[:10])


@pytest.mark.parametrize("learner", ["scikit", "word-counts"])
def test_auto_falls_back_where_a_learner_has_no_vectors_and_says_so(learner, tmp_path):
    config = config_of(learner)
    assert "MT-AVG after a random start" in fallback_notice(config)
    assert strategy_in_use(config).name == "AUTO"
    entries, _ = first_items(config, tmp_path)
    assert {entry.purpose for entry in entries} == {"seed"}
    campaign = Campaign(config, tmp_path)
    campaign.run(GoldAnnotator(campaign.corpus))
    campaign.close()


def test_auto_needs_no_fallback_where_vectors_are_there():
    assert fallback_notice(config_of()) is None
    assert strategy_in_use(config_of()).start == "cover"


def test_a_network_without_pretrained_vectors_starts_at_random(tmp_path):
    entries, _ = first_items(config_of("aoe"), tmp_path)
    assert {entry.purpose for entry in entries} == {"seed"}


def test_an_unknown_start_is_refused():
    with pytest.raises(ConfigError, match="random or cover"):
        config_of(strategy={"start": "typical"})


def test_what_auto_is_compared_with_has_its_own_start():
    config = config_of(strategy={"name": "AUTO", "start": "cover"})
    assert config.arm("RANDOM").strategy.make().start == "random"
    assert config.arm("AUTO").strategy.make().start == "cover"


def test_where_people_wait_a_start_reads_no_more_words_than_it_may(tmp_path):
    campaign = Campaign(config_of(), tmp_path)
    start, pool = campaign.start, campaign.parts.pool
    assert start._most_candidates(pool) == CANDIDATES  # nobody waits
    mean = campaign.corpus.reading[pool].mean()
    start.most_words = int(700 * mean)
    assert start._most_candidates(pool) in (699, 700)
    start.most_words = 10
    assert start._most_candidates(pool) == FEWEST_CANDIDATES
    campaign.close()
