"""Input matching, against Algorithm 2 of paper 4 written out."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.errors import SelectionError
from bursar.selection import GroupCap, ItemFeatures, Limit, Limits, PoolFeatures, average, make_strategy
from bursar.selection.modifiers import Bins, bin_surplus, bins_of, by_cluster, by_length
from bursar.selection.spend.knapsack import Menu
from tests.selection.plain import best_of_all, random_pool

seeds = st.integers(0, 10**6)
SHARES = (Fraction,)


def algorithm_2(ranking, bins, labelled, reference, price, budget, share):
    """Paper 4, section 6.5, with the fallback of errata 28.

    The acquisition function is the first affordable item of a ranking; a distribution is counts over their sum.
    """
    unlabelled, labelled, chosen = list(ranking), list(labelled), []

    def distribution(items):
        counts = [items.count(b) for b in range(max(reference) + 1)]
        return [share(count, max(1, len(items))) for count in counts]

    d_ref = distribution(list(reference))
    while True:
        d_cur = distribution(labelled)
        missing = [cur - ref for cur, ref in zip(d_cur, d_ref, strict=True)]
        for b in sorted(range(len(missing)), key=lambda b: missing[b]):
            in_bin = [x for x in unlabelled if bins[x] == b and price[x] <= budget]
            if in_bin:
                break
        else:
            return chosen
        chosen.append(in_bin[0])
        unlabelled.remove(in_bin[0])
        labelled.append(b)
        budget -= price[in_bin[0]]


def random_bins(rng, pool, labelled, aside, many=4):
    """Bins of the pool, of what is labelled and of what is aside."""
    return rng.integers(0, many, pool), rng.integers(0, many, labelled), rng.integers(0, many, aside)


# -- taking from bins ------------------------------------------------------------------------------------------------
@given(seed=seeds, pool=st.integers(1, 25), labelled=st.integers(0, 8), aside=st.integers(0, 8))
@settings(max_examples=250, deadline=None)
def test_items_are_taken_as_algorithm_2_takes_them(seed, pool, labelled, aside):
    rng = np.random.default_rng(seed)
    parts = random_bins(rng, pool, labelled, aside)
    ranking, price = rng.permutation(pool), rng.integers(0, 6, pool)
    budget = int(rng.integers(0, 60))
    taken = Bins.of(*parts).pick(ranking, price, budget)
    everything = np.concatenate(parts).tolist()
    written_out = (
        algorithm_2(ranking, parts[0], parts[1].tolist(), everything, price, budget, share) for share in SHARES
    )
    assert taken.tolist() in written_out


@given(seed=seeds)
@settings(max_examples=100, deadline=None)
def test_the_bin_that_is_taken_from_lacks_most_of_those_that_can_give(seed):
    """In fractions, so that it does not hang on the last digit."""
    rng = np.random.default_rng(seed)
    parts = random_bins(rng, 20, 5, 3)
    bins = Bins.of(*parts)
    reference, price, left = bins.total, rng.integers(1, 6, 20), 30
    counts, rest = bins.labelled.copy(), set(range(20))
    for item in bins.pick(rng.permutation(20), price, left).tolist():
        short = {
            b: Fraction(int(counts[b]), max(1, int(counts.sum()))) - Fraction(int(reference[b]), int(reference.sum()))
            for b in {int(parts[0][x]) for x in rest if price[x] <= left}
        }
        assert short[int(parts[0][item])] == min(short.values())
        counts[parts[0][item]] += 1
        rest.remove(item)
        left -= price[item]
    assert all(price[x] > left for x in rest)


@pytest.mark.parametrize(
    ("current", "reference", "expected"),
    [
        ([3, 1], [2, 8], [0.75 - 0.2, 0.25 - 0.8]),
        ([0, 0], [2, 8], [-0.2, -0.8]),  # nothing is labelled yet
        ([1, 3, 4], [2, 6, 8], [0, 0, 0]),
    ],
)
def test_what_is_lacking_goes_by_the_share_labelled_less_the_share_of_all(current, reference, expected):
    """In any unit."""
    found = bin_surplus(np.array(current), np.array(reference))
    np.testing.assert_allclose(found * np.abs(expected).max(), np.array(expected) * np.abs(found).max(), atol=1e-12)
    np.testing.assert_array_equal(np.sign(found), np.sign(expected))


def test_the_reference_counts_pool_labelled_and_aside():
    found = Bins.of(np.array([0, 0, 2]), np.array([1]), np.array([3, 0]))
    assert found.labelled.tolist() == [0, 1, 0, 0]
    assert found.total.tolist() == [3, 1, 1, 1]


def test_a_large_matched_selection_has_the_distribution_of_the_pool():
    rng = np.random.default_rng(0)
    bins = rng.choice(4, 2000, p=[0.5, 0.3, 0.15, 0.05])
    labelled = np.full(30, 3)  # as far off as can be
    counted = Bins.of(bins, labelled, bins[:0])
    taken = counted.pick(rng.permutation(2000), np.ones(2000, dtype=np.int64), 600)
    counts = counted.labelled + np.bincount(bins[taken], minlength=4)
    expected = 630 * counted.total / counted.total.sum()
    # One at a time to the bin that lacks most: no bin is off by more than an item a bin.
    assert (np.abs(counts - expected) <= 4).all()


# -- into bins -------------------------------------------------------------------------------------------------------
@given(seed=seeds, count=st.integers(1, 7), sizes=st.tuples(st.integers(0, 30), st.integers(0, 9), st.integers(0, 9)))
@settings(max_examples=150, deadline=None)
def test_bins_by_length_are_in_order_and_items_of_one_length_share_one(seed, count, sizes):
    rng = np.random.default_rng(seed)
    words = [rng.integers(1, 12, size) for size in sizes]
    bins = by_length(words, count)
    assert [len(part) for part in bins] == list(sizes)
    length, bin_ = np.concatenate(words), np.concatenate(bins)
    order = np.argsort(length, kind="stable")
    assert (np.diff(bin_[order]) >= 0).all()
    assert all(len(set(bin_[length == n].tolist())) == 1 for n in length)
    assert not len(bin_) or 0 <= bin_.min() <= bin_.max() < count


@pytest.mark.parametrize(("items", "count"), [(100, 5), (103, 5), (40, 7), (9, 2)])
def test_bins_by_length_hold_about_equally_many(items, count):
    words = np.random.default_rng(items).permutation(items)
    sizes = np.bincount(np.concatenate(by_length([words[:30], words[30:]], count)), minlength=count)
    assert len(sizes) == count
    assert sizes.max() - sizes.min() <= 1


def test_bins_by_cluster_keep_what_is_together_together():
    rng = np.random.default_rng(1)
    centres = 100 * np.eye(4)
    of = [rng.integers(0, 4, size) for size in (60, 10, 10)]
    bins = by_cluster([centres[part] + rng.normal(size=(len(part), 4)) for part in of], 4)
    pairs = set(zip(np.concatenate(of).tolist(), np.concatenate(bins).tolist(), strict=True))
    assert [len(part) for part in bins] == [60, 10, 10]
    assert len(pairs) == len({of for of, _ in pairs}) == len({bin_ for _, bin_ in pairs}) == 4


def test_an_item_has_the_same_cluster_before_and_after_it_is_labelled():
    rng = np.random.default_rng(2)
    items = rng.normal(size=(80, 3))
    before = by_cluster([items[:60], items[60:70], items[70:]], 4)
    after = by_cluster([items[:50], items[[*range(60, 70), *range(50, 60)]], items[70:]], 4)
    assert after[0].tolist() == before[0][:50].tolist()
    assert after[1].tolist() == [*before[1], *before[0][50:]]
    assert after[2].tolist() == before[2].tolist()


def test_there_are_no_more_clusters_than_items():
    bins = by_cluster([np.eye(2), np.zeros((0, 2)), np.zeros((0, 2))], 5)
    assert sorted(bins[0].tolist()) == [0, 1]
    assert [len(part) for part in by_cluster([np.zeros((0, 2))] * 3, 5)] == [0, 0, 0]


def test_bins_by_label_are_the_labels_of_one_task_and_one_for_none():
    features = PoolFeatures(
        labels=np.array([[0, 1], [2, -1], [1, 1]]), labelled=ItemFeatures(labels=np.array([[2, 0]]))
    )
    pool, labelled, aside = bins_of(features, "label:slots", ("intent", "slots"))
    assert pool.tolist() == [2, 0, 2]
    assert labelled.tolist() == [1]
    assert len(aside) == 0
    assert bins_of(features, "label:intent", ("intent", "slots"))[0].tolist() == [1, 3, 2]


def test_bins_by_a_function_are_what_it_says():
    features = PoolFeatures(
        words=np.array([3, 4, 5]), labelled=ItemFeatures(words=np.array([7])), aside=ItemFeatures(words=np.array([8]))
    )
    found = bins_of(features, lambda features: features.words % 2, ("intent",))
    assert [part.tolist() for part in found] == [[1, 0, 1], [1], [0]]


def test_what_cannot_be_put_into_bins_is_said():
    features = PoolFeatures(words=np.array([3, 4]))
    with pytest.raises(SelectionError, match=r"by 'colour'\. Fix: use length, cluster or label:intent or label:slots"):
        bins_of(features, "colour", ("intent", "slots"))
    with pytest.raises(SelectionError, match="by 'label:tree'"):
        bins_of(features, "label:tree", ("intent", "slots"))
    with pytest.raises(SelectionError, match="a bin has a negative number"):
        bins_of(features, lambda features: np.array([0, -1]), ("intent",))
    with pytest.raises(SelectionError, match="needs the feature 'vectors'"):
        bins_of(features, "cluster", ("intent",))
    with pytest.raises(SelectionError, match="needs the feature 'words'"):
        bins_of(PoolFeatures(), "length", ("intent",))


# -- around strategies -----------------------------------------------------------------------------------------------
def features_of(rng, items):
    return {"words": rng.integers(1, 20, items), "labels": rng.integers(-1, 3, (items, 2))}


def pool_with_features(seed, items=30, dearest=6):
    rng = np.random.default_rng(seed)
    pool = random_pool(rng, items, 2, dearest)
    features = PoolFeatures(
        **features_of(rng, items),
        labelled=ItemFeatures(**features_of(rng, 7)),
        aside=ItemFeatures(**features_of(rng, 5)),
    )
    return replace(pool, features=features)


def taken_by_algorithm_2(pool, bins, score, budget, price=None):
    """What it takes by each way to reckon shares."""
    price = pool.prices.joint() if price is None else price
    ranking = sorted(range(len(pool)), key=lambda item: (-score[item], item))
    labelled, everything = bins[1].tolist(), np.concatenate(bins).tolist()
    return [algorithm_2(ranking, bins[0], labelled, everything, price, budget, share) for share in SHARES]


BINS = {
    "length": lambda features: by_length([features.words, features.labelled.words, features.aside.words], 5),
    "label:slots": lambda features: [f.labels[:, 1] + 1 for f in (features, features.labelled, features.aside)],
}


@pytest.mark.parametrize("by", BINS)
@pytest.mark.parametrize("name", ["MT-AVG", "MAX-ENT", "MIN-CONF"])
def test_a_matched_greedy_strategy_takes_what_algorithm_2_takes(name, by):
    for seed in range(8):
        pool = pool_with_features(seed)
        score, bins = 1 - average(pool.confidence), BINS[by](pool.features)
        selection = make_strategy(f"{name}+IDMR", bins=by).select(pool, 60)
        assert selection.items.tolist() in taken_by_algorithm_2(pool, bins, score, 60)
        assert selection.tasks.all()
        assert selection.certificate.objective == pytest.approx(score[selection.items].sum())


def test_algorithm_2_takes_no_item_that_is_labelled_for_some_task():
    for seed in range(8):
        pool = pool_with_features(seed)
        pool = replace(pool, open=np.random.default_rng(seed).random((30, 2)) < 0.7)
        bins, never = BINS["length"](pool.features), np.where(pool.open.all(axis=1), pool.prices.joint(), 10**6)
        selection = make_strategy("MT-AVG+IDMR").select(pool, 60)
        score = 1 - average(pool.confidence)
        assert selection.items.tolist() in taken_by_algorithm_2(pool, bins, score, 60, price=never)


def test_bins_by_a_function_and_their_number_reach_the_strategy():
    pool = pool_with_features(1)
    score = 1 - average(pool.confidence)
    parts = (pool.features, pool.features.labelled, pool.features.aside)
    odd = [part.words % 2 for part in parts]
    made = make_strategy("MT-AVG+IDMR", bins=lambda features: features.words % 2)
    assert made.select(pool, 60).items.tolist() in taken_by_algorithm_2(pool, odd, score, 60)
    three = by_length([part.words for part in parts], 3)
    made = make_strategy("MT-AVG+IDMR", bin_count=3)
    assert made.select(pool, 60).items.tolist() in taken_by_algorithm_2(pool, three, score, 60)


@pytest.mark.parametrize("name", ["MT-AVG+BLP_AL", "MT-AVG+RATIO_AL", "UDJS+BLP_AL"])
def test_exact_spending_is_matched_by_so_many_items_a_bin(name):
    """The counts are those that Algorithm 2 would take by value per cost; within them spending is exact."""
    for seed in range(8):
        pool = pool_with_features(seed, items=6)
        doubt, bins = 1 - pool.confidence, BINS["length"](pool.features)
        disjoint = name.startswith("UDJS")
        score = doubt.sum(axis=1) if disjoint else doubt.mean(axis=1)
        with np.errstate(divide="ignore"):
            per_cost = score / pool.prices.joint()
        selection = make_strategy(f"{name}+IDMR").select(pool, 30)
        counts = np.bincount(bins[0][selection.items], minlength=5)
        quotas = [np.bincount(bins[0][taken], minlength=5) for taken in taken_by_algorithm_2(pool, bins, per_cost, 30)]
        kept = [quota for quota in quotas if (counts <= quota).all()]
        assert kept
        if name.endswith("BLP_AL"):
            menu = (
                Menu(doubt, pool.prices.reading, pool.prices.own)
                if disjoint
                else Menu(score[:, None], 0 * pool.prices.reading, pool.prices.joint()[:, None])
            )
            able = np.ones(menu.value.shape, dtype=bool)
            best = [best_of_all(menu, able, 30, Limits((), GroupCap(bins[0], quota))) for quota in kept]
            assert selection.certificate.optimal
            assert np.isclose(selection.certificate.objective, best, rtol=0, atol=1e-9).any()


@pytest.mark.parametrize("name", ["RANDOM", "MT-PAR", "MT-IND"])
def test_a_strategy_without_scores_takes_as_many_items_of_each_bin(name):
    """Where every item costs the same, what it takes of a bin is what Algorithm 2 takes of it."""
    for seed in range(8):
        pool = pool_with_features(seed)
        bins = BINS["length"](pool.features)
        likely = taken_by_algorithm_2(pool, bins, np.zeros(30), 11, price=np.ones(30, dtype=np.int64))
        selection = make_strategy(f"{name}+IDMR").select(pool, 11, seed=seed, in_items=True)
        assert len(selection) == 11
        counts = np.bincount(bins[0][selection.items], minlength=5)
        assert counts.tolist() in [np.bincount(bins[0][taken], minlength=5).tolist() for taken in likely]


def test_a_matched_strategy_keeps_to_limits_on_labels():
    pool = pool_with_features(3)
    limits = Limits([Limit("labels", np.ones((30, 2)), at_most=6.0)])
    for name in ("MT-AVG+IDMR", "MT-AVG+BLP_AL+IDMR", "UDJS+BLP_AL+IDMR"):
        selection = make_strategy(name).select(replace(pool, limits=limits), 200)
        assert 0 < selection.tasks.sum() <= 6


def test_bins_and_other_groups_cannot_both_be_kept_to():
    pool = replace(pool_with_features(4), limits=Limits((), GroupCap.of(np.arange(30) % 3, 2)))
    with pytest.raises(SelectionError, match="cannot be combined with another group cap"):
        make_strategy("MT-AVG+BLP_AL+IDMR").select(pool, 100)
