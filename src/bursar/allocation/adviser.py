"""The allocator that campaigns use to split the budget of their rounds between tasks, by the value of their labels.

The split limits the number of labels of each task; the strategy selects the items within these limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bursar.allocation import Split, SplitProblem
from bursar.allocation.label_value import (
    NO_SPLIT,
    AllocationSection,
    allocation_settings,
    check_informer,
    check_tasks,
    estimates_of,
    importance_of,
    label_limits,
    measured,
)
from bursar.allocation.robust import METHODS
from bursar.allocation.split import typical_price
from bursar.campaign.advisers import Allocator
from bursar.campaign.decisions import LabelValue, SplitDecision
from bursar.campaign.round_planner import round_to
from bursar.campaign.sections import Section
from bursar.campaign.state import RoundSettings
from bursar.errors import AllocationError, InfeasibleError
from bursar.selection import Candidates, Limit, Selection

TIMES = 4  # at most, that a round's budget is split again


@dataclass(frozen=True)
class BudgetSplit:
    """The split of a round's budget, and the estimates behind it."""

    split: Split
    known: LabelValue
    least: tuple[int, ...]  # minimums of the settings

    @classmethod
    def of(cls, terms: RoundSettings, known: LabelValue, pool: Candidates, money: int) -> BudgetSplit:
        """Split a budget between labels of this pool, within the limits of the settings."""
        rounds = terms.config.budget.rounds if terms.strategy.once else 1
        least, most = label_limits(terms.config, pool.tasks, rounds, pool.open.sum(axis=0).tolist())
        each = pool.prices.reading[:, None] + pool.prices.own
        alone = tuple(typical_price(each[pool.open[:, at], at]) for at in range(each.shape[1]))
        try:
            problem = SplitProblem(
                estimates_of(known, pool.tasks),
                prices=alone,
                budget=money,
                least=payable(least, alone, money),
                most=most,
                joint=typical_price(pool.prices.joint()),
                costs=terms.costs,
                importance=importance_of(known, pool.tasks, terms.config.budget.seed_items),
                items=int(pool.open.all(axis=1).sum()),
            )
            return cls(_split(problem, allocation_settings(terms.config).method), known, least)
        except AllocationError as wrong:
            raise InfeasibleError(wrong.message, fix=wrong.fix) from None

    @property
    def caps(self) -> dict[str, int]:
        """The number of labels of each task that may be bought: the split's, but at least the minimum."""
        bought = zip(self.split.tasks, self.split.counts, self.least, strict=True)
        return {name: max(count, least) for name, count, least in bought}

    @property
    def set_aside(self) -> bool:
        """Whether the measured informativeness was ignored because by it no label has any value."""
        measured = replace(self.split.problem, estimates=estimates_of(self.known, self.split.tasks))
        return not (measured.worth > 0).any()

    def paying(self, prices: Mapping[str, int]) -> BudgetSplit:
        """The split of the same budget if some tasks have other prices."""
        problem = self.split.problem
        now = tuple(prices.get(name, before) for name, before in zip(problem.tasks, problem.prices, strict=True))
        least = payable(self.least, now, problem.budget)
        return replace(self, split=_split(replace(problem, prices=now, least=least), self.split.method))

    def select(self, terms: RoundSettings, pool: Candidates, money: int, seed: int) -> tuple[Selection, dict[str, int]]:
        """The strategy's selection within the split, and the limits of each task.

        The first split uses mean prices of single labels. The strategy may select more or less expensive items, and
        items for several tasks are read once. So the budget is split again at the prices of the selected labels, until
        that changes nothing.
        """
        split = self
        for time in range(TIMES):
            chosen = terms.strategy.select(capped(pool, split.caps), money, seed=seed)
            again = split.paying(paid(pool, chosen))
            if time == TIMES - 1 or again.caps == split.caps:
                break
            split = again
        return chosen, split.caps

    def decision(self, round: int) -> SplitDecision:
        problem = self.split.problem
        return SplitDecision(
            round=round,
            method=self.split.method,
            money=problem.budget,
            prices=dict(zip(problem.tasks, problem.prices, strict=True)),
            worth={name: round_to(worth) for name, worth in zip(problem.tasks, problem.first, strict=True)},
            labels=self.caps,
            gain=round_to(self.split.total),
            known=self.known,
            set_aside=self.set_aside,
        )


def payable(least: tuple[int, ...], prices: tuple[int, ...], money: int) -> tuple[int, ...]:
    """Minimums that the budget pays for without shared reading; the strategy, which may share it, enforces all."""
    cost = sum(price * count for price, count in zip(prices, least, strict=True))
    return least if cost <= money else tuple(count * money // cost for count in least)


def _split(problem: SplitProblem, method: str) -> Split:
    """Split by the method. If no label has any value, informativeness is ignored, because it may be wrong."""
    if not (problem.worth > 0).any():
        problem = replace(problem, estimates=problem.estimates.alone())
    return METHODS[method](problem)


def paid(pool: Candidates, chosen: Selection) -> dict[str, int]:
    """The mean price of a selected label of each task; the tasks of an item share the price of reading it."""
    prices, tasks = pool.prices.take(chosen.items), chosen.tasks
    share = prices.reading / np.maximum(1, tasks.sum(axis=1))
    costs = np.where(tasks, share[:, None] + prices.own, 0.0).sum(axis=0)
    return {
        name: max(1, math.ceil(cost / many - 1e-9))
        for name, cost, many in zip(pool.tasks, costs.tolist(), tasks.sum(axis=0).tolist(), strict=True)
        if many
    }


def capped(pool: Candidates, caps: Mapping[str, int]) -> Candidates:
    """The pool with a maximum number of labels for each task."""
    sums = list(pool.limits.sums)
    for at, name in enumerate(pool.tasks):
        use = np.broadcast_to(np.eye(len(pool.tasks))[at], (len(pool), len(pool.tasks)))
        sums.append(Limit(f"the split's labels of {name}", use, float(caps[name])))
    return replace(pool, limits=replace(pool.limits, sums=tuple(sums)))


class AllocationAdviser:
    """The allocator of campaigns with an ``[allocation]`` table."""

    section = AllocationSection
    check = staticmethod(check_tasks)
    check_learner = staticmethod(check_informer)
    label_value = staticmethod(measured)
    split = staticmethod(BudgetSplit.of)

    def splits(self, settings: Section) -> bool:
        return isinstance(settings, AllocationSection) and settings.method != NO_SPLIT


ADVISER: Allocator = AllocationAdviser()
