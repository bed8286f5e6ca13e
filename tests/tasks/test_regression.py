"""Correlations against scipy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, pearsonr, spearmanr

from bursar.errors import LabelError
from bursar.ragged import Ragged
from bursar.tasks import Regression
from bursar.tasks.heads.linear import Normal


def scores(task: Regression, gold: object, guess: object) -> dict[str, float]:
    rows = np.arange(len(gold) + 1)
    columns = (Ragged(np.asarray(x, dtype=float)[:, None], rows) for x in (gold, guess))
    return task.evaluate(*columns, np.ones(len(gold), int))


def by_scipy(gold: object, guess: object) -> dict[str, float]:
    """0 where scipy has no answer because one side is constant."""
    if len(set(gold)) < 2 or len(set(guess)) < 2:
        return {"pearson": 0.0, "spearman": 0.0}
    return {"pearson": pearsonr(gold, guess).statistic, "spearman": spearmanr(gold, guess).statistic}


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=20))
def test_correlations_of_numbers_with_many_ties_are_scipys(pairs):
    gold, guess = ([x / 5 for x in side] for side in zip(*pairs, strict=True))
    assert scores(Regression("similarity"), gold, guess) == pytest.approx(by_scipy(gold, guess), abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 5), (0, 100)])
def test_correlations_are_scipys_whatever_the_range(seed, low, high):
    rng = np.random.default_rng(seed)
    items = rng.integers(2, 400)
    gold = rng.uniform(low, high, items)
    guess = (gold + rng.normal(0, (high - low) * rng.choice([0.01, 0.3, 3]), items)).round(rng.integers(0, 6))
    assert scores(Regression("similarity", low=low, high=high), gold, guess) == pytest.approx(
        by_scipy(gold, guess), abs=1e-9
    )


@pytest.mark.parametrize("constant", [0.1, 0.3, 1 / 3, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("items", [1, 2, 10, 1000, 200_000])
def test_a_constant_guess_correlates_with_nothing(constant, items):
    gold, guess = np.random.default_rng(0).random(items), np.full(items, constant)
    task = Regression("similarity")
    nothing = {"pearson": 0.0, "spearman": 0.0}
    assert scores(task, gold, guess) == scores(task, guess, gold) == scores(task, guess, guess) == nothing


def test_ranks_do_not_depend_on_the_range_of_the_task():
    rng = np.random.default_rng(1)
    gold, guess = rng.random(50), rng.random(50)
    for high in (1, 1e3, 1e9):
        found = scores(Regression("similarity", high=high), gold * high, guess * high)
        assert found == pytest.approx(by_scipy(gold, guess), abs=1e-9)
        narrow = scores(Regression("similarity", high=high), gold, guess)  # all at one end of the range
        assert narrow["spearman"] == pytest.approx(spearmanr(gold, guess).statistic, abs=1e-9)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=12))
def test_a_correlation_never_leaves_its_bounds(pairs):
    gold, guess = [a for a, _ in pairs], [b for _, b in pairs]
    for found in (scores(Regression("similarity"), gold, guess), scores(Regression("similarity"), gold, gold)):
        assert all(-1 <= value <= 1 for value in found.values())


@settings(deadline=None, max_examples=100)
@given(st.floats(-3, 1e6) | st.integers(-3, 10**6))
def test_any_number_in_the_range_comes_back_from_its_row(value):
    task = Regression("similarity", low=-3, high=10**6)
    assert task.value(task.encode(value, 0)) == value


def test_numbers_are_compared_with_labels_by_their_fifth_of_all():
    rows = Ragged.of([[0.1], [0.9], [0.3], [0.5], [0.7]], 1, float)
    assert Regression("score").codes(rows, np.ones(5)).tolist() == [0, 4, 1, 2, 3]


def test_no_items_have_no_correlation():
    assert scores(Regression("similarity"), [], []) == {"pearson": 0.0, "spearman": 0.0}


@pytest.mark.parametrize("value", [None, "0.5", True, [0.5], float("nan"), float("inf"), 10**400, -(10**400)])
def test_what_is_no_number_is_refused_in_words(value):
    with pytest.raises(LabelError, match="a score must be a number"):
        Regression("similarity").encode(value, 3)


@pytest.mark.parametrize("value", [-0.01, 1.01, 10**30])
def test_a_number_outside_the_range_is_refused_with_the_range(value):
    with pytest.raises(LabelError, match=r"is outside 0.0 to 1.0. Fix: correct it, or change the task's range"):
        Regression("similarity").encode(value, 3)


def test_a_prediction_that_is_as_sure_as_it_should_be_is_on_average_as_right():
    from bursar.tasks import Estimates
    from bursar.uncertainty import entropy_confidence

    task = Regression("urgency", low=2, high=12)
    rng = np.random.default_rng(0)
    spread = 0.5
    gold = rng.normal(7, spread, 20_000)
    guess = np.full_like(gold, 7.0)
    sure = entropy_confidence(Estimates(guess[None], np.full_like(guess[None], spread**2), 2, 12))
    columns = (Ragged(values[:, None], np.arange(len(gold) + 1)) for values in (gold, guess))
    right = task.accuracies(*columns, np.zeros(len(gold), dtype=np.int64))
    assert right.mean() == pytest.approx(sure.mean(), abs=0.01)


# -- as a choice ---
@pytest.mark.parametrize("off", [0.0, 0.03, 0.05, 0.2, 0.35])
@pytest.mark.parametrize("spread", [0.01, 0.05, 0.3, 5.0])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_score_surprises_by_the_probability_of_the_bin_around_it(off, spread, side):
    """A tenth of the range wide (errata 21), whatever the range; by scipy's normal distribution."""
    task = Regression("similarity", low=-1, high=4)
    head = task.head(8, None, 0.0)
    gold = np.array([0.5, 3.0])
    targets = head.targets(Ragged(gold[:, None], np.arange(3)), np.ones(2, int))
    mean, variance = (gold + 1) / 5 + side * off, np.full(2, spread**2)
    found = head.surprise(Normal(torch.tensor(mean), torch.tensor(variance)), targets).item()
    mass = norm.cdf((0.05 - off) / spread) - norm.cdf((-0.05 - off) / spread)
    assert found == pytest.approx(-np.log(mass), rel=1e-4, abs=1e-6)


def test_a_score_however_far_off_surprises_by_a_number():
    head = Regression("similarity").head(8, None, 0.0)
    targets = head.targets(Ragged(np.array([[0.5]]), np.arange(2)), np.ones(1, int))
    surprises = [
        head.surprise(Normal(torch.tensor([mean]), torch.tensor([1e-4])), targets).item()
        for mean in (0.5, 5.0, 1e4, 1e9)
    ]
    assert np.isfinite(surprises).all()
    assert surprises == sorted(surprises)
    assert surprises[0] == pytest.approx(-np.log(norm.cdf(5) - norm.cdf(-5)), abs=1e-9)


def test_a_model_that_knows_nothing_is_surprised_as_by_one_choice_of_many():
    """A normal distribution as wide as the range puts less than a tenth on any bin, and a sure one nearly all."""
    head = Regression("similarity").head(8, None, 0.0)
    targets = head.targets(Ragged(np.array([[0.5]]), np.arange(2)), np.ones(1, int))
    wide, sure = (
        head.surprise(Normal(torch.tensor([0.5]), torch.tensor([variance])), targets).item() for variance in (1.0, 1e-4)
    )
    assert wide > np.log(10)
    assert sure < 1e-5
