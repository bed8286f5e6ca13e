"""Covering doubt: what a gain is, that greedy finds it, and that no selection passes the bound."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.errors import InfeasibleError
from bursar.selection import GroupCap, Limit, Limits
from bursar.selection import cover as module
from bursar.selection.cover import Coverage, buy_cover, candidates_of, drawn
from bursar.selection.evidence import Units
from bursar.selection.submodular import TIE


def units_of(rng, items, width=3, most=4):
    counts = rng.integers(0, most, items)
    total = int(counts.sum())
    doubt = rng.random(total) * (rng.random(total) < 0.7)
    return Units(rng.normal(size=(total, width)).astype(np.float32), np.concatenate([[0], np.cumsum(counts)]), doubt)


def coverage_of(rng, items, known=2, targets=40):
    units = units_of(rng, items)
    labelled = rng.normal(size=(known, 3)).astype(np.float32)
    return Coverage(units, labelled, rng, targets), units, labelled


def plain_value(tasks, chosen):
    """What a set of items covers beyond what is labelled, written down as it is defined."""
    total = 0.0
    for task, units, labelled in tasks:
        bought = [labelled, *(units.vectors[units.offsets[i] : units.offsets[i + 1]] for i in chosen)]
        covered = []
        for centres in (labelled, np.concatenate(bought)):
            apart = ((task.targets[:, None] - centres[None]) ** 2).sum(axis=2)
            near = apart.min(axis=1) if len(centres) else np.full(len(task.targets), np.inf)
            covered.append(np.exp(-near / task.scale))
        total += float(((covered[1] - covered[0]) @ task.weights) / max(float((1 - covered[0]) @ task.weights), 1e-9))
    return total


def bought(tasks, price, budget, limits=None, power=0.5):
    able = np.ones(len(price), dtype=bool)
    rng = np.random.default_rng(0)
    return buy_cover([task for task, *_ in tasks], price, budget, limits or Limits(), able, power, rng)


@given(seed=st.integers(0, 10**6), items=st.integers(1, 8), budget=st.integers(0, 30), known=st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_the_objective_is_what_is_covered_and_no_selection_passes_the_bound(seed, items, budget, known):
    rng = np.random.default_rng(seed)
    tasks = [coverage_of(rng, items, known) for _ in range(2)]
    price = rng.integers(1, 10, items)
    chosen, certificate = bought(tasks, price, budget)
    assert price[chosen].sum() <= budget
    assert certificate.objective == pytest.approx(plain_value(tasks, chosen), abs=1e-4)
    best = max(
        plain_value(tasks, some)
        for size in range(items + 1)
        for some in combinations(range(items), size)
        if price[list(some)].sum() <= budget
    )
    assert best <= certificate.bound + 1e-4
    assert certificate.objective >= 0.3 * best - 1e-4  # far more in general: the greedy one is hardly ever below 0.9


def test_greedy_is_near_the_best_on_the_whole():
    reached, best = 0.0, 0.0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        tasks = [coverage_of(rng, 7) for _ in range(2)]
        price = rng.integers(2, 6, 7)
        reached += bought(tasks, price, 10)[1].objective
        best += max(
            plain_value(tasks, some)
            for size in range(8)
            for some in combinations(range(7), size)
            if price[list(some)].sum() <= 10
        )
    assert reached > 0.95 * best


@given(seed=st.integers(0, 10**6), power=st.sampled_from([0.0, 0.5, 1.0]))
@settings(max_examples=30, deadline=None)
def test_looking_at_few_items_finds_what_looking_at_all_finds(seed, power):
    rng = np.random.default_rng(seed)
    task, units, labelled = coverage_of(rng, 60)
    price = rng.integers(1, 10, 60)
    chosen, _ = bought([(task, units, labelled)], price, 60, power=power)
    again = Coverage(units, labelled, np.random.default_rng(1), 40)
    again.targets, again.weights, again.scale, again._scaled = task.targets, task.weights, task.scale, task._scaled
    again._kept = np.empty((0, len(task.weights)), dtype=np.float32)
    again.covered = np.exp(-module._nearest(labelled, task.targets) / task.scale)
    again.open = float((1 - again.covered) @ again.weights)
    left, open_, plain = 60, np.ones(60, dtype=bool), []
    while (able := open_ & (price <= left)).any():
        scores = np.where(able, again.gains(np.arange(60)) / price**power, -1)
        item = int(np.argmax(scores >= scores.max() - TIE))
        plain.append(item)
        again.add(item)
        open_[item] = False
        left -= int(price[item])
    assert chosen.tolist() == plain


def test_a_pool_too_large_to_keep_is_chosen_from_alike(monkeypatch):
    found = []
    for kept in (10**9, 0, 7 * 4 * 40):  # all of it, nothing, seven items
        monkeypatch.setattr(module, "KEPT_BYTES", kept)
        rng = np.random.default_rng(5)
        tasks = [coverage_of(rng, 80) for _ in range(2)]
        found.append(bought(tasks, rng.integers(1, 10, 80), 90)[0].tolist())
    assert found[0] == found[1] == found[2]


def test_a_large_pool_is_chosen_from_candidates_drawn_by_their_doubt(monkeypatch):
    rng = np.random.default_rng(7)
    tasks = [coverage_of(rng, 200) for _ in range(2)]
    price = rng.integers(1, 10, 200)
    monkeypatch.setattr(module, "CANDIDATES", 40)
    able = rng.random(200) < 0.9
    coverages = [task for task, *_ in tasks]
    candidates = candidates_of(coverages, able, np.random.default_rng(0))
    assert 20 < len(candidates) <= 40
    assert able[candidates].all()
    share = sum(task.shares for task in coverages)
    assert share[candidates].mean() > 1.5 * share.mean()
    chosen, certificate = buy_cover(coverages, price, 30, Limits(), able, 0.5, np.random.default_rng(0))
    assert set(chosen.tolist()) <= set(candidates.tolist())
    assert certificate.objective == pytest.approx(plain_value(tasks, chosen), abs=1e-4)


def test_when_no_candidate_can_be_bought_the_others_are_and_the_bound_holds_for_all(monkeypatch):
    rng = np.random.default_rng(8)
    tasks = [coverage_of(rng, 9) for _ in range(2)]
    price = np.array([9, 9, 9, 9, 2, 9, 3, 9, 2])
    monkeypatch.setattr(module, "candidates_of", lambda *_: np.array([0, 1, 4]))
    chosen, certificate = bought(tasks, price, 8)  # 4 among the candidates, then 6 and 8
    assert sorted(chosen.tolist()) == [4, 6, 8]
    assert certificate.objective == pytest.approx(plain_value(tasks, chosen), abs=1e-4)
    assert plain_value(tasks, [4, 6, 8]) <= certificate.bound + 1e-4
    everything, _ = bought(tasks, price, 100)
    assert len(everything) == 9


def test_doubt_that_is_covered_already_is_worth_nothing():
    units = Units(np.eye(2, dtype=np.float32), np.array([0, 1, 2]), np.ones(2))
    task = Coverage(units, np.array([[1.0, 0.0]], dtype=np.float32), np.random.default_rng(0))
    first, second = task.gains(np.array([0, 1]))
    assert first == pytest.approx(0, abs=1e-6)
    assert second > 0.5


def test_long_items_are_worth_what_their_units_are_worth():
    vectors = np.eye(6, dtype=np.float32) * 5
    units = Units(vectors, np.array([0, 1, 3, 6]), np.ones(6))
    task = Coverage(units, np.zeros((0, 6), dtype=np.float32), np.random.default_rng(0))
    gains = task.gains(np.arange(3))
    assert gains[0] < gains[1] < gains[2]


def test_what_is_doubted_more_is_drawn_more_often():
    places, counts = drawn(np.array([1.0, 0.0, 4.0]), 1000, np.random.default_rng(0))
    assert dict(zip(places.tolist(), counts.tolist(), strict=True)) == {0: 200, 2: 800}


def test_units_without_any_doubt_are_bought_in_the_order_of_ids():
    units = Units(np.eye(3, dtype=np.float32), np.arange(4), np.zeros(3))
    task = Coverage(units, np.zeros((0, 3), dtype=np.float32), np.random.default_rng(0))
    chosen, certificate = bought([(task, units, None)], np.array([2, 2, 2]), 4)
    assert chosen.tolist() == [0, 1]
    assert certificate.objective == 0


# -- limits ----------------------------------------------------------------------------------------------------------
def test_caps_and_groups_and_minimums_are_kept():
    rng = np.random.default_rng(3)
    tasks = [coverage_of(rng, 30)]
    price = rng.integers(1, 6, 30)
    rare = np.zeros((30, 1))
    rare[25:] = 1
    limits = Limits(
        (Limit("hours", np.ones((30, 1)), at_most=9), Limit("rare", rare, at_least=3)),
        GroupCap.of(np.arange(30) % 3, 4),
    )
    chosen, _ = bought(tasks, price, 60, limits)
    assert limits.broken(chosen, np.ones((len(chosen), 1), dtype=bool)) is None
    assert len(chosen) == 9


def test_a_minimum_that_cannot_be_reached_is_refused_by_name():
    rng = np.random.default_rng(3)
    tasks = [coverage_of(rng, 5)]
    with pytest.raises(InfeasibleError, match="labels of slots"):
        bought(tasks, np.full(5, 10), 20, Limits((Limit("labels of slots", np.ones((5, 1)), at_least=3),)))
