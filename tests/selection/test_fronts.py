"""Pareto fronts, against the definition point by point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.selection import combine as fronts_module
from bursar.selection.combine import factors, fronts, thin_front

seeds = st.integers(0, 10**6)


def random_confidence(seed, items, tasks):
    """Of one in three, many points are equal in some tasks or in all; of one in three, some are 0."""
    rng = np.random.default_rng(seed)
    confidence = rng.random((items, tasks))
    if seed % 3 == 0:
        confidence = np.round(confidence * 3) / 3
    if seed % 3 == 1:
        confidence[rng.random((items, tasks)) < 0.2] = 0.0
    return confidence


def dominates(x, y, factor):
    """Errata 5 and 6: nowhere more confident than the factor allows and somewhere less."""
    return all(a <= f * b for a, b, f in zip(x, y, factor, strict=True)) and any(
        a < f * b for a, b, f in zip(x, y, factor, strict=True)
    )


def fronts_by_definition(points, factor):
    rest, found = list(range(len(points))), []
    while rest:
        front = [y for y in rest if not any(dominates(points[x], points[y], factor) for x in rest)]
        found.append(front)
        rest = [y for y in rest if y not in front]
    return found


def factors_by_definition(confidence, weights):
    """The quantile of a lighter task's confidence at its weight; 1 for the heaviest; ``None`` leaves a task out."""
    weights = np.array(weights) / np.sum(weights)
    return [
        1.0
        if weight == weights.max()
        else None
        if weight == 0
        else max(float(np.quantile(confidence[:, task], weight)), np.finfo(float).tiny)
        for task, weight in enumerate(weights)
    ]


# -- the plain rule --------------------------------------------------------------------------------------------------
@given(seed=seeds, items=st.integers(0, 40), tasks=st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_fronts_are_those_of_the_definition(seed, items, tasks):
    points = random_confidence(seed, items, tasks)
    found = [front.tolist() for front in fronts(points)]
    assert found == fronts_by_definition(points.tolist(), [1.0] * tasks)


@given(seed=seeds, tasks=st.integers(1, 3), look=st.sampled_from([0.005, 0.1, 0.5]), fewest=st.sampled_from([1, 2, 8]))
@settings(max_examples=60, deadline=None)
def test_looking_at_the_front_of_the_pool_only_changes_nothing(seed, tasks, look, fewest):
    points = random_confidence(seed, 70, tasks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fronts_module, "FIRST_SHARE", look)
        patch.setattr(fronts_module, "FEWEST_FRONTS", fewest)
        found = [front.tolist() for front in fronts(points)]
    assert found == fronts_by_definition(points.tolist(), [1.0] * tasks)


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_the_fronts_of_a_large_pool_are_right_one_by_one(tasks):
    points = np.random.default_rng(tasks).random((5000, tasks))
    if tasks == 2:
        points = np.round(points, 2)
    rest = np.ones(5000, dtype=bool)
    for number, front in enumerate(fronts(points)):
        inside = points[front]
        for y in inside[:200]:  # no other point dominates a point of the front
            others = points[rest]
            assert not ((others <= y).all(axis=1) & (others < y).any(axis=1)).any()
        rest[front] = False
        for y in points[rest][:200]:  # and every other point is dominated by one of the front
            assert ((inside <= y).all(axis=1) & (inside < y).any(axis=1)).any()
        if number == 5:
            break


def test_every_point_is_on_one_front():
    for seed in range(6):
        points = random_confidence(seed, 300, 2)
        assert sorted(np.concatenate(list(fronts(points))).tolist()) == list(range(300))
        weighted = np.concatenate(list(fronts(points, np.array([0.3, 0.7]))))
        assert sorted(weighted.tolist()) == list(range(300))


def test_equal_points_share_a_front():
    points = np.array([[0.2, 0.5], [0.5, 0.2], [0.2, 0.5], [0.2, 0.6], [0.5, 0.2]])
    assert [front.tolist() for front in fronts(points)] == [[0, 1, 2, 4], [3]]
    assert [front.tolist() for front in fronts(np.full((4, 3), 0.3))] == [[0, 1, 2, 3]]


def test_the_fronts_of_one_task_are_its_values_from_the_lowest_up():
    points = np.array([[0.5], [0.1], [0.9], [0.1], [0.5]])
    assert [front.tolist() for front in fronts(points)] == [[1, 3], [0, 4], [2]]


# -- the weighted rule (errata 6) ------------------------------------------------------------------------------------
WEIGHTS = {2: [(0.3, 0.7), (0.9, 0.1), (0.05, 0.95)], 3: [(0.2, 0.3, 0.5), (0.4, 0.4, 0.2), (0.1, 0.8, 0.1)]}


@given(seed=seeds, items=st.integers(1, 30), tasks=st.sampled_from([2, 3]), which=st.integers(0, 2))
@settings(max_examples=150, deadline=None)
def test_weighted_fronts_are_those_of_the_definition(seed, items, tasks, which):
    points, weights = random_confidence(seed, items, tasks), WEIGHTS[tasks][which]
    factor = factors_by_definition(points, weights)
    found = [front.tolist() for front in fronts(points, np.array(weights))]
    assert found == fronts_by_definition(points.tolist(), factor)


@given(seed=seeds, tasks=st.sampled_from([2, 3]), which=st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_the_weighted_rule_is_a_strict_partial_order(seed, tasks, which):
    points, weights = random_confidence(seed, 16, tasks), np.array(WEIGHTS[tasks][which])
    factor = factors(points, weights)
    above = np.array([[dominates(x, y, factor) for y in points] for x in points])
    assert not above.diagonal().any()
    assert not (above & above.T).any()
    reached = (above.astype(int) @ above.astype(int)) > 0
    assert not (reached & ~above).any()


def test_a_lighter_task_counts_by_the_quantile_at_its_weight():
    points = np.array([[0.1, 0.2], [0.4, 0.6], [0.6, 0.8], [0.9, 1.0]])
    # The first task weighs a third: 0.1, 0.4, 0.6 and 0.9 have the quantile 0.4 there.
    np.testing.assert_allclose(factors(points, np.array([1.0, 2.0])), [0.4, 1.0])
    # So the first point dominates all that have 0.4 · c ≥ 0.1 there, and no other point dominates: 0.4 · 0.9 < 0.4.
    assert [front.tolist() for front in fronts(points, np.array([1.0, 2.0]))] == [[0], [1, 2, 3]]


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_equal_weights_are_the_plain_rule(tasks):
    for seed in range(9):
        points = random_confidence(seed, 40, tasks)
        plain, weighted = fronts(points), fronts(points, np.full(tasks, 1 / tasks))
        assert [front.tolist() for front in plain] == [front.tolist() for front in weighted]


def test_a_weight_of_0_leaves_the_task_out():
    for seed in range(9):
        points = random_confidence(seed, 40, 3)
        found = [front.tolist() for front in fronts(points, np.array([0.4, 0.0, 0.6]))]
        assert found == [front.tolist() for front in fronts(points[:, [0, 2]], np.array([0.4, 0.6]))]
        found = [front.tolist() for front in fronts(points, np.array([0.0, 1.0, 0.0]))]
        assert found == [front.tolist() for front in fronts(points[:, [1]])]


def test_a_lighter_task_enlarges_the_first_front():
    """Paper 1, section 6.1: fewer meet the condition, so the frontier includes more."""
    for seed in range(9):
        points = random_confidence(seed, 200, 2)
        plain, weighted = next(fronts(points)), next(fronts(points, np.array([0.2, 0.8])))
        assert set(plain.tolist()) <= set(weighted.tolist())


# -- thinning (errata 5) ---------------------------------------------------------------------------------------------
@given(seed=seeds, size=st.integers(1, 30), wanted=st.integers(0, 35))
@settings(max_examples=200, deadline=None)
def test_a_front_is_thinned_to_every_so_manieth_point_along_the_first_task(seed, size, wanted):
    rng = np.random.default_rng(seed)
    first_task = np.round(rng.random(50), 1)
    front = np.sort(rng.permutation(50)[:size])
    ordered = sorted(front.tolist(), key=lambda item: (first_task[item], item))
    found = thin_front(front, first_task, wanted).tolist()
    assert sorted(found) == front.tolist()
    if 0 < wanted < size:
        picked = ordered[:: size // wanted][:wanted]
        assert len(picked) == wanted
        assert found == picked + [item for item in ordered if item not in picked]
    else:
        assert found == ordered
