"""Annotation costs: reading is paid once per item, every task adds its own cost (paper 1, section 7; errata 10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import numpy as np

from bursar.errors import ConfigError
from bursar.ragged import BoolArray, IntArray, Ragged
from bursar.registry import suggestion
from bursar.tasks.task import Task

CENT = Decimal("0.01")
MOST_UNITS = 10**9  # largest price; a million items of a thousand words then still sum within 64 bits


@dataclass(frozen=True, eq=False)
class Prices:
    """The price of every item for every subset of the tasks, in whole units: reading + Σ own costs of the subset."""

    tasks: tuple[str, ...]
    reading: IntArray  # (items,)
    own: IntArray  # (items, tasks)

    def __len__(self) -> int:
        return len(self.reading)

    def of(self, subsets: BoolArray) -> IntArray:
        """The price of a subset of tasks for each item: (items, tasks) to (items,). The empty subset costs 0."""
        return np.asarray(np.where(subsets.any(axis=1), self.reading, 0) + (self.own * subsets).sum(axis=1))

    def joint(self) -> IntArray:
        """The price of all tasks together."""
        return self.of(np.ones_like(self.own, dtype=bool))

    def take(self, items: IntArray) -> Prices:
        return Prices(self.tasks, self.reading[items], self.own[items])


@dataclass(frozen=True)
class CostModel:
    """Prices in money, kept as whole numbers of the smallest ``unit``.

    The default is paper 1's: 1 per word for reading, 3 per intent, 1 per slot.
    """

    reading: Mapping[str, int]  # per_item, per_word; in units
    own: Mapping[str, Mapping[str, int]]  # task to per_item, per_<counted>; in units
    unit: Decimal = field(default=Decimal(1))
    currency: str = ""

    @classmethod
    def of(
        cls,
        tasks: Sequence[Task],
        prices: Mapping[str, Mapping[str, float]] | None = None,
        *,
        unit: float = 1,
        currency: str = "",
    ) -> CostModel:
        """From prices in money by task name (and ``reading``); missing prices have their defaults."""
        step = _decimal(unit)
        if step is None or step <= 0:
            raise ConfigError(f"costs.unit = {unit!r} is not a positive number", fix="unit = 1, or 0.01 for cents")
        given = dict(prices or {})
        names = [task.name for task in tasks]
        for name in given:
            if name not in ("reading", *names):
                hint = suggestion(name, ["reading", *names])
                fix = f"{hint}Use reading or one of {names}" if hint else f"use reading or one of {names}"
                raise ConfigError(f"costs.{name}: there is no such task", fix=fix)
            if name == "reading" and name in names:
                raise ConfigError("costs.reading: a task is called 'reading' too", fix="give the task another name")
        reading = _in_units("reading", given.get("reading", {}), {"per_item": 0, "per_word": 1}, step)
        own: dict[str, Mapping[str, int]] = {}
        for task in tasks:
            defaults = {"per_item": 0.0, f"per_{task.counted}": 0.0} | dict(task.prices)
            own[task.name] = _in_units(task.name, given.get(task.name, {}), defaults, step)
        return cls(reading, own, step, currency)

    def price(self, tasks: Sequence[Task], words: IntArray, counts: Mapping[str, IntArray]) -> Prices:
        """Prices of items, given their numbers of words and, by task, of what its cost counts (spans, relations)."""
        words = words.astype(np.int64)
        columns = []
        for task in tasks:
            own = self.own[task.name]
            count = words if task.counted == "word" else counts.get(task.name, np.zeros_like(words))
            scale = 0 if task.counted == "item" else own[f"per_{task.counted}"]
            columns.append(own["per_item"] + scale * count)
        reading = self.reading["per_item"] + self.reading["per_word"] * words
        return Prices(tuple(t.name for t in tasks), reading, np.stack(columns, axis=1).astype(np.int64))

    def money(self, units: int) -> Decimal:
        """Whole units as money."""
        return int(units) * self.unit

    def units(self, money: float) -> int:
        """Money as whole units, rounded down, so that a budget never grows."""
        amount = _decimal(money)
        if amount is None or amount < 0:
            raise ConfigError(f"{money!r} is not an amount of money", fix="use a number from 0 up")
        return int(Fraction(amount) // Fraction(self.unit))

    def show(self, units: int) -> str:
        """Whole units formatted as money. Two decimals are enough, except for small fractions such as prices."""
        amount = self.money(units)
        if self.unit < CENT and abs(amount) >= 10 * CENT:
            amount = amount.quantize(CENT)
        return f"{self.currency}{amount:,f}"


def counts_of(tasks: Sequence[Task], labels: Mapping[str, Ragged]) -> dict[str, IntArray]:
    """For each task and item, how much its cost counts (spans, relations) in known or predicted labels."""
    return {task.name: task.count(labels[task.name]) for task in tasks if task.name in labels}


def _decimal(number: object) -> Decimal | None:
    """A number exactly as written; ``None`` if it is not a finite number."""
    try:
        decimal = Decimal(str(number))
    except InvalidOperation:
        return None
    return decimal if decimal.is_finite() else None


def _in_units(name: str, given: Mapping[str, float], defaults: Mapping[str, float], unit: Decimal) -> dict[str, int]:
    """The prices of one entry in whole units; the defaults are in units already."""
    if not isinstance(given, Mapping):
        raise ConfigError(f"costs.{name} must be a table", fix=f"costs.{name} = {{ per_item = 3 }}")
    units = {key: int(value) for key, value in defaults.items()}
    for key, price in given.items():
        if key not in units:
            raise ConfigError(f"costs.{name}.{key}: unknown price", fix=f"use {', '.join(units)}")
        if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price < 1e12:
            raise ConfigError(f"costs.{name}.{key} = {price!r} is not a price", fix="use a number from 0 up")
        steps = Decimal(str(price)) / unit
        said = f"costs.{name}.{key} = {price} is"
        if steps > MOST_UNITS:
            raise ConfigError(
                f"{said} more than {MOST_UNITS:,} units of {unit}", fix="set costs.unit to a larger amount"
            )
        if steps != int(steps):
            fix = "set costs.unit to the smallest amount in use, such as 0.01"
            raise ConfigError(f"{said} not a whole number of units of {unit}", fix=fix)
        units[key] = int(steps)
    return units
