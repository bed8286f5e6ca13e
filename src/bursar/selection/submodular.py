"""Greedy spending where gains shrink: the more is bought, the less anything else adds (submodular functions).

What a label's gain was before is a bound of what it is now. So most items are looked at once: only those whose bound is
above the best gain found so far must be looked at again (Minoux 1978). And what no selection can pass follows from the
gains that are left: if none of them shrank, a knapsack of them would be as good as it gets.

A *bundle* is what is bought of an item at once: some of its labels. Reading is paid with the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Protocol

import numpy as np

from bursar.errors import InfeasibleError
from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.selection.candidates import Certificate
from bursar.selection.limits import Limits
from bursar.selection.spend.knapsack import Menu, relax

BLOCK = 64  # items whose gains are looked at together
FRONT = 4096  # items with the highest bounds, which are looked at first
TIE = 1e-9  # of gains: closer than this is a tie
ENUMERATED = 6  # labels of an item of which every bundle is tried


class Gains(Protocol):
    """What labels would add to all that is bought."""

    most: float  # what all labels together can add

    def of(self, items: IntArray) -> FloatArray:
        """The gain of each label: (items, labels). The gain of a bundle is their sum."""

    def add(self, item: int, bundle: BoolArray) -> None:
        """A bundle is bought."""


def buy_greedily(gains: Gains, account: Account, power: float, candidates: IntArray | None = None) -> Certificate:
    """At each step buy the bundle with the highest gain over its price to this power, until nothing can be afforded.

    Minimums come first, one after the other. Ties go to the first item, and to its largest bundle. What is bought is in
    the account. If ``candidates`` are given, other items are bought only when none of these can be, and the certificate
    compares with selections of what was looked at.
    """
    able, budget = account.free.copy(), account.left
    search = Search(gains, account, power)
    search.offer(np.arange(len(able)) if candidates is None else candidates)
    offered, bound = int(search.offered.sum()), _most(search.bounds, account, able, budget)
    for number, limit in enumerate(account.limits.sums):
        search.start(limit.use > 0)
        while account.lacks(number):
            if not search.buy():
                raise InfeasibleError(
                    f"greedy spending got to {account.used[number]:g} of {limit.name} and not to {limit.at_least:g}",
                    fix="raise the budget, ask for less at least, or spend exactly",
                )
    search.start(None)
    while search.buy():
        pass
    reached, left = search.reached, np.where(account.bought, 0.0, search.bounds)
    if offered < search.offered.sum():  # the first bound was of fewer items
        bound = gains.most
    bound = max(reached, min(bound, reached + _most(left, account, able, budget), gains.most))
    return Certificate(reached, bound, bound - reached <= 1e-9 * max(1.0, bound))


def _most(gains: FloatArray, account: Account, able: BoolArray, budget: int) -> float:
    """The most that labels could add if no gain shrank and one bundle could be bought in part."""
    return relax(Menu(np.where(able, gains, 0.0), account.reading, account.own).within(budget), budget).bound


class Search:
    """Finds the best bundle by looking at few items: those in *front*, and others only when these are no better."""

    def __init__(self, gains: Gains, account: Account, power: float) -> None:
        self.gains, self.account, self.power = gains, account, power
        items, labels = account.free.shape
        self.bounds = np.zeros((items, labels))  # never below the gains
        self.offered = np.zeros(items, dtype=bool)
        self.scores = np.full(items, -np.inf)  # of each item's best bundle by its bounds; −∞ if none can be bought
        self.reached = 0.0  # what all that is bought adds
        self.helps: BoolArray | None = None

    def offer(self, items: IntArray) -> None:
        """Look for the best among these items, too."""
        items = items[self.account.free[items].any(axis=1)]
        self.bounds[items] = self.gains.of(items)
        self.offered[items] = True

    def start(self, helps: BoolArray | None) -> None:
        """Look for any bundle, or only for those that have a label (items, labels) which helps."""
        self.helps, self.size = helps, FRONT
        self._line_up()

    def buy(self) -> bool:
        """Buy the bundle with the highest gain for its price; ``False`` if nothing can be bought."""
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
        """When no candidate can be bought: all others that can be. Whether there are any."""
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
        """Where nothing adds anything: the first item that can be bought."""
        self._line_up()
        able = self.scores > -np.inf
        if not able.any():
            return None
        self.look_at(np.array([np.argmax(able)]))
        return int(np.argmax(able))

    def look_at(self, items: IntArray) -> None:
        """Bring bounds and scores of items up to date."""
        open_ = items[self._best_bundles(items)[0] > -np.inf]
        open_ = open_[(self.bounds[open_] > 0).any(axis=1)]
        self.bounds[open_] = np.minimum(self.bounds[open_], self.gains.of(open_))
        self.scores[items] = self._best_bundles(items)[0]

    def _line_up(self) -> None:
        """Put the items with the highest scores in front. ``floor`` is what no other can pass."""
        offered = np.flatnonzero(self.offered)
        self.scores[offered] = self._best_bundles(offered)[0]
        order = offered[self.scores[offered] > -np.inf]
        self.front, self.floor = order, -np.inf
        if len(order) > self.size:
            order = order[np.argpartition(-self.scores[order], self.size)]
            self.front, self.floor = np.sort(order[: self.size]), float(self.scores[order[self.size]])

    def _best_in_front(self) -> float:
        """The highest score in front; all that come near it are looked at."""
        self.account.close(self.front)
        self.front = self.front[self.account.free[self.front].any(axis=1)]
        order = self.front[np.argsort(-self.scores[self.front], kind="stable")]
        best = -np.inf
        for start in range(0, len(order), BLOCK):
            block = order[start : start + BLOCK]
            highest = float(self.scores[block[0]])
            if highest == -np.inf or highest < best - TIE:
                break
            self.look_at(block)
            best = max(best, float(self.scores[block].max()))
        return best

    def _best_bundles(self, items: IntArray) -> tuple[FloatArray, BoolArray]:
        """The highest gain over price of each item by its bounds, and the labels that it is for."""
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
        """Bundles of each item, the largest first: all if there are few, else those of the most gain for their price.

        With many labels these are the best one, two, three labels and so on, by gain over own price.
        """
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


class Account:
    """What is bought, and what still may be: within the budget, and within every limit."""

    def __init__(self, reading: IntArray, own: IntArray, able: BoolArray, budget: int, limits: Limits) -> None:
        self.reading, self.own, self.limits = reading, own, limits
        self.left, self.free = int(budget), able.copy()  # (items, labels)
        self.bought = np.zeros_like(able)
        self.order: list[int] = []  # items, as they were bought first
        self._due = reading.copy()  # what an item's first label costs beside its own price
        self.used = np.zeros(len(limits.sums))
        self._room = None if limits.groups is None else limits.groups.at_most.copy()

    def lacks(self, number: int) -> bool:
        """Whether less is bought than a limit asks for at least."""
        return bool(self.used[number] < self.limits.sums[number].floor)

    def close(self, items: IntArray) -> None:
        """Labels that cannot be bought any more, even alone, are not free: none of them ever is again."""
        fits = self._due[items, None] + self.own[items] <= self.left
        for used, limit in zip(self.used, self.limits.sums, strict=True):
            fits &= used + limit.use[items] <= limit.ceiling
        self.free[items] &= fits & self._has_room(items)[:, None]

    def allows(self, items: IntArray, bundles: BoolArray) -> tuple[BoolArray, IntArray]:
        """Whether these labels (items, labels) can be bought of each item, and their price."""
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
            if self._room is not None and self.limits.groups is not None:
                self._room[self.limits.groups.group[item]] -= 1
        self.bought[item] |= bundle
        self.free[item] &= ~bundle

    def _has_room(self, items: IntArray) -> BoolArray:
        """Whether an item may be bought beside others of its group; more labels of one that is bought always may."""
        if self._room is None or self.limits.groups is None:
            return np.ones(len(items), dtype=bool)
        room: BoolArray = self._room[self.limits.groups.group[items]] > 0
        return room | self.bought[items].any(axis=1)
