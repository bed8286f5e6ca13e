"""Beliefs: how they are laid out, and that putting them together changes none."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.tasks import Beliefs


@pytest.mark.parametrize("passes", [1, 3])
def test_dense_beliefs_come_back_as_they_were_given(passes):
    probabilities = np.random.default_rng(0).dirichlet(np.ones(4), (passes, 6)).astype(np.float32)
    beliefs = Beliefs.of(probabilities, units=[1, 0, 3, 2])
    assert (len(beliefs), beliefs.passes, beliefs.units.tolist()) == (4, passes, [1, 0, 3, 2])
    assert np.array_equal(beliefs.dense(), probabilities)


def test_one_pass_may_be_given_without_its_axis():
    assert Beliefs.of(np.eye(2), units=[1, 1]).dense().shape == (1, 2, 2)


def test_beliefs_put_together_are_those_of_the_parts():
    rng = np.random.default_rng(0)
    first, second = rng.random((2, 3, 4)), rng.random((2, 2, 4))
    joined = Beliefs.concatenate([Beliefs.of(first, [2, 1]), Beliefs.of(second, [0, 2])])
    assert np.allclose(joined.dense(), np.concatenate([first, second], axis=1))
    assert joined.units.tolist() == [2, 1, 0, 2]


def test_units_with_different_choices_are_kept_apart_and_have_no_dense_form():
    heads = Beliefs(np.arange(5, dtype=np.float32)[None], np.array([0, 2, 5]), np.array([0, 1, 2]))
    joined = Beliefs.concatenate([heads, heads])
    found = [joined.values[0, a:b].tolist() for a, b in zip(joined.choices, joined.choices[1:], strict=False)]
    assert found == [[0, 1], [2, 3, 4]] * 2
    with pytest.raises(ValueError, match="different numbers of choices"):
        heads.dense()


@pytest.mark.parametrize("units", [[], [0], [0, 0]])
def test_no_units_are_no_beliefs_and_no_error(units):
    assert Beliefs.of(np.zeros((0, 3)), units).dense().shape[:2] == (1, 0)
    assert len(Beliefs.of(np.zeros((0, 3)), units)) == len(units)
