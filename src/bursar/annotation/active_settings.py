"""The settings of a loop in Python: its splits, prices and budget, from a few arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from bursar.annotation.projects import DATA_FILE, HELD_OUT, UNIT, Draft, FullCost, usual_rounds, usual_seed_items
from bursar.campaign.checks import check_served
from bursar.campaign.config import parse_config
from bursar.campaign.pricing import prices_of
from bursar.campaign.state import GIVEN
from bursar.corpus import Corpus
from bursar.errors import ConfigError
from bursar.selection import Strategy
from bursar.selection.strategy import Choose, name_of_strategy

SPLITS = ("train", *HELD_OUT, GIVEN)


@dataclass(frozen=True)
class LoopWishes:
    """How to spend a budget; see ``ActiveLearner``."""

    budget: float
    strategy: str | Strategy | Choose = "auto"
    prices: Mapping[str, Any] | None = None
    currency: str = ""
    batch_size: int | None = None
    seed_items: int | None = None
    audit: float = 0.0
    seed: int = 0


def draft_of(corpus: Corpus, wishes: LoopWishes, learner: Mapping[str, Any]) -> Draft:
    """The corpus in the splits of a loop, and its settings, checked."""
    if not corpus.schema:
        raise ConfigError(
            "the corpus has no tasks", fix='describe them: bursar.read(…, tasks={"intent": ["refund", "order"]})'
        )
    for name, task in corpus.schema.items():
        if "labels" in task.vocabularies and not task.labels:
            raise ConfigError(
                f"task {name!r} has no labels", fix=f'list them: bursar.read(…, tasks={{"{name}": ["a", "b"]}})'
            )
    corpus = in_parts(corpus)
    config = parse_config(_table(corpus, wishes, learner), "ActiveLearner")
    check_served(config)
    price = typical_price(corpus, config.costs.model_dump()) if wishes.prices else 0.0
    return Draft(corpus, config, FullCost(len(corpus.in_split("train")), price))


def in_parts(corpus: Corpus) -> Corpus:
    """The corpus in four splits: train (to choose from), dev and test (fully labelled), given (labelled already)."""
    names = np.array([corpus.splits[code] for code in corpus.split_codes])
    known = np.all([column.present for column in corpus.labels.values()], axis=0)
    parts = np.where(np.isin(names, list(HELD_OUT)) & known, names, np.where(known, GIVEN, "train"))
    free = int((parts == "train").sum())
    if free < 2:
        what = "no item is" if not free else "only one item is"
        raise ConfigError(
            f"{what} left to label: {int(known.sum()):,} of {len(corpus):,} items are labelled for all tasks",
            fix="compare strategies on labelled items with bursar.simulate, or label them anew: corpus.unlabelled()",
        )
    codes = np.array([SPLITS.index(part) for part in parts.tolist()], dtype=np.int16)
    return replace(corpus, splits=SPLITS, split_codes=codes)


def same_contents(stored: Corpus, given: Corpus) -> bool:
    """Whether two corpora have the same items in the same parts, in whatever order their splits are listed."""
    return len(stored) == len(given) and _ordered(stored).digest() == _ordered(given).digest()


def _ordered(corpus: Corpus) -> Corpus:
    codes = np.array([SPLITS.index(name) for name in corpus.splits], dtype=np.int16)
    return replace(corpus, splits=SPLITS, split_codes=codes[corpus.split_codes])


def _table(corpus: Corpus, wishes: LoopWishes, learner: Mapping[str, Any]) -> dict[str, Any]:
    costs: dict[str, Any] = {"pricing": "predicted"}
    price = None
    if wishes.prices:
        costs |= {"unit": UNIT, "currency": wishes.currency} | prices_table(corpus, wishes.prices)
        price = typical_price(corpus, costs)
    pool = len(corpus.in_split("train"))
    plan = plan_loop(wishes.budget, price, pool, batch_size=wishes.batch_size, seed_items=wishes.seed_items)
    audit: dict[str, Any] = {"share": wishes.audit}
    if wishes.audit:
        audit["rounds"] = plan.rounds
    return {
        "seed": wishes.seed,
        "corpus": {"source": DATA_FILE, "format": "jsonl"},
        "costs": costs,
        "budget": plan.budget,
        "strategy": {"name": name_of_strategy(wishes.strategy)},
        "learner": dict(learner),
        "audit": audit,
    }


def prices_table(corpus: Corpus, prices: Mapping[str, Any]) -> dict[str, Any]:
    """Prices as in the [costs] table; a plain number is the price of an item. What is not named is free."""
    free = {name: {"per_item": 0, f"per_{task.counted}": 0} for name, task in corpus.schema.items()}
    table: dict[str, Any] = {"reading": {"per_item": 0, "per_word": 0}, **free}
    for name, price in prices.items():
        if name not in table:
            raise ConfigError(f"prices: there is no task {name!r}", fix=f"use reading, {', '.join(corpus.schema)}")
        table[name] = table[name] | (dict(price) if isinstance(price, Mapping) else {"per_item": price})
    return table


def typical_price(corpus: Corpus, costs: Mapping[str, Any]) -> float:
    """The mean price of an unlabelled item for all tasks, before there is a model."""
    tasks = list(corpus.schema.values())
    model = parse_config({"costs": dict(costs)}, "prices").costs.model(tasks)
    pool = corpus.take(corpus.in_split("train"))
    mean = float(np.mean(prices_of(model, tasks, pool, {}, {task.name: 1.0 for task in tasks}).joint())) * UNIT
    if mean <= 0:
        raise ConfigError("prices: all items are free", fix="name a price, or leave prices out to count items")
    return mean


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
        if value is not None and not (isinstance(value, Real) and 0 < value < 1e12):
            raise ConfigError(f"{what} = {value!r} is not a positive number", fix=f"for instance {what}=100")
    if price is None and budget != int(budget):
        raise ConfigError(f"budget = {budget!r} is not a whole number of items", fix="or give prices=, to count money")
    each = 1.0 if price is None else price
    affordable = budget / each
    usual = batch_size if seed_items is None else seed_items
    if affordable < 1:
        raise ConfigError(f"a budget of {budget:g} buys no item, as one costs about {each:.2g}", fix="raise the budget")
    wanted = usual_seed_items(affordable, pool) if usual is None else min(usual, max(1, pool - 1))
    seed = min(wanted, int(affordable))
    most = int(min(affordable - seed, pool - seed))
    size = batch_size or -(-max(1, most) // usual_rounds(most))
    rounds = -(-most // size)
    per_round = float(size) if price is None else round(size * price, 4)
    table = {"counts": "items" if price is None else "money", "total": float(budget), "seed_items": seed}
    return LoopPlan(table | {"per_round": per_round, "rounds": 2 * rounds + 1}, max(1, rounds))
