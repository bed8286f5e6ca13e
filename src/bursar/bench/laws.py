"""Symbolic regression: Operon against gplearn, the engine of paper 2."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bursar.bench.harness import Case, Measured, Sides, bench_case
from bursar.bench.laws_training import CASES as TRAINING
from bursar.laws.regression import EFFORTS, Effort, chosen, fit_front, held_out, judged
from bursar.ragged import FloatArray

CASES: list[Case] = [*TRAINING]
NAMES = ("n", "tasks", "ami")
SETTINGS = 300
NOISE = 0.01
# Operon needs little to be as good as gplearn with its usual population and the generations of paper 2.
ASKED = {"operon": Effort(200, 20), "gplearn": EFFORTS["gplearn"]}


def made_table(rows: int = SETTINGS, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Settings as paper 2 varies them, with scores by the form of its equation 6 and noise."""
    rng = np.random.default_rng([seed, 113])
    n = rng.choice(np.arange(1000, 20001, 500), rows).astype(float)
    tasks, ami = rng.integers(2, 16, rows).astype(float), rng.uniform(0.1, 1.0, rows)
    scores = 0.0025 * np.sqrt((np.log(tasks) + 0.45) * ami * n / (ami + 0.6))
    return np.stack([n, tasks, ami], axis=1), scores + rng.normal(0.0, NOISE, rows)


def timed(side: Callable[[], float]) -> Measured:
    """Seconds, and the held-out error that they led to."""
    start = time.perf_counter()
    error = side()
    return Measured(time.perf_counter() - start, {"held_out_mse": error})


@bench_case(
    CASES,
    "operon-vs-gplearn",
    "a formula from 300 settings: Operon against gplearn with paper 2's settings, and the held-out errors of both",
    repeats=1,
    measure=timed,
)
def engines() -> Sides:
    """The same rows, the same rows held out, the same choice among what each found, constants refitted for both."""
    X, y = made_table()
    fit, out = held_out(len(y))

    def found_by(engine: str, effort: Effort) -> float:
        front = fit_front(X[fit], NAMES, y[fit], engine=engine, effort=effort)
        return chosen(judged(front, X[fit], y[fit])).formula.error(X[out], y[out])

    def side(engine: str) -> Callable[[], Any]:
        return lambda: found_by(engine, ASKED[engine])

    for engine in ASKED:
        found_by(engine, Effort(20, 1))  # imports are no part of the search
    return side("operon"), side("gplearn")
