"""Several confidences to one number, against the formulas of the paper."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.errors import SelectionError
from bursar.selection import Candidates, average, make_strategy, reciprocal_rank_fusion
from bursar.selection.combine import maximum, minimum, shares
from bursar.tasks import Prices

seeds = st.integers(0, 10**6)


def random_confidence(seed, items=12, tasks=3, tied=True):
    confidence = np.random.default_rng(seed).random((items, tasks))
    return np.round(confidence * 4) / 4 if tied else confidence


# -- average, maximum, minimum ---------------------------------------------------------------------------------------
def test_the_three_aggregations_are_those_of_the_paper():
    confidence = np.array([[0.2, 0.6], [0.9, 0.1]])
    np.testing.assert_allclose(average(confidence), [0.4, 0.5])
    assert maximum(confidence).tolist() == [0.6, 0.9]
    assert minimum(confidence).tolist() == [0.2, 0.1]


def test_a_weighted_average_is_that_of_section_6():
    confidence = np.array([[0.2, 0.6], [0.9, 0.1]])
    for beta in (0.0, 0.1, 0.5, 0.75, 1.0):
        expected = beta * confidence[:, 0] + (1 - beta) * confidence[:, 1]
        np.testing.assert_allclose(average(confidence, np.array([beta, 1 - beta])), expected)


@pytest.mark.parametrize(
    ("name", "combined"), [("MT-AVG", average), ("MT-MAX", maximum), ("MT-MIN", minimum)], ids=["avg", "max", "min"]
)
def test_the_score_of_an_item_is_what_its_combined_confidence_lacks(name, combined):
    confidence = random_confidence(0)
    prices = Prices(tuple("abc"), np.ones(12, dtype=np.int64), np.ones((12, 3), dtype=np.int64))
    pool = Candidates([f"u{n:02d}" for n in range(12)], confidence, prices)
    np.testing.assert_allclose(make_strategy(name).value(pool), 1 - combined(confidence))


@pytest.mark.parametrize("name", ["MT-MAX", "MT-MIN"])
def test_weights_are_refused_where_one_task_would_decide(name):
    with pytest.raises(SelectionError, match=rf"{name} takes no weights\. Fix: use MT-AVG, MT-RRF"):
        make_strategy(name, weights={"a": 0.3, "b": 0.7})


# -- reciprocal rank fusion ------------------------------------------------------------------------------------------
def fused_by_formula(confidence, weights, k):
    items, tasks = confidence.shape
    scores = []
    for x in range(items):
        score = 0.0
        for i in range(tasks):
            before = [y for y in range(items) if (confidence[y, i], y) < (confidence[x, i], x)]  # ties by position
            score += weights[i] / (k + 1 + len(before))
        scores.append(score)
    return scores


@given(seed=seeds, items=st.integers(0, 15), tasks=st.integers(1, 4), k=st.sampled_from([0, 1, 60]))
@settings(max_examples=150, deadline=None)
def test_rank_fusion_is_the_sum_of_reciprocal_ranks(seed, items, tasks, k):
    confidence = random_confidence(seed, items, tasks, tied=bool(seed % 2))
    weights = np.random.default_rng(seed).dirichlet(np.ones(tasks))
    np.testing.assert_allclose(reciprocal_rank_fusion(confidence, weights, k), fused_by_formula(confidence, weights, k))
    alike = fused_by_formula(confidence, np.ones(tasks), k)
    np.testing.assert_allclose(reciprocal_rank_fusion(confidence, k=k), alike)


def test_rank_fusion_is_offset_by_60_as_in_the_paper():
    np.testing.assert_allclose(reciprocal_rank_fusion(np.array([[0.3], [0.1], [0.2]])), [1 / 63, 1 / 61, 1 / 62])


def test_a_task_without_weight_does_not_count():
    confidence = random_confidence(1)
    for combined in (average, reciprocal_rank_fusion):
        found = combined(confidence, np.array([0.25, 0.0, 0.75]))
        np.testing.assert_allclose(found, combined(confidence[:, [0, 2]], np.array([0.25, 0.75])))


def test_rank_fusion_looks_at_ranks_alone():
    confidence = random_confidence(2, tied=False)
    np.testing.assert_array_equal(reciprocal_rank_fusion(confidence), reciprocal_rank_fusion(confidence**3 / 7))


# -- shares ----------------------------------------------------------------------------------------------------------
@given(total=st.integers(0, 10**9), weights=st.lists(st.integers(0, 100), min_size=1, max_size=6).filter(any))
@settings(max_examples=250, deadline=None)
def test_shares_add_up_and_are_off_by_less_than_one(total, weights):
    parts = shares(total, np.array(weights, dtype=float)).tolist()
    assert sum(parts) == total
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part - Fraction(total * weight, sum(weights))) < 1


@given(total=st.integers(0, 1000), weights=st.lists(st.integers(0, 100), min_size=1, max_size=6).filter(any))
@settings(max_examples=250, deadline=None)
def test_shares_go_by_the_largest_remainder(total, weights):
    parts = shares(total, np.array(weights, dtype=float)).tolist()
    exact = [Fraction(total * weight, sum(weights)) for weight in weights]
    up = [e - int(e) for part, e in zip(parts, exact, strict=True) if part > e]
    down = [e - int(e) for part, e in zip(parts, exact, strict=True) if part <= e]
    assert not up or not down or min(up) >= max(down)


@given(total=st.integers(0, 1000), tasks=st.integers(1, 7))
def test_what_equal_shares_leave_over_goes_to_the_first(total, tasks):
    each, over = divmod(total, tasks)
    assert shares(total, np.full(tasks, 1 / tasks)).tolist() == [each + (task < over) for task in range(tasks)]


def test_weights_that_are_no_exact_fractions_do_not_lose_a_unit():
    # 0.1 + 0.2 is not 0.3 in floating point: 10 split 1 : 2 : 7 must still be 1, 2 and 7.
    assert shares(10, np.array([0.1, 0.2, 0.7])).tolist() == [1, 2, 7]
    assert shares(1000, np.array([0.3, 0.6, 0.1])).tolist() == [300, 600, 100]
