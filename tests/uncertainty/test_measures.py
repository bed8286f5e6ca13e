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
from bursar.uncertainty.measures import (
    MEASURES,
    bald,
    dropout_agreement,
    entropy_confidence,
    least_confidence,
    length_confidence,
    margin,
    normalised_sequence_confidence,
    sequence_confidence,
    variation_ratio,
)


def ragged_beliefs(rng, items, passes=1):
    """Units with different numbers of choices, as heads of words have."""
    units = rng.integers(0, 5, items)
    widths = rng.integers(1, 6, int(units.sum()))
    parts = [[rng.dirichlet(np.ones(w)) for w in widths] for _ in range(passes)]
    values = np.array([np.concatenate([*p, []]) for p in parts], dtype=np.float32)
    return Beliefs(values, offsets_of(widths), offsets_of(units))


def coarse_beliefs(rng, items, passes=1):
    """In quarters, so that choices tie and some have probability 0."""
    beliefs = ragged_beliefs(rng, items, passes)
    rows = [[rng.multinomial(4, np.ones(w) / w) / 4 for w in np.diff(beliefs.choices)] for _ in range(passes)]
    values = np.array([np.concatenate([*row, []]) for row in rows], dtype=np.float32)
    return Beliefs(values, beliefs.choices, beliefs.offsets)


def estimates(rng, items, passes, low=-2.0, high=3.0):
    return Estimates(rng.uniform(low, high, (passes, items)), rng.uniform(0, 2, (passes, items)), low, high)


def units_of(beliefs, item):
    """Arrays (passes, choices), one a unit."""
    bounds = zip(beliefs.choices[:-1], beliefs.choices[1:], strict=True)
    units = [beliefs.values[:, a:b].astype(float) for a, b in bounds]
    return units[beliefs.offsets[item] : beliefs.offsets[item + 1]]


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


def best(unit):
    return max(unit.mean(axis=0)) if unit.shape[1] > 1 else 1.0


def lead(unit):
    first, second = sorted([*unit.mean(axis=0), 0.0], reverse=True)[:2]
    return first - second if unit.shape[1] > 1 else 1.0


def information(unit):
    """Between label and model as it is defined: the mean divergence of a pass from the mean of all."""
    k, width = unit.shape
    mean = unit.mean(axis=0)
    terms = [p * math.log(p / q) for row in unit for p, q in zip(row, mean, strict=True) if p > 0]
    return sum(terms) / k / math.log(width) if width > 1 else 0.0


def modal_share(unit):
    votes = unit.argmax(axis=1).tolist()
    return max(votes.count(vote) for vote in votes) / len(votes)


def average(numbers):
    return sum(numbers) / len(numbers) if numbers else 1.0


PLAIN = {
    "least-confidence": lambda units: average([best(unit) for unit in units]),
    "margin": lambda units: average([lead(unit) for unit in units]),
    "sequence": lambda units: 1 / (1 - math.log(math.prod(best(unit) for unit in units))),
    "normalised-sequence": lambda units: math.prod(best(unit) for unit in units) ** (1 / max(len(units), 1)),
    "variation-ratio": lambda units: average([modal_share(unit) for unit in units]),
    "bald": lambda units: average([1 - information(unit) for unit in units]),
}


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("make", [ragged_beliefs, coarse_beliefs])
@given(seed=st.integers(0, 10**6), passes=st.integers(2, 6))
@settings(max_examples=30, deadline=None)
def test_a_measure_equals_its_formula_unit_by_unit(name, make, seed, passes):
    beliefs = make(np.random.default_rng(seed), 7, passes)
    expected = [PLAIN[name](units_of(beliefs, item)) for item in range(len(beliefs))]
    np.testing.assert_allclose(MEASURES[name](beliefs), expected, atol=1e-6)


@pytest.mark.parametrize("name", list(MEASURES))
@pytest.mark.parametrize("make", [ragged_beliefs, coarse_beliefs, estimates])
def test_every_measure_stays_between_0_and_1(name, make):
    confidence = MEASURES[name](make(np.random.default_rng(1), 200, passes=4))
    assert confidence.dtype == np.float64
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


LOWEST = {
    "entropy": 0,
    "least-confidence": 1 / 3,
    "margin": 0,
    "sequence": 1 / (1 + math.log(3)),
    "normalised-sequence": 1 / 3,
}


@pytest.mark.parametrize(("name", "lowest"), LOWEST.items())
def test_one_pass_is_the_least_sure_when_all_choices_are_as_probable(name, lowest):
    beliefs = Beliefs.of([[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]], units=[1, 1])
    np.testing.assert_allclose(MEASURES[name](beliefs), [1, lowest], atol=1e-6)


def test_certainty_is_1_and_no_idea_is_0():
    beliefs = Beliefs.of([[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]], units=[1, 1])
    np.testing.assert_allclose(entropy_confidence(beliefs), [1, 0], atol=1e-6)


@pytest.mark.parametrize("name", list(MEASURES))
def test_an_item_without_units_is_certain(name):
    assert MEASURES[name](Beliefs.of(np.zeros((3, 0, 3)), units=[0, 0])).tolist() == [1, 1]
    between = Beliefs.of(np.full((3, 2, 2), 0.5), units=[0, 1, 0, 1, 0])
    assert MEASURES[name](between)[::2].tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", list(MEASURES))
def test_of_no_items_there_are_no_scores(name):
    assert MEASURES[name](Beliefs.of(np.zeros((3, 0, 3)), units=[])).shape == (0,)


@pytest.mark.parametrize("name", list(MEASURES))
@pytest.mark.parametrize("value", [1, 1 - 2**-24, 1 + 2**-23])
def test_a_word_with_one_possible_head_is_certain(name, value):
    """Whatever rounding made of its probability."""
    only = Beliefs(np.full((3, 1), value, np.float32), offsets_of([1]), offsets_of([1]))
    assert MEASURES[name](only).tolist() == [1]


@pytest.mark.parametrize("name", list(MEASURES))
def test_a_probability_that_rounding_left_above_1_is_no_more_than_certain(name):
    assert MEASURES[name](Beliefs.of(np.tile([1 + 2**-23, 0.0], (3, 2, 1)), units=[2])).tolist() == [1]


@pytest.mark.parametrize("name", list(MEASURES))
def test_probabilities_that_are_all_0_still_have_a_score(name):
    assert 0 <= MEASURES[name](Beliefs.of(np.zeros((3, 4, 2)), units=[4]))[0] <= 1


# -- what measures have to do with one another -----------------------------------------------------------------------
SEEDS = given(st.integers(0, 10**6))


@SEEDS
@settings(max_examples=30, deadline=None)
def test_between_two_choices_margin_and_least_confidence_say_the_same(seed):
    p = np.random.default_rng(seed).uniform(0, 1, 20)
    beliefs = Beliefs.of(np.stack([p, 1 - p], axis=1), units=[3, 0, 7, 10])
    np.testing.assert_allclose(margin(beliefs), 2 * least_confidence(beliefs) - 1, atol=1e-6)


@SEEDS
@settings(max_examples=30, deadline=None)
def test_a_sequence_of_one_unit_normalised_is_its_least_confidence(seed):
    beliefs = Beliefs.of(np.random.default_rng(seed).dirichlet(np.ones(4), 20), units=[1] * 20)
    np.testing.assert_allclose(normalised_sequence_confidence(beliefs), least_confidence(beliefs), rtol=1e-12)


@SEEDS
@settings(max_examples=30, deadline=None)
def test_sequences_are_in_the_order_of_the_product_of_their_best_probabilities(seed):
    beliefs = ragged_beliefs(np.random.default_rng(seed), 12, passes=2)
    product = np.array([math.prod(best(unit) for unit in units_of(beliefs, item)) for item in range(12)])
    confidence = sequence_confidence(beliefs)
    for a, b in permutations(range(12), 2):
        if product[a] > product[b] * (1 + 1e-9):
            assert confidence[a] > confidence[b]


def test_a_sentence_of_5000_words_does_not_underflow():
    """0.5 ** 5000 is 0 in float64; its log is not."""
    beliefs = Beliefs.of(np.full((9999, 2), 0.5), units=[5000, 4999])
    assert 0.5**5000 == 0
    longer, shorter = sequence_confidence(beliefs)
    assert 0 < longer < shorter
    assert longer == pytest.approx(1 / (1 + 5000 * math.log(2)), rel=1e-12)
    assert normalised_sequence_confidence(beliefs) == pytest.approx([0.5, 0.5], rel=1e-12)


def test_an_impossible_word_leaves_a_sequence_some_score():
    assert 0 < sequence_confidence(Beliefs.of(np.zeros((5000, 2)), units=[5000]))[0] < 1e-6


@given(st.integers(0, 10**6), st.integers(2, 12))
@settings(max_examples=30, deadline=None)
def test_passes_that_are_all_the_same_leave_bald_exactly_certain(seed, passes):
    one = ragged_beliefs(np.random.default_rng(seed), 7)
    same = Beliefs(np.repeat(one.values, passes, axis=0), one.choices, one.offsets)
    assert bald(same).tolist() == [1.0] * 7
    assert bald(alike(0.1 + seed / 10**6, 0.3, passes)).tolist() == [1.0]


def test_bald_sees_only_the_doubt_that_more_labels_could_remove():
    """Ten passes that toss a coin are alike; ten that are sure of either side are not."""
    coins, sides = np.full((10, 1, 2), 0.5), np.eye(2)[[[0], [1]] * 5]
    assert [bald(Beliefs.of(passes, units=[1]))[0] for passes in (coins, sides)] == [1, 0]
    assert [entropy_confidence(Beliefs.of(passes, units=[1]))[0] for passes in (coins, sides)] == [0, 0]


@SEEDS
@settings(max_examples=30, deadline=None)
def test_bald_is_never_less_sure_than_entropy(seed):
    """Information is the entropy of the mean less something that is not negative."""
    beliefs = coarse_beliefs(np.random.default_rng(seed), 10, passes=3)
    assert (bald(beliefs) >= entropy_confidence(beliefs) - 1e-12).all()


def test_two_passes_that_agree_are_certain_and_two_that_do_not_are_half():
    votes = np.eye(3)[[[0, 1], [0, 2]]]  # two passes over two units
    assert variation_ratio(Beliefs.of(votes, units=[1, 1])).tolist() == [1.0, 0.5]


@SEEDS
@settings(max_examples=30, deadline=None)
def test_of_two_passes_agreement_and_variation_ratio_say_the_same(seed):
    beliefs = coarse_beliefs(np.random.default_rng(seed), 10, passes=2)
    np.testing.assert_allclose(dropout_agreement(beliefs), 2 * variation_ratio(beliefs) - 1, atol=1e-12)


def test_a_vote_for_the_tied_best_goes_to_the_first():
    tied = np.array([[[0.5, 0.5]], [[1.0, 0.0]]])
    assert variation_ratio(Beliefs.of(tied, units=[1])).tolist() == [1.0]
    assert variation_ratio(Beliefs.of(tied[..., ::-1], units=[1])).tolist() == [0.5]


def test_passes_are_averaged_before_the_best_choice_is_sought():
    beliefs = Beliefs.of(np.eye(2)[[[0], [1]]], units=[1])
    assert least_confidence(beliefs).tolist() == normalised_sequence_confidence(beliefs).tolist() == [0.5]
    assert margin(beliefs).tolist() == [0.0]


def test_the_longest_sentence_is_the_least_sure():
    words = np.array([5, 1, 0, 400, 12])
    confidence = length_confidence(words)
    assert np.argsort(confidence).tolist() == np.argsort(-words).tolist()
    assert confidence.dtype == np.float64
    assert confidence.tolist() == [1 / 6, 1 / 2, 1, 1 / 401, 1 / 13]


# -- a single pass ---------------------------------------------------------------------------------------------------


SINGLE = [Beliefs.of([[0.5, 0.5]], units=[1]), Estimates(np.zeros((1, 2)), np.ones((1, 2)), 0, 1)]


@pytest.mark.parametrize("beliefs", SINGLE)
@pytest.mark.parametrize(
    ("measure", "what"),
    [(dropout_agreement, "dropout-agreement"), (variation_ratio, "variation-ratio"), (bald, "bald")],
)
def test_agreement_of_a_single_pass_is_refused_with_a_way_out(beliefs, measure, what):
    with pytest.raises(SelectionError, match=rf"{what} needs at least two dropout passes.*Fix: .*passes=10"):
        measure(beliefs)


# -- numbers ---------------------------------------------------------------------------------------------------------
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


@pytest.mark.parametrize(
    ("measure", "stand_in"),
    [
        (least_confidence, entropy_confidence),
        (margin, entropy_confidence),
        (sequence_confidence, entropy_confidence),
        (normalised_sequence_confidence, entropy_confidence),
        (variation_ratio, dropout_agreement),
    ],
)
def test_a_measure_of_choices_has_a_stand_in_for_numbers(measure, stand_in):
    many = estimates(np.random.default_rng(8), 30, passes=4)
    assert measure(many).tolist() == stand_in(many).tolist()


def test_bald_of_numbers_is_the_spread_of_the_means_alone():
    many = estimates(np.random.default_rng(9), 30, passes=4)
    expected = np.clip(1 - many.means.std(axis=0) / (5 / math.sqrt(12)), 0, 1)
    np.testing.assert_allclose(bald(many), expected, atol=1e-12)


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
    once = ["entropy", "least-confidence", "margin", "sequence", "normalised-sequence"]
    assert {MEASURES[name].passes for name in once} == {1}
    assert {MEASURES[name].passes for name in ("dropout-agreement", "variation-ratio", "bald")} == {10}
    assert all(MEASURES[name].name == name for name in MEASURES)
