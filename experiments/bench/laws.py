"""Symbolic regression: Operon against gplearn, the engine of paper 2."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from bursar.laws.regression import EFFORTS, Effort, FitSettings, choose, cross_validated, fit_front, held_out
from bursar.ragged import FloatArray
from experiments.bench.harness import Case, Measured, Sides
from experiments.bench.judged import judged
from experiments.bench.laws_training import CASES as TRAINING

CASES: list[Case] = [*TRAINING]
NAMES = ("n", "tasks", "ami")
SETTINGS = 300
NOISE = 0.01
SEEDS = (1, 2, 3, 4, 5)  # of tables and searches; nothing was chosen by looking at these tables
RUNGS = (Effort(100, 10), Effort(200, 20), Effort(400, 40), EFFORTS["operon"])  # more and more effort


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
    front = fit_front(X[fit], NAMES, y[fit], FitSettings(engine, effort, seed))
    formula = choose(cross_validated(front, X[fit], y[fit], seed=seed)).formula
    return {"seconds": time.perf_counter() - start, "error": formula.error(X[out], y[out])}


def reached(goal: float, rungs: Sequence[Effort], rows: int, seed: int) -> dict[str, float]:
    """Operon with more and more effort until its error is no larger: all seconds up to there, and the last error."""
    spent = 0.0
    for effort in rungs:
        found = found_by("operon", effort, rows, seed)
        spent += found["seconds"]
        if found["error"] <= goal:
            break
    return {"seconds": spent, "error": found["error"]}


def side_by_side(line: dict[str, Any]) -> dict[str, Any]:
    """The median over tables of how many times as long theirs took, and of how large our error is beside theirs."""
    ours, whole, theirs = (line.pop(name) for name in ("searches", "whole_searches", "theirs_searches"))

    def ratios(above: Sequence[Mapping[str, float]], below: Sequence[Mapping[str, float]], what: str) -> list[float]:
        return [round(a[what] / b[what], 3) for a, b in zip(above, below, strict=True)]

    faster, errors = ratios(theirs, ours, "seconds"), ratios(ours, theirs, "error")
    return {
        "ratio": float(np.median(faster)),
        "ratios": faster,
        "error_ratio": float(np.median(errors)),
        "error_ratios": errors,
        "whole_ratio": float(np.median(ratios(theirs, whole, "seconds"))),
        "whole_error_ratio": float(np.median(ratios(whole, theirs, "error"))),
    }


@judged(
    CASES,
    "operon-vs-gplearn",
    "a formula from 300 settings: how long Operon takes to reach the held-out error of gplearn at paper 2's effort, "
    "efforts that did not get there counted too (whole_…: at its own default effort); five tables that nothing was "
    "chosen by, a seed each, medians of ratios",
    compare=side_by_side,
    at_most={"error_ratio": 1.0},
    at_least={"ratio": 20.0},
)
def engines(
    rungs: Sequence[Effort] = RUNGS,
    theirs: Effort = EFFORTS["gplearn"],
    rows: int = SETTINGS,
    seeds: Sequence[int] = SEEDS,
) -> Sides:
    """The same rows, the same rows held out, the same choice among what each found, constants refitted for both."""
    for engine in ("operon", "gplearn"):
        found_by(engine, Effort(20, 1), rows, 0)  # imports are no part of the search

    @cache
    def searches() -> dict[str, list[dict[str, float]]]:
        """In turn, so that a noisy moment hits both."""
        found: dict[str, list[dict[str, float]]] = {"gplearn": [], "operon": [], "whole": []}
        for seed in seeds:
            found["gplearn"].append(found_by("gplearn", theirs, rows, seed))
            found["operon"].append(reached(found["gplearn"][-1]["error"], rungs, rows, seed))
            found["whole"].append(found_by("operon", rungs[-1], rows, seed))
        return found

    def side(engine: str, **more: str) -> Callable[[], Measured]:
        def measured() -> Measured:
            mine = searches()[engine]
            about = {name: searches()[of] for name, of in more.items()}
            return Measured(float(np.median([one["seconds"] for one in mine])), {"searches": mine, **about})

        return measured

    return side("operon", whole_searches="whole"), side("gplearn")
