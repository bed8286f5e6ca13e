"""What is bought so far, and what the budget and the limits still allow."""

from __future__ import annotations

import numpy as np

from bursar.errors import InfeasibleError
from bursar.ragged import BoolArray, IntArray
from bursar.selection.limits import Limits


class Account:
    """Tracks what is bought, and what the budget and the limits still allow."""

    def __init__(self, reading: IntArray, own: IntArray, able: BoolArray, budget: int, limits: Limits) -> None:
        self.reading, self.own, self.limits = reading, own, limits
        self.left, self.free = int(budget), able.copy()  # (items, labels)
        self.bought = np.zeros_like(able)
        self.order: list[int] = []  # items by first purchase
        self._due = reading.copy()  # reading cost still to be paid
        self.used = np.zeros(len(limits.sums))
        self._group_left = None if limits.groups is None else limits.groups.at_most.copy()

    def lacks(self, number: int) -> bool:
        """Whether the minimum of a limit is not reached yet."""
        return bool(self.used[number] < self.limits.sums[number].floor)

    def missed(self, number: int) -> InfeasibleError:
        """The error for a minimum that nothing affordable can reach."""
        limit = self.limits.sums[number]
        return InfeasibleError(
            f"greedy spending reached {self.used[number]:g} of {limit.name}, not {limit.at_least:g}",
            fix="raise the budget, lower the minimum, or spend exactly",
        )

    def close(self, items: IntArray) -> None:
        """Close labels that cannot be bought any more even alone; they stay closed."""
        fits = self._due[items, None] + self.own[items] <= self.left
        for used, limit in zip(self.used, self.limits.sums, strict=True):
            fits &= used + limit.use[items] <= limit.ceiling
        if self._group_left is not None and self.limits.groups is not None:  # a bought item may get further labels
            below_cap = self._group_left[self.limits.groups.group[items]] > 0
            fits &= (below_cap | self.bought[items].any(axis=1))[:, None]
        self.free[items] &= fits

    def allows(self, items: IntArray, bundles: BoolArray) -> tuple[BoolArray, IntArray]:
        """Whether each item's bundle (items, labels) can be bought, and its price."""
        price: IntArray = self._due[items] + (self.own[items] * bundles).sum(axis=1)
        allowed: BoolArray = (price <= self.left) & bundles.any(axis=1) & ~(bundles & ~self.free[items]).any(axis=1)
        for used, limit in zip(self.used, self.limits.sums, strict=True):
            allowed &= used + (limit.use[items] * bundles).sum(axis=1) <= limit.ceiling
        return allowed, price

    def buy(self, item: int, bundle: BoolArray) -> None:
        """Pay for a bundle."""
        self.left -= int(self._due[item] + self.own[item, bundle].sum())
        self._due[item] = 0
        for number, limit in enumerate(self.limits.sums):
            self.used[number] += limit.use[item, bundle].sum()
        if not self.bought[item].any():
            self.order.append(item)
            if self._group_left is not None and self.limits.groups is not None:
                self._group_left[self.limits.groups.group[item]] -= 1
        self.bought[item] |= bundle
        self.free[item] &= ~bundle
