"""Monotone models as a baseline for formulas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bursar.laws.regression import FOLDS, folds
from bursar.ragged import FloatArray

TREES = 50
RISING = ("n", "n_other", "ami", "alpha")  # more of these should not hurt; more tasks may (paper 2)


def monotone_model(X: FloatArray, names: Sequence[str], y: FloatArray) -> Any:
    """Fit isotonic regression for one variable, otherwise boosted trees that rise with ``RISING``."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.isotonic import IsotonicRegression

    if len(names) == 1:
        rises = names[0] in RISING or np.cov(X[:, 0], y)[0, 1] >= 0
        return IsotonicRegression(increasing=bool(rises), out_of_bounds="clip").fit(X[:, 0], y)
    upwards = [int(name in RISING) for name in names]
    return HistGradientBoostingRegressor(
        monotonic_cst=upwards,
        learning_rate=0.2,
        max_iter=TREES,
        min_samples_leaf=5,
        early_stopping=False,
        random_state=0,
    ).fit(X, y)


def monotone_values(X: FloatArray, names: Sequence[str], y: FloatArray, at: FloatArray) -> FloatArray:
    """Predictions of the monotone model for other rows: (rows,)."""
    model = monotone_model(X, names, y)
    found: FloatArray = model.predict(at[:, 0] if len(names) == 1 else at)
    return found


def monotone_error(X: FloatArray, names: Sequence[str], y: FloatArray, *, seed: int = 0) -> float:
    """The mean squared error in cross-validation, on the same folds as formulas."""
    fold, misses = folds(len(y), seed), np.empty(len(y))
    for k in range(FOLDS):
        out = fold == k
        misses[out] = monotone_values(X[~out], names, y[~out], X[out]) - y[out]
    return float(np.mean(misses**2))
