"""Greedy spending: walk down a ranking, buy what is affordable, skip what is not (errata 13)."""

from __future__ import annotations

import numpy as np

from bursar.errors import InfeasibleError
from bursar.ragged import BoolArray, IntArray
from bursar.selection.candidates import Limits
from bursar.selection.spend.knapsack import Menu, steps

STRETCH = 4096  # bundles processed together
BLOCK = 256  # bundles checked together against limits


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


# -- walking down a ranking ------------------------------------------------------------------------------------------
def greedy_by_confidence(ranking: IntArray, price: IntArray, budget: int) -> IntArray:
    """Buy whole items in the order of a ranking.

    Each sweep buys the longest affordable prefix. No item of the price that stops it is affordable any more, so there
    are at most as many sweeps as distinct prices.
    """
    bought: list[IntArray] = []
    rest, left = ranking, int(budget)
    while len(rest := rest[price[rest] <= left]):
        running = np.cumsum(price[rest])
        fits = int(np.searchsorted(running, left, side="right"))
        bought.append(rest[:fits])
        left -= int(running[fits - 1])
        rest = rest[fits + 1 :]
    return np.concatenate([ranking[:0], *bought])


def least_confident_first(menu: Menu, able: BoolArray) -> tuple[IntArray, BoolArray]:
    """Every label as a bundle of its own, highest value first: the item and the tasks of each bundle."""
    tasks = menu.value.shape[1]
    labels = np.flatnonzero(able.ravel())
    labels = labels[np.argsort(-menu.value.ravel()[labels], kind="stable")]
    return labels // tasks, np.eye(tasks, dtype=bool)[labels % tasks]


def best_ratio_first(menu: Menu, able: BoolArray) -> tuple[IntArray, BoolArray]:
    """The steps of the linear relaxation, highest value per cost first: an item's best bundle, then further tasks."""
    worth, _ = steps(Menu(np.where(able, menu.value, 0.0), menu.reading, menu.own))
    tasks = menu.value.shape[1]
    labels = np.flatnonzero(able.ravel())
    labels = labels[np.argsort(-worth.ravel()[labels], kind="stable")]
    item, ratio = labels // tasks, worth.ravel()[labels]
    new = np.ones(len(labels), dtype=bool)  # labels of one item at one ratio are one bundle
    new[1:] = (item[1:] != item[:-1]) | (ratio[1:] != ratio[:-1])
    bundles = np.zeros((int(new.sum()), tasks), dtype=bool)
    bundles[np.cumsum(new) - 1, labels % tasks] = True
    return item[new], bundles


def walk(menu: Menu, items: IntArray, tasks: BoolArray, budget: int, limits: Limits) -> BoolArray:
    """Buy bundles in this order: (items, tasks). An item's first bundle also pays for reading it."""
    if limits:
        return _walk_within(menu, items, tasks, budget, limits)
    bought = _walk(menu, items, (menu.own[items] * tasks).sum(axis=1), budget)
    chosen = np.zeros(menu.value.shape, dtype=bool)
    np.logical_or.at(chosen, items[bought], tasks[bought])
    return chosen


def _walk(menu: Menu, items: IntArray, own: IntArray, budget: int) -> IntArray:
    """The bundles bought, found a stretch at a time."""
    reading, read = menu.reading, np.zeros(len(menu.reading), dtype=bool)
    cheapest = np.minimum.accumulate(own[::-1])[::-1]  # from each position on
    bought: list[IntArray] = []
    at, left = 0, int(budget)
    while at < len(items) and cheapest[at] <= left:
        part = items[at : at + STRETCH]
        first = np.zeros(len(part), dtype=bool)
        first[np.unique(part, return_index=True)[1]] = True
        price = own[at : at + STRETCH] + np.where(first & ~read[part], reading[part], 0)
        running = np.cumsum(price)
        fits = int(np.searchsorted(running, left, side="right"))
        if fits:
            bought.append(np.arange(at, at + fits))
            read[part[:fits]] = True
            left -= int(running[fits - 1])
            at += fits
            continue
        alone = own[at : at + STRETCH] + np.where(read[part], 0, reading[part])
        able = np.flatnonzero(alone <= left)
        at += int(able[0]) if len(able) else len(part)
    return np.concatenate([np.zeros(0, dtype=np.int64), *bought])


def _walk_within(menu: Menu, items: IntArray, tasks: BoolArray, budget: int, limits: Limits) -> BoolArray:
    """Buy bundles one at a time within the limits: first for the minimums, then the rest."""
    account = Account(menu.reading, menu.own, np.ones(menu.value.shape, dtype=bool), budget, limits)
    for number, limit in enumerate(limits.sums):
        if account.lacks(number):
            useful = np.flatnonzero((limit.use[items] * tasks).sum(axis=1) > 0)
            _buy_in_order(account, items[useful], tasks[useful], minimum=number)
            if account.lacks(number):
                raise account.missed(number)
    _buy_in_order(account, items, tasks)
    return account.bought


def _buy_in_order(account: Account, items: IntArray, tasks: BoolArray, minimum: int | None = None) -> None:
    """Buy each bundle that is allowed when its turn comes, all of them or until a limit's minimum is reached."""
    at = 0
    while at < len(items) and (minimum is None or account.lacks(minimum)):
        part, bundles = items[at : at + BLOCK], tasks[at : at + BLOCK]
        account.close(part)
        allowed = np.flatnonzero(account.allows(part, bundles)[0])
        if len(allowed):
            account.buy(int(part[allowed[0]]), bundles[allowed[0]])
        at += int(allowed[0]) + 1 if len(allowed) else len(part)
