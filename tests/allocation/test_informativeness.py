"""From gains to informativeness."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bursar.allocation.informativeness import from_gains, make_informer
from bursar.errors import ConfigError

ABC = ("a", "b", "c")
OFF = ~np.eye(3, dtype=bool)
GAINS = arrays(float, (4, 3, 3), elements=st.floats(-1, 1, allow_subnormal=False))


# -- from gains ---
@given(GAINS)
def test_any_gains_make_a_table_of_numbers(gains):
    found = from_gains(ABC, gains)
    assert (found.value.diagonal() == 1).all()
    assert np.isfinite(found.value).all()
    assert (found.error >= 0).all()


@given(GAINS, st.sampled_from([0.25, 8.0]))
def test_the_unit_that_gains_are_measured_in_does_not_matter(gains, factor):
    first, second = from_gains(ABC, gains), from_gains(ABC, gains * factor)
    np.testing.assert_allclose(first.value, second.value, rtol=1e-9)
    np.testing.assert_allclose(first.error, second.error, rtol=1e-6, atol=1e-9)


def test_entries_are_mean_gains_over_mean_own_gains():
    gains = np.abs(np.random.default_rng(0).normal(1, 0.1, (6, 3, 3)))
    mean = gains.mean(axis=0)
    np.testing.assert_allclose(from_gains(ABC, gains).value[OFF], (mean / mean.diagonal())[OFF])


def test_an_own_gain_within_its_standard_error_of_0_counts_as_that():
    gains = np.zeros((2, 2, 2))
    gains[:, 0, 0], gains[:, 1, 0] = (0.3, -0.1), (0.4, 0.6)  # own: 0.1 ± 0.2
    gains[:, 1, 1] = 1.0
    found = from_gains(("a", "b"), gains)
    assert found.value[1, 0] == pytest.approx(0.5 / 0.2)
    assert found.about["own_gains"]["a"] == pytest.approx(0.1)
    assert found.about["own_errors"]["a"] == pytest.approx(0.2)


def test_where_own_labels_gain_nothing_at_all_nothing_is_known():
    gains = np.ones((3, 2, 2))
    gains[:, :, 0] = 0.0
    found = from_gains(("a", "b"), gains)
    assert (found.value[1, 0], found.error[1, 0]) == (0.0, 1.0)
    assert (found.value[0, 1], found.error[0, 1]) == (1.0, 0.0)


def test_standard_errors_are_as_large_as_the_spread_of_many_measurements():
    rng = np.random.default_rng(3)

    def drawn(many):
        gains = rng.normal(0.5, 0.2, (many, 2, 2))
        gains[:, 0, 0] = gains[:, 1, 1] = rng.normal(2.0, 0.3, many)
        return from_gains(("a", "b"), gains)

    found = [drawn(6) for _ in range(600)]
    spread = np.std([one.value[0, 1] for one in found])
    assert np.mean([one.error[0, 1] for one in found]) == pytest.approx(spread, rel=0.15)


def test_an_informer_that_does_not_exist_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'alignment'"):
        make_informer("alinement")
