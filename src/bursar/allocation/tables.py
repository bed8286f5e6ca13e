"""Estimates from a TOML, JSON or CSV file, with prices in money. The guide on budget splits shows the format."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bursar.allocation.advice import Context
from bursar.allocation.estimates import Informativeness, ReductionRate, SplitEstimates
from bursar.allocation.split import SplitProblem
from bursar.errors import AllocationError, DataError
from bursar.tasks import CostModel

NEEDED = {  # keys, and what to do without them
    "price": "give what a label costs",
    "beta": "label a few items of it and look at its curve, or guess: beta = 0.5, low = 0.000001, high = 1",
    "block": "give how many labels beta is the loss of",
}
KEYS = (*NEEDED, "low", "high", "seed_score", "min", "cap")
MOST = Decimal(10**12)  # largest number in a table, and largest budget
LONGEST = 50  # most digits of a number, before and after the point
TOP = ("unit", "currency", "joint_price", "tasks", "informativeness")
FINEST = 9  # most decimals of a price if no unit is given

Rule = tuple[Callable[[Decimal], bool], str]  # what a number must fulfil, and the fix
PRICE: Rule = (lambda price: price > 0, "give a number above 0")
LABELS: Rule = (lambda labels: labels >= 0 and labels % 1 == 0, "give a whole number of labels from 0 up")
RATE: Rule = (lambda rate: 0 < float(rate) <= 1, "give low ≤ beta ≤ high, all above 0 and up to 1")
RULES = {  # by key
    "price": PRICE,
    "joint_price": PRICE,
    "unit": (PRICE[0], "give the smallest amount in use, such as 0.01"),
    "min": LABELS,
    "cap": LABELS,
    "seed_score": (
        lambda score: 0 <= score <= 1,
        "give the score of a model of the seed labels, from 0 to 1; without seed labels leave it out",
    ),
    **dict.fromkeys(("beta", "low", "high"), RATE),
    "block": (lambda block: True, "give a number of labels above 0"),
}
EFFECT: Rule = (lambda value: True, "give a number, or a number and its standard error: [0.4, 0.1]")

Line = Callable[[Sequence[str]], int | None]  # of a key of the top level, or of a section, a task and one of its keys
Content = tuple[Mapping[str, Any], Line]


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


def read_estimate_table(file: str | Path) -> EstimateTable:
    """Read a table in the format of the file's extension. Errors name the task, the key and, if found, the line."""
    path = Path(file)
    kind, wrong = path.suffix.lower(), partial(DataError, path=path)
    if path.is_dir():
        raise wrong("this is a folder", fix="name a file")
    if kind not in FORMATS:
        raise wrong(f"unknown format {kind or 'without extension'!r}", fix=f"use one of {', '.join(FORMATS)}")
    try:
        content, line = FORMATS[kind](path, path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise wrong("there is no such file", fix="check its name") from None
    except UnicodeDecodeError:
        raise wrong("this is not text in UTF-8", fix="save it in UTF-8") from None
    except OSError as error:
        raise wrong(f"cannot be read: {error.strerror}") from None
    except RecursionError:
        raise wrong("tables are nested too deep", fix="see docs/guides/allocation.md for the format") from None
    return _Reader(path, content, line).table()


# -- validation ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Reader:
    """The content of the file, and the lines of its keys."""

    path: Path
    content: Mapping[str, Any]
    line: Line

    def wrong(self, message: str, *where: str, fix: str) -> DataError:
        """An error about a key of the top level, or about a section's task and one of its keys."""
        whose = f"task {where[1]!r}: " if len(where) > 1 else ""
        return DataError(f"{whose}{message}", path=self.path, line=self.line(where) if where else None, fix=fix)

    def table(self) -> EstimateTable:
        for key in self.content:
            if key not in TOP:
                fix = f"use {', '.join(TOP)}"
                if key in ("corpus", "costs", "strategy", "learner"):
                    fix = f"if this is a campaign, leave --table out: bursar allocate {self.path} --budget …"
                raise self.wrong(f"there is no key {key!r}", key, fix=fix)
        tasks = self.content.get("tasks")
        if not isinstance(tasks, Mapping) or not tasks:
            what = "there are no tasks" if not tasks else f"tasks = {shown(tasks)} is no table"
            fix = "give each a table of its own, such as [tasks.intent], or in CSV a row"
            raise self.wrong(what, "tasks", fix=fix)
        for task, given in tasks.items():
            self._check_keys(task, given)
        costs = self._costs(tasks)
        prices = {task: self._units(given["price"], costs, "tasks", task, "price") for task, given in tasks.items()}
        joint = self.content.get("joint_price")
        units = None if joint is None else self._units(joint, costs, "joint_price")
        dearest = max(prices, key=lambda task: prices[task])
        if units is not None and units < prices[dearest]:
            raise self.wrong(
                f"joint_price = {joint} is below the price of one label of {dearest!r}, which such an item has as well",
                "joint_price",
                fix="give what an item costs that is labelled for all tasks",
            )
        return EstimateTable(
            SplitEstimates(
                self._informativeness(tuple(tasks)), {task: self._rate(task, given) for task, given in tasks.items()}
            ),
            prices=tuple(prices.values()),
            least=tuple(self._labels(task, given, "min") or 0 for task, given in tasks.items()),
            most=tuple(self._labels(task, given, "cap") for task, given in tasks.items()),
            joint=units,
            scores={
                task: float(self._number(given["seed_score"], "tasks", task, "seed_score"))
                for task, given in tasks.items()
                if "seed_score" in given
            },
            costs=costs,
        )

    def _check_keys(self, task: str, given: Any) -> None:
        if not task.strip():
            raise self.wrong("it has no name", "tasks", task, fix="give each task one")
        if not isinstance(given, Mapping):
            raise self.wrong(f"{given!r} is no table", "tasks", task, fix=f"give {', '.join(NEEDED)}")
        for key in given:
            if key not in KEYS:
                raise self.wrong(f"there is no key {key!r}", "tasks", task, key, fix=f"use {', '.join(KEYS)}")
        for key, fix in NEEDED.items():
            if key not in given:
                raise self.wrong(f"{key} is missing", "tasks", task, fix=fix)

    # -- numbers -----------------------------------------------------------------------------------------------------
    def _number(self, value: Any, *where: str, rule: Rule | None = None) -> Decimal:
        """A number that fulfils a rule, by default that of its key."""
        valid, fix = rule or RULES[where[-1]]
        large = isinstance(value, int) and value.bit_length() > 4 * LONGEST  # which cannot even be written
        number = None if large or isinstance(value, bool | list | dict | str) else number_in(str(value))
        if number is not None and abs(number) > MOST:
            number, fix = None, f"give a number up to {MOST:,}"
        if number is None or not valid(number):
            raise self.wrong(f"{where[-1]} = {shown(value)}", *where, fix=fix)
        return number

    def _costs(self, tasks: Mapping[str, Any]) -> CostModel:
        prices = [self._number(given["price"], "tasks", task, "price") for task, given in tasks.items()]
        if "joint_price" in self.content:
            prices.append(self._number(self.content["joint_price"], "joint_price"))
        currency = self.content.get("currency", "")
        if not isinstance(currency, str):
            fix = 'give a sign between quotes, such as "€"'
            raise self.wrong(f"currency = {shown(currency)}", "currency", fix=fix)
        unit = Decimal(1).scaleb(max(-FINEST, min(0, *(int(p.normalize().as_tuple().exponent) for p in prices))))
        if "unit" in self.content:
            unit = self._number(self.content["unit"], "unit")
        return CostModel({}, {}, unit, currency)

    def _units(self, value: Any, costs: CostModel, *where: str) -> int:
        price = self._number(value, *where)
        units = Fraction(price) / Fraction(costs.unit)
        if units.denominator != 1:
            fix = "set unit to the smallest amount in use, such as 0.01"
            raise self.wrong(f"{where[-1]} = {price} is not a whole number of units of {costs.unit}", *where, fix=fix)
        return int(units)

    def _labels(self, task: str, given: Mapping[str, Any], key: str) -> int | None:
        if key not in given:
            return None
        where = "tasks", task, key
        number = int(self._number(given[key], *where))
        if key == "cap" and number < (least := self._labels(task, given, "min") or 0):
            raise self.wrong(f"cap = {number} is below min = {least}", *where, fix="raise the one or lower the other")
        return number

    def _rate(self, task: str, given: Mapping[str, Any]) -> ReductionRate:
        beta, low, high = (
            float(self._number(given.get(key, given["beta"]), "tasks", task, key)) for key in ("beta", "low", "high")
        )
        block = self._number(given["block"], "tasks", task, "block")
        try:
            return ReductionRate(beta, low, high, float(block))
        except AllocationError as wrong:
            key = "block" if block <= 0 else "beta"
            raise self.wrong(wrong.message, "tasks", task, key, fix=wrong.fix or "") from None

    def _informativeness(self, tasks: tuple[str, ...]) -> Informativeness:
        rows = self.content.get("informativeness", {})
        if not isinstance(rows, Mapping):
            raise self.wrong("informativeness is no table", fix="give each task one, such as [informativeness.intent]")
        value, error = np.eye(len(tasks)), np.zeros((len(tasks), len(tasks)))
        for task, row in rows.items():
            if task not in tasks or not isinstance(row, Mapping):
                message = f"informativeness.{task} " + ("is no table" if task in tasks else "is of no task")
                raise self.wrong(message, fix=f"the tasks are {', '.join(tasks)}")
            for other, cell in row.items():
                where = "informativeness", task, other
                if other not in tasks:
                    raise self.wrong(f"informs no task {other!r}", *where, fix=f"use {', '.join(tasks)}")
                pair = cell if isinstance(cell, list | tuple) else [cell, 0]
                if len(pair) != 2:
                    raise self.wrong(f"informativeness for {other!r} = {shown(cell)}", *where, fix=EFFECT[1])
                of, doubt = (self._number(number, *where, rule=EFFECT) for number in pair)
                if doubt < 0:
                    raise self.wrong(f"the standard error for {other!r} is {doubt}", *where, fix=EFFECT[1])
                if other == task and (of != 1 or doubt != 0):
                    fix = "leave it out: all others are measured against it"
                    raise self.wrong(f"informs itself by {of}, not 1", *where, fix=fix)
                value[tasks.index(task), tasks.index(other)] = float(of)
                error[tasks.index(task), tasks.index(other)] = float(doubt)
        return Informativeness(tasks, value, error)


# -- numbers ---------------------------------------------------------------------------------------------------------
def shown(value: Any) -> str:
    """A value as in the file, shortened if necessary."""
    if isinstance(value, int) and value.bit_length() > 4 * LONGEST:
        return "a number of far too many digits"
    if isinstance(value, list):
        text = f"[{', '.join(map(shown, value))}]"
    else:
        text = str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def number_in(text: str) -> Decimal | None:
    """The number in a text; ``None`` if it is not a finite number or has too many digits."""
    found = _cell(text)
    if isinstance(found, str) or not found.is_finite() or len(text) > LONGEST:
        return None
    return found if -LONGEST <= int(found.as_tuple().exponent) <= LONGEST else None


# -- formats ---------------------------------------------------------------------------------------------------------
def _toml(path: Path, text: str) -> Content:
    try:
        content = tomllib.loads(text, parse_float=_cell)
    except tomllib.TOMLDecodeError as wrong:
        where = re.search(r"\(at line (\d+)", str(wrong))
        message = f"this is not TOML: {str(wrong).partition(' (at')[0]}"
        raise DataError(message, path=path, line=int(where[1]) if where else None) from None
    except ValueError:  # a whole number with thousands of digits
        raise DataError("a number is too long", path=path, fix=f"give numbers up to {MOST:,}") from None

    def line(where: Sequence[str]) -> int | None:
        names = [re.escape(name) for name in where]
        if len(names) == 1:
            return _line_of(text, [rf"^\s*\[?[\"']?{names[0]}[\"']?\s*[=\].]"])
        header = rf"^\s*\[\s*{names[0]}\s*\.\s*[\"']?{names[1]}[\"']?\s*\]"
        return _line_of(text, [header, *(rf"^\s*[\"']?{name}[\"']?\s*=" for name in names[2:])])

    return content, line


def _json(path: Path, text: str) -> Content:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict[str, Any]()
        for key, value in pairs:
            if key in found:
                raise DataError(f"the key {key!r} is given twice", path=path, fix="give it once")
            found[key] = value
        return found

    try:
        content = json.loads(text, parse_float=_cell, parse_int=_cell, object_pairs_hook=once)
    except json.JSONDecodeError as wrong:
        raise DataError(f"this is not JSON: {wrong.msg}", path=path, line=wrong.lineno) from None
    if not isinstance(content, dict):
        raise DataError("this is not a table of estimates", path=path, fix='begin with {"tasks": {…')

    def line(where: Sequence[str]) -> int | None:
        names = [rf"{re.escape(json.dumps(name, ensure_ascii=False))}\s*:" for name in where]
        return _line_of(text, [name + (r"\s*\{" if at == 1 else "") for at, name in enumerate(names)])

    return content, line


def _line_of(text: str, patterns: list[str]) -> int | None:
    """The line of the last pattern, each searched for after the one before."""
    at = 0
    for pattern in patterns:
        found = re.compile(pattern, re.MULTILINE).search(text, at)
        if found is None:
            return None
        at = found.end()
    return text.count("\n", 0, at) + 1


def _csv(path: Path, text: str) -> Content:
    """One row per task: its name and keys, ``informs:TASK`` and ``error:TASK``. Empty cells are missing values."""
    lines, tasks, informs = {}, {}, {}
    rows, wrong = csv.reader(text.splitlines(keepends=True), strict=True), partial(DataError, path=path)
    try:
        header = [name.strip() for name in next(rows, [])]
        if header[:1] != ["task"]:
            mark = next((mark for mark in ";\t" if header and mark in header[0]), None)
            fix = f"separate cells by commas, not by {'tabs' if mark == chr(9) else mark}" if mark else None
            raise wrong("the first column is not 'task'", line=1, fix=fix or f"begin with task,{','.join(KEYS)}")
        if twice := [key for key in header if header.count(key) > 1]:
            raise wrong(f"column {twice[0]!r} occurs twice", line=1, fix="remove one")
        for row in filter(None, rows):
            line = rows.line_num
            if len(row) != len(header):
                raise wrong(f"there are {len(row)} cells, and the header has {len(header)}", line=line)
            task, cells = row[0].strip(), {key: cell for key, cell in zip(header, row, strict=True) if cell.strip()}
            if task in tasks:
                raise wrong(f"task {task!r} is given twice", line=line, fix="give it once")
            lines[task] = line
            tasks[task] = {key: _cell(cells[key]) for key in header[1:] if ":" not in key and key in cells}
            informs[task] = {
                other: [_cell(cells[f"informs:{other}"]), _cell(cells.get(f"error:{other}", "0"))]
                for kind, _, other in (key.partition(":") for key in cells)
                if kind == "informs" and f"informs:{other}" in cells
            }
            for kind, _, other in (key.partition(":") for key in cells):
                if kind == "error" and other not in informs[task]:
                    message = f"task {task!r}: error:{other} is given without informs:{other}"
                    raise wrong(message, line=line, fix="give both, or none")
    except csv.Error as error:
        raise wrong(f"this is not CSV: {error}", line=rows.line_num) from None
    for key in header:
        kind, colon, other = key.partition(":")
        if colon and (kind not in ("informs", "error") or other not in tasks):
            raise wrong(f"column {key!r} is of no task", line=1, fix="use informs:TASK or error:TASK")
    content: dict[str, Any] = {"tasks": tasks, "informativeness": informs}
    return content, lambda where: lines.get(where[1]) if len(where) > 1 else None


def _cell(text: str) -> Decimal | str:
    """The number in a cell, or its text."""
    try:
        return Decimal(text.strip())
    except ArithmeticError:
        return text


FORMATS: Mapping[str, Callable[[Path, str], Content]] = {".toml": _toml, ".json": _json, ".csv": _csv}
