"""Equal money: what two curves say, with numbers that can be worked out on paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.report.curves import Curve, baseline, compare, curves_of, enough_money
from tests.report.results import make_result


def curve(arm: str, money: list[float], scores: list[float]) -> Curve:
    return Curve(arm, tuple(range(len(money))), np.array(money, dtype=float), {"intent": np.array(scores)})


def test_the_money_saved_is_read_off_the_line_between_two_rounds():
    """Random ends at 0.7. The strategy has 0.6 at 200 and 0.72 at 300: 0.7 at 200 + 100 · 0.10 / 0.12 = 283.33."""
    found = compare(
        curve("MT-AVG", [100, 200, 300, 400], [0.4, 0.6, 0.72, 0.8]),
        curve("RANDOM", [100, 200, 300, 400], [0.4, 0.5, 0.6, 0.7]),
    )
    assert found is not None
    assert found.enough == pytest.approx(200 + 100 * 0.10 / 0.12)
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
    mine = Curve("MT-AVG", (0, 1), money, {"a": np.array([0.2, 0.8]), "b": np.array([0.2, 0.4])})
    other = Curve("RANDOM", (0, 1), money, {"a": np.array([0.2, 0.4]), "b": np.array([0.2, 0.4])})
    found = compare(mine, other)
    assert found is not None
    assert found.saved == pytest.approx(0.25)  # means 0.2 to 0.6 against 0.4, half the way from 100 to 200
    assert found.gain == pytest.approx(0.2)


def test_a_score_that_was_touched_once_and_lost_again_was_not_reached():
    assert enough_money(np.array([1.0, 2, 3]), np.array([0.1, 0.9, 0.2]), 0.5, 3.0) == (None, False)


def test_a_lower_end_saves_nothing():
    found = compare(curve("MT-AVG", [100, 200], [0.4, 0.5]), curve("RANDOM", [100, 200], [0.4, 0.6]))
    assert found is not None
    assert found.saved is None
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


@given(
    st.lists(st.tuples(st.integers(1, 50), st.floats(0, 1)), min_size=2, max_size=8),
    st.floats(0, 1),
)
def test_from_enough_money_on_the_curve_never_falls_below(steps, wanted):
    money = np.cumsum([step for step, _ in steps]).astype(float)
    scores = np.array([score for _, score in steps])
    enough, _ = enough_money(money, scores, wanted, float(money[-1]))
    if enough is None:
        assert scores[-1] < wanted
    else:
        assert money[0] <= enough <= money[-1]
        after = np.linspace(enough, money[-1], 50)
        assert (np.interp(after, money, scores) >= wanted - 1e-9).all()


def test_random_is_the_baseline_wherever_it_ran():
    flat = (0.4, 0.5)
    assert baseline(make_result({"MT-AVG": flat, "MT-MAX": flat, "RANDOM": flat}, money=(100, 200))) == "RANDOM"
    assert baseline(make_result({"MT-AVG": flat, "MT-MAX": flat}, money=(100, 200))) == "MT-MAX"
    assert baseline(make_result({"RANDOM": flat, "MT-MAX": flat}, money=(100, 200))) == "MT-MAX"
    assert baseline(make_result({"MT-AVG": flat}, money=(100, 200))) is None


def test_rounds_without_a_test_score_are_no_points_of_a_curve():
    assert curves_of(make_result(test=False)) == {}
    assert curves_of(make_result({"MT-AVG": (0.4, 0.5)}, money=(100, 200)))["MT-AVG"].money.tolist() == [100, 200]
