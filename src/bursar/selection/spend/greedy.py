"""Greedy spending: walk down a ranking, buy what is affordable, skip what is not (errata 13)."""

from __future__ import annotations

import numpy as np

from bursar.errors import InfeasibleError
from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.selection.limits import Limits
from bursar.selection.spend.knapsack import Menu, steps

STRETCH = 4096  # bundles processed together


def greedy_by_confidence(ranking: IntArray, price: IntArray, budget: int) -> IntArray:
    """Buy whole items in the order of a ranking.

    Each sweep buys the longest affordable prefix at once. The item that stops it costs more than the remaining budget,
    and so does every item of that price, so there are at most as many sweeps as distinct prices.

    >>> greedy_by_confidence(np.array([2, 0, 1]), np.array([5, 1, 6]), budget=8).tolist()
    [2, 1]
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
    """Buy bundles in this order: (items, tasks). An item's first bundle also pays for reading it.

    >>> menu = Menu(np.array([[0.9, 0.8], [0.7, 0.1]]), reading=np.array([5, 1]), own=np.array([[1, 1], [1, 1]]))
    >>> walk(menu, *least_confident_first(menu, menu.value > 0), budget=8, limits=Limits()).tolist()
    [[True, True], [False, False]]
    """
    own = (menu.own[items] * tasks).sum(axis=1)
    bought = _walk_within(menu, items, tasks, own, budget, limits) if limits else _walk(menu, items, own, budget)
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


def _walk_within(menu: Menu, items: IntArray, tasks: BoolArray, own: IntArray, budget: int, limits: Limits) -> IntArray:
    """The bundles bought one at a time within the limits: first for the minimums, then the rest."""
    uses = np.zeros((len(limits.sums), len(items)))
    for number, limit in enumerate(limits.sums):
        uses[number] = (limit.use[items] * tasks).sum(axis=1)
    tracker = _LimitTracker(menu.reading, items, own, uses, budget, limits)
    for number, limit in enumerate(limits.sums):
        for bundle in np.flatnonzero(uses[number] > 0).tolist() if limit.at_least > 0 else []:
            if tracker.used[number] >= limit.floor:
                break
            tracker.buy(bundle)
        if tracker.used[number] < limit.floor:
            raise InfeasibleError(
                f"greedy spending reached {tracker.used[number]:g} of {limit.name}, not {limit.at_least:g}",
                fix="raise the budget, lower the minimum, or spend exactly",
            )
    for bundle in range(len(items)):
        tracker.buy(bundle)
    return np.array(tracker.bought, dtype=np.int64)


class _LimitTracker:
    """Tracks the bundles bought, and what is left of the budget and the limits."""

    def __init__(
        self, reading: IntArray, items: IntArray, own: IntArray, uses: FloatArray, budget: int, limits: Limits
    ) -> None:
        self.reading, self.items, self.own = reading.tolist(), items.tolist(), own.tolist()
        self.uses, self.limits = uses, limits
        self.left = budget
        self.used = np.zeros(len(limits.sums))
        self.ceilings = np.array([limit.ceiling for limit in limits.sums])
        cap = limits.groups
        self.group = cap.group.tolist() if cap is not None else None
        self.group_left = cap.at_most.tolist() if cap is not None else []
        self.read: set[int] = set()
        self.bought: list[int] = []
        self._taken = np.zeros(len(items), dtype=bool)

    def buy(self, bundle: int) -> None:
        """Buy a bundle unless it is bought already, or the budget or a limit forbids it."""
        item = self.items[bundle]
        new = item not in self.read
        price = self.own[bundle] + (self.reading[item] if new else 0)
        if price > self.left or self._taken[bundle]:
            return
        if new and self.group is not None and self.group_left[self.group[item]] <= 0:
            return
        use = self.uses[:, bundle]
        if (self.used + use > self.ceilings).any():
            return
        self.left -= price
        self.used += use
        if new and self.group is not None:
            self.group_left[self.group[item]] -= 1
        self.read.add(item)
        self._taken[bundle] = True
        self.bought.append(bundle)
