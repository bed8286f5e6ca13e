"""Confidence is a function of an item's own probabilities and nothing else."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.ragged import offsets_of
from bursar.tasks import Beliefs
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


def test_agreement_of_a_single_pass_is_refused():
    with pytest.raises(ValueError, match="two stochastic passes"):
        dropout_agreement(Beliefs.of([[0.5, 0.5]], units=[1]))
