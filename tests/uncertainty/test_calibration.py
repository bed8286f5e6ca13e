"""Whether confidence can be trusted, against the formulas written out item by item."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.uncertainty.calibration import calibration_summary, overconfidence_error, reliability

KERNELS = [calibration_summary, overconfidence_error, reliability]
share = st.floats(0, 1) | st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.3, 0.5, 0.7, 0.9, 1.0])
items = st.lists(st.tuples(share, share), min_size=1, max_size=30)


def plain_bins(pairs, bins):
    """The items of every bin, found by comparing each confidence with each pair of edges."""
    found = []
    for b in range(bins):
        low, high = b / bins, (b + 1) / bins
        found.append([(c, a) for c, a in pairs if low <= c < high or (b == bins - 1 and c == 1)])
    return found


# -- overconfidence error --------------------------------------------------------------------------------------------
def test_overconfidence_by_hand():
    """0.8 × 0.3 for the first, nothing for the second (too modest) and third (just right), 1 × 1 for the fourth."""
    assert overconfidence_error([0.8, 0.2, 0.6, 1.0], [0.5, 0.9, 0.6, 0.0]) == pytest.approx((0.24 + 0 + 0 + 1) / 4)


@given(items)
@settings(max_examples=100, deadline=None)
def test_overconfidence_is_the_formula_of_the_paper(pairs):
    expected = sum(c * max(c - a, 0) for c, a in pairs) / len(pairs)
    assert overconfidence_error(*zip(*pairs, strict=True)) == pytest.approx(expected, abs=1e-12)


def test_modesty_is_never_overconfidence():
    accuracy = np.linspace(0.5, 1, 20)
    assert overconfidence_error(accuracy - 0.5, accuracy) == 0


# -- reliability and calibration error -------------------------------------------------------------------------------
@given(items, st.integers(1, 12))
@settings(max_examples=200, deadline=None)
def test_bins_hold_what_lies_between_their_edges(pairs, bins):
    found, expected = reliability(*zip(*pairs, strict=True), bins=bins), plain_bins(pairs, bins)
    assert found.counts.tolist() == [len(members) for members in expected]
    for b, members in enumerate(expected):
        if members:
            assert found.confidence[b] == pytest.approx(sum(c for c, _ in members) / len(members), abs=1e-12)
            assert found.accuracy[b] == pytest.approx(sum(a for _, a in members) / len(members), abs=1e-12)
        else:
            assert math.isnan(found.confidence[b])
            assert math.isnan(found.accuracy[b])


@given(items, st.integers(1, 12))
@settings(max_examples=100, deadline=None)
def test_calibration_error_is_the_mean_gap_of_the_bins_by_their_size(pairs, bins):
    gaps = [abs(sum(c - a for c, a in members)) for members in plain_bins(pairs, bins)]
    assert reliability(*zip(*pairs, strict=True), bins=bins).calibration_error == pytest.approx(
        sum(gaps) / len(pairs), abs=1e-12
    )


def test_a_confidence_on_an_edge_belongs_to_the_bin_above_and_1_to_the_last():
    tenths = [k / 10 for k in range(11)]
    assert reliability(tenths, tenths).counts.tolist() == [1] * 9 + [2]


def test_calibration_by_hand():
    """Two sure items, right 3 of 4 and so 0.2 below; two unsure ones, 0.25 right and so 0.1 above: 0.15 on average."""
    assert reliability([0.95, 0.95, 0.15, 0.15], [1.0, 0.5, 0.5, 0.0], bins=10).calibration_error == pytest.approx(0.15)


def test_a_model_that_is_as_right_as_it_says_has_no_error_of_either_sort():
    confidence = np.linspace(0, 1, 101)
    assert reliability(confidence, confidence).calibration_error == 0
    assert overconfidence_error(confidence, confidence) == 0


@given(items)
@settings(max_examples=50, deadline=None)
def test_the_order_of_the_items_does_not_matter(pairs):
    there, back = (calibration_summary(*zip(*side, strict=True)) for side in (pairs, pairs[::-1]))
    for key, value in there.items():
        for x, y in zip(np.atleast_1d(value), np.atleast_1d(back[key]), strict=True):
            assert x is y is None or x == pytest.approx(y, abs=2e-6)


# -- as JSON, and what is refused ------------------------------------------------------------------------------------
def test_a_summary_survives_json_empty_bins_and_all():
    found = calibration_summary([0.05, 0.95], [0.0, 1.0])
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["accuracy"] == [0.0, *[None] * 8, 1.0]
    assert (found["calibration"], found["overconfidence"]) == (0.05, 0.00125)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("confidence", "accuracy", "message"),
    [
        ([], [], "no items"),
        ([0.5], [0.5, 0.5], r"shapes \(1,\) and \(2,\)"),
        ([[0.5]], [[0.5]], "one number per item"),
        ([0.5, 1.2], [0.5, 0.5], "confidence must be between 0 and 1: that of item 1 is 1.2"),
        ([0.5, 0.5], [-0.1, 0.5], "accuracy must be between 0 and 1: that of item 0 is -0.1"),
        ([math.nan], [0.5], "confidence must be between 0 and 1: that of item 0 is nan"),
    ],
)
def test_what_is_no_confidence_is_refused(kernel, confidence, accuracy, message):
    with pytest.raises(ValueError, match=message):
        kernel(confidence, accuracy)


def test_no_bins_are_refused():
    with pytest.raises(ValueError, match="at least one is needed"):
        reliability([0.5], [0.5], bins=0)
