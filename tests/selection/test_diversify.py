"""Diverse batches, against their definitions."""

from __future__ import annotations

import tracemalloc
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.errors import SelectionError
from bursar.selection import diversify
from bursar.selection.diversify import BatchScores, JointDistribution, badge, batch_bald, k_center

seeds = st.integers(0, 10**6)


def ones(n):
    return np.ones(n, dtype=np.int64)


def random_passes(rng, passes, n, classes, spread=1.0):
    """Probabilities of models that differ from each other by ``spread``: (passes, items, classes)."""
    raised = np.exp(rng.normal(size=(n, classes)) + spread * rng.normal(size=(passes, n, classes)))
    return raised / raised.sum(axis=2, keepdims=True)


def random_residuals(rng, n, classes):
    residuals = rng.dirichlet(np.ones(classes), size=n)
    residuals[np.arange(n), residuals.argmax(axis=1)] -= 1
    return residuals


def buy(price, budget, choose):
    """The loop of all three: ``choose`` among (affordable, picked) while something is affordable."""
    picked = []
    while open_ := [a for a in range(len(price)) if a not in picked and price[a] <= budget]:
        picked.append(choose(open_, picked))
        budget -= price[picked[-1]]
    return picked


def first_best(open_, score):
    best = max(score(a) for a in open_)
    return next(a for a in open_ if score(a) >= best - 1e-12)


# k-centre


def plain_k_center(features, price, budget, centres):
    def gap(a, b):
        return int(((a - b) ** 2).sum())

    n, total = len(price), features.sum(axis=0)  # total is n times the mean

    def choose(open_, picked):
        others = [*centres, *(features[b] for b in picked)]
        if not others:
            return first_best(open_, lambda a: gap(n * features[a], total))
        return first_best(open_, lambda a: min(gap(features[a], other) for other in others))

    return buy(price, budget, choose)


@given(seeds, st.integers(0, 12), st.integers(0, 3), st.integers(0, 25), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=300, deadline=None)
def test_k_center_picks_the_farthest_item_by_definition(seed, n, known, budget, dtype):
    rng = np.random.default_rng(seed)  # few whole numbers: many ties and duplicates
    features, centres = (rng.integers(-2, 3, size=(m, 2)) for m in (n, known))
    price = rng.integers(0, 5, size=n)
    got = k_center(features.astype(dtype), price, budget, centres=centres.astype(dtype))
    assert got.dtype == np.int64
    assert got.tolist() == plain_k_center(features, price, budget, centres)


def test_k_center_looks_at_all_centres_when_they_come_in_blocks():
    rng = np.random.default_rng(0)
    features, centres = rng.integers(-50, 50, size=(20, 3)), rng.integers(-50, 50, size=(300, 3))
    got = k_center(features.astype(float), ones(20), 3, centres=centres.astype(float))
    assert got.tolist() == plain_k_center(features, ones(20), 3, centres)


def test_k_center_takes_duplicates_last_even_far_out_in_single_precision():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(50, 64)).astype(np.float32)
    x[10] = x[3] = 1e4 * x[3]
    x += 100
    picks = k_center(x, ones(50), 50).tolist()
    assert picks[0] == 3
    assert picks[-1] == 10


# BADGE


def plain_badge(embeddings, price, budget, rng):
    """k-means++ on (items, everything) gradients."""

    def choose(open_, picked):
        if not picked:
            return first_best(open_, lambda a: embeddings[a] @ embeddings[a])
        nearest = [min(((embeddings[a] - embeddings[b]) ** 2).sum() for b in picked) for a in open_]
        if sum(nearest) == 0:
            return open_[0]
        return open_[int(np.searchsorted(np.cumsum(nearest), rng.random() * np.sum(nearest), side="right"))]

    return buy(price, budget, choose)


@given(seeds, st.integers(1, 12), st.integers(0, 25))
@settings(max_examples=200, deadline=None)
def test_badge_draws_as_if_the_gradients_were_written_out(seed, n, budget):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 3))
    residuals, weights = [random_residuals(rng, n, classes) for classes in (2, 4)], rng.random(2)
    price, copies = rng.integers(0, 5, size=n), rng.integers(0, n, size=n)  # with duplicates
    features, residuals = features[copies], [r[copies] for r in residuals]
    written_out = [
        np.sqrt(w) * (features[:, :, None] * r[:, None, :]).reshape(n, -1)
        for w, r in zip(weights, residuals, strict=True)
    ]
    weighted = [np.sqrt(w) * r for w, r in zip(weights, residuals, strict=True)]
    got = badge(features, weighted, price, budget, np.random.default_rng(seed))
    expected = plain_badge(np.concatenate(written_out, axis=1), price, budget, np.random.default_rng(seed))
    assert got.tolist() == expected


def test_badge_draws_in_proportion_to_the_squared_distance():
    # Gradients 0, 3, 2 and 4 on a line: after 4, the squared distances are 16, 1, 4 and 0.
    x, residuals = np.array([[0.0], [3.0], [2.0], [4.0]]), np.array([[-1.0, 0.0]] * 4)
    picks = [badge(x, [residuals], ones(4), 2, np.random.default_rng(seed)).tolist() for seed in range(1050)]
    assert all(first == 3 for first, _ in picks)
    counts = np.bincount([second for _, second in picks], minlength=4)
    expected = np.array([800, 50, 200, 0])
    assert (np.abs(counts - expected) <= 5 * np.sqrt(expected * (1 - expected / 1050))).all()


# BatchBALD


def joint_information(p, items):
    """I(labels of the items; pass), by writing out all label configurations; p is (passes, items, classes)."""

    def entropy(q):
        q = q[q > 0]
        return -(q * np.log(q)).sum()

    joint = np.mean([reduce(np.multiply.outer, of_pass[items]) for of_pass in p], axis=0)
    return entropy(joint) - np.mean([sum(entropy(of_pass[a]) for a in items) for of_pass in p])


def plain_batch_bald(probabilities, price, budget, weights, extra):
    def choose(open_, picked):
        def score(a):
            return extra[a] + sum(
                w * (joint_information(p, [*picked, a]) - (joint_information(p, picked) if picked else 0))
                for w, p in zip(weights, probabilities, strict=True)
            )

        return first_best(open_, score)

    return buy(price, budget, choose)


@given(seeds, st.integers(1, 6), st.integers(2, 5), st.integers(0, 12), st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_batch_bald_picks_by_the_joint_information_of_all_configurations(seed, n, passes, budget, block):
    rng = np.random.default_rng(seed)
    copies = rng.integers(0, n, size=n)  # with duplicates
    probabilities = [random_passes(rng, passes, n, classes)[:, copies] for classes in (2, 3)]
    price, weights, extra = rng.integers(0, 5, size=n), rng.random(2), rng.choice([0, 0.1], size=n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diversify, "BLOCK", block)
        got = batch_bald(BatchScores(probabilities, weights, extra), price, budget, rng)
    assert got.tolist() == plain_batch_bald(probabilities, price, budget, weights, extra)


@pytest.mark.parametrize("seed", range(5))
def test_old_gains_as_bounds_find_what_scoring_everything_again_finds(seed, monkeypatch):
    p = random_passes(np.random.default_rng(seed), 10, 300, 2)
    picks = []
    for block in (4, 300):
        monkeypatch.setattr(diversify, "BLOCK", block)
        picks.append(batch_bald(BatchScores([p]), ones(300), 9, np.random.default_rng(0)).tolist())  # exact: 2⁹
    assert picks[0] == picks[1]


def test_batch_bald_does_not_ask_the_same_question_twice_where_bald_does():
    # Four passes hold two bits; items 0 and 1 ask for the first bit, item 2 for the second, a little less clearly.
    yes = np.array([[0.95, 0.95, 0.9], [0.95, 0.95, 0.1], [0.05, 0.05, 0.9], [0.05, 0.05, 0.1]])
    p = np.stack([yes, 1 - yes], axis=2)
    alone = [joint_information(p, [a]) for a in range(3)]
    assert alone[0] == alone[1] > alone[2]
    assert batch_bald(BatchScores([p]), ones(3), 2, np.random.default_rng(0)).tolist() == [0, 2]


@pytest.mark.parametrize("models_differ", [0.6, 5.0])  # by 5, most configurations settle which pass it is
def test_sampled_gains_lie_around_the_exact_ones(models_differ):
    p = random_passes(np.random.default_rng(3), 12, 40, 3, spread=models_differ)
    exact = joint_information(p, list(range(9))) - joint_information(p, list(range(8)))
    gains = []
    for seed in range(60):
        task, rng = JointDistribution(p), np.random.default_rng(seed)
        for item in range(8):  # 6,561 configurations
            task.add(item, 200, rng)
        assert task.sampled
        gains.append(task.gain(np.array([8]))[0])
    spread = np.std(gains)
    assert spread < 0.25 * exact
    assert abs(np.mean(gains) - exact) < 4 * spread / np.sqrt(60) + 1e-3 * exact


def test_a_sampled_batch_tells_nearly_as_much_as_an_exact_one():
    p = random_passes(np.random.default_rng(5), 10, 60, 3, spread=0.7)
    exact = batch_bald(BatchScores([p]), ones(60), 8, np.random.default_rng(0), samples=3**8)
    exact_information = joint_information(p, exact)
    for seed in range(5):
        sampled = batch_bald(BatchScores([p]), ones(60), 8, np.random.default_rng(seed), samples=300)
        assert joint_information(p, sampled) > 0.97 * exact_information


def test_passes_that_are_certain_make_no_numerical_trouble():
    p = np.eye(3)[np.random.default_rng(0).integers(0, 3, size=(5, 20))]
    with np.errstate(all="raise", under="ignore"):
        picks = batch_bald(BatchScores([p, p]), ones(20), 20, np.random.default_rng(0), samples=4)
    assert sorted(picks.tolist()) == list(range(20))


def test_batch_bald_never_holds_all_samples_of_all_items():
    p = random_passes(np.random.default_rng(0), 10, 2000, 10)
    tracemalloc.start()
    try:
        batch_bald(BatchScores([p]), ones(2000), 6, np.random.default_rng(0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20e6  # all at once: 1,000 samples of 2,000 items and 10 classes are 160 MB


# All three


def by_k_center(n, price, budget, seed=0, same=False):
    x = np.random.default_rng(seed).normal(size=(n, 3))
    return k_center(np.ones_like(x) if same else x, price, budget)


def by_badge(n, price, budget, seed=0, same=False):
    rng = np.random.default_rng(seed)
    x, r = rng.normal(size=(n, 3)), random_residuals(rng, n, 3)
    return badge(np.ones_like(x) if same else x, [r[[0] * n] if same else r], price, budget, rng)


def by_batch_bald(n, price, budget, seed=0, same=False):
    rng = np.random.default_rng(seed)
    p = random_passes(rng, 4, n, 3)
    return batch_bald(BatchScores([p[:, [0] * n] if same else p]), price, budget, rng, samples=10)


each = pytest.mark.parametrize("pick", [by_k_center, by_badge, by_batch_bald])


@each
@given(seeds, st.integers(1, 15), st.integers(0, 40))
@settings(max_examples=60, deadline=None)
def test_the_budget_is_spent_and_nothing_bought_twice(pick, seed, n, budget):
    price = np.random.default_rng(seed + 1).integers(0, 8, size=n)
    picks = pick(n, price, budget, seed)
    left = budget - price[picks].sum()
    assert left >= 0
    assert len(set(picks.tolist())) == len(picks)
    assert (np.delete(price, picks) > left).all()
    assert pick(n, price, budget, seed).tolist() == picks.tolist()


@each
def test_items_that_are_all_the_same_are_picked_in_their_order(pick):
    assert pick(9, ones(9), 7, same=True).tolist() == list(range(7))


@each
def test_items_for_nothing_are_picked_once_and_with_no_budget_alone(pick):
    assert sorted(pick(6, np.zeros(6, dtype=np.int64), 0).tolist()) == list(range(6))
    assert sorted(pick(6, np.array([0, 1, 0, 2, 1, 0]), 0).tolist()) == [0, 2, 5]


def test_an_empty_pool_gives_an_empty_batch():
    rng, none = np.random.default_rng(0), ones(0)
    for picks in (
        k_center(np.zeros((0, 3)), none, 5),
        k_center(np.zeros((0, 3)), none, 5, centres=np.zeros((2, 3))),
        badge(np.zeros((0, 3)), [np.zeros((0, 2))], none, 5, rng),
        batch_bald(BatchScores([np.zeros((4, 0, 2))]), none, 5, rng),
    ):
        assert picks.tolist() == []
        assert picks.dtype == np.int64


def test_what_cannot_be_right_is_refused_with_the_task_named():
    rng, x, nan = np.random.default_rng(0), np.zeros((3, 2)), np.full((3, 2), np.nan)
    half = np.full((2, 3, 2), 0.5)
    for message, attempt in {
        r"the features have the shape \(2, 2\), not \(3, any\)": lambda: k_center(x[:2], ones(3), 1),
        "the features contain NaN": lambda: k_center(nan, ones(3), 1),
        r"the centres have the shape \(4, 3\), not \(any, 2\)": lambda: k_center(
            x, ones(3), 1, centres=np.zeros((4, 3))
        ),
        "no residuals": lambda: badge(x, [], ones(3), 1, rng),
        "2 tasks need one weight each": lambda: batch_bald(BatchScores([half, half], [1, -1]), ones(3), 1, rng),
        "price is negative": lambda: k_center(x, np.array([1, -1, 1]), 1),
        "whole numbers": lambda: k_center(x, np.array([0.5, 1, 1]), 1),
        "the residuals of task 1 contain NaN": lambda: badge(x, [x, nan], ones(3), 1, rng),
        "task 1: BatchBALD needs at least 2 passes.*Fix": lambda: batch_bald(
            BatchScores([half, half[:1]]), ones(3), 1, rng
        ),
        "task 0: the probabilities of an item": lambda: batch_bald(BatchScores([2 * half]), ones(3), 1, rng),
        "extra scores": lambda: batch_bald(BatchScores([half], extra=np.zeros(2)), ones(3), 1, rng),
        "at least 1": lambda: batch_bald(BatchScores([half]), ones(3), 1, rng, samples=0),
    }.items():
        with pytest.raises(SelectionError, match=message):
            attempt()
