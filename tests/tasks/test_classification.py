"""Classification scores against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from bursar.ragged import Ragged
from bursar.tasks import Beliefs, Classification

LABELS = tuple("abcdefg")


@pytest.mark.parametrize("seed", range(20))
def test_accuracy_and_f1_are_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    items, classes = rng.integers(1, 60), rng.integers(1, len(LABELS) + 1)
    gold = rng.integers(0, classes, items)
    guess = np.where(rng.random(items) < 0.6, gold, rng.integers(0, len(LABELS), items))
    task = Classification("intent", LABELS)
    scores = task.evaluate(Ragged.of(gold[:, None], 1), Ragged.of(guess[:, None], 1), np.ones(items, int))
    assert scores == pytest.approx(
        {
            "accuracy": accuracy_score(gold, guess),
            "macro_f1": f1_score(gold, guess, average="macro", zero_division=0),
            "weighted_f1": f1_score(gold, guess, average="weighted", zero_division=0),
        }
    )


def test_no_items_score_zero():
    nothing = Ragged.of([], 1)
    assert set(Classification("intent", LABELS).evaluate(nothing, nothing, np.zeros(0, int)).values()) == {0.0}


def test_the_best_class_is_that_of_the_mean_belief():
    passes = np.array([[[0.6, 0.4]], [[0.6, 0.4]], [[0.0, 1.0]]])  # the vote says 0, the mean 1
    assert Classification("intent", ("a", "b")).decode(Beliefs.of(passes, [1])).values.tolist() == [[1]]
