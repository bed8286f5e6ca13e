"""Selection the slow and plain way: what the tests hold the fast way against."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np

from bursar.selection import Candidates
from bursar.selection.spend.knapsack import Menu
from bursar.tasks import Prices

TASKS = ("intent", "slots", "tree", "spans")


# -- cases -----------------------------------------------------------------------------------------------------------
def random_menu(rng, items, tasks, dearest):
    """Values from 0 to 1, prices from 0 to below the dearest."""
    return Menu(rng.random((items, tasks)), rng.integers(0, dearest, items), rng.integers(0, dearest, (items, tasks)))


def random_budget(rng, menu):
    """From nothing to more than everything costs, mostly in between."""
    everything = int(menu.reading.sum() + menu.own.sum())
    return int(rng.choice([0, everything, everything + 5, *rng.integers(0, everything + 1, 7)]))


def random_pool(rng, items, tasks, dearest=9, **more):
    """A pool in the order of its ids."""
    prices = Prices(TASKS[:tasks], rng.integers(0, dearest, items), rng.integers(0, dearest, (items, tasks)))
    return Candidates([f"u{n:05d}" for n in range(items)], rng.random((items, tasks)), prices, **more)


# -- prices and values -----------------------------------------------------------------------------------------------
def price_of(menu, chosen):
    """Reading once an item, and every task's own price."""
    return int(menu.reading[chosen.any(axis=1)].sum() + menu.own[chosen].sum())


@cache
def subsets(tasks):
    """Every set of tasks but the empty one: (subsets, tasks)."""
    return np.array(list(product([False, True], repeat=tasks))[1:], dtype=bool)


@cache
def every_selection(items, tasks):
    """All there are: (selections, items, tasks)."""
    numbers = np.arange(2 ** (items * tasks))[:, None]
    return ((numbers >> np.arange(items * tasks)) & 1).astype(bool).reshape(len(numbers), items, tasks)


# -- the best there is -----------------------------------------------------------------------------------------------
def best_of_all(menu, able, budget, limits):
    """The value of the best selection, by trying every one; ``None`` if none keeps to budget and limits."""
    every = every_selection(*menu.value.shape)
    read = every.any(axis=2)
    fine = ~(every & ~able).any(axis=(1, 2)) & (read @ menu.reading + (every * menu.own).sum(axis=(1, 2)) <= budget)
    for limit in limits.sums:
        used = (every * limit.use).sum(axis=(1, 2))
        fine &= (used <= limit.at_most + 1e-9) & (used >= limit.at_least - 1e-9)
    if limits.groups is not None:
        for group, most in enumerate(limits.groups.at_most):
            fine &= read[:, limits.groups.group == group].sum(axis=1) <= most
    return float((every[fine] * menu.value).sum(axis=(1, 2)).max()) if fine.any() else None


def best_by_states(menu, budget):
    """The value of the best selection without limits: all (cost, value) that none beats, item after item."""
    sets = subsets(menu.value.shape[1])
    cost, value = np.zeros(1, dtype=np.int64), np.zeros(1)
    for worth, reading, own in zip(menu.value, menu.reading, menu.own, strict=True):
        cost = np.concatenate([cost, (cost + (reading + sets @ own)[:, None]).ravel()])
        value = np.concatenate([value, (value + (sets @ worth)[:, None]).ravel()])
        cost, value = cost[cost <= budget], value[cost <= budget]
        order = np.lexsort((-value, cost))
        cost, value = cost[order], value[order]
        better = value > np.concatenate([[-1.0], np.maximum.accumulate(value)[:-1]])
        cost, value = cost[better], value[better]
    return float(value.max())


def best_by_table(menu, budget):
    """The same for hundreds of items with small prices: the best value for every amount of money."""
    best = np.zeros(budget + 1)
    sets = subsets(menu.value.shape[1])
    for worth, reading, own in zip(menu.value, menu.reading, menu.own, strict=True):
        before = best.copy()
        for cost, value in zip((reading + sets @ own).tolist(), (sets @ worth).tolist(), strict=True):
            if cost <= budget:
                np.maximum(best[cost:], before[: budget + 1 - cost] + value, out=best[cost:])
    return float(best[-1])


# -- walking down an order -------------------------------------------------------------------------------------------
def walk_bundles(menu, items, bundles, budget, limits):
    """Bundle after bundle: first what the minimums need, then all that is affordable within the limits."""
    chosen = np.zeros(menu.value.shape, dtype=bool)
    bought = set()

    def fits(number):
        with_it = chosen.copy()
        with_it[items[number]] |= bundles[number]
        if price_of(menu, with_it) > budget:
            return None
        if any((limit.use * with_it).sum() > limit.at_most + 1e-9 for limit in limits.sums):
            return None
        if limits.groups is not None:
            counts = np.bincount(limits.groups.group[with_it.any(axis=1)], minlength=len(limits.groups.at_most))
            if (counts > limits.groups.at_most).any():
                return None
        return with_it

    def buy(number):
        nonlocal chosen
        with_it = fits(number) if number not in bought else None
        if with_it is not None:
            chosen = with_it
            bought.add(number)

    for limit in limits.sums:
        for number in range(len(items)):
            if (limit.use * chosen).sum() >= limit.at_least - 1e-9:
                break
            if (limit.use[items[number]] * bundles[number]).sum() > 0:
                buy(number)
        if (limit.use * chosen).sum() < limit.at_least - 1e-9:
            return None
    for number in range(len(items)):
        buy(number)
    return chosen
