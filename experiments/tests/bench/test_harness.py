"""How a case turns two sides into one line."""

from __future__ import annotations

import pytest

from experiments.bench import GROUPS, Case, cases_of
from experiments.bench.harness import CannotMeasureError, Measured


def told(side):
    value = side()
    return Measured(value, {"accuracy": value / 10})


def test_the_ratio_is_above_one_where_ours_is_better():
    sides = (lambda: 2.0, lambda: 6.0)
    assert Case("c", "", lambda: sides, measure=told).run()["ratio"] == 3.0
    assert Case("c", "", lambda: sides, measure=told, more_is_better=True).run()["ratio"] == pytest.approx(1 / 3)


def test_what_else_was_measured_belongs_to_the_median_repeat():
    ours, theirs = iter([0, 9, 1, 5]), iter([0, 3, 4, 2])  # the first call is for nothing
    line = Case("c", "", lambda: (lambda: next(ours), lambda: next(theirs)), 3, measure=told).run()
    assert (line["ours"], line["accuracy"]) == (5, 0.5)
    assert (line["theirs"], line["theirs_accuracy"]) == (3, 0.3)


def test_a_case_that_cannot_be_measured_is_skipped_and_says_why():
    def prepare():
        raise CannotMeasureError("no data")

    assert Case("c", "", prepare).run()["skipped"] == "no data"


@pytest.mark.parametrize("group", GROUPS)
def test_the_cases_of_a_group_have_names_of_their_own(group):
    names = [case.name for case in cases_of(group)]
    assert len(names) == len(set(names)) > 0
