"""Symbolic regression: Operon against gplearn, the engine of paper 2."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from bursar.bench.harness import Case, Measured, Sides
from bursar.bench.judged import judged
from bursar.bench.laws_training import CASES as TRAINING
from bursar.laws.regression import EFFORTS, Effort, chosen, fit_front, held_out
from bursar.laws.regression import judged as judged_formulas
from bursar.ragged import FloatArray

CASES: list[Case] = [*TRAINING]
NAMES = ("n", "tasks", "ami")
SETTINGS = 300
NOISE = 0.01
SEEDS = (1, 2, 3, 4, 5)  # of tables and searches; nothing was chosen by looking at these tables
ENGINES = ("operon", "gplearn")


def made_table(rows: int = SETTINGS, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Settings as paper 2 varies them, with scores by the form of its equation 6 and noise."""
    rng = np.random.default_rng([seed, 113])
    n = rng.choice(np.arange(1000, 20001, 500), rows).astype(float)
    tasks, ami = rng.integers(2, 16, rows).astype(float), rng.uniform(0.1, 1.0, rows)
    scores = 0.0025 * np.sqrt((np.log(tasks) + 0.45) * ami * n / (ami + 0.6))
    return np.stack([n, tasks, ami], axis=1), scores + rng.normal(0.0, NOISE, rows)


def found_by(engine: str, effort: Effort, rows: int, seed: int) -> dict[str, float]:
    """The seconds of a search in a table, and the error on rows that were held out of the formula that is taken."""
    X, y = made_table(rows, seed)
    fit, out = held_out(len(y), seed)
    start = time.perf_counter()
    front = fit_front(X[fit], NAMES, y[fit], engine=engine, effort=effort, seed=seed)
    formula = chosen(judged_formulas(front, X[fit], y[fit], seed=seed)).formula
    return {"seconds": time.perf_counter() - start, "error": formula.error(X[out], y[out])}


def side_by_side(line: dict[str, Any]) -> dict[str, Any]:
    """The median over tables of how many times as long theirs took, and of how large our error is beside theirs."""
    ours, theirs = line.pop("searches"), line.pop("theirs_searches")

    def ratios(above: Sequence[Mapping[str, float]], below: Sequence[Mapping[str, float]], what: str) -> list[float]:
        return [round(a[what] / b[what], 3) for a, b in zip(above, below, strict=True)]

    faster, errors = ratios(theirs, ours, "seconds"), ratios(ours, theirs, "error")
    return {
        "ratio": float(np.median(faster)),
        "ratios": faster,
        "error_ratio": float(np.median(errors)),
        "error_ratios": errors,
    }


@judged(
    CASES,
    "operon-vs-gplearn",
    "a formula from 300 settings, each engine at its default effort (gplearn's is paper 2's): five tables that nothing "
    "was chosen by, a seed each, the median ratio of times and of held-out errors",
    compare=side_by_side,
    at_most={"error_ratio": 1.05},
    at_least={"ratio": 20.0},
)
def engines(efforts: Mapping[str, Effort] | None = None, rows: int = SETTINGS, seeds: Sequence[int] = SEEDS) -> Sides:
    """The same rows, the same rows held out, the same choice among what each found, constants refitted for both."""
    asked = dict(efforts or {engine: EFFORTS[engine] for engine in ENGINES})
    for engine in ENGINES:
        found_by(engine, Effort(20, 1), rows, 0)  # imports are no part of the search

    @cache
    def searches() -> dict[str, list[dict[str, float]]]:
        """In turn, so that a noisy moment hits both."""
        found: dict[str, list[dict[str, float]]] = {engine: [] for engine in ENGINES}
        for seed in seeds:
            for engine in ENGINES:
                found[engine].append(found_by(engine, asked[engine], rows, seed))
        return found

    def side(engine: str) -> Callable[[], Measured]:
        def measured() -> Measured:
            mine = searches()[engine]
            about = {"held_out_mse": float(np.median([one["error"] for one in mine])), "searches": mine}
            return Measured(float(np.median([one["seconds"] for one in mine])), about)

        return measured

    return side("operon"), side("gplearn")
