"""A split with its reasons, predicted gains, sensitivity to errors of the estimates, and baselines for comparison.

Baselines and ablations have the same estimates, and respect the budget, the minimums and the caps. The minimums are
bought first, then the baseline's shares as far as possible; what rounding leaves is spent on the tasks in turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from bursar.allocation.estimates import SMALLEST, SplitEstimates, half_life, tells_nothing
from bursar.allocation.items import together
from bursar.allocation.robust import (
    METHODS,
    PredictedGain,
    RobustSplit,
    ScenarioOutcome,
    least_regret,
    predicted,
    sensitivity,
)
from bursar.allocation.split import Split, SplitProblem, exact
from bursar.errors import AllocationError
from bursar.learners.learner import Progress, no_progress
from bursar.random_streams import rng
from bursar.registry import Registry

RANDOM_SPLITS = 51  # of which the median is shown
EFFECTS = 4  # number of effects between tasks in the reasons
ALIKE = 1.05  # ratios below this count as equal


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


# -- advice ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SplitAdvice:
    """How to split a budget, and why."""

    split: Split
    gains: dict[str, PredictedGain]  # of each task, from all labels
    whole: PredictedGain  # of all tasks together
    outcomes: list[ScenarioOutcome]  # largest regret first
    others: list[Split]  # baselines, best first
    left_out: tuple[str, ...]  # baselines that cannot be computed, and why
    robust: RobustSplit | None = None

    @property
    def regretted(self) -> list[ScenarioOutcome]:
        """The scenarios in which another split would be better, by more than rounding."""
        return [
            outcome
            for outcome in self.outcomes
            if outcome.best.counts != self.split.counts and outcome.regret > 1e-6 * abs(outcome.best.total)
        ]

    @property
    def reasons(self) -> list[str]:
        """The reasons for the split, as sentences."""
        split, joint = self.split, self.split.problem.joint
        parts = (_shared, _best_value, _effects, _saturation, _for_less)
        sentences = [*split.notes, *(sentence for part in parts for sentence in part(split))]
        for other in self.others:
            if joint is not None and other.together and other.total > split.total:
                price = split.problem.show(joint)
                sentences.append(
                    f"Labelling the same items for all tasks, at {price} an item, would gain more than this: "
                    "the method together considers such items, too."
                )
        return sentences

    def describe(self) -> dict[str, Any]:
        problem = self.split.problem
        kept = self.robust
        return {
            "budget": problem.money(problem.budget),
            "currency": problem.costs.currency,
            **self.split.describe(),
            "reasons": self.reasons,
            "predicted": {task: asdict(gain) for task, gain in self.gains.items()},
            "predicted_in_all": asdict(self.whole),
            "prices": {task: problem.money(price) for task, price in zip(problem.tasks, problem.prices, strict=True)},
            "joint_price": None if problem.joint is None else problem.money(problem.joint),
            "estimates": problem.estimates.describe(),
            "scenarios": [outcome.describe() for outcome in self.outcomes],
            "robust": kept and {"regret": kept.regret, "bound": kept.bound, "exact_split_regret": kept.nominal},
            "baselines": [other.describe() for other in self.others],
            "baselines_left_out": list(self.left_out),
        }


def advise(
    problem: SplitProblem,
    context: Context | None = None,
    *,
    method: str = "exact",
    seed: int = 0,
    progress: Progress = no_progress,
) -> SplitAdvice:
    """Split a budget by a method, and explain the split."""
    if method not in METHODS:
        raise AllocationError(f"there is no method {method!r}", fix=f"use {', '.join(METHODS)}")
    context = replace(context or Context(), method=method)
    kept = least_regret(problem, progress) if method == "robust" else None
    split = METHODS[method](problem) if kept is None else kept.split
    outcomes = sensitivity(split, progress) if kept is None else list(kept.outcomes)
    others = [
        _middle_random(problem, seed) if s.method == "random" else s for s in compare(problem, context, seed=seed)
    ]
    lacking = [(name, missing(name, problem, context)) for name in ("same items", "difficulty")]
    if problem.spare < 0:
        lacking.append(("all others", missing("equal money", problem, context)))
    return SplitAdvice(
        split,
        *predicted(split, seed=seed),
        outcomes,
        sorted(others, key=lambda other: -other.total),
        tuple(f"{name}: {why}" for name, why in lacking if why),
        kept,
    )


def _middle_random(problem: SplitProblem, seed: int) -> Split:
    generator = rng(seed, "random splits")
    drawn = [random_split(problem, Context(), generator) for _ in range(RANDOM_SPLITS)]
    return sorted(drawn, key=lambda split: split.total)[RANDOM_SPLITS // 2]


def _best_value(split: Split) -> list[str]:
    """The task whose first label is worth the most for its price."""
    problem = split.problem
    worth = problem.first / np.array([float(problem.costs.money(price)) for price in problem.prices])
    best, least = int(worth.argmax()), int(worth.argmin())
    if worth[best] <= 0 or best == least:
        return []
    times = worth[best] / worth[least] if worth[least] > 0 else math.nan
    last = f", {times:.3g} times as much as one of {split.tasks[least]}" if times >= ALIKE else ""
    return [f"For its price, a first label of {split.tasks[best]} is worth the most to all tasks together{last}."]


def _shared(split: Split) -> list[str]:
    """The items labelled for all tasks."""
    joint = split.problem.joint
    if not split.together or joint is None:
        return []
    apart = split.problem.show(sum(split.problem.prices))
    return [
        f"{split.together:,} items are labelled for all tasks at once, at {split.problem.show(joint)} each: "
        f"apart, those labels would cost {apart}."
    ]


def _effects(split: Split) -> list[str]:
    """The strongest effects between tasks, of those beyond two standard errors."""
    known = split.problem.estimates.informativeness
    pairs = [(at, to) for at, to in np.argwhere(np.abs(known.value) > 2 * known.error).tolist() if at != to]
    if not pairs and known.error.any():
        return ["Whether labels of any task help or harm another is not known: no effect is beyond its error."]
    pairs.sort(key=lambda pair: -abs(known.value[pair]))
    sentences = []
    for at, to in pairs[:EFFECTS]:
        value, error = float(known.value[at, to]), float(known.error[at, to])
        task, other = known.tasks[at], known.tasks[to]
        doubt = f" (± {error:.2g})" if error else ""
        verb = "advances" if value > 0 else "sets back"
        sentences.append(f"A label of {task} {verb} {other} by {abs(value):.2g}{doubt} labels of its own.")
    return sentences


def _saturation(split: Split) -> list[str]:
    """How fast labels lose value, fastest first."""
    sentences = []
    rows = sorted(
        (half_life(rate), task, count, rate)
        for task, count, rate, worth in zip(
            split.tasks, split.counts, split.problem.rates, split.problem.worth, strict=True
        )
        if worth > 0  # irrelevant for labels that harm
    )
    for half, task, count, rate in rows:
        if tells_nothing(rate):
            sentences.append(f"How fast labels of {task} lose value is not known; {rate.beta:g} per block is assumed.")
        elif math.isinf(half):
            sentences.append(f"Labels of {task} do not lose value.")
        else:
            worth = 100 * 0.5 ** (count / half)
            left = f"{worth:.2g} %" if worth >= 0.1 else "next to nothing"
            after = f"; after these {count:,} it is worth {left}" if count else ""
            sentences.append(f"One more label of {task} is worth half of the first after {half:,.0f} labels{after}.")
    return sentences


def _for_less(split: Split) -> list[str]:
    """The gain of half of the budget, unless the minimums take more than that."""
    problem = split.problem
    if split.total <= 0 or 2 * problem.spare < problem.budget:
        return []
    half = (together if split.method == "together" else exact)(replace(problem, budget=problem.budget // 2))
    return [f"With half of the money the best split would gain {100 * half.total / split.total:.3g} % of this."]
