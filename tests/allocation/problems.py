"""Problems for tests, and what the model says of a split, written out once more."""

from __future__ import annotations

import itertools

import numpy as np

from bursar.allocation import Informativeness, ReductionRate, SplitEstimates, SplitProblem

NAMES = ("intent", "slots", "urgency", "topic", "mood", "tone")


def made(betas, blocks, informs, prices, budget, errors=None, ends=None, **more):
    """A problem; informs is the whole matrix, ends the intervals of the rates."""
    tasks = NAMES[: len(betas)]
    value = np.array(informs, dtype=float)
    error = np.zeros_like(value) if errors is None else np.array(errors, dtype=float)
    rates = {}
    for at, (task, beta, block) in enumerate(zip(tasks, betas, blocks, strict=True)):
        low, high = (beta, beta) if ends is None else ends[at]
        rates[task] = ReductionRate(beta, low, high, block)
    return SplitProblem(SplitEstimates(Informativeness(tasks, value, error), rates), tuple(prices), budget, **more)


def random_problem(rng, tasks=None, budget=None, *, limits=True, sure=True, **more):
    """Small, with everything that can be: harmful tasks, rates of 1, minimums, caps, prices with a common divisor."""
    n = int(rng.integers(1, 5)) if tasks is None else tasks
    value = rng.normal(0.1, 0.5, (n, n))
    np.fill_diagonal(value, 1)
    error = np.abs(rng.normal(0, 0.3, (n, n))) * (not sure)
    np.fill_diagonal(error, 0)
    rate = np.sort(rng.uniform(0.05, 1, (n, 3)), axis=1)
    rate[rng.random(n) < 0.2] = 1.0
    prices = (rng.integers(1, 6, n) * rng.integers(1, 3)).tolist()
    budget = int(rng.integers(0, 25)) if budget is None else budget
    if limits:
        least = rng.integers(0, 3, n) * (rng.random(n) < 0.4)
        while (least * prices).sum() > budget:
            least //= 2
        caps = [int(low + rng.integers(0, 8)) if rng.random() < 0.4 else None for low in least]
        more |= {"least": tuple(least.tolist()), "most": tuple(caps)}
    ends = None if sure else rate[:, [0, 2]].tolist()
    return made(rate[:, 1], rng.integers(1, 6, n).astype(float), value, prices, budget, error, ends, **more)


def worth(problem, counts):
    """Σ g_i(N_i) · Σ_j informativeness(i → j), block by block and label by label, from errata 29 to 31."""
    total = 0.0
    for task, count in zip(problem.tasks, counts, strict=True):
        rate = problem.estimates.rates[task]
        row = problem.estimates.informativeness.value[problem.tasks.index(task)]
        b, u = rate.beta, rate.block
        total += sum(row) * (count if b == 1 else u * (1 - b ** (count / u)) / (1 - b))
    return total


def every_split(problem):
    """All that keep to budget and limits."""
    ranges = []
    for price, least, most in zip(problem.prices, problem.least, problem.most, strict=True):
        top = problem.budget // price if most is None else most
        ranges.append(range(least, top + 1))
    for counts in itertools.product(*ranges):
        if sum(n * price for n, price in zip(counts, problem.prices, strict=True)) <= problem.budget:
            yield counts


def six_tasks(betas):
    informs = np.full((6, 6), 0.1) + 0.9 * np.eye(6)
    return made(betas, [1000.0] * 6, informs, [3, 5, 7, 4, 11, 6], 100_000)


def two_alike():
    nobody = Informativeness(("a", "b"), np.eye(2), np.zeros((2, 2)))
    return SplitEstimates(nobody, dict.fromkeys("ab", ReductionRate(0.5, 0.5, 0.5, 50)))
