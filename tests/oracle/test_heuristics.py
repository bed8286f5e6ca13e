"""Orders that strategies buy, against the same choices made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.errors import ConfigError
from bursar.oracle.heuristics import (
    HEURISTICS,
    beliefs_of,
    candidates_of,
    features_of,
    heuristic_order,
    heuristic_orders,
    passes_for,
    strategy_for,
)
from bursar.oracle.probe import vectors_of
from bursar.selection import Strategy, make_strategy
from bursar.selection.match import by_length
from tests.oracle.small import Rule, images, probe, texts, vectors

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
    order = heuristic_order(judge, problem, name, seed=3, features=features)
    assert order.batches.shape == (3, 5)
    assert len(np.unique(order.items)) == 15
    assert np.array_equal(
        heuristic_order(probe(problem), problem, name, seed=3, features=features).batches, order.batches
    )


def test_side_by_side_strategies_buy_what_each_buys_alone(problem, judge, features):
    told = []
    together = heuristic_orders(
        judge, problem, NAMES, seed=3, features=features, progress=lambda what, at: told.append(at)
    )
    for name, order in zip(NAMES, together, strict=True):
        assert np.array_equal(order.batches, heuristic_order(judge, problem, name, seed=3, features=features).batches)
    assert told == sorted(told)
    assert len(told) == 3 * len(NAMES)


def test_another_seed_gives_other_random_orders(problem, judge):
    first, second = (heuristic_order(judge, problem, "RANDOM", seed=seed) for seed in (0, 1))
    assert not np.array_equal(first.batches, second.batches)


def test_max_entropy_buys_what_the_model_of_the_earlier_batches_is_least_sure_of(problem, judge, features):
    order = heuristic_order(judge, problem, "MAX-ENT", features=features)
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
        assert set(heuristic_order(judge, problem, name).batches[0]) == set(np.argsort(value, kind="stable")[:5])


def test_longest_buys_by_length_and_asks_no_model(problem):
    judge = Rule(len(problem.pool))
    judge.predict_proba = None
    words = problem.parts["pool"].words
    order = heuristic_order(judge, problem, "LONGEST")
    lengths = [sorted(words[batch], reverse=True) for batch in order.batches]
    assert np.concatenate(lengths).tolist() == sorted(words, reverse=True)[:15]


def test_matching_keeps_lengths_as_they_are_in_all_items(problem, judge, features):
    """Counting bins by hand: after 12 + 15 items each bin has its share, give or take an item."""
    pool, warm, aside = by_length([features[part].words for part in ("pool", "warm", "aside")])
    share = np.bincount(np.concatenate([pool, warm, aside]), minlength=5) / (len(pool) + len(warm) + len(aside))
    order = heuristic_order(judge, problem, "LONGEST+IDMR", features=features)
    labelled = np.bincount(np.concatenate([warm, pool[order.items]]), minlength=5)
    lacking = np.bincount(warm, minlength=5) < 27 * share  # a bin that the warm start has too much of stays too full
    assert np.abs(labelled - 27 * share)[lacking].max() < 2
    plain = heuristic_order(judge, problem, "LONGEST", features=features)
    alone = np.bincount(np.concatenate([warm, pool[plain.items]]), minlength=5)
    assert np.abs(labelled - 27 * share).sum() < np.abs(alone - 27 * share).sum() / 2


def test_images_are_matched_by_cluster_and_texts_by_length(problem):
    pictures = images()
    assert strategy_for(pictures, "BALD+IDMR").matching.by == "cluster"
    assert strategy_for(problem, "BALD+IDMR").matching.by == "length"
    judge = Rule(60)
    judge.predict_proba = lambda items, passes, seed: {"kind": Rule.predict_proba(judge, items, passes, seed)["intent"]}
    own, given = (heuristic_order(judge, pictures, "MAX-ENT+IDMR", features=f) for f in (None, features_of(pictures)))
    assert np.array_equal(own.batches, given.batches)
    assert np.array_equal(features_of(pictures)["aside"].vectors, vectors_of(pictures)["aside"])


def test_labels_of_items_that_are_left_are_guesses_and_those_of_bought_ones_are_known(problem, judge):
    strategy = make_strategy("RANDOM+IDMR", bins="label:intent")
    sides, bought = features_of(problem, strategy.needs), np.array([9, 2])
    beliefs = beliefs_of(judge, bought, passes_for(strategy), seed=0)
    left, candidates = candidates_of(problem, strategy, beliefs, bought, sides)
    guesses = judge.predict_proba(np.sort(bought))["intent"].dense()[0].argmax(axis=1)
    known = [problem.parts[part].labels["intent"].rows.values[:, 0] for part in ("warm", "pool")]
    assert candidates.features.labels[:, 0].tolist() == guesses[left].tolist()
    assert candidates.features.labelled.labels[:, 0].tolist() == [*known[0], known[1][9], known[1][2]]
    assert len(heuristic_order(judge, problem, strategy).items) == 15


def test_tasks_with_many_labels_an_item_are_none_to_match_by():
    problem = texts(tasks=("intent", "slots"))
    assert (features_of(problem, ["labels"])["warm"].labels[:, 1] == -1).all()
    assert len(heuristic_order(probe(problem), problem, make_strategy("MT-AVG+IDMR", bins="label:intent")).items) == 15


def test_what_cannot_be_bought_batch_by_batch_is_refused(problem, judge):
    with pytest.raises(ConfigError, match="at once"):
        heuristic_order(judge, problem, "MT-AVG+BLP")
    with pytest.raises(ConfigError, match="pool of 59"):
        heuristic_order(Rule(59), problem, "RANDOM")
    lazy = Strategy("LAZY", "one item too few", choose=lambda pool, budget, rng: np.arange(budget - 1))
    with pytest.raises(ConfigError, match="chose 4 items for a batch of 5"):
        heuristic_order(judge, problem, lazy)
