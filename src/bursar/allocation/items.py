"""The best split in which some items are labelled for all tasks at once, at the joint price: reading is paid once.

Given the number of such items, the rest is an exact split of the remaining money. The best number is found and proven
by branch and bound. For fractional labels, the gain of tasks worth buying for is a concave function of the number of
items, and that of tasks whose labels do more harm than good is convex. On an interval the convex part lies below its
chord; with the chord instead, the sum is concave, and its maximum bounds the gain. Intervals are divided, the most
promising first, until none has a bound above the best split found.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np

from bursar.allocation.estimates import gain
from bursar.allocation.split import Split, SplitProblem, exact
from bursar.errors import AllocationError
from bursar.ragged import FloatArray

LOOKS = 400  # most exact splits; if some intervals are left then, the bound says so
CLOSE = 1e-12  # relative rounding error of bounds


def together(problem: SplitProblem) -> Split:
    """The best split with any number of items for all tasks; of equally good ones the cheapest."""
    if problem.joint is None:
        raise AllocationError(
            "the price of an item labelled for all tasks is not known", fix="give it (joint_price), or use exact"
        )
    if problem.joint >= sum(problem.prices):
        return replace(exact(problem), method="together")
    bounds, found = _Bounds(problem), dict[int, tuple[float, Split]]()

    def look(items: int) -> float:
        if items not in found:
            split = with_items(problem, items)
            found[items] = split.total, split
        return found[items][0]

    heap: list[tuple[float, int, int, int]] = []  # minus the bound of an interval, where it is attained, and the ends

    def add(first: int, last: int) -> None:
        if first <= last:
            peak, promise = bounds.peak(first, last)
            heappush(heap, (-promise, peak, first, last))

    best = -math.inf
    for first, last in bounds.stretches():
        add(first, last)
    while heap and len(found) < LOOKS:
        promise, peak, first, last = heappop(heap)
        if -promise <= best + CLOSE * abs(best):
            break
        best = max(best, look(peak))
        add(first, peak - 1)
        add(peak + 1, last)
    bound = max(best, -heap[0][0]) if heap and len(found) >= LOOKS else best
    return replace(_cheapest(look, found, bounds), bound=bound)


def _cheapest(look: Callable[[int], float], found: Mapping[int, tuple[float, Split]], bounds: _Bounds) -> Split:
    """The cheapest of the best splits.

    With more money than labels to buy, other numbers of items give the same labels; the cost first falls, then rises.
    """
    best = max(gain for gain, _ in found.values())

    def as_good(items: int) -> bool:
        return bounds.first <= items <= bounds.last and look(items) >= best - CLOSE * abs(best)

    def furthest(start: int, way: int) -> int:
        step = 1
        while as_good(start + way * step):
            start, step = start + way * step, 2 * step
        while step := step // 2:
            if as_good(start + way * step):
                start += way * step
        return start

    def saved(items: int) -> float:
        look(items)
        return -float(found[items][1].cost)

    good = [items for items in found if as_good(items)]
    _top(saved, furthest(min(good), -1), furthest(max(good), 1))
    splits = [split for items, (_, split) in found.items() if as_good(items)]
    return min(splits, key=lambda split: (split.cost, split.together))


def with_items(problem: SplitProblem, items: int) -> Split:
    """The best split with a given number of items for all tasks."""
    return Split(problem, exact(_beside(problem, items)).counts, "together", together=items)


def _beside(problem: SplitProblem, items: int) -> SplitProblem:
    """The remaining problem, given the number of items for all tasks."""
    assert problem.joint is not None
    least = tuple(max(least, items) for least in problem.least)
    budget = problem.budget + items * (sum(problem.prices) - problem.joint)
    return replace(problem, least=least, budget=budget, joint=None)


class _Bounds:
    """Upper bounds of the gain, by the number of items for all tasks."""

    def __init__(self, problem: SplitProblem) -> None:
        self.problem = problem
        self.first, self.last = problem.shared_items()
        self.buying = [at for at, worth in enumerate(problem.worth) if worth > 0]
        self.harmful = [at for at, worth in enumerate(problem.worth) if worth < 0]
        self.useful = lru_cache(maxsize=None)(self._useful)

    def stretches(self) -> Iterator[tuple[int, int]]:
        """Intervals of the number of items on which the harm is convex; they end at the minimums of harmful tasks."""
        begins = {self.problem.least[at] for at in self.harmful}
        cuts = sorted(begin for begin in begins if self.first < begin < self.last)
        for low, high in pairwise([self.first, *cuts, self.last + 1]):
            yield low, high - 1

    def peak(self, first: int, last: int) -> tuple[int, float]:
        """The number of items on an interval with the highest bound, and the bound."""
        begin, end = self.harm(first), self.harm(last)
        slope = (end - begin) / (last - first) if last > first else 0.0

        def promise(items: int) -> float:
            return self.useful(items) + begin + slope * (items - first)

        at = _top(promise, first, last)
        return at, promise(at)

    def _useful(self, items: int) -> float:
        """The largest gain of the tasks worth buying for, with fractional labels.

        By weak duality: with any charge per unit of money, the net gain of each task plus the charge for all money is
        an upper bound, and the smallest one is at the charge where all money is spent. Between charges at which a task
        starts or stops buying, the money spent is linear in the logarithm of the charge.
        """
        part = _beside(self.problem, items)
        wanted = _Wanted.of(part, self.buying)
        money = part.spare + float(wanted.price @ wanted.least)
        log = wanted.charge(money)
        counts = wanted.counts(log)
        gained = sum(float(part.worth[at] * gain(n, part.rates[at])) for at, n in zip(self.buying, counts, strict=True))
        return gained + math.exp(log) * (money - float(wanted.price @ counts))

    def harm(self, items: int) -> float:
        """The negative gain of the harmful tasks, which get only the labels of these items."""
        least, worth, rates = self.problem.least, self.problem.worth, self.problem.rates
        return sum(float(worth[at] * gain(max(least[at], items), rates[at])) for at in self.harmful)


@dataclass(frozen=True, eq=False)
class _Wanted:
    """The optimal number of labels of each task at a charge for money, within its limits."""

    price: FloatArray  # (tasks,)
    least: FloatArray
    most: FloatArray
    decay: FloatArray  # of the value of a label, from one to the next
    start: FloatArray  # logarithm of the value of the first label per price

    @classmethod
    def of(cls, problem: SplitProblem, tasks: Sequence[int]) -> _Wanted:
        rates, price = [problem.rates[at] for at in tasks], np.array([float(problem.prices[at]) for at in tasks])
        beta, block = (np.array([getattr(rate, name) for rate in rates]) for name in ("beta", "block"))
        least = np.array([float(problem.least[at]) for at in tasks])
        caps = [problem.most[at] for at in tasks]
        affordable = least + max(0, problem.spare) / price
        most = np.minimum(affordable, [math.inf if cap is None else cap for cap in caps])
        decay, lost = -np.log(beta) / block, 1 - beta
        steep = np.where(lost > 0, -np.log(beta) / np.where(lost > 0, lost, 1.0), 1.0)
        return cls(price, least, np.maximum(least, most), decay, np.log(problem.worth[list(tasks)] * steep / price))

    def counts(self, log: float, *, keen: bool = False) -> FloatArray:
        """The counts at the charge with this logarithm; an indifferent task takes all if ``keen``, else none."""
        care = np.where((self.start > log) | (keen & (self.start == log)), np.inf, -np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            free = np.where(self.decay > 0, (self.start - log) / self.decay, care)
        return np.clip(free, self.least, self.most)

    def cost(self, log: float, *, keen: bool = False) -> float:
        return float(self.price @ self.counts(log, keen=keen))

    def charge(self, money: float) -> float:
        """The logarithm of the charge at which this money is spent; that of 0 if everything is affordable."""
        if not len(self.price) or float(self.price @ self.most) <= money:
            return -math.inf
        # where a task starts or stops buying
        turns = np.unique(self.start - self.decay * np.stack([self.least, self.most]))
        last = len(turns) - 1  # used if rounding makes it too expensive
        at = next((at for at, turn in enumerate(turns) if self.cost(turn) <= money), last)
        before = self.cost(turns[at], keen=True)
        if at == 0 or before >= money:
            return float(turns[at])
        first = self.cost(turns[at - 1])
        return float(turns[at - 1] + (first - money) / (first - before) * (turns[at] - turns[at - 1]))


def _top(concave: Callable[[int], float], first: int, last: int) -> int:
    """Where a concave function of whole numbers is largest, by bisection."""
    return bisect_left(range(last), True, lo=first, key=lambda at: concave(at) >= concave(at + 1))
