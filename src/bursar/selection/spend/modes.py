"""Spending modes: an item for all tasks or none (joint), for any subset (disjoint), or equal budgets per task."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bursar.errors import SelectionError
from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.selection.candidates import Candidates, Certificate, Limits, Selection
from bursar.selection.combine import shares
from bursar.selection.spend.greedy import best_ratio_first, least_confident_first, walk
from bursar.selection.spend.knapsack import TOLERANCE, Menu, relax, solve
from bursar.selection.spend.program import bound_within, solve_within

Spend = Literal["exact", "greedy", "ratio"]
Mode = Literal["joint", "disjoint", "equal"]


def spend(pool: Candidates, value: FloatArray, budget: int, mode: Mode = "joint", how: Spend = "exact") -> Selection:
    """Spend a budget on a pool: ``value`` is (items,) in joint mode, else (items, tasks)."""
    if mode == "joint":
        return spend_joint(pool, value, budget, how)
    return (spend_equal if mode == "equal" else spend_disjoint)(pool, value, budget, how)


def spend_joint(pool: Candidates, value: FloatArray, budget: int, how: Spend = "exact") -> Selection:
    """Buy each item for all tasks or not at all (paper 1, section 7.1, c to j): value (items,) at the joint price."""
    menu = Menu(value[:, None], np.zeros(len(pool), dtype=np.int64), pool.prices.joint()[:, None])
    able = np.asarray(pool.open.all(axis=1))[:, None]
    bought, certificate = _buy(menu, able, budget, pool.limits.together(), how)
    return Selection.joint(pool, _best_first(bought, menu), certificate)


def spend_disjoint(pool: Candidates, value: FloatArray, budget: int, how: Spend = "exact") -> Selection:
    """Buy each item for any subset of the tasks (UDJS): value (items, tasks), reading paid once per item."""
    menu = Menu(value, pool.prices.reading, pool.prices.own)
    bought, certificate = _buy(menu, pool.open, budget, pool.limits, how)
    items = _best_first(bought, menu)
    return Selection.of(pool, items, bought[items], certificate)


def spend_equal(pool: Candidates, value: FloatArray, budget: int, how: Spend = "exact") -> Selection:
    """Give every task an equal share of the budget (EQB-DJS, errata 12). A procedure without a bound.

    An item that another task has bought costs only its own price. What that saves, and what no share could use, is
    split again until nothing more is bought. The remainder is spent on all tasks together.
    """
    if pool.limits:
        raise SelectionError(
            "equal shares cannot keep to limits", fix="use a disjoint strategy such as UDJS, or remove the limits"
        )
    prices, tasks = pool.prices, len(pool.tasks)
    bought = np.zeros(value.shape, dtype=bool)
    while True:
        left = budget - int(prices.of(bought).sum())
        reading = np.where(bought.any(axis=1), 0, prices.reading)
        able = pool.open & ~bought
        round_ = np.zeros_like(bought)
        for task, share in enumerate(shares(left, np.ones(tasks)).tolist()):
            menu = Menu(value[:, [task]], reading, prices.own[:, [task]])
            round_[:, [task]] = _buy(menu, able[:, [task]], share, Limits(), how)[0]
        if not round_.any():
            break
        bought |= round_
    bought |= _buy(Menu(value, reading, prices.own), able, left, Limits(), how)[0]
    items = _best_first(bought, Menu(value, prices.reading, prices.own))
    return Selection.of(pool, items, bought[items], Certificate(float(value[bought].sum())))


def _buy(menu: Menu, able: BoolArray, budget: int, limits: Limits, how: Spend) -> tuple[BoolArray, Certificate]:
    """Spend a budget on the labels of a menu that are ``able`` to be bought."""
    offered = Menu(np.where(able, menu.value, 0.0), menu.reading, menu.own)
    if how == "exact":
        solved = solve_within(offered, able, budget, limits) if limits else solve(offered, budget)
        return solved.chosen, Certificate(solved.objective, solved.bound, solved.optimal)
    order = best_ratio_first if how == "ratio" else least_confident_first
    bought = walk(menu, *order(menu, able), budget, limits)
    objective = float(menu.value[bought].sum())
    bound = bound_within(offered, able, budget, limits) if limits else relax(offered.within(budget), budget).bound
    bound = max(bound, objective)
    return bought, Certificate(objective, bound, bound - objective <= TOLERANCE * max(1.0, bound))


def _best_first(bought: BoolArray, menu: Menu) -> IntArray:
    """The items bought, the most valuable first; ties keep their order."""
    items = np.flatnonzero(bought.any(axis=1))
    worth = np.where(bought[items], menu.value[items], 0.0).sum(axis=1)
    return items[np.argsort(-worth, kind="stable")]
