"""What follows a +: covering by a strategy's scores, and leaving out outliers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.errors import InfeasibleError, SelectionError
from bursar.selection import Candidates, ItemFeatures, Limit, Limits, PoolFeatures, Units, make_strategy, modifiers
from bursar.selection.modifiers import outliers
from bursar.tasks import Prices

TASKS = ("intent", "slots")


def units_of(rng, items, doubts=None):
    counts = rng.integers(1, 4, items)
    vectors = rng.normal(size=(int(counts.sum()), 5)).astype(np.float32)
    doubt = rng.random(len(vectors)) if doubts is None else np.repeat(doubts, counts)
    return Units(vectors, np.concatenate([[0], np.cumsum(counts)]), doubt)


def pool_of(seed, items, **features):
    rng = np.random.default_rng(seed)
    prices = Prices(TASKS, rng.integers(1, 9, items), rng.integers(1, 5, (items, 2)))
    known = ItemFeatures(units={task: units_of(rng, 4) for task in TASKS})
    ids = [f"u{n:04d}" for n in range(items)]
    return Candidates(ids, rng.random((items, 2)), prices, features=PoolFeatures(labelled=known, **features))


def with_units(pool, doubts):
    rng = np.random.default_rng(9)
    units = {task: units_of(rng, len(pool), doubts[:, at]) for at, task in enumerate(TASKS)}
    return replace(pool, features=replace(pool.features, units=units))


# -- COVER -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(3))
def test_covering_by_scores_is_covering_units_that_are_as_doubtful_as_the_scores(seed):
    pool = pool_of(seed, 60)
    average = np.repeat((1 - pool.confidence).mean(axis=1, keepdims=True), 2, axis=1)
    for name, same, doubts in (("MT-AVG", "COVER", average), ("UDJS", "COVER-LABELS", 1 - pool.confidence)):
        theirs = make_strategy(same).select(with_units(pool, doubts), 120, seed=1)
        other = np.where(doubts > 0, np.random.default_rng(seed).random(doubts.shape) + 0.1, 0.0)
        ours = make_strategy(f"{name}+COVER").select(with_units(pool, other), 120, seed=1)
        assert ours.items.tolist() == theirs.items.tolist()
        assert ours.tasks.tolist() == theirs.tasks.tolist()
        assert ours.certificate == theirs.certificate


def test_units_that_are_certain_stay_so_whatever_the_score():
    pool = with_units(pool_of(0, 20), np.zeros((20, 2)))
    chosen = make_strategy("MT-AVG+COVER").select(pool, 30)
    assert chosen.certificate.objective == 0
    assert chosen.items.tolist()[:2] == [0, 1]


def test_covering_by_scores_keeps_to_limits_and_asks_for_vectors():
    pool = with_units(pool_of(1, 40), np.full((40, 2), 0.5))
    one = Limit("labels of intent", np.tile([1.0, 0.0], (40, 1)), at_most=3)
    made = make_strategy("mt-avg+cover")
    assert made.name == "MT-AVG+COVER"
    assert made.keeps_limits
    assert made.asks == make_strategy("COVER").asks
    assert len(made.select(replace(pool, limits=Limits((one,))), 500)) == 3
    assert not make_strategy("UDJS+COVER").select(replace(pool, limits=Limits((one,))), 500).tasks.all()
    assert make_strategy("LONGEST+COVER").needs_model


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("MT-PAR+COVER", "MT-PAR gives no scores"),
        ("COVER+COVER", "COVER gives no scores"),
        ("MT-AVG+BLP_AL+COVER", "cannot both decide how to spend"),
        ("EQB-DJS+COVER", "cannot both decide how to spend"),
        ("MT-AVG+COVER+BLP_AL", "BLP_AL cannot spend"),
        ("RANDOM+GUARD", "uses no model"),
        ("LONGEST+GUARD", "uses no model"),
        ("MT-AVG+GARD", "COVER or GUARD"),
    ],
)
def test_what_does_not_go_together_is_refused(name, why):
    with pytest.raises(SelectionError, match=why):
        make_strategy(name)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -0.5])
@pytest.mark.parametrize("name", ["COVER", "COVER-LABELS", "MT-AVG+COVER", "COVER+GUARD"])
def test_a_doubt_or_a_place_that_is_not_a_number_is_refused_by_item_and_task(name, wrong):
    pool = with_units(pool_of(2, 10), np.full((10, 2), 0.5))
    slots = pool.features.units["slots"]
    at = int(slots.offsets[7])
    slots.doubt[at] = wrong
    with pytest.raises(SelectionError, match=r"'u0007'.*'slots'"):
        make_strategy(name).select(pool, 30)
    slots.doubt[at], slots.vectors[at, 2] = 0.5, np.nan
    with pytest.raises(SelectionError, match=r"'u0007'.*'slots'"):
        make_strategy(name).select(pool, 30)


# -- GUARD -----------------------------------------------------------------------------------------------------------
def plain_outliers(pool, features):
    """As it is defined, item by item."""
    apart = ((features[:, None] - features[None]) ** 2).sum(axis=2) + np.diag(np.full(len(pool), np.inf))
    nearest = apart.min(axis=1)
    found = set()
    for column in range(len(pool.tasks)):
        items = np.flatnonzero(pool.open[:, column])
        doubt = 1 - pool.confidence[items, column]
        count = int(0.02 * len(items))
        edge = sorted(doubt)[-count - 1]
        found |= {i for i, d in zip(items.tolist(), doubt, strict=True) if count and d > edge}
    return {item for item in found if nearest[item] > np.quantile(nearest, 0.75)}


@given(seed=st.integers(0, 10**6), items=st.integers(40, 260), part_open=st.booleans(), tied=st.booleans())
@settings(max_examples=40, deadline=None)
def test_outliers_are_the_most_doubtful_that_lie_far_from_all_others(seed, items, part_open, tied):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(items, 3)) * rng.choice([1, 4], items)[:, None]
    pool = pool_of(seed, items, vectors=features)
    confidence = np.round(pool.confidence, 1) if tied else pool.confidence
    open_ = rng.random((items, 2)) < 0.6 if part_open else pool.open
    pool = replace(pool, confidence=confidence, open=open_)
    assert set(np.flatnonzero(outliers(pool)).tolist()) == plain_outliers(pool, features)


def test_without_vectors_the_most_doubtful_are_left_out():
    pool = pool_of(3, 200)
    found = np.flatnonzero(outliers(pool))
    lowest = {int(item) for column in pool.confidence.T for item in np.argsort(column)[:4]}
    assert set(found.tolist()) == lowest
    assert set(np.flatnonzero(outliers(pool, "slots"))) == set(np.argsort(pool.confidence[:, 1])[:4])


def test_units_say_where_items_lie_and_one_without_any_is_not_far():
    confidence = np.full((100, 2), 0.9)
    confidence[[10, 20, 30], 0] = [0.1, 0.2, 0.3]  # the third is beyond two in a hundred
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(100, 4)).astype(np.float32)
    vectors[10] = 50
    intent = Units(vectors, np.arange(101), np.ones(100))
    none = Units(vectors[:0], np.zeros(101, dtype=np.int64), np.zeros(0))
    pool = replace(pool_of(0, 100, units={"intent": intent, "slots": none}), confidence=confidence)
    assert np.flatnonzero(outliers(pool)).tolist() == [10]
    nowhere = replace(pool, features=replace(pool.features, units={"intent": none, "slots": none}))
    assert not outliers(nowhere).any()


def test_a_sample_of_a_large_pool_says_what_is_far(monkeypatch):
    rng = np.random.default_rng(1)
    features = rng.normal(size=(3000, 4))
    features[100] = 30
    pool = pool_of(0, 3000, vectors=features)
    confidence = pool.confidence.copy()
    confidence[100, 0] = 0
    monkeypatch.setattr(modifiers, "NEIGHBOURS", 300)
    monkeypatch.setattr(modifiers, "AT_ONCE", 7)
    assert outliers(replace(pool, confidence=confidence))[100]


def test_a_task_with_one_class_and_a_small_pool_have_no_outliers():
    assert not outliers(replace(pool_of(0, 200), confidence=np.ones((200, 2)))).any()
    assert not outliers(pool_of(0, 49)).any()


GUARDED = ("MT-AVG", "MT-MIN+BLP_AL", "UDJS", "COVER", "COVER-LABELS", "MT-AVG+COVER", "MT-EC-slots", "BALD+IDMR")


@pytest.mark.parametrize("name", GUARDED)
def test_a_guarded_strategy_chooses_as_if_outliers_were_not_there(name):
    words = np.random.default_rng(0).integers(1, 20, 300)
    pool = pool_of(5, 300, words=words, units={task: units_of(np.random.default_rng(7), 300) for task in TASKS})
    pool = replace(pool, features=replace(pool.features, labelled=replace(pool.features.labelled, words=words[:9])))
    made = make_strategy(f"{name}+GUARD")
    outside = outliers(pool, made.task)
    assert outside.any()
    kept = np.flatnonzero(~outside)
    plain = make_strategy(name).select(pool.take(kept), 150, seed=2)
    ours = made.select(pool, 150, seed=2)
    assert ours.items.tolist() == kept[plain.items].tolist()
    assert ours.tasks.tolist() == plain.tasks.tolist()
    shuffled = pool.take(np.random.default_rng(1).permutation(300))
    again = made.select(shuffled, 150, seed=2)
    assert [shuffled.ids[at] for at in again.items] == [pool.ids[at] for at in ours.items]


def test_limits_are_kept_by_what_is_left():
    pool = pool_of(6, 200)
    outside = outliers(pool)
    wanted = np.zeros((200, 2))
    wanted[outside] = 1
    limit = Limit("labels of outliers", wanted, at_least=2)
    with pytest.raises(InfeasibleError, match="labels of outliers"):
        make_strategy("MT-AVG+GUARD").select(replace(pool, limits=Limits((limit,))), 500)
