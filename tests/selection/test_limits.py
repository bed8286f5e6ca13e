"""Limits on a selection besides its budget."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.errors import SelectionError
from bursar.selection import Candidates, Certificate, GroupCap, Limit, Limits
from bursar.tasks import Prices

ALL = np.ones((3, 2), dtype=bool)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits([Limit("hours", np.ones((2, 2)))]), r"limit 'hours' needs a number .* each of 3 items and 2 tasks"),
        (Limits([Limit("hours", -np.ones((3, 2)))]), r"limit 'hours' needs a number from 0 up"),
        (Limits([Limit("hours", np.full((3, 2), np.nan))]), r"limit 'hours' needs a number from 0 up"),
        (Limits([Limit("hours", np.full((3, 2), np.inf))]), r"limit 'hours' needs a number from 0 up"),
        (Limits([Limit("hours", np.ones((3, 2)), 2, 3)]), r"'hours': at least 3 and at most 2 cannot both hold"),
        (Limits([Limit("hours", np.ones((3, 2)), 2, -1)]), r"'hours': at least -1 and at most 2 cannot both hold"),
        (Limits([Limit("hours", np.ones((3, 2)), np.nan)]), r"'hours': at least 0 and at most nan"),
        (Limits((), GroupCap(np.array([0, 1]), np.array([1, 1]))), r"a group for each of 3 items"),
        (Limits((), GroupCap(np.array([0, 1, 2]), np.array([1, 1]))), r"a group for each of 3 items"),
        (Limits((), GroupCap(np.array([0, -1, 1]), np.array([1, 1]))), r"a group for each of 3 items"),
        (Limits((), GroupCap(np.array([0, 1, 1]), np.array([1, -1]))), r"cannot be capped below 0"),
    ],
)
def test_limits_that_do_not_fit_the_pool_are_refused(limits, message):
    with pytest.raises(SelectionError, match=message):
        limits.check(3, 2)
    prices = Prices(("intent", "slots"), np.ones(3, dtype=np.int64), np.ones((3, 2), dtype=np.int64))
    with pytest.raises(SelectionError, match=message):
        Candidates(["a", "b", "c"], np.zeros((3, 2)), prices, limits=limits)


def test_limits_that_fit_are_let_through():
    Limits().check(3, 2)
    cap = GroupCap(np.array([0, 1, 1]), np.array([0, 1, 5]))
    Limits([Limit("hours", np.zeros((3, 2))), Limit("labels", np.ones((3, 2)), 2, 2)], cap).check(3, 2)
    Limits((), GroupCap(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))).check(0, 2)


def test_a_broken_limit_is_named_with_what_it_came_to():
    hours = Limits([Limit("hours", np.array([[0.5, 1], [2, 0], [1, 1]]), at_most=3, at_least=1)])
    assert hours.broken(np.array([0, 1]), ALL[:2]) == "hours (3.5, not 1 to 3)"
    assert hours.broken(np.array([0]), np.array([[True, False]])) == "hours (0.5, not 1 to 3)"
    assert hours.broken(np.array([0, 2]), np.array([[True, False], [True, True]])) is None


def test_a_broken_cap_is_named_with_its_group():
    cap = Limits((), GroupCap(np.array([1, 0, 1]), np.array([1, 1])))
    assert cap.broken(np.array([0, 1, 2]), ALL) == "the cap of 1 on group 1 (2 items)"
    assert cap.broken(np.array([1, 2]), ALL[:2]) is None


def test_what_adding_up_fractions_does_to_the_last_digit_breaks_no_limit():
    tenth = Limits([Limit("hours", np.full((3, 1), 0.1), at_most=0.3, at_least=0.3)])
    assert sum([0.1] * 3) > 0.3
    assert tenth.broken(np.arange(3), ALL[:, :1]) is None


def test_groups_are_told_apart_by_any_label():
    cap = GroupCap.of(["news", "mail", "news", "blog"], 2)
    assert cap.group[0] == cap.group[2]
    assert len(set(cap.group.tolist())) == 3
    assert cap.at_most.tolist() == [2, 2, 2]


def test_limits_on_some_items_and_on_all_tasks_together_are_the_same_limits():
    use = np.array([[1.0, 2], [3, 4], [5, 6]])
    limits = Limits([Limit("hours", use, at_most=9)], GroupCap.of(["a", "b", "a"], 1))
    some = limits.take(np.array([2, 0]))
    assert some.sums[0].use.tolist() == [[5, 6], [1, 2]]
    assert some.groups.group.tolist() == [0, 0]
    assert limits.together().sums[0].use.tolist() == [[3], [7], [11]]
    assert limits.together().sums[0].at_most == 9


def test_no_limits_are_false_and_any_are_true():
    assert not Limits()
    assert Limits([Limit("hours", np.ones((1, 1)))])
    assert Limits((), GroupCap.of(["a"], 1))


def test_the_gap_of_a_certificate_is_a_share_of_the_bound():
    assert Certificate(0.75, 1.0).gap == 0.25
    assert Certificate(1.0, 1.0, True).gap == 0
    assert Certificate(0.0, 0.0, True).gap == 0
    assert Certificate(0.5).gap is None
