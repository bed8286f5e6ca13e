"""Estimates from a TOML, JSON or CSV file, with prices in money.

.. code-block:: toml

    currency = "€"

    [tasks.intent]
    price = 0.05        # of a label
    beta = 0.6          # value of each block of labels, relative to the block before
    low = 0.5           # its interval
    high = 0.7
    block = 200         # labels

    [informativeness.intent]
    slots = [0.4, 0.1]  # value of a label of intent to slots, in labels of its own; and the standard error
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from bursar.allocation.baselines import Context
from bursar.allocation.estimates import Informativeness, ReductionRate, SplitEstimates
from bursar.allocation.split import SplitProblem
from bursar.allocation.table_files import FORMATS, KEYS, LONGEST, MOST, NEEDED, Line, number_in, shown
from bursar.corpus.formats.format import replacing
from bursar.errors import AllocationError, DataError
from bursar.tasks import CostModel

TOP = ("unit", "currency", "joint_price", "tasks", "informativeness")
FINEST = 9  # most decimals of a price if no unit is given


@dataclass(frozen=True)
class EstimateTable:
    """The estimates, prices and limits in a file."""

    estimates: SplitEstimates
    prices: tuple[int, ...]  # in units of ``costs``
    least: tuple[int, ...]
    most: tuple[int | None, ...]
    joint: int | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    costs: CostModel = field(default_factory=lambda: CostModel({}, {}))

    @property
    def context(self) -> Context:
        """The inputs of baselines."""
        return Context(self.scores)

    def problem(self, budget: Decimal | float | str) -> SplitProblem:
        """The problem of splitting a budget, which is rounded down to whole units."""
        amount = number_in(str(budget))
        if amount is None or not 0 <= amount <= MOST:
            raise AllocationError(f"a budget of {budget}", fix=f"give an amount of money from 0 to {MOST:,}")
        units = int(Fraction(amount) // Fraction(self.costs.unit))
        return SplitProblem(
            self.estimates, self.prices, units, self.least, self.most, joint=self.joint, costs=self.costs
        )

    def describe(self) -> dict[str, Any]:
        """The table as JSON, for ``read_estimate_table``."""
        known, tasks = self.estimates.informativeness, {}
        for at, task in enumerate(self.estimates.tasks):
            rate = self.estimates.rates[task]
            own: dict[str, Any] = {"price": float(self.costs.money(self.prices[at])), "beta": rate.beta}
            own |= {"low": rate.low, "high": rate.high, "block": rate.block, "min": self.least[at]}
            own |= {} if self.most[at] is None else {"cap": self.most[at]}
            tasks[task] = own | ({"seed_score": self.scores[task]} if task in self.scores else {})
        informs = {
            task: {
                other: [float(known.value[at, to]), float(known.error[at, to])]
                for to, other in enumerate(known.tasks)
                if to != at
            }
            for at, task in enumerate(known.tasks)
        }
        top: dict[str, Any] = {"unit": float(self.costs.unit), "currency": self.costs.currency}
        if self.joint is not None:
            top["joint_price"] = float(self.costs.money(self.joint))
        return {**top, "tasks": tasks, "informativeness": informs}

    def save(self, file: str | Path) -> None:
        """Write to JSON, atomically."""
        with replacing(Path(file)) as out:
            out.write(json.dumps(self.describe(), indent=2, ensure_ascii=False) + "\n")


def read_estimate_table(file: str | Path) -> EstimateTable:
    """Read a table in the format of the file's extension. Errors name the task, the key and, if found, the line."""
    path = Path(file)
    kind = path.suffix.lower()
    if path.is_dir():
        raise DataError("this is a folder", path=path, fix="name a file")
    if kind not in FORMATS:
        raise DataError(
            f"unknown format {kind or 'without extension'!r}", path=path, fix=f"use one of {', '.join(FORMATS)}"
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataError("there is no such file", path=path, fix="check its name") from None
    except UnicodeDecodeError:
        raise DataError("this is not text in UTF-8", path=path, fix="save it in UTF-8") from None
    except OSError as wrong:
        raise DataError(f"cannot be read: {wrong.strerror}", path=path) from None
    return _Reader(path, *FORMATS[kind](path, text)).table()


# -- validation ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Reader:
    """The content of the file, and the line of a task's key in it."""

    path: Path
    content: Mapping[str, Any]
    line: Line

    def wrong(
        self, message: str, task: str | None = None, key: str | None = None, *, section: str = "tasks", fix: str
    ) -> DataError:
        line = self.line(section, task, key) if task is not None or key is not None else None
        whose = "" if task is None else f"task {task!r}: "
        return DataError(f"{whose}{message}", path=self.path, line=line, fix=fix)

    def table(self) -> EstimateTable:
        for key in self.content:
            if key not in TOP:
                fix = f"use {', '.join(TOP)}"
                if key in ("corpus", "costs", "strategy", "learner"):
                    fix = f"if this is a campaign, leave --table out: bursar allocate {self.path} --budget …"
                raise self.wrong(f"there is no key {key!r}", key=key, fix=fix)
        tasks = self.content.get("tasks")
        if not isinstance(tasks, Mapping) or not tasks:
            what = "there are no tasks" if not tasks else f"tasks = {shown(tasks)} is no table"
            raise self.wrong(
                what, key="tasks", fix="give each a table of its own, such as [tasks.intent], or in CSV a row"
            )
        for task, given in tasks.items():
            self._check_keys(task, given)
        costs = self._costs(tasks)
        names = tuple(tasks)
        prices = {task: self._units(tasks[task]["price"], costs, task, "price") for task in names}
        joint = self.content.get("joint_price")
        if joint is not None and self._units(joint, costs, None, "joint_price") < max(prices.values()):
            dearest = max(names, key=lambda task: prices[task])
            raise self.wrong(
                f"joint_price = {joint} is below the price of one label of {dearest!r}, which such an item has as well",
                key="joint_price",
                fix="give what an item costs that is labelled for all tasks",
            )
        return EstimateTable(
            SplitEstimates(self._informativeness(names), {task: self._rate(task, tasks[task]) for task in names}),
            prices=tuple(prices.values()),
            least=tuple(self._labels(task, tasks[task], "min") or 0 for task in names),
            most=tuple(self._labels(task, tasks[task], "cap") for task in names),
            joint=None if joint is None else self._units(joint, costs, None, "joint_price"),
            scores={task: self._score(task, given) for task, given in tasks.items() if "seed_score" in given},
            costs=costs,
        )

    def _check_keys(self, task: str, given: Any) -> None:
        if not task.strip():
            raise self.wrong("it has no name", task, fix="give each task one")
        if not isinstance(given, Mapping):
            raise self.wrong(f"{given!r} is no table", task, fix=f"give {', '.join(NEEDED)}")
        for key in given:
            if key not in KEYS:
                raise self.wrong(f"there is no key {key!r}", task, key, fix=f"use {', '.join(KEYS)}")
        for key in NEEDED:
            if key not in given:
                guess = "label a few items of it and look at its curve, or guess: beta = 0.5, low = 0.000001, high = 1"
                fixes = {"price": "give what a label costs", "block": "give how many labels beta is the loss of"}
                raise self.wrong(f"{key} is missing", task, fix=fixes.get(key, guess))

    # -- numbers -----------------------------------------------------------------------------------------------------
    def _number(self, value: Any, task: str | None, key: str, *, fix: str, section: str = "tasks") -> Decimal:
        large = isinstance(value, int) and value.bit_length() > 4 * LONGEST  # which cannot even be written
        number = None if large or isinstance(value, bool | list | dict) else number_in(str(value))
        if number is None or isinstance(value, str) or abs(number) > MOST:
            fix = fix if number is None or isinstance(value, str) else f"give a number up to {MOST:,}"
            raise self.wrong(f"{key} = {shown(value)}", task, key, fix=fix, section=section)
        return number

    def _costs(self, tasks: Mapping[str, Any]) -> CostModel:
        prices = [
            self._number(given["price"], task, "price", fix="give a number above 0") for task, given in tasks.items()
        ]
        if "joint_price" in self.content:
            prices.append(self._number(self.content["joint_price"], None, "joint_price", fix="give a number above 0"))
        currency = self.content.get("currency", "")
        if not isinstance(currency, str):
            raise self.wrong(
                f"currency = {shown(currency)}", key="currency", fix='give a sign between quotes, such as "€"'
            )
        decimals = max(0, *(-int(price.normalize().as_tuple().exponent) for price in prices))
        if "unit" not in self.content:
            return CostModel({}, {}, Decimal(1).scaleb(-min(decimals, FINEST)), currency)
        unit = self._number(self.content["unit"], None, "unit", fix="give the smallest amount in use, such as 0.01")
        if unit <= 0:
            raise self.wrong(f"unit = {unit}", key="unit", fix="give the smallest amount in use, such as 0.01")
        return CostModel({}, {}, unit, currency)

    def _units(self, value: Any, costs: CostModel, task: str | None, key: str) -> int:
        price = self._number(value, task, key, fix="give a number above 0")
        units = Fraction(price) / Fraction(costs.unit)
        if price <= 0:
            raise self.wrong(f"{key} = {price}", task, key, fix="give a number above 0")
        if units.denominator != 1:
            fix = "set unit to the smallest amount in use, such as 0.01"
            raise self.wrong(f"{key} = {price} is not a whole number of units of {costs.unit}", task, key, fix=fix)
        return int(units)

    def _labels(self, task: str, given: Mapping[str, Any], key: str) -> int | None:
        if key not in given:
            return None
        fix = "give a whole number of labels from 0 up"
        number = self._number(given[key], task, key, fix=fix)
        if number < 0 or number != int(number):
            raise self.wrong(f"{key} = {number}", task, key, fix=fix)
        if key == "cap" and number < (least := self._labels(task, given, "min") or 0):
            raise self.wrong(
                f"cap = {number} is below min = {least}", task, key, fix="raise the one or lower the other"
            )
        return int(number)

    def _score(self, task: str, given: Mapping[str, Any]) -> float:
        fix = "give the score of a model of the seed labels, from 0 to 1; without seed labels leave it out"
        number = self._number(given["seed_score"], task, "seed_score", fix=fix)
        if not 0 <= number <= 1:
            raise self.wrong(f"seed_score = {number}", task, "seed_score", fix=fix)
        return float(number)

    def _rate(self, task: str, given: Mapping[str, Any]) -> ReductionRate:
        rate = {}
        for key in ("beta", "low", "high"):
            fix = "give low ≤ beta ≤ high, all above 0 and up to 1"
            rate[key] = float(self._number(given.get(key, given["beta"]), task, key, fix=fix))
            if not 0 < rate[key] <= 1:
                raise self.wrong(f"{key} = {rate[key]:g}", task, key, fix=fix)
        block = self._number(given["block"], task, "block", fix="give a number of labels above 0")
        try:
            return ReductionRate(rate["beta"], rate["low"], rate["high"], float(block))
        except AllocationError as wrong:
            key = "block" if block <= 0 else "beta"
            raise self.wrong(wrong.message, task, key, fix=wrong.fix or "") from None

    def _informativeness(self, tasks: tuple[str, ...]) -> Informativeness:
        rows = self.content.get("informativeness", {})
        if not isinstance(rows, Mapping):
            raise self.wrong("informativeness is no table", fix="give each task one, such as [informativeness.intent]")
        value, error = np.eye(len(tasks)), np.zeros((len(tasks), len(tasks)))
        for task, row in rows.items():
            where = {"section": "informativeness"}
            if task not in tasks or not isinstance(row, Mapping):
                message = f"informativeness.{task} " + ("is no table" if task in tasks else "is of no task")
                raise self.wrong(message, fix=f"the tasks are {', '.join(tasks)}")
            for other, cell in row.items():
                if other not in tasks:
                    raise self.wrong(f"informs no task {other!r}", task, other, fix=f"use {', '.join(tasks)}", **where)
                fix = "give a number, or a number and its standard error: [0.4, 0.1]"
                pair = cell if isinstance(cell, list | tuple) else [cell, 0]
                if len(pair) != 2:
                    raise self.wrong(f"informativeness for {other!r} = {shown(cell)}", task, other, fix=fix, **where)
                of, doubt = (self._number(number, task, other, fix=fix, **where) for number in pair)
                if doubt < 0:
                    raise self.wrong(f"the standard error for {other!r} is {doubt}", task, other, fix=fix, **where)
                if other == task and (of != 1 or doubt != 0):
                    fix = "leave it out: all others are measured against it"
                    raise self.wrong(f"informs itself by {of}, not 1", task, other, fix=fix, **where)
                value[tasks.index(task), tasks.index(other)] = float(of)
                error[tasks.index(task), tasks.index(other)] = float(doubt)
        return Informativeness(tasks, value, error)
