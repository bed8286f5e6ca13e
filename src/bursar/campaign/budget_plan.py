"""From a budget to rounds: how many items to start with, how much to spend in a round, and how many rounds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bursar.errors import ConfigError

A_ROUND = 40  # items, as long as that makes no more than MOST_ROUNDS
MOST_ROUNDS = 10
MOST_SEED_ITEMS = 40
SEED_SHARE = 0.3  # of the budget, at most


class FirstItems(NamedTuple):
    """Random items before the first model: to train on, and to set aside."""

    seed: int
    dev: int


def first_items(affordable: float, pool: int, seed_items: int | None = None, dev_items: int = 0) -> FirstItems:
    """How many items to label before the first model: at most 40, and at most 30 % of what the budget buys.

    >>> first_items(500, 1000), first_items(20, 1000), first_items(500, 1000, seed_items=25)
    (FirstItems(seed=40, dev=0), FirstItems(seed=6, dev=0), FirstItems(seed=25, dev=0))
    """
    most = max(2, min(int(SEED_SHARE * affordable), pool // 2))
    seed = seed_items if seed_items is not None else max(2, min(MOST_SEED_ITEMS, most - dev_items))
    return FirstItems(seed, dev_items)


def usual_rounds(items: int) -> int:
    """The number of rounds for labelling a number of items: about 40 in each, in at most ten rounds.

    >>> usual_rounds(10), usual_rounds(100), usual_rounds(5000)
    (1, 2, 10)
    """
    return int(np.clip(round(items / A_ROUND), 1, MOST_ROUNDS))


class LoopPlan(NamedTuple):
    """The plan of a loop: the [budget] table, and the number of rounds that it should take."""

    budget: dict[str, Any]
    rounds: int


def plan_loop(
    budget: float,
    price: float | None,
    pool: int,
    *,
    batch_size: int | None = None,
    seed_items: int | None = None,
) -> LoopPlan:
    """Plan a loop that spends a budget: a number of items, or money if an item has a ``price``.

    The first batch is as large as the others if ``batch_size`` is given. There may be more rounds than planned, because
    skipped items free money for others.

    >>> plan_loop(500, None, 2000).budget
    {'counts': 'items', 'total': 500.0, 'seed_items': 40, 'per_round': 46.0, 'rounds': 21}
    >>> plan_loop(50, 0.5, 2000, batch_size=20).budget
    {'counts': 'money', 'total': 50.0, 'seed_items': 20, 'per_round': 10.0, 'rounds': 9}
    """
    for what, value in (("budget", budget), ("batch_size", batch_size), ("seed_items", seed_items)):
        if value is not None and not 0 < value < 1e12:
            raise ConfigError(f"{what} = {value!r} is not a positive number", fix=f"for instance {what}=100")
    if price is None and budget != int(budget):
        raise ConfigError(f"budget = {budget!r} is not a whole number of items", fix="or give prices=, to count money")
    each = 1.0 if price is None else price
    affordable = budget / each
    usual = batch_size if seed_items is None else seed_items
    if affordable < 1:
        raise ConfigError(f"a budget of {budget:g} buys no item, as one costs about {each:.2g}", fix="raise the budget")
    wanted, _ = first_items(affordable, pool, None if usual is None else min(usual, max(1, pool - 1)))
    seed = min(wanted, int(affordable))
    most = int(min(affordable - seed, pool - seed))
    size = batch_size or -(-max(1, most) // usual_rounds(most))
    rounds = -(-most // size)
    per_round = float(size) if price is None else round(size * price, 4)
    table = {"counts": "items" if price is None else "money", "total": float(budget), "seed_items": seed}
    return LoopPlan(table | {"per_round": per_round, "rounds": 2 * rounds + 1}, max(1, rounds))
