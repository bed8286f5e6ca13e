"""Confidence is a function of an item's own probabilities and nothing else."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.errors import SelectionError
from bursar.ragged import offsets_of
from bursar.tasks import Beliefs, Estimates
from bursar.uncertainty import MEASURES, dropout_agreement, entropy_confidence


def ragged_beliefs(rng, items, passes=1):
    """Units with different numbers of choices, as heads of words have."""
    units = rng.integers(0, 5, items)
    widths = rng.integers(1, 6, int(units.sum()))
    parts = [[rng.dirichlet(np.ones(w)) for w in widths] for _ in range(passes)]
    values = np.array([np.concatenate([*p, []]) for p in parts], dtype=np.float32)
    return Beliefs(values, offsets_of(widths), offsets_of(units))


def plain_entropy(beliefs):
    found = []
    for item in range(len(beliefs)):
        unit_entropies = []
        for unit in range(beliefs.offsets[item], beliefs.offsets[item + 1]):
            p = beliefs.values[:, beliefs.choices[unit] : beliefs.choices[unit + 1]].astype(float).mean(axis=0)
            h = -sum(x * math.log(x) for x in p if x > 0)
            unit_entropies.append(h / math.log(len(p)) if len(p) > 1 else 0.0)
        found.append(1 - sum(unit_entropies) / len(unit_entropies) if unit_entropies else 1.0)
    return found


def plain_agreement(beliefs):
    """Paper 1, eq. 3, pair by pair."""
    k = beliefs.passes
    found = []
    for item in range(len(beliefs)):
        shares = []
        for unit in range(beliefs.offsets[item], beliefs.offsets[item + 1]):
            votes = beliefs.values[:, beliefs.choices[unit] : beliefs.choices[unit + 1]].argmax(axis=1)
            shares.append(sum(votes[a] == votes[b] for a, b in permutations(range(k), 2)) / (k * (k - 1)))
        found.append(sum(shares) / len(shares) if shares else 1.0)
    return found


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_entropy_confidence_equals_the_formula_unit_by_unit(seed):
    beliefs = ragged_beliefs(np.random.default_rng(seed), 7)
    np.testing.assert_allclose(entropy_confidence(beliefs), plain_entropy(beliefs), atol=1e-6)


@given(st.integers(0, 10**6), st.integers(2, 6))
@settings(max_examples=60, deadline=None)
def test_dropout_agreement_equals_the_loop_over_pairs(seed, passes):
    beliefs = ragged_beliefs(np.random.default_rng(seed), 7, passes)
    np.testing.assert_allclose(dropout_agreement(beliefs), plain_agreement(beliefs), atol=1e-9)


@pytest.mark.parametrize("name", list(MEASURES))
def test_every_measure_stays_between_0_and_1(name):
    beliefs = ragged_beliefs(np.random.default_rng(1), 200, passes=4)
    confidence = MEASURES[name](beliefs)
    assert ((confidence >= 0) & (confidence <= 1)).all()


@pytest.mark.parametrize("name", list(MEASURES))
def test_an_items_score_does_not_depend_on_its_neighbours(name):
    rng = np.random.default_rng(2)
    many = ragged_beliefs(rng, 50, passes=3)
    whole = MEASURES[name](many)
    for item in range(len(many)):
        a, b = many.offsets[item], many.offsets[item + 1]
        low, high = many.choices[a], many.choices[b]
        alone = Beliefs(many.values[:, low:high], many.choices[a : b + 1] - low, offsets_of([b - a]))
        assert MEASURES[name](alone)[0] == whole[item]


def test_certainty_is_1_and_no_idea_is_0():
    beliefs = Beliefs.of([[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]], units=[1, 1])
    np.testing.assert_allclose(entropy_confidence(beliefs), [1, 0], atol=1e-6)


def test_an_item_without_units_is_certain():
    assert entropy_confidence(Beliefs.of(np.zeros((0, 3)), units=[0, 0])).tolist() == [1, 1]


def test_a_word_with_one_possible_head_is_certain():
    assert entropy_confidence(Beliefs(np.ones((1, 1), np.float32), offsets_of([1]), offsets_of([1]))).tolist() == [1]


SINGLE = [Beliefs.of([[0.5, 0.5]], units=[1]), Estimates(np.zeros((1, 2)), np.ones((1, 2)), 0, 1)]


@pytest.mark.parametrize("beliefs", SINGLE)
def test_agreement_of_a_single_pass_is_refused_with_a_way_out(beliefs):
    with pytest.raises(SelectionError, match=r"two stochastic passes.*Fix: .*passes=10"):
        dropout_agreement(beliefs)


# -- numbers ---------------------------------------------------------------------------------------------------------
def estimates(rng, items, passes, low=-2.0, high=3.0):
    return Estimates(rng.uniform(low, high, (passes, items)), rng.uniform(0, 2, (passes, items)), low, high)


def alike(mean, variance, passes=1, low=0.0, high=1.0):
    """One number of which every pass believes the same."""
    return Estimates(np.full((passes, 1), mean), np.full((passes, 1), variance), low, high)


@given(
    st.lists(st.floats(-2, 3, width=32), min_size=2, max_size=12),
    st.floats(-1, 1),
)
@settings(max_examples=200, deadline=None)
def test_agreement_of_numbers_equals_the_loop_over_pairs(means, shift):
    """The shift makes numbers that are no neat fractions."""
    numbers = [mean + shift for mean in means]
    pairs = list(combinations(numbers, 2))
    expected = 1 - sum(abs(a - b) for a, b in pairs) / len(pairs) / 5
    found = dropout_agreement(Estimates(np.array(numbers)[:, None], np.zeros((len(means), 1)), -2, 3))
    assert found[0] == pytest.approx(max(expected, 0), abs=1e-12)


def test_passes_that_all_say_the_same_number_agree_exactly():
    assert dropout_agreement(alike(0.1, 0.3, passes=7)).tolist() == [1.0]


def test_two_passes_at_the_two_ends_do_not_agree_at_all():
    assert dropout_agreement(Estimates(np.array([[1.0], [5.0]]), np.zeros((2, 1)), 1, 5)).tolist() == [0.0]


def test_means_beyond_the_range_cannot_push_agreement_below_0():
    assert dropout_agreement(Estimates(np.array([[-4.0], [9.0]]), np.zeros((2, 1)), 1, 5)).tolist() == [0.0]


def test_a_number_that_may_lie_anywhere_in_its_range_has_no_confidence():
    """The uniform distribution over 1 to 5 has the variance 4² / 12."""
    assert entropy_confidence(alike(3.0, 16 / 12, low=1, high=5)) == pytest.approx([0], abs=1e-12)
    assert entropy_confidence(alike(3.0, 4 / 12, low=1, high=5)) == pytest.approx([0.5])  # half that deviation
    assert entropy_confidence(alike(3.0, 0.0, low=1, high=5)).tolist() == [1.0]
    assert entropy_confidence(alike(3.0, 99.0, low=1, high=5)).tolist() == [0.0]


def test_the_spread_of_several_passes_is_that_of_their_mixture():
    """Means 0.3 and 0.7 differ by a variance of 0.04; with a mean variance of 0.02 that makes 0.06."""
    two = Estimates(np.array([[0.3], [0.7]]), np.array([[0.01], [0.03]]), 0, 1)
    assert entropy_confidence(two) == pytest.approx([1 - math.sqrt(0.06 * 12)])


@given(st.integers(0, 10**6), st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_the_spread_is_the_deviation_of_a_draw_from_a_pass_picked_at_random(seed, passes):
    """By its second moment about 0, another way to the same variance."""
    many = estimates(np.random.default_rng(seed), 5, passes)
    second = (many.variances + many.means**2).mean(axis=0) - many.means.mean(axis=0) ** 2
    expected = np.clip(1 - np.sqrt(second) / (5 / math.sqrt(12)), 0, 1)
    np.testing.assert_allclose(entropy_confidence(many), expected, atol=1e-9)


@pytest.mark.parametrize("name", list(MEASURES))
def test_the_scale_of_a_label_does_not_matter(name):
    many = estimates(np.random.default_rng(3), 30, passes=4)
    scaled = Estimates(10 * many.means + 7, 100 * many.variances, 10 * many.low + 7, 10 * many.high + 7)
    np.testing.assert_allclose(MEASURES[name](many), MEASURES[name](scaled), atol=1e-9)


@pytest.mark.parametrize("name", list(MEASURES))
def test_a_number_keeps_its_bits_alone_and_in_any_company(name):
    many = estimates(np.random.default_rng(4), 50, passes=10)
    whole = MEASURES[name](many)
    order = np.random.default_rng(5).permutation(50)
    assert MEASURES[name](many.take(order)).tolist() == whole[order].tolist()
    for item in range(50):
        assert MEASURES[name](many.take(np.array([item])))[0] == whole[item]


@pytest.mark.parametrize("name", list(MEASURES))
def test_ten_passes_give_an_item_the_same_bits_in_any_company(name):
    """Layouts in memory differ between the whole and what is taken from it; sums must not."""
    many = ragged_beliefs(np.random.default_rng(6), 40, passes=10)
    whole = MEASURES[name](many)
    order = np.random.default_rng(7).permutation(40)
    assert MEASURES[name](many.take(order)).tolist() == whole[order].tolist()


# -- the registry ----------------------------------------------------------------------------------------------------
def test_a_measure_says_how_many_passes_it_wants():
    assert {name: MEASURES[name].passes for name in ("entropy", "dropout-agreement")} == {
        "entropy": 1,
        "dropout-agreement": 10,
    }
    assert all(MEASURES[name].name == name for name in MEASURES)
