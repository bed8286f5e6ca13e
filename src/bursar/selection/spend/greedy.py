"""Greedy spending: walk down a ranking, buy what is affordable, skip what is not (errata 13); or by gains that shrink.

The gains of a submodular function shrink as more is bought. Lazy evaluation (Minoux 1978): an old gain is an upper
bound of the present one, so only items whose bound exceeds the best gain found so far are evaluated again. An upper
bound on any selection follows from the remaining gains: if none of them shrank, the best addition would be a knapsack.

A *bundle* is the set of labels of one item that is bought in one step. The first one also pays for reading the item.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Protocol

import numpy as np

from bursar.errors import InfeasibleError
from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.selection.candidates import Certificate, Limits
from bursar.selection.spend.knapsack import Menu, relax, steps

STRETCH = 4096  # bundles processed together
BLOCK = 256  # bundles checked together against limits
EVALUATED = 64  # items whose gains are computed together
FRONT = 4096  # items with the highest bounds, evaluated first
TIE = 1e-9  # gains closer than this are ties
ENUMERATED = 6  # tasks up to which every bundle is tried


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

    @property
    def items(self) -> IntArray:
        return np.array(self.order, dtype=np.int64)

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


# -- greedy maximisation of a submodular function --------------------------------------------------------------------
class Gains(Protocol):
    """The gain of labels given everything bought so far."""

    most: float  # upper bound on the sum of all gains

    def of(self, items: IntArray) -> FloatArray:
        """The gain of each label: (items, labels). The gain of a bundle is their sum."""

    def add(self, item: int, bundle: BoolArray) -> None:
        """Record that a bundle is bought."""


def buy_greedily(gains: Gains, account: Account, power: float, candidates: IntArray | None = None) -> Certificate:
    """At each step buy the bundle with the highest gain / price ** power, until nothing is affordable.

    Minimums are met first, one after the other. Ties go to the first item and to its largest bundle. The account
    records what is bought. If ``candidates`` are given, other items are bought only if no candidate can be, and the
    certificate compares with selections of the items considered.
    """
    able, budget = account.free.copy(), account.left
    search = Search(gains, account, power)
    search.offer(np.arange(len(able)) if candidates is None else candidates)
    offered, bound = int(search.offered.sum()), _most(search.bounds, account, able, budget)
    for number, limit in enumerate(account.limits.sums):
        search.start(limit.use > 0)
        while account.lacks(number):
            if not search.buy():
                raise account.missed(number)
    search.start(None)
    while search.buy():
        pass
    reached, left = search.reached, np.where(account.bought, 0.0, search.bounds)
    if offered < search.offered.sum():  # the first bound was of fewer items
        bound = gains.most
    bound = max(reached, min(bound, reached + _most(left, account, able, budget), gains.most))
    return Certificate(reached, bound, bound - reached <= 1e-9 * max(1.0, bound))


def _most(gains: FloatArray, account: Account, able: BoolArray, budget: int) -> float:
    """Upper bound on what labels can add: no gain shrinks, and one bundle may be bought in part."""
    return relax(Menu(np.where(able, gains, 0.0), account.reading, account.own).within(budget), budget).bound


class Search:
    """Finds the best bundle by evaluating few items: those in *front*, and others only if these are no better."""

    def __init__(self, gains: Gains, account: Account, power: float) -> None:
        self.gains, self.account, self.power = gains, account, power
        items, labels = account.free.shape
        self.bounds = np.zeros((items, labels))  # never below the gains
        self.offered = np.zeros(items, dtype=bool)
        self.scores = np.full(items, -np.inf)  # of each item's best bundle by its bounds; −∞ if none is affordable
        self.reached = 0.0  # sum of the gains bought
        self.helps: BoolArray | None = None

    def offer(self, items: IntArray) -> None:
        """Add these items to the search."""
        items = items[self.account.free[items].any(axis=1)]
        self.bounds[items] = self.gains.of(items)
        self.offered[items] = True

    def start(self, helps: BoolArray | None) -> None:
        """Search all bundles, or only those with a label marked in ``helps`` (items, labels)."""
        self.helps, self.size = helps, FRONT
        self._line_up()

    def buy(self) -> bool:
        """Buy the bundle with the highest score; ``False`` if nothing can be bought."""
        item = self._best()
        if item is None:
            return self._offer_rest() and self.buy()
        bundle = self._best_bundles(np.array([item]))[1][0]
        self.reached += float(self.bounds[item, bundle].sum())
        self.account.buy(item, bundle)
        self.gains.add(item, bundle)
        self.look_at(np.array([item]))
        return True

    def _offer_rest(self) -> bool:
        """Add all other affordable items once no candidate can be bought; whether there are any."""
        rest = np.flatnonzero(~self.offered)
        self.account.close(rest)
        rest = rest[self.account.free[rest].any(axis=1)]
        self.offer(rest)
        self._line_up()
        return len(rest) > 0

    def _best(self) -> int | None:
        while True:
            best = self._best_in_front()
            if best - TIE > self.floor:
                return int(self.front[np.argmax(self.scores[self.front] >= best - TIE)])
            if max(best, self.floor) <= TIE:
                return self._first()
            self.size *= 2
            self._line_up()

    def _first(self) -> int | None:
        """The first item that can be bought, for when no item has a gain."""
        self._line_up()
        able = self.scores > -np.inf
        if not able.any():
            return None
        self.look_at(np.array([np.argmax(able)]))
        return int(np.argmax(able))

    def look_at(self, items: IntArray) -> None:
        """Update the bounds and scores of items."""
        open_ = items[self._best_bundles(items)[0] > -np.inf]
        open_ = open_[(self.bounds[open_] > 0).any(axis=1)]
        self.bounds[open_] = np.minimum(self.bounds[open_], self.gains.of(open_))
        self.scores[items] = self._best_bundles(items)[0]

    def _line_up(self) -> None:
        """Put the items with the highest scores in front. ``floor`` bounds the scores of the others."""
        offered = np.flatnonzero(self.offered)
        self.scores[offered] = self._best_bundles(offered)[0]
        order = offered[self.scores[offered] > -np.inf]
        self.front, self.floor = order, -np.inf
        if len(order) > self.size:
            order = order[np.argpartition(-self.scores[order], self.size)]
            self.front, self.floor = np.sort(order[: self.size]), float(self.scores[order[self.size]])

    def _best_in_front(self) -> float:
        """The highest score in front, after updating every item that may reach it."""
        self.account.close(self.front)
        self.front = self.front[self.account.free[self.front].any(axis=1)]
        order = self.front[np.argsort(-self.scores[self.front], kind="stable")]
        best = -np.inf
        for start in range(0, len(order), EVALUATED):
            block = order[start : start + EVALUATED]
            highest = float(self.scores[block[0]])
            if highest == -np.inf or highest < best - TIE:
                break
            self.look_at(block)
            best = max(best, float(self.scores[block].max()))
        return best

    def _best_bundles(self, items: IntArray) -> tuple[FloatArray, BoolArray]:
        """The best score of each item by its bounds, and the bundle that has it."""
        self.account.close(items)
        values = np.where(self.account.free[items], self.bounds[items], 0.0)
        best, chosen = np.full(len(items), -np.inf), np.zeros(values.shape, dtype=bool)
        for bundles in self._bundles(items, values):
            allowed, price = self.account.allows(items, bundles)
            if self.helps is not None:
                allowed &= (self.helps[items] & bundles).any(axis=1)
            score = (values * bundles).sum(axis=1) / np.maximum(price, 1).astype(float) ** self.power
            better = allowed & (score > best + TIE)
            best[better], chosen[better] = score[better], bundles[better]
        return best, chosen

    def _bundles(self, items: IntArray, values: FloatArray) -> Iterator[BoolArray]:
        """Bundles to try, the largest first: all subsets of few tasks, else the best labels by gain over own price."""
        free = self.account.free[items]
        labels = values.shape[1]
        if labels <= ENUMERATED:
            every = [np.array(some, dtype=bool) for some in product([True, False], repeat=labels)]
            for some in sorted(every[:-1], key=lambda some: -int(some.sum())):
                yield np.broadcast_to(some, free.shape)
        else:
            ratio = np.where(free, values / np.maximum(self.account.own[items], 1), -1.0)
            rank = np.argsort(np.argsort(-ratio, axis=1, kind="stable"), axis=1, kind="stable")
            for size in range(labels, 0, -1):
                yield free & (rank < size)
