"""Covering doubt: what a gain is, that greedy finds it, and that no selection passes the bound."""

from __future__ import annotations

from copy import deepcopy
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.errors import InfeasibleError
from bursar.selection import Candidates, GroupCap, Limit, Limits, make_strategy
from bursar.selection import cover as module
from bursar.selection.candidates import Units
from bursar.selection.cover import Coverage, candidates_of, cover_items, cover_labels, systematic_sample
from bursar.selection.spend import greedy as spend_greedily
from bursar.selection.spend.greedy import TIE
from bursar.tasks import Prices

BOTH = (cover_items, cover_labels)


def units_of(rng, items, width=3, most=4):
    counts = rng.integers(0, most, items)
    total = int(counts.sum())
    doubt = rng.random(total) * (rng.random(total) < 0.7)
    return Units(rng.normal(size=(total, width)).astype(np.float32), np.concatenate([[0], np.cumsum(counts)]), doubt)


def coverage_of(rng, items, known=2, targets=40):
    units = units_of(rng, items)
    labelled = rng.normal(size=(known, 3)).astype(np.float32)
    return Coverage(units, labelled, rng, targets), units, labelled


def plain_value(tasks, chosen, labels=None):
    """What items, for some of their labels, cover beyond what is labelled, written down as it is defined."""
    total = 0.0
    labels = np.ones((len(chosen), len(tasks)), dtype=bool) if labels is None else labels
    for (task, units, labelled), mine in zip(tasks, np.asarray(labels, dtype=bool).T, strict=True):
        some = [item for item, wanted in zip(chosen, mine, strict=True) if wanted]
        bought = [labelled, *(units.vectors[units.offsets[i] : units.offsets[i + 1]] for i in some)]
        covered = []
        for centres in (labelled, np.concatenate(bought)):
            apart = ((task.targets[:, None] - centres[None]) ** 2).sum(axis=2)
            near = apart.min(axis=1) if len(centres) else np.full(len(task.targets), np.inf)
            covered.append(np.exp(-near / task.scale))
        total += float(((covered[1] - covered[0]) @ task.weights) / max(float((1 - covered[0]) @ task.weights), 1e-9))
    return total


def pool_of(tasks, reading, own=None, open_=None, limits=None):
    names = tuple("abcdef"[: len(tasks)])
    shape = (len(reading), len(tasks))
    prices = Prices(names, np.asarray(reading), np.zeros(shape, dtype=np.int64) if own is None else own)
    open_ = np.ones(shape, dtype=bool) if open_ is None else open_
    ids = [f"u{n:03d}" for n in range(len(reading))]
    return Candidates(ids, np.zeros(shape), prices, open_, limits or Limits())


def bought(tasks, price, budget, limits=None, power=0.5):
    pool = pool_of(tasks, price, limits=limits)
    found = cover_items(pool, [task for task, *_ in tasks], budget, np.random.default_rng(0), power)
    return found.items, found.certificate


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
    price, again = rng.integers(1, 10, 60), deepcopy(task)
    chosen, _ = bought([(task, units, labelled)], price, 60, power=power)
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
    open_ = np.stack([able, able], axis=1)
    candidates = candidates_of(coverages, open_, np.random.default_rng(0))
    assert 20 < len(candidates) <= 40
    assert able[candidates].all()
    share = sum(task.shares for task in coverages)
    assert share[candidates].mean() > 1.5 * share.mean()
    for buy in (cover_items, cover_labels):
        fresh = [deepcopy(task) for task in coverages]
        found = buy(pool_of(tasks, price, open_=open_), fresh, 30, np.random.default_rng(0))
        assert set(found.items.tolist()) <= set(candidates.tolist())
        assert found.certificate.objective == pytest.approx(plain_value(tasks, found.items, found.tasks), abs=1e-4)


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
    places, counts = systematic_sample(np.array([1.0, 0.0, 4.0]), 1000, np.random.default_rng(0))
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


# -- some of an item's tasks -----------------------------------------------------------------------------------------
def random_limits(rng, items, tasks):
    """A cap on labels of the first task, hours, a minimum of the last task, a cap on groups: some of them."""
    first, last = np.zeros((items, tasks)), np.zeros((items, tasks))
    first[:, 0], last[:, -1] = 1, 1
    sums = [
        Limit("labels of the first", first, at_most=2),
        Limit("hours", rng.random((items, tasks)), at_most=1.5),
        Limit("labels of the last", last, at_least=1),
    ]
    groups = GroupCap.of(np.arange(items) % 2, 1) if rng.random() < 0.5 else None
    return Limits(tuple(limit for limit in sums if rng.random() < 0.5), groups)


def every_selection(pool, budget, whole):
    """All that may be bought: items and their tasks."""
    ways = [
        [np.zeros(len(pool.tasks), dtype=bool), open_]
        if whole
        else [np.array(some) for some in product([False, True], repeat=len(open_)) if not (some & ~open_).any()]
        for open_ in pool.open
    ]
    for rows in product(*ways):
        chosen = np.array(rows)
        items = np.flatnonzero(chosen.any(axis=1))
        if pool.prices.of(chosen).sum() <= budget and pool.limits.broken(items, chosen[items]) is None:
            yield items, chosen[items]


@pytest.mark.parametrize(("buy", "whole"), [(cover_items, True), (cover_labels, False)])
@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(1, 2), (3, 1), (4, 2), (3, 3)]),
    budget=st.integers(0, 30),
    limited=st.booleans(),
    part_open=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_bundles_keep_to_all_limits_and_no_selection_passes_the_bound(
    buy, whole, seed, shape, budget, limited, part_open
):
    rng = np.random.default_rng(seed)
    items, count = shape
    tasks = [coverage_of(rng, items) for _ in range(count)]
    open_ = rng.random(shape) < 0.7 if part_open else None
    limits = random_limits(rng, items, count) if limited else None
    pool = pool_of(tasks, rng.integers(0, 6, items), rng.integers(0, 6, shape), open_, limits)
    best = max((plain_value(tasks, *some) for some in every_selection(pool, budget, whole)), default=None)
    try:
        found = buy(pool, [task for task, *_ in tasks], budget, rng)
    except InfeasibleError:
        assert pool.limits.sums  # greedy spending may miss a minimum that could be reached
        return
    assert found.total <= budget
    assert pool.limits.broken(found.items, found.tasks) is None
    assert not (found.tasks & ~pool.open[found.items]).any()
    assert not whole or (found.tasks == pool.open[found.items]).all()
    assert found.certificate.objective == pytest.approx(plain_value(tasks, found.items, found.tasks), abs=1e-4)
    assert best <= found.certificate.bound + 1e-4


@given(seed=st.integers(0, 10**6), power=st.sampled_from([0.0, 0.5, 1.0]), limited=st.booleans())
@settings(max_examples=40, deadline=None)
def test_every_bundle_is_the_best_of_all_there_were(seed, power, limited):
    """Greedy over items and subsets, written down as it is defined."""
    rng = np.random.default_rng(seed)
    items, budget = 25, 60
    tasks = [coverage_of(rng, items) for _ in range(2)]
    limits = Limits((Limit("labels of b", np.tile([0.0, 1.0], (items, 1)), at_most=5),)) if limited else Limits()
    pool = pool_of(tasks, rng.integers(1, 6, items), rng.integers(1, 6, (items, 2)), limits=limits)
    plain = [deepcopy(task) for task, *_ in tasks]
    found = cover_labels(pool, [deepcopy(task) for task, *_ in tasks], budget, rng, power)
    bought, order = np.zeros((items, 2), dtype=bool), []
    while True:
        gains = np.stack([task.gains(np.arange(items)) for task in plain], axis=1)
        best = (-np.inf, 0, np.zeros(2, dtype=bool))
        for item in range(items):
            for some in [(True, True), (True, False), (False, True)]:
                after = bought.copy()
                after[item] |= some
                price = pool.prices.of(after).sum() - pool.prices.of(bought).sum()
                kept = limits.broken(np.arange(items), after) is None and pool.prices.of(after).sum() <= budget
                score = gains[item][list(some)].sum() / max(price, 1) ** power
                if kept and not (bought[item] & some).any() and score > best[0] + TIE:
                    best = (score, item, np.array(some))
        if best[0] == -np.inf:
            break
        _, item, some = best
        bought[item] |= some
        order.append(item)
        for number in np.flatnonzero(some):
            plain[number].add(item)
    assert found.items.tolist() == list(dict.fromkeys(order))
    assert found.tasks.tolist() == bought[found.items].tolist()


def test_a_label_that_adds_nothing_is_not_paid_for():
    vectors = np.eye(4, dtype=np.float32) * 5
    doubtful, settled = (Units(vectors, np.arange(5), np.full(4, doubt)) for doubt in (1.0, 0.0))
    none = np.zeros((0, 4), dtype=np.float32)
    tasks = [(Coverage(units, none, np.random.default_rng(0)), units, none) for units in (doubtful, settled)]
    pool = pool_of(tasks, np.full(4, 1), np.tile([1, 4], (4, 1)))
    whole, labels = (buy(pool, [deepcopy(t) for t, *_ in tasks], 8, np.random.default_rng(0)) for buy in BOTH)
    assert whole.tasks.tolist() == [[True, True]]
    assert labels.tasks.tolist() == [[True, False]] * 4
    assert labels.certificate.objective == pytest.approx(1, abs=1e-6)


def test_further_labels_of_an_item_cost_no_reading():
    rng = np.random.default_rng(0)
    tasks = [coverage_of(rng, 12) for _ in range(2)]
    pool = pool_of(tasks, np.full(12, 50), np.ones((12, 2), dtype=np.int64))
    found = cover_labels(pool, [task for task, *_ in tasks], 104, rng)
    assert len(found) == 2
    assert found.tasks.all()
    assert found.total == 104


def test_items_that_have_some_of_their_labels_are_offered_for_the_others():
    rng = np.random.default_rng(1)
    tasks = [coverage_of(rng, 20) for _ in range(2)]
    open_ = np.tile([True, False], (20, 1))
    open_[:3] = True
    pool = pool_of(tasks, np.full(20, 2), np.tile([1, 7], (20, 1)), open_)
    found = cover_items(pool, [task for task, *_ in tasks], 1000, rng)
    assert len(found) == 20
    assert found.total == 3 * 10 + 17 * 3
    assert (found.tasks == open_[found.items]).all()


def test_many_tasks_are_bought_by_their_best_labels_first():
    rng = np.random.default_rng(2)
    tasks = [coverage_of(rng, 10) for _ in range(6)]
    pool = pool_of(tasks, np.full(10, 2), rng.integers(1, 9, (10, 6)))
    every, grown = [], []
    for enumerated, into in ((6, every), (5, grown)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(spend_greedily, "ENUMERATED", enumerated)
            into.append(cover_labels(pool, [deepcopy(task) for task, *_ in tasks], 60, np.random.default_rng(0)))
    assert grown[0].total <= 60
    assert grown[0].certificate.objective > 0.9 * every[0].certificate.objective
    assert every[0].certificate.objective <= grown[0].certificate.bound + 1e-6


def test_labels_can_be_split_between_tasks_and_items_cannot():
    assert make_strategy("COVER-LABELS").by_label
    assert not make_strategy("COVER").by_label
