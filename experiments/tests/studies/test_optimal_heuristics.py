"""Orders that strategies buy, against the same choices made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.errors import ConfigError
from bursar.oracle.probe import vectors_of
from bursar.oracle.problem import Order
from bursar.selection import Strategy, make_strategy
from bursar.selection.modifiers import by_length
from experiments.studies.optimal_heuristics import HEURISTICS, StrategyBuyer, features_of, passes_for, strategy_for
from experiments.tests.studies.judges import Rule, probe
from tests.oracle.small import images, texts, vectors
from tests.tiny import HashedEncoder

NAMES = (
    "RANDOM",
    "LEAST-CONF",
    "MARGIN",
    "K-CENTER",
    "BADGE",
    *sorted({n for some in HEURISTICS.values() for n in some}),
)


@pytest.fixture(scope="module")
def problem():
    return texts()


@pytest.fixture(scope="module")
def judge(problem):
    return probe(problem)


@pytest.fixture(scope="module")
def features(problem):
    return features_of(problem, vectors=vectors(problem))


@pytest.mark.parametrize("name", [*NAMES, *(f"{name}+IDMR" for name in NAMES)])
def test_every_strategy_buys_whole_batches_of_new_items_and_the_same_again(problem, judge, features, name):
    order = StrategyBuyer(judge, problem, 3, features).order(name)
    assert order.batches.shape == (3, 5)
    assert len(np.unique(order.items)) == 15
    assert np.array_equal(StrategyBuyer(probe(problem), problem, 3, features).order(name).batches, order.batches)


def test_side_by_side_strategies_buy_what_each_buys_alone(problem, judge, features):
    told = []
    together = StrategyBuyer(judge, problem, 3, features).orders(NAMES, lambda what, at: told.append(at))
    for name, order in zip(NAMES, together, strict=True):
        assert np.array_equal(order.batches, StrategyBuyer(judge, problem, 3, features).order(name).batches)
    assert told == sorted(told)
    assert len(told) == 3 * len(NAMES)


@pytest.mark.parametrize("tasks", [("intent",), ("intent", "slots")])
def test_cover_buys_whole_batches_of_new_items_and_the_same_again(monkeypatch, tasks):
    monkeypatch.setattr("bursar.oracle.probe.frozen_encoder", HashedEncoder)
    problem = texts(tasks=tasks)
    order, again = (StrategyBuyer(probe(problem), problem, seed=3).order("COVER") for _ in range(2))
    assert order.batches.shape == (3, 5)
    assert len(np.unique(order.items)) == 15
    assert np.array_equal(order.batches, again.batches)


def test_items_that_cover_buys_lie_nearer_to_the_pool_than_random_ones_do(monkeypatch, problem, judge):
    monkeypatch.setattr("bursar.oracle.probe.frozen_encoder", HashedEncoder)
    order = StrategyBuyer(judge, problem, seed=3).order("COVER")
    vectors = {part: HashedEncoder().item_vectors(problem.parts[part]) for part in ("pool", "warm")}

    def distance(items):
        labelled = np.concatenate([vectors["warm"], vectors["pool"][items]])
        return np.linalg.norm(vectors["pool"][:, None] - labelled, axis=2).min(axis=1).mean()

    random = [distance(Order.random(60, 3, 5, seed).items) for seed in range(10)]
    assert distance(order.items) < np.mean(random)


def test_another_seed_gives_other_random_orders(problem, judge):
    first, second = (StrategyBuyer(judge, problem, seed).order("RANDOM") for seed in (0, 1))
    assert not np.array_equal(first.batches, second.batches)


def test_max_entropy_buys_what_the_model_of_the_earlier_batches_is_least_sure_of(problem, judge, features):
    order = StrategyBuyer(judge, problem, features=features).order("MAX-ENT")
    for k in range(3):
        p = judge.predict_proba(order.prefix(k))["intent"].dense()[0].astype(float)
        entropy = -(p * np.log(p)).sum(axis=1)
        entropy[order.prefix(k)] = -1
        assert set(order.batches[k]) == set(np.argsort(-entropy)[:5])


def test_min_confidence_of_tags_is_the_joint_probability_and_normalised_it_is_the_mean_one():
    problem = texts(tasks=("slots",), batches=1)
    judge = probe(problem)
    beliefs = judge.predict_proba(np.zeros(0, dtype=np.int64))["slots"]
    logs = np.log(beliefs.dense()[0].astype(float).max(axis=1))
    sums = np.array([logs[a:b].sum() for a, b in zip(beliefs.offsets[:-1], beliefs.offsets[1:], strict=True)])
    for name, value in (("MIN-CONF", sums), ("NORM-MIN-CONF", sums / beliefs.units)):
        assert set(StrategyBuyer(judge, problem).order(name).batches[0]) == set(np.argsort(value, kind="stable")[:5])


def test_longest_buys_by_length_and_asks_no_model(problem):
    judge = Rule(len(problem.pool))
    judge.predict_proba = None
    words = problem.parts["pool"].words
    order = StrategyBuyer(judge, problem).order("LONGEST")
    lengths = [sorted(words[batch], reverse=True) for batch in order.batches]
    assert np.concatenate(lengths).tolist() == sorted(words, reverse=True)[:15]


def test_matching_keeps_lengths_as_they_are_in_all_items(problem, judge, features):
    """Counting bins by hand: after 12 + 15 items each bin has its share, give or take an item."""
    pool, warm, aside = by_length([features[part].words for part in ("pool", "warm", "aside")])
    share = np.bincount(np.concatenate([pool, warm, aside]), minlength=5) / (len(pool) + len(warm) + len(aside))
    order = StrategyBuyer(judge, problem, features=features).order("LONGEST+IDMR")
    labelled = np.bincount(np.concatenate([warm, pool[order.items]]), minlength=5)
    lacking = np.bincount(warm, minlength=5) < 27 * share  # a bin that the warm start has too much of stays too full
    assert np.abs(labelled - 27 * share)[lacking].max() < 2
    plain = StrategyBuyer(judge, problem, features=features).order("LONGEST")
    alone = np.bincount(np.concatenate([warm, pool[plain.items]]), minlength=5)
    assert np.abs(labelled - 27 * share).sum() < np.abs(alone - 27 * share).sum() / 2


def test_images_are_matched_by_cluster_and_texts_by_length(problem):
    pictures = images()
    assert strategy_for(pictures, "BALD+IDMR").matching.by == "cluster"
    assert strategy_for(problem, "BALD+IDMR").matching.by == "length"
    judge = Rule(60)
    judge.predict_proba = lambda items, passes, seed: {"kind": Rule.predict_proba(judge, items, passes, seed)["intent"]}
    own, given = (
        StrategyBuyer(judge, pictures, features=f).order("MAX-ENT+IDMR") for f in (None, features_of(pictures))
    )
    assert np.array_equal(own.batches, given.batches)
    assert np.array_equal(features_of(pictures)["aside"].vectors, vectors_of(pictures)["aside"])


def test_labels_of_items_that_are_left_are_guesses_and_those_of_bought_ones_are_known(problem, judge):
    strategy = make_strategy("RANDOM+IDMR", bins="label:intent")
    sides, bought = features_of(problem, strategy.needs), np.array([9, 2])
    buyer = StrategyBuyer(judge, problem, features=sides)
    beliefs = buyer.predictions(bought, passes_for(strategy), seed=0)
    left, candidates = buyer.candidates(strategy, beliefs, bought, sides)
    guesses = judge.predict_proba(np.sort(bought))["intent"].dense()[0].argmax(axis=1)
    known = [problem.parts[part].labels["intent"].rows.values[:, 0] for part in ("warm", "pool")]
    assert candidates.features.labels[:, 0].tolist() == guesses[left].tolist()
    assert candidates.features.labelled.labels[:, 0].tolist() == [*known[0], known[1][9], known[1][2]]
    assert len(StrategyBuyer(judge, problem).order(strategy).items) == 15


def test_tasks_with_many_labels_an_item_are_none_to_match_by():
    problem = texts(tasks=("intent", "slots"))
    assert (features_of(problem, ["labels"])["warm"].labels[:, 1] == -1).all()
    assert (
        len(StrategyBuyer(probe(problem), problem).order(make_strategy("MT-AVG+IDMR", bins="label:intent")).items) == 15
    )


def test_what_cannot_be_bought_batch_by_batch_is_refused(problem, judge):
    with pytest.raises(ConfigError, match="at once"):
        StrategyBuyer(judge, problem).order("MT-AVG+BLP")
    with pytest.raises(ConfigError, match="pool of 59"):
        StrategyBuyer(Rule(59), problem).order("RANDOM")
    lazy = Strategy("LAZY", "one item too few", choose=lambda pool, budget, rng: np.arange(budget - 1))
    with pytest.raises(ConfigError, match="chose 4 items for a batch of 5"):
        StrategyBuyer(judge, problem).order(lazy)
