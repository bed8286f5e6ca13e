"""Splitting a budget between tasks: the exact split against the dynamic programme as it is usually written."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bursar.allocation import Informativeness, ReductionRate, SplitEstimates, SplitProblem, exact, gain
from experiments.bench.harness import Case, Measured, Sides
from experiments.bench.judged import judged, median

CASES: list[Case] = []
PRICES = (3, 5, 7, 4, 11, 6)
BETAS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def six_tasks(budget: int, betas: tuple[float, ...] = BETAS) -> SplitProblem:
    """Six tasks that inform each other a little, in blocks of a hundredth of the budget."""
    tasks = tuple("abcdef")
    informs = 0.1 * np.random.default_rng(0).random((6, 6))
    np.fill_diagonal(informs, 1.0)
    rates = {task: ReductionRate(beta, beta, beta, budget / 100) for task, beta in zip(tasks, betas, strict=True)}
    return SplitProblem(SplitEstimates(Informativeness(tasks, informs, np.zeros((6, 6))), rates), PRICES, budget)


def plainly(problem: SplitProblem) -> tuple[int, ...]:
    """For every task and amount of money, all numbers of labels are tried; numpy adds them up at once."""
    best, choices = np.zeros(problem.budget + 1), []
    for price, rate, worth in zip(problem.prices, problem.rates, problem.worth, strict=True):
        gains = worth * gain(np.arange(problem.budget // price + 1), rate)
        found, chosen = np.empty_like(best), np.empty(len(best), dtype=np.int64)
        for money in range(problem.budget + 1):
            worths = best[money::-price] + gains[: money // price + 1]
            chosen[money] = worths.argmax()
            found[money] = worths[chosen[money]]
        best = found
        choices.append(chosen)
    counts, money = [], problem.budget
    for price, chosen in zip(reversed(problem.prices), reversed(choices), strict=True):
        counts.append(int(chosen[money]))
        money -= price * counts[-1]
    return tuple(reversed(counts))


def _same_gain(line: dict[str, Any]) -> dict[str, Any]:
    return {"gain_difference": abs(line["gain"] - line["theirs_gain"]) / line["theirs_gain"]}


@judged(
    CASES,
    "split",
    "the exact split of 100,000 units of money between 6 tasks, against the plain dynamic programme in numpy",
    at_least={"ratio": 10},
    at_most={"ours": 1, "hardest_seconds": 2, "gain_difference": 1e-12},
    compare=_same_gain,
)
def split(budget: int = 100_000) -> Sides:
    """The same problem for both. ``hardest_seconds`` are ours where labels do not lose worth: nothing is left out."""
    problem = six_tasks(budget)

    def ours() -> Measured:
        taken, found = median(lambda: exact(problem), 9)
        hardest, _ = median(lambda: exact(_hardest(budget)), 3)
        return Measured(taken, {"gain": found.total, "budget": budget, "hardest_seconds": hardest})

    def theirs() -> Measured:
        started = time.perf_counter()
        counts = plainly(problem)
        return Measured(time.perf_counter() - started, {"gain": float(problem.gains(counts).sum())})

    return ours, theirs


def _hardest(budget: int) -> SplitProblem:
    """A label is worth its price, whatever the task, first and last: whatever spends all money is as good."""
    problem = six_tasks(budget, (1.0,) * 6)
    informs = np.eye(6)
    for at, price in enumerate(PRICES):
        informs[at, at - 1] = price - 1
    known = Informativeness(problem.tasks, informs, np.zeros((6, 6)))
    return SplitProblem(SplitEstimates(known, problem.estimates.rates), PRICES, budget)
