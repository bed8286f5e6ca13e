"""What is said of orders, against the same numbers counted by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.errors import ConfigError
from bursar.oracle.problem import Order
from experiments.studies.optimal_orders import (
    INTENT_LENGTHS,
    Shares,
    bin_counts,
    curve_of,
    curves_of,
    label_counts,
    length_counts,
    shared,
    shared_by_chance,
    shares_of,
    tsne_places,
)
from experiments.tests.studies.judges import Rule, probe
from tests.oracle.small import texts

NOTHING = np.zeros(0, dtype=np.int64)


def orders_of(many, pool=30, batches=3, size=4):
    return [Order.random(pool, batches, size, seed) for seed in range(many)]


# -- how good ----------------------------------------------------------------------------------------------------------
def test_a_curve_begins_with_the_warm_start_and_has_a_score_a_batch():
    problem = texts()
    judge, order = probe(problem), Order.random(60, 3, 5, seed=4)
    curve = curve_of(judge, order, "test")
    assert curve.start == judge.scores([NOTHING], "test")[0]
    assert curve.scores.tolist() == [judge.scores([order.prefix(k)], "test")[0] for k in (1, 2, 3)]
    assert curve.quality == pytest.approx(curve.scores.sum() / 3)
    assert curve.quality_with_warm_start == pytest.approx((curve.start + curve.scores.sum()) / 4)
    assert curve_of(judge, order, "validation").scores.tolist() != curve.scores.tolist()


def test_many_curves_are_those_of_each_even_of_different_lengths():
    judge = Rule(30)
    orders = [*orders_of(2), *orders_of(2, batches=5, size=2)]
    for order, curve in zip(orders, curves_of(judge, orders), strict=True):
        assert curve.scores.tolist() == curve_of(judge, order).scores.tolist()


# -- for whom else -----------------------------------------------------------------------------------------------------
@given(st.integers(0, 1000), st.integers(0, 1000))
def test_shared_items_stand_at_their_ranks_in_both_orders(a, b):
    first, second = (Order.random(20, 3, 4, seed) for seed in (a, b))
    found = shared(first, second)
    assert set(found.items) == set(first.items) & set(second.items)
    assert first.items[found.first].tolist() == second.items[found.second].tolist() == found.items.tolist()


def test_random_orders_share_about_what_chance_says():
    many = [len(shared(Order.random(60, 4, 5, seed), Order.random(60, 4, 5, 1000 + seed))) for seed in range(400)]
    expected = shared_by_chance(Order.random(60, 4, 5, 0), Order.random(60, 4, 5, 1), 60)
    deviation = (20 * (1 / 3) * (2 / 3) * 40 / 59) ** 0.5  # of the hypergeometric distribution
    assert np.mean(many) == pytest.approx(expected, abs=4 * deviation / 400**0.5)


# -- what they choose --------------------------------------------------------------------------------------------------
@given(st.integers(0, 10_000))
def test_shares_are_those_of_a_count_by_hand(seed):
    rng = np.random.default_rng(seed)
    bins = {part: rng.integers(4, size=many) for part, many in (("pool", 30), ("warm", 3), ("test", 9))}
    order = Order.random(30, 3, 4, seed)
    found = shares_of(order, bin_counts(bins, 4))
    reference = Counter(bins["test"].tolist())
    for k in range(4):
        labelled = Counter([*bins["warm"].tolist(), *bins["pool"][order.prefix(k)].tolist()])
        assert found.labelled[k].tolist() == pytest.approx([labelled[b] / (3 + 4 * k) for b in range(4)])
        far = sum(max(0, labelled[b] / (3 + 4 * k) - reference[b] / 9) for b in range(4))  # all that is too much
        assert found.distances[k] == pytest.approx(far)
    assert found.distance == pytest.approx(found.distances[1:].mean())


def test_lengths_fall_into_the_bins_of_the_papers_figure():
    problem = texts()
    counts = length_counts(problem, INTENT_LENGTHS)["pool"]
    bins = [range(1, 4), *(range(n, n + 1) for n in range(4, 11)), range(11, 13), range(13, 1000)]
    for words, row in zip(problem.parts["pool"].words.tolist(), counts.tolist(), strict=True):
        assert row == [int(words in some) for some in bins]


def test_labels_are_counted_by_item_and_of_spans_by_word():
    problem = texts(tasks=("intent", "slots"))
    items, intents, slots = problem.parts["aside"], label_counts(problem, "intent"), label_counts(problem, "slots")
    names = problem.corpus.schema["intent"].labels, problem.corpus.schema["slots"].labels
    for at in range(len(items)):
        assert [names[0][c] for c in np.flatnonzero(intents["aside"][at])] == [items[at].labels["intent"]]
        words = Counter()
        for start, end, label in items[at].labels["slots"]:
            words[label] += end - start
        outside = len(items[at].words) - sum(words.values())
        assert slots["aside"][at].tolist() == [outside, *(words[name] for name in names[1])]


def test_nothing_in_common_is_a_distance_of_one():
    assert Shares(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 0.0])).distances.tolist() == [0.0, 1.0]


def test_a_map_is_the_same_for_the_same_seed_and_keeps_groups_apart():
    rng = np.random.default_rng(0)
    centres = 20 * rng.normal(size=(2, 130))
    groups = {"pool": np.repeat([0, 1], 20), "warm": np.repeat([0, 1], 5)}
    parts = {part: centres[group] + rng.normal(size=(len(group), 130)) for part, group in groups.items()}
    places, again = tsne_places(parts, seed=3), tsne_places(parts, seed=3)
    assert {part: found.shape for part, found in places.items()} == {"pool": (40, 2), "warm": (10, 2)}
    assert all(np.array_equal(places[part], again[part]) for part in parts)
    middles = np.stack([places["pool"][:20].mean(axis=0), places["pool"][20:].mean(axis=0)])
    nearest = np.linalg.norm(places["warm"][:, None] - middles, axis=2).argmin(axis=1)
    assert nearest.tolist() == groups["warm"].tolist()
    with pytest.raises(ConfigError, match="too few for a map"):
        tsne_places({"pool": np.zeros((2, 3))})
