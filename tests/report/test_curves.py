"""Equal money: what two curves say, with numbers that can be worked out on paper."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.campaign.curves import LearningCurve, compare, curves_of
from bursar.report.summary import baseline
from tests.report.results import make_result


def curve(arm: str, money: list[float], scores: list[float]) -> LearningCurve:
    return LearningCurve(arm, tuple(range(len(money))), np.array(money, dtype=float), {"intent": np.array(scores)})


def test_the_money_saved_is_read_off_the_line_between_two_rounds():
    """Random ends at 0.7. The strategy has 0.6 at 200 and 0.72 at 300: 0.7 at 200 + 100 · 0.10 / 0.12 = 283.33."""
    found = compare(
        curve("MT-AVG", [100, 200, 300, 400], [0.4, 0.6, 0.72, 0.8]),
        curve("RANDOM", [100, 200, 300, 400], [0.4, 0.5, 0.6, 0.7]),
    )
    assert found is not None
    assert found.saved == pytest.approx(1 - 283.3333 / 400, abs=1e-6)
    assert found.gain == pytest.approx(0.1)
    assert not found.from_the_start


def test_strategies_that_spent_unequally_are_compared_at_the_smaller_sum():
    """Random stopped at 300 with 0.6. The strategy, cut at 300, has 0.7 there and 0.6 at 200: a third was saved."""
    found = compare(
        curve("MT-AVG", [100, 200, 400], [0.4, 0.6, 0.8]), curve("RANDOM", [100, 200, 300], [0.4, 0.5, 0.6])
    )
    assert found is not None
    assert found.money == 300
    assert found.mine["intent"] == pytest.approx(0.7)
    assert found.saved == pytest.approx(1 / 3)


def test_the_mean_over_tasks_decides():
    money = np.array([100.0, 200])
    mine = LearningCurve("MT-AVG", (0, 1), money, {"a": np.array([0.2, 0.8]), "b": np.array([0.2, 0.4])})
    other = LearningCurve("RANDOM", (0, 1), money, {"a": np.array([0.2, 0.4]), "b": np.array([0.2, 0.4])})
    found = compare(mine, other)
    assert found is not None
    assert found.saved == pytest.approx(0.25)  # means 0.2 to 0.6 against 0.4, half the way from 100 to 200
    assert found.gain == pytest.approx(0.2)


def test_a_lower_end_costs_more():
    """Random had 0.5 at 150, and the strategy needed 200: a third more."""
    found = compare(curve("MT-AVG", [100, 200], [0.4, 0.5]), curve("RANDOM", [100, 200], [0.4, 0.6]))
    assert found is not None
    assert found.saved == pytest.approx(-1 / 3)
    assert found.gain == pytest.approx(-0.1)


def test_a_baseline_that_never_rose_was_reached_from_the_start():
    found = compare(curve("MT-AVG", [100, 200], [0.4, 0.5]), curve("RANDOM", [100, 200], [0.4, 0.4]))
    assert found is not None
    assert found.from_the_start
    assert found.saved == pytest.approx(0.5)


@pytest.mark.parametrize("money", [[100.0], [0.0, 0.0]])
def test_a_single_point_or_free_labels_compare_with_nothing(money):
    scores = [0.5] * len(money)
    assert compare(curve("MT-AVG", money, scores), curve("RANDOM", money, scores)) is None


def test_a_round_that_was_lucky_and_lost_again_is_no_saving():
    """Made to rise, 0.9 and 0.2 are 0.55 each: below where random ends, which had that score at 110 of 120."""
    found = compare(curve("MT-AVG", [100, 110, 120], [0.1, 0.9, 0.2]), curve("RANDOM", [100, 120], [0.1, 1.0]))
    assert found is not None
    assert found.saved == pytest.approx(1 - 120 / 110)


def test_a_lucky_round_of_the_other_does_not_make_the_higher_end_dearer():
    """Random's 0.8 and 0.6 are 0.7 when made to rise, above the strategy's 0.65; but it ended lower."""
    found = compare(curve("MT-AVG", [1, 2, 3], [0.4, 0.6, 0.65]), curve("RANDOM", [1, 2, 3], [0.4, 0.8, 0.6]))
    assert found is not None
    assert found.gain == pytest.approx(0.05)
    assert found.saved == 0


def test_random_is_the_baseline_wherever_it_ran():
    flat = (0.4, 0.5)
    assert baseline(make_result({"MT-AVG": flat, "MT-MAX": flat, "RANDOM": flat}, money=(100, 200))) == "RANDOM"
    assert baseline(make_result({"MT-AVG": flat, "MT-MAX": flat}, money=(100, 200))) == "MT-MAX"
    assert baseline(make_result({"RANDOM": flat, "MT-MAX": flat}, money=(100, 200))) == "MT-MAX"
    assert baseline(make_result({"MT-AVG": flat}, money=(100, 200))) is None


def test_rounds_without_a_test_score_are_no_points_of_a_curve():
    assert curves_of(make_result(test=False)) == {}
    assert curves_of(make_result({"MT-AVG": (0.4, 0.5)}, money=(100, 200)))["MT-AVG"].money.tolist() == [100, 200]
