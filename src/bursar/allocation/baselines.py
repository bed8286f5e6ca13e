"""Baseline splits and ablations of the method, with the same estimates and budget.

Every baseline respects the budget, the minimums and the caps. The minimums are bought first, then the baseline's shares
as far as budget and caps allow; what rounding leaves is spent label by label on the tasks in turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from bursar.allocation.estimates import SMALLEST, SplitEstimates
from bursar.allocation.robust import METHODS
from bursar.allocation.split import Split, SplitProblem
from bursar.errors import AllocationError
from bursar.random_streams import rng
from bursar.registry import Registry


@dataclass(frozen=True)
class Context:
    """Further inputs of some baselines."""

    scores: Mapping[str, float] = field(default_factory=dict)  # by task, 0 to 1, of a model of the seed labels
    method: str = "exact"  # of the ablations


Baseline = Callable[[SplitProblem, Context, np.random.Generator], Split]

BASELINES: Registry[Baseline] = Registry("baseline split", "bursar.baseline_splits")


def compare(problem: SplitProblem, context: Context | None = None, *, seed: int = 0) -> list[Split]:
    """All money on each task in turn, then every registered baseline that can be computed."""
    context = context or Context()
    found = [only(problem, task) for task in problem.tasks if problem.spare >= 0]
    for place, name in enumerate(BASELINES):
        if not missing(name, problem, context):
            found.append(BASELINES[name](problem, context, rng(seed, "baseline splits", place)))
    return found


def missing(name: str, problem: SplitProblem, context: Context) -> str:
    """Why a baseline cannot be computed; empty if it can."""
    if name == "same items":
        return "the price of an item labelled for all tasks is not known" if problem.joint is None else ""
    unknown = [task for task in problem.tasks if task not in context.scores]
    if name == "difficulty" and unknown:
        return f"the seed score of {', '.join(unknown)} is not known"
    return "the minimums of different items cost more than the budget" if problem.spare < 0 else ""


def only(problem: SplitProblem, task: str) -> Split:
    """All money on one task, beyond the minimums of the others."""
    if task not in problem.tasks:
        raise AllocationError(f"there is no task {task!r}", fix=f"the tasks are {', '.join(problem.tasks)}")
    return by_shares(problem, [float(other == task) for other in problem.tasks], f"only {task}")


def same_items(problem: SplitProblem, context: Context, generator: np.random.Generator) -> Split:
    """Every item for all tasks, at the joint price; labels of single tasks only for minimums and the rest."""
    if problem.joint is None:
        raise AllocationError("the same items for all tasks have no price", fix="give the price of such an item")
    _, items = problem.shared_items()
    counts = filled(problem, [max(items, least) for least in problem.least], problem.budget - problem.minimums(items))
    return Split(problem, counts, "same items", together=items)


def by_difficulty(problem: SplitProblem, context: Context, generator: np.random.Generator) -> Split:
    """Money in proportion to 1 − the score of a model of the seed labels."""
    if lacking := missing("difficulty", problem, context):
        raise AllocationError(f"no split by difficulty: {lacking}", fix="label a few items for it, or give the score")
    lacks = [max(0.0, 1 - context.scores[task]) for task in problem.tasks]
    return by_shares(problem, lacks if any(lacks) else [1.0] * len(lacks), "difficulty")


def random_split(problem: SplitProblem, context: Context, generator: np.random.Generator) -> Split:
    """Random shares, uniformly distributed."""
    return by_shares(problem, generator.dirichlet(np.ones(len(problem.tasks))).tolist(), "random")


def with_one_rate(problem: SplitProblem, context: Context, generator: np.random.Generator) -> Split:
    """The best split if all tasks lost value alike: by the geometric mean of the rates per label."""
    decay = float(np.mean([math.log(rate.beta) / rate.block for rate in problem.rates]))
    shared = {}
    for task, rate in zip(problem.tasks, problem.rates, strict=True):
        beta = min(1.0, max(SMALLEST, math.exp(decay * rate.block)))
        shared[task] = replace(rate, beta=beta, low=beta, high=beta)
    return _as_if(problem, SplitEstimates(problem.estimates.informativeness, shared), context, "one rate")


def _as_if(problem: SplitProblem, estimates: SplitEstimates, context: Context, name: str) -> Split:
    """The split by other estimates, with the same method."""
    found = METHODS[context.method](replace(problem, estimates=estimates))
    return Split(problem, found.counts, name, together=found.together)


def by_shares(problem: SplitProblem, shares: Sequence[float], method: str) -> Split:
    """Divide the budget by shares; a task's minimum counts towards its share."""
    problem.check_apart()
    whole = sum(map(Fraction, shares))
    minimum = [price * least for price, least in zip(problem.prices, problem.least, strict=True)]
    wish = [max(Fraction(0), problem.budget * Fraction(s) / whole - m) for s, m in zip(shares, minimum, strict=True)]
    part = min(Fraction(1), problem.spare / (sum(wish) or Fraction(1)))
    counts = [
        least + min(room, math.floor(money * part / price))
        for money, price, least, room in zip(wish, problem.prices, problem.least, problem.room, strict=True)
    ]
    spent = sum(price * count for price, count in zip(problem.prices, counts, strict=True))
    return Split(problem, filled(problem, counts, problem.budget - spent), method)


def filled(problem: SplitProblem, counts: Sequence[int], left: int) -> tuple[int, ...]:
    """Spend the rest: one label of each task in turn, in the order of the tasks, as long as one fits."""
    found = list(counts)
    limits = [math.inf if most is None else most for most in problem.most]
    while tasks := [at for at, price in enumerate(problem.prices) if price <= left and found[at] < limits[at]]:
        rounds = left // sum(problem.prices[at] for at in tasks)  # many at once if all tasks fit
        rounds = int(max(1, min(rounds, *(limits[at] - found[at] for at in tasks))))
        for at in tasks:
            if (cost := rounds * problem.prices[at]) <= left:
                found[at] += rounds
                left -= cost
    return tuple(found)


# In this order, by which baselines get their random generators.
BASELINES.add("equal money", lambda problem, *_: by_shares(problem, [1.0] * len(problem.tasks), "equal money"))
BASELINES.add("equal counts", lambda problem, *_: by_shares(problem, problem.prices, "equal counts"))
BASELINES.add("same items", same_items)
BASELINES.add("difficulty", by_difficulty)
BASELINES.add("random", random_split)
BASELINES.add("no transfer", lambda problem, c, _: _as_if(problem, problem.estimates.alone(), c, "no transfer"))
BASELINES.add("one rate", with_one_rate)
