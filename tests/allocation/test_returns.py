"""What labels are worth, and the reduction rate of a curve."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.allocation import ReductionRate, fit_rate, gain, half_life
from bursar.allocation.estimates import SMALLEST, UNKNOWN, returns, tells_nothing
from bursar.errors import AllocationError

often = settings(max_examples=60, deadline=None, derandomize=True)
betas = st.one_of(st.floats(0.001, 1), st.just(1.0), st.floats(1e-12, 1e-3).map(lambda gap: 1 - gap))
blocks = st.floats(0.5, 1000)


def rate_of(beta, block=1.0):
    return ReductionRate(beta, beta, beta, block)


# -- what labels are worth -------------------------------------------------------------------------------------------
@often
@given(betas, st.integers(1, 50), st.integers(0, 12))
def test_each_block_is_worth_beta_of_the_block_before(beta, block, count):
    by_blocks = math.fsum(block * beta**b for b in range(count))
    assert gain(count * block, rate_of(beta, block)) == pytest.approx(by_blocks, rel=1e-9, abs=1e-12)


@often
@given(betas, blocks, st.floats(0, 5000))
def test_the_gain_has_the_closed_form_where_that_can_be_computed(beta, block, labels):
    if 1 - beta > 1e-3:
        expected = block * (1 - beta ** (labels / block)) / (1 - beta)
        assert gain(labels, rate_of(beta, block)) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    else:  # between what the last label is worth and what the first is
        last = labels * beta ** (labels / block)
        first = labels * -math.log(beta) / (1 - beta) if beta < 1 else labels
        found = gain(labels, rate_of(beta, block))
        assert last * (1 - 1e-9) - 1e-12 <= found <= first * (1 + 1e-9) + 1e-12


def test_near_1_nothing_is_lost_to_rounding():
    # g(N) = N − N(N/u − 1)/2 · (1 − β) + …; at u = 1, N = 1000: 1000 − 499500 (1 − β)
    for gap in (1e-9, 1e-12, 1e-15):
        beta = 1 - gap
        assert float(gain(1000, rate_of(beta))) == pytest.approx(1000 - 499_500 * (1 - beta), rel=1e-12)
    assert gain(1000, rate_of(1.0)) == 1000


@often
@given(betas, blocks, st.lists(st.floats(0, 3000), min_size=2, max_size=20))
def test_the_gain_rises_and_every_label_is_worth_less_than_the_one_before(beta, block, labels):
    at = np.sort(np.array(labels))
    found = gain(at, rate_of(beta, block))
    assert (np.diff(found) >= -1e-9 * found.max()).all()
    middle = gain((at[:-1] + at[1:]) / 2, rate_of(beta, block))
    assert (2 * middle >= found[:-1] + found[1:] - 1e-9 * (1 + found.max())).all()


def test_arrays_of_rates_and_labels_go_together():
    found = returns(np.array([[100], [200]]), [0.5, 1.0], 100)
    np.testing.assert_allclose(found, [[100, 100], [150, 200]])


@often
@given(betas, blocks)
def test_at_the_half_life_a_label_is_worth_half(beta, block):
    half = half_life(rate_of(beta, block))
    if beta == 1:
        assert half == math.inf
    else:
        assert beta ** (half / block) == pytest.approx(0.5)


# -- the rate of a curve ---------------------------------------------------------------------------------------------
SIZES = np.arange(0, 601, 50)


@pytest.mark.parametrize("beta", [0.05, 0.3, 0.6, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("block", [25.0, 100.0, None])
def test_the_rate_of_a_clean_curve_is_found_whatever_its_height(beta, block):
    shape = gain(SIZES, rate_of(beta, block or 50))
    found = fit_rate(SIZES, 0.4 + 3e-4 * shape, block=block)
    assert found.beta == pytest.approx(beta, abs=2e-4)
    assert found.low <= beta + 1e-4
    assert beta - 1e-4 <= found.high
    assert found.high - found.low < 0.01
    assert found.block == (block or 50)
    other = fit_rate(SIZES, 7 + 11 * shape, block=block)
    assert other.beta == pytest.approx(found.beta, abs=1e-4)


def test_a_curve_may_begin_anywhere_and_its_points_may_come_in_any_order():
    at = np.array([400, 100, 300, 200, 150, 250])
    found = fit_rate(at, 0.4 + 1e-3 * gain(at, rate_of(0.7, 100)), block=100)
    assert found.beta == pytest.approx(0.7, abs=1e-4)


@pytest.mark.parametrize("known", [True, False])
def test_nine_in_ten_intervals_hold_the_rate(known):
    rng, beta, held = np.random.default_rng(3), 0.7, 0
    truth = 0.5 + 0.2 * gain(SIZES, rate_of(beta, 100)) / gain(600, rate_of(beta, 100))
    for _ in range(100):
        scores = truth + rng.normal(0, 0.01, len(SIZES))
        found = fit_rate(SIZES, scores, np.full(len(SIZES), 0.01) if known else None, block=100)
        held += found.low <= beta <= found.high
    assert 81 <= held <= 99  # 90 ± 3 standard deviations


def test_more_noise_gives_a_wider_interval():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 1, len(SIZES))
    truth = 0.5 + 1e-3 * gain(SIZES, rate_of(0.6, 100))
    widths = []
    for scale in (0.001, 0.004, 0.016):
        found = fit_rate(SIZES, truth + scale * noise, block=100)
        widths.append(found.high - found.low)
    assert widths == sorted(widths)
    assert widths[0] < widths[2] / 4


def test_errors_that_are_too_small_are_not_believed():
    rng = np.random.default_rng(1)
    scores = 0.5 + 1e-3 * gain(SIZES, rate_of(0.6, 100)) + rng.normal(0, 0.01, len(SIZES))
    boasting = fit_rate(SIZES, scores, np.full(len(SIZES), 1e-5), block=100)
    honest = fit_rate(SIZES, scores, block=100)
    assert boasting.high - boasting.low == pytest.approx(honest.high - honest.low, rel=0.5)


def test_errors_that_were_estimated_from_little_make_the_interval_wider_and_leave_the_rate():
    scores = 0.5 + 1e-3 * gain(SIZES, rate_of(0.6, 100)) + np.random.default_rng(0).normal(0, 0.004, len(SIZES))
    error = np.full(len(SIZES), 0.004)
    found = [fit_rate(SIZES, scores, error, block=100, freedom=freedom) for freedom in (None, 100, 10, 2)]
    assert len({rate.beta for rate in found}) == 1
    assert [rate.high - rate.low for rate in found] == sorted(rate.high - rate.low for rate in found)
    assert fit_rate(SIZES, scores, error, block=100, freedom=10**6).high == pytest.approx(found[0].high, abs=1e-4)
    # Flat, a rise of 0.02 leaves (0.02 / 12)² · 182 / 0.007² = 10: above χ² of 2.7, below F of 39.9 at one degree.
    line = np.linspace(0.5, 0.52, len(SIZES))
    rate = fit_rate(SIZES, line, np.full(len(SIZES), 0.007), block=100, freedom=1)
    assert (rate.beta, rate.low, rate.high) == (UNKNOWN, SMALLEST, 1)
    assert fit_rate(SIZES, line, np.full(len(SIZES), 0.007), block=100).beta == 1


def test_a_point_with_a_large_error_counts_little():
    scores = 0.5 + 1e-3 * gain(SIZES, rate_of(0.6, 100))
    scores[-1] -= 0.1
    error = np.full(len(SIZES), 0.001)
    error[-1] = 1.0
    assert fit_rate(SIZES, scores, error, block=100).beta == pytest.approx(0.6, abs=0.01)
    assert abs(fit_rate(SIZES, scores, block=100).beta - 0.6) > 0.1


@pytest.mark.parametrize(
    ("sizes", "scores"),
    [
        ([0, 50, 100, 150, 200], [0.6] * 5),  # flat
        ([0, 50, 100, 150, 200], [0.6, 0.59, 0.58, 0.57, 0.56]),  # falling
        ([0, 50, 100, 150, 200, 250], [0.6, 0.61, 0.59, 0.605, 0.595, 0.602]),  # noise
        ([0, 50], [0.5, 0.6]),  # too few
        ([50], [0.5]),
        ([50, 50, 50, 50], [0.5, 0.6, 0.5, 0.6]),
    ],
)
def test_a_curve_without_a_shape_tells_nothing_of_the_rate(sizes, scores):
    found = fit_rate(sizes, scores)
    assert tells_nothing(found)
    assert (found.beta, found.low, found.high) == (UNKNOWN, SMALLEST, 1.0)


def test_three_points_tell_nothing_unless_their_errors_are_known():
    sizes, scores = [0, 100, 200], [0.5, 0.6, 0.65]
    assert tells_nothing(fit_rate(sizes, scores))
    known = fit_rate(sizes, scores, [0.005] * 3)
    assert 0.3 < known.low < 0.5 < known.high < 0.7


def test_the_best_of_rates_that_could_all_be_right_is_no_estimate():
    """Two repetitions of three sizes: once the best rate is nearly 0, once 1, and every other fits as well."""
    for scores in ([0.5, 0.66, 0.63], [0.5, 0.52, 0.6]):
        found = fit_rate([60, 120, 240], scores, [0.04] * 3, freedom=2, block=60)
        assert (found.beta, found.low, found.high) == (UNKNOWN, SMALLEST, 1.0)


def test_a_curve_that_steepens_loses_nothing():
    assert fit_rate([0, 100, 200, 300, 400], [0.5, 0.51, 0.53, 0.56, 0.6]).beta == 1


def test_a_curve_that_jumps_once_has_all_its_worth_in_the_first_block():
    found = fit_rate([0, 100, 200, 300, 400], [0.5, 0.7, 0.7, 0.7, 0.7])
    assert found.beta < 0.01
    assert found.low == SMALLEST


def test_errors_of_0_count_as_the_smallest_of_the_others():
    scores = 0.5 + 1e-3 * gain(SIZES, rate_of(0.6, 100)) + np.random.default_rng(0).normal(0, 0.002, len(SIZES))
    error = np.full(len(SIZES), 0.002)
    some = error.copy()
    some[3] = 0
    assert fit_rate(SIZES, scores, some, block=100) == fit_rate(SIZES, scores, error, block=100)
    assert fit_rate(SIZES, scores, 0 * error, block=100) == fit_rate(SIZES, scores, block=100)


@pytest.mark.parametrize(
    ("sizes", "scores", "more", "said"),
    [
        ([0, 1], [0.5], {}, "2 sizes and 1 scores"),
        ([], [], {}, "0 sizes"),
        ([0, 1, 2], [0.5, math.nan, 0.6], {}, "must be numbers"),
        ([0, -1, 2], [0.5, 0.5, 0.6], {}, "from 0 up"),
        ([0, 1, 2], [0.5, 0.5, 0.6], {"errors": [0.1, 0.1]}, "standard errors"),
        ([0, 1, 2], [0.5, 0.5, 0.6], {"errors": [0.1, 0.1, -1]}, "standard errors"),
        ([0, 1, 2], [0.5, 0.5, 0.6], {"errors": [0.1] * 3, "freedom": 0}, "0 degrees of freedom"),
        ([0, 1, 2], [0.5, 0.5, 0.6], {"block": 0}, "a block of 0 labels"),
    ],
)
def test_a_curve_that_is_none_is_refused(sizes, scores, more, said):
    with pytest.raises(AllocationError, match=said):
        fit_rate(sizes, scores, **more)
