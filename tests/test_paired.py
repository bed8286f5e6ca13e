"""Paired comparisons that are small enough to compute by hand."""

from __future__ import annotations

from bursar.comparison.paired import holm, paired_test, saved_interval


def test_a_paired_test_of_three_pairs():
    found = paired_test([0.8, 0.9, 0.7], [0.7, 0.6, 0.5])
    expected = {"difference": 0.2, "low": -0.048, "high": 0.448, "t": 3.464, "p": 0.074}
    assert {key: round(found[key], 3) for key in expected} == expected


def test_holm_leaves_out_what_is_no_test():
    assert holm([0.5, 0.01, None, 0.02]) == [0.5, 0.03, None, 0.04]


def test_savings_of_cells_are_averaged_as_ratios():
    arm, random = ([50, 100, 200], [0.5, 0.6, 0.7]), ([100, 200, 400], [0.5, 0.6, 0.7])
    found = saved_interval([arm, random, arm], [random, random, random])
    assert (round(found["saved"], 3), found["n"]) == (0.37, 3)
