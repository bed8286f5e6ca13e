"""The split of a label budget between tasks with the largest gain (paper 5; errata 31).

Labels of task *i* have a value for every task: ``N`` of them gain ``g_i(N) · Σ_j informativeness(i → j)``. Gains are
counted in labels: 100 is the value of the first block of 100 labels of a task to itself.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import index
from typing import Any

import numpy as np

from bursar.allocation.concave import MOST_MONEY, Good, best_steps, greedy_steps
from bursar.allocation.estimates import ReductionRate, SplitEstimates, gain
from bursar.errors import AllocationError
from bursar.ragged import FloatArray, IntArray
from bursar.tasks import CostModel

SEARCHED = ("exact", "greedy", "together")  # methods that leave money only if it would gain nothing
BITS = 60  # gains are rounded to 2^-60 of the largest possible gain


@dataclass(frozen=True)
class SplitProblem:
    """A budget to split, with estimates, prices and limits. All money is in whole units."""

    estimates: SplitEstimates
    prices: tuple[int, ...]
    budget: int
    least: tuple[int, ...] = ()  # labels of each task; default: 0
    most: tuple[int | None, ...] = ()  # default: no limit
    joint: int | None = None  # price of an item labelled for all tasks at once
    costs: CostModel = field(default_factory=lambda: CostModel({}, {}))  # formats money
    importance: tuple[float, ...] = ()  # weights the gain of each task; default: 1
    items: int | None = None  # that can be labelled for all tasks at once

    def __post_init__(self) -> None:
        count = len(self.tasks)
        object.__setattr__(self, "importance", tuple(map(float, self.importance)) or (1.0,) * count)
        if len(self.importance) != count or not all(math.isfinite(value) and value >= 0 for value in self.importance):
            raise AllocationError(f"importance = {self.importance}", fix="give each task a number from 0 up")
        given: dict[str, tuple[int | None, ...]] = {
            "prices": self.prices,
            "least": self.least or (0,) * count,
            "most": self.most or (None,) * count,
        }
        for name, values in given.items():
            if len(values) != count:
                raise AllocationError(f"{len(values)} {name} for {count} tasks", fix="give one per task")
            object.__setattr__(self, name, tuple(None if value is None else _whole(name, value) for value in values))
        object.__setattr__(self, "budget", _whole("budget", self.budget))
        if self.budget < 0:
            raise AllocationError(f"a budget of {self.budget}", fix="give a number from 0 up")
        if self.joint is not None and _whole("joint", self.joint) <= 0:
            raise AllocationError(f"an item for all tasks at {self.joint}", fix="give a price above 0, or none")
        for task, price, least, most in self._rows():
            if price <= 0:
                raise AllocationError(f"task {task!r}: a price of {price}", fix="use a number above 0")
            if least < 0 or (most is not None and most < least):
                raise AllocationError(
                    f"task {task!r}: at least {least:,} labels are asked for"
                    + ("" if most is None else f", and at most {most:,} can be had"),
                    fix="give a minimum from 0 up, and a cap that is not below it; "
                    "a minimum of a campaign is one of each round",
                )
        if (cost := self.minimums(self.cheapest_items)) > self.budget:
            task, price, least, _ = max(self._rows(), key=lambda row: row[1] * row[2])
            raise AllocationError(
                f"the minimums cost {self.show(cost)}, and the budget is {self.show(self.budget)}: "
                f"task {task!r} alone has {least:,} labels at {self.show(price)}",
                fix="lower a minimum, or raise the budget",
            )

    def _rows(self) -> list[tuple[str, int, int, int | None]]:
        return list(zip(self.tasks, self.prices, self.least, self.most, strict=True))

    def check_apart(self) -> None:
        """Refuse minimums that are affordable only if items are labelled for all tasks at once."""
        if self.spare < 0:
            raise AllocationError(
                f"the minimums cost {self.show(self.minimums())} where each label is of another item, and the budget "
                f"is {self.show(self.budget)}",
                fix="label items for all tasks at once (together), lower a minimum, or raise the budget",
            )

    def minimums(self, items: int = 0) -> int:
        """The cost of the minimums with some items labelled for all tasks; convex in the number of items."""
        alone = (price * max(0, least - items) for price, least in zip(self.prices, self.least, strict=True))
        return items * (self.joint or 0) + sum(alone)

    @property
    def cheapest_items(self) -> int:
        """The number of items for all tasks with which the minimums cost the least; 0 without a joint price."""
        if self.joint is None:
            return 0
        ends = {0, *self.least, *self.caps}
        return min((n for n in ends if n <= min(self.caps, default=n)), key=lambda n: (self.minimums(n), n))

    @property
    def caps(self) -> tuple[int, ...]:
        """The caps of the tasks that have one, and of items for all tasks."""
        return tuple(most for most in (*self.most, self.items) if most is not None)

    def shared_items(self) -> tuple[int, int]:
        """The smallest and the largest affordable number of items for all tasks, including the minimums."""
        assert self.joint is not None
        middle = self.cheapest_items
        most = min([self.budget // self.joint, *self.caps])
        least = bisect_left(range(middle), True, key=lambda items: self.minimums(items) <= self.budget)
        above = range(middle + 1, most + 1)
        return least, middle + bisect_left(above, True, key=lambda items: self.minimums(items) > self.budget)

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.estimates.tasks

    @property
    def rates(self) -> tuple[ReductionRate, ...]:
        return tuple(self.estimates.rates[task] for task in self.tasks)

    @property
    def worth(self) -> FloatArray:
        """The mean value of a label of the first block of each task to all tasks: (tasks,)."""
        found: FloatArray = (self.estimates.informativeness.value * self.importance).sum(axis=1)
        return found

    @property
    def first(self) -> FloatArray:
        """The value of the very first label of each task to all tasks; higher, because value falls within a block."""
        found: FloatArray = self.worth * np.array([float(gain(1, rate)) for rate in self.rates])
        return found

    @property
    def spare(self) -> int:
        """The budget minus the minimums, with each label of another item; may be negative."""
        return self.budget - self.minimums()

    @property
    def room(self) -> tuple[int, ...]:
        """The number of labels of each task beyond its minimum that ``spare`` pays for."""
        return tuple(
            self.spare // price if most is None else min(self.spare // price, most - least)
            for _, price, least, most in self._rows()
        )

    def gains(self, counts: Sequence[int]) -> FloatArray:
        """The gain of each task from these numbers of labels of each: (from, to)."""
        own = np.array([float(gain(count, rate)) for count, rate in zip(counts, self.rates, strict=True)])
        return own[:, None] * self.estimates.informativeness.value * self.importance

    def show(self, units: int) -> str:
        return self.costs.show(units)

    def money(self, units: int) -> int | float:
        amount = self.costs.money(units)
        return int(amount) if amount == int(amount) else float(amount)


@dataclass(frozen=True)
class Split:
    """The number of labels of each task to buy; one that violates its problem cannot be created."""

    problem: SplitProblem
    counts: tuple[int, ...]
    method: str
    bound: float | None = None  # upper bound of the gain of any split, if known
    together: int = 0  # items labelled for all tasks at once, at the joint price

    def __post_init__(self) -> None:
        for (task, _, least, most), count in zip(self.problem._rows(), self.counts, strict=True):
            if count < max(least, self.together) or (most is not None and count > most):
                raise AllocationError(f"{self.method}: {count:,} labels of task {task!r} are not within its limits")
        if self.cost > self.problem.budget:
            raise AllocationError(
                f"{self.method}: {self.problem.show(self.cost)} is above the budget of "
                f"{self.problem.show(self.problem.budget)}"
            )

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.problem.tasks

    @property
    def spent(self) -> tuple[int, ...]:
        """Money for each task, without items labelled for all tasks at once."""
        return tuple((n - self.together) * p for n, p in zip(self.counts, self.problem.prices, strict=True))

    @property
    def cost(self) -> int:
        return sum(self.spent) + self.together * (self.problem.joint or 0)

    @property
    def unspent(self) -> int:
        return self.problem.budget - self.cost

    @property
    def gains(self) -> FloatArray:
        """The gain of each task from the labels of each: (from, to)."""
        return self.problem.gains(self.counts)

    @property
    def total(self) -> float:
        return float(self.gains.sum())

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on unusual splits, as sentences."""
        return tuple(_notes(self))

    def describe(self) -> dict[str, Any]:
        """The split as JSON, with money as amounts, not units."""
        gains, spent = self.gains, [self.problem.money(units) for units in self.spent]
        tasks = {
            task: {
                "labels": self.counts[at],
                "spent": spent[at],
                "gain": float(gains[at, at]),
                "gain_to_others": {other: float(gains[at, to]) for to, other in enumerate(self.tasks) if to != at},
            }
            for at, task in enumerate(self.tasks)
        }
        cost, unspent = self.problem.money(self.cost), self.problem.money(self.unspent)
        whole = {"total": self.total, "bound": self.bound, "cost": cost, "unspent": unspent}
        return {"method": self.method, "tasks": tasks, **whole, "together": self.together, "notes": list(self.notes)}


def exact(problem: SplitProblem) -> Split:
    """The optimal split. A task whose labels have no value to all tasks together gets its minimum.

    Of equally good splits the cheapest, then the one with the most labels of the first task, the second, and so on.
    """
    buying, goods, _ = _goods(problem)
    split = Split(problem, _counts(problem, buying, best_steps(goods, problem.spare)), "exact")
    return replace(split, bound=split.total)


def greedy(problem: SplitProblem) -> Split:
    """Buy labels by value per price, skipping those that no longer fit.

    Optimal if all labels cost the same; otherwise short by less than the gain of the first label that does not fit
    (errata 31), because the fractional optimum contains only a part of that label more.
    """
    buying, goods, shift = _goods(problem)
    steps, bound = greedy_steps(goods, problem.spare) if goods else ([], 0.0)
    minimum = float(problem.gains(problem.least).sum())
    return Split(problem, _counts(problem, buying, steps), "greedy", bound=minimum + math.ldexp(bound, -shift))


def _counts(problem: SplitProblem, buying: Sequence[int], steps: Sequence[int]) -> tuple[int, ...]:
    """The minimums, and more labels of the tasks worth buying for."""
    more = dict(zip(buying, steps, strict=True))
    return tuple(least + more.get(at, 0) for at, least in enumerate(problem.least))


def _goods(problem: SplitProblem) -> tuple[list[int], list[Good], int]:
    """The tasks worth buying for, and the gain of each of their labels in units of 2^−shift.

    The gain of a label is ``β^(1/u)`` times the one before. Rounding keeps the order, and a sum of ten million labels
    has a relative error of at most 10^-11.
    """
    problem.check_apart()
    worth, room = problem.worth, problem.room
    buying = [at for at in range(len(worth)) if worth[at] > 0 and room[at] > 0]
    first, decay, reach = [], [], 0.0
    for at in buying:
        rate = problem.rates[at]
        decay.append(-math.log(rate.beta) / rate.block)
        first.append(float(worth[at] * gain(1, rate)) * math.exp(-decay[-1] * problem.least[at]))
        reach += first[-1] / float(gain(1, rate)) * float(gain(room[at], rate))
    if reach <= 0:
        return [], [], 0
    shift = BITS - math.frexp(reach)[1]
    goods = [_good(problem, at, math.ldexp(f, shift), d) for at, f, d in zip(buying, first, decay, strict=True)]
    return buying, goods, shift


def _good(problem: SplitProblem, at: int, first: float, decay: float) -> Good:
    labels = problem.room[at]
    if decay > 0:  # further labels round to 0
        labels = min(labels, math.ceil((math.log(max(1.0, first)) + 1) / decay))
    check_countable(problem.tasks[at], labels)
    worth: IntArray = np.minimum.accumulate(np.rint(first * np.exp(-decay * np.arange(labels))).astype(np.int64))
    return Good(worth[worth > 0], problem.prices[at])


def check_countable(task: str, labels: int) -> None:
    """Refuse more labels of a task than arrays can hold."""
    if labels > MOST_MONEY:
        raise AllocationError(
            f"task {task!r}: {labels:,} labels are affordable, above {MOST_MONEY:,}",
            fix="give it a cap, or a smaller budget",
        )


def _notes(split: Split) -> list[str]:
    problem = split.problem
    harmful = [at for at, worth in enumerate(problem.worth) if worth <= 0]
    if len(harmful) == len(problem.tasks):
        known = problem.estimates.informativeness
        clear = known.value < -2 * known.error
        return [
            "No label of any task is worth its money: each task's labels harm the others at least as much as they help "
            "it. " + ("Only the minimums are bought." if any(problem.least) else "Nothing is bought."),
            *([] if clear.any() else ["But no harm is beyond its error, so this is no advice: nothing is known."]),
        ]
    notes = []
    for at in harmful:
        bought = f"only its minimum of {problem.least[at]:,} is bought" if problem.least[at] else "none are bought"
        task, worth = problem.tasks[at], problem.worth[at]
        why = ", because it harms others" if worth < 0 else ""
        notes.append(f"A label of {task} is worth {worth:.3g} to all tasks together{why}: {bought}.")
    price, task = min((price, task) for task, price, _, _ in problem._rows())
    left, more = problem.show(split.unspent), sum(split.counts) > sum(problem.least)
    full = [count == most for count, most in zip(split.counts, problem.most, strict=True)]
    rows = zip(problem.prices, full, problem.worth, strict=True)
    useful = [price for price, is_full, worth in rows if worth > 0 and not is_full]
    if problem.budget and not more and not split.unspent:
        notes.append("The minimums take the whole budget.")
    elif not more and split.unspent < price:
        whose = f"The {left} that the minimums leave" if any(problem.least) else left
        notes.append(f"{whose} buys nothing: the cheapest label, of {task}, costs {problem.show(price)}.")
    elif split.unspent >= price and all(full):
        notes.append(f"Every task is at its cap: {left} is left.")
    elif split.unspent >= min(useful, default=math.inf) and split.method in SEARCHED:
        notes.append(f"No further label would gain anything that counts: {left} is left.")
    return notes


def _whole(name: str, value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        message = f"{name}: {value!r} is not a whole number"
        raise AllocationError(message, fix="count in whole units and labels") from None


def typical_price(*parts: IntArray) -> int:
    """The sum of the mean prices in whole units, rounded up, so that a split is affordable."""
    return max(1, math.ceil(sum(Fraction(int(part.sum()), max(1, len(part))) for part in parts)))
