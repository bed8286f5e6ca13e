"""Read a scored pool from CSV or Parquet and write a selection, for users with a model of their own.

Input columns: ``id``, ``confidence:TASK`` for each task; optionally ``cost:reading``, ``cost:TASK``, ``group``,
``hours:WHO:TASK``. Output columns: ``id``, ``tasks``, ``cost``. Errors name the line, the column and the value.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from bursar.corpus.formats.format import replacing_bytes
from bursar.errors import DataError, SelectionError
from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.selection.candidates import Candidates, GroupCap, Limits, Selection
from bursar.selection.tables import SUFFIXES, TableFile, open_table
from bursar.tasks import Prices

BETWEEN_TASKS = ";"
MOST_TASKS = 62  # a subset of them fits in one integer
MOST_PLACES = 9  # decimals; finer costs are rounded up
MOST_UNITS = 2**62  # largest sum of all costs of a file
NOISE = 2.0**-51  # relative; a cost this close to a decimal number is taken as that number (0.1 + 0.2)


# -- money -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class CostUnits:
    """Converts amounts with decimals to whole units: one unit is 1 at the last decimal place in use."""

    places: int

    @classmethod
    def of(cls, *amounts: FloatArray) -> CostUnits:
        """As many decimal places as the amounts need, at most nine."""
        left = np.concatenate([column.ravel() for column in amounts])
        for places in range(MOST_PLACES):
            left = left[~_fits(left, places)]
            if not len(left):
                return cls(places)
        return cls(MOST_PLACES)

    def whole(self, amounts: FloatArray) -> IntArray:
        """Amounts in units, rounded up if they have more decimals, so that a budget is never exceeded."""
        scale = 10.0**self.places
        units = np.rint(amounts * scale)
        fine = ~_fits(amounts, self.places)
        if fine.any():
            up = np.ceil(amounts[fine] * scale)
            units[fine] = up + (up / scale < amounts[fine])
        if not units.sum() < MOST_UNITS:
            raise SelectionError(
                f"the costs add up to {amounts.sum():.3g}, which is too much to count in units of {1 / scale:g}",
                fix="give costs in a larger currency, or with fewer decimals",
            )
        return units.astype(np.int64)

    def floor(self, amount: Decimal) -> int:
        """An amount in units, rounded down, so that a budget never grows."""
        if not -20 < amount.adjusted() < 20:  # zero, or more than any file can cost
            return MOST_UNITS if amount.adjusted() > 0 else 0
        return min(MOST_UNITS, int(Fraction(amount) * 10**self.places))

    def money(self, units: int) -> Decimal:
        return Decimal(units).scaleb(-self.places)


def _fits(amounts: FloatArray, places: int) -> BoolArray:
    """Which amounts have at most this many decimal places."""
    with np.errstate(over="ignore", invalid="ignore"):
        fits: BoolArray = np.abs(np.round(amounts, places) - amounts) <= NOISE * amounts
    return fits


# -- columns ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Columns:
    """The meaning of a table's columns, read from their names."""

    tasks: tuple[str, ...]
    costs: Mapping[str, str]  # task or "reading" to column
    hours: Mapping[tuple[str, str], str]  # who and task to column
    group: bool
    ignored: tuple[str, ...]

    KINDS = ("confidence", "cost", "hours")

    @classmethod
    def of(cls, names: Sequence[str]) -> Columns:
        """Parse column names; raise an error for a name with an unknown prefix."""
        tasks: list[str] = []
        costs: dict[str, str] = {}
        hours: dict[tuple[str, str], str] = {}
        for place, name in enumerate(names):
            kind, colon, rest = name.partition(":")
            if name and name in names[:place]:
                raise DataError(f"there are two columns {name!r}", fix="give every column its own name")
            if colon and kind not in cls.KINDS:
                near = get_close_matches(kind.strip().lower(), cls.KINDS, n=1)
                raise DataError(
                    f"column {name!r} has an unknown prefix",
                    fix=(f"did you mean '{near[0]}:{rest}'? Known: " if near else "use ")
                    + "confidence:TASK, cost:reading, cost:TASK, hours:WHO:TASK; a column without a colon is ignored",
                )
            if kind == "confidence" and colon:
                tasks.append(rest)
            elif kind == "cost" and colon:
                costs[rest] = name
            elif colon:
                who, _, task = rest.partition(":")
                hours[who, task] = name
        ignored = tuple(name for name in names if name and ":" not in name and name not in ("id", "group"))
        made = cls(tuple(tasks), costs, hours, "group" in names, ignored)
        made._check(names)
        return made

    def _check(self, names: Sequence[str]) -> None:
        found = "found " + ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        both = "reading" in self.tasks and "reading" in self.costs
        reading = "column 'cost:reading' is the cost of reading an item, but a task is called 'reading' too"
        for wrong, message, fix in (
            ("id" not in names, "there is no column 'id'", f"name the column of unique ids 'id'; {found}"),
            (not self.tasks, "there is no column of confidences", f"name it confidence:TASK; {found}"),
            (
                len(self.tasks) > MOST_TASKS,
                f"there are {len(self.tasks)} tasks",
                f"select for at most {MOST_TASKS} at a time",
            ),
            (both, reading, "give the task another name"),
        ):
            if wrong:
                raise DataError(message, fix=fix)
        for task in self.tasks:
            if not task or BETWEEN_TASKS in task:
                fix = f"use a name without {BETWEEN_TASKS!r}"
                raise DataError(f"column 'confidence:{task}' has no valid task name", fix=fix)
        about = [(task, name) for task, name in self.costs.items() if task != "reading"]
        for task, name in about + [(task, name) for (_, task), name in self.hours.items()]:
            if task not in self.tasks:
                fix = f"the tasks are {', '.join(self.tasks)}"
                raise DataError(f"column {name!r}: there is no column 'confidence:{task}'", fix=fix)


# -- scores ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Scores:
    """The contents of a file of scores, sorted by id."""

    ids: Any  # (items,) an Arrow array of strings
    tasks: tuple[str, ...]
    confidence: FloatArray  # (items, tasks)
    reading: FloatArray  # (items,)
    own: FloatArray  # (items, tasks)
    groups: Any = None  # (items,) an Arrow array of strings, if the file has groups
    hours: Mapping[str, FloatArray] = field(default_factory=dict)  # by annotator: (items, tasks)
    ignored: tuple[str, ...] = ()  # columns that were not used

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def units(self) -> CostUnits:
        return CostUnits.of(self.reading, self.own)

    def pool(self, limits: Limits) -> Candidates:
        """The pool as input for a strategy, priced in whole units."""
        costs = self.units.whole(np.concatenate([self.reading[:, None], self.own], axis=1))
        prices = Prices(self.tasks, costs[:, 0], costs[:, 1:])
        return Candidates(self.ids.to_numpy(zero_copy_only=False), self.confidence, prices, limits=limits)

    def cap(self, at_most: int) -> GroupCap:
        """A cap on every group; an item without a group is a group of its own."""
        named = pc.dictionary_encode(pc.fill_null(self.groups, ""))
        group: IntArray = named.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        alone = np.flatnonzero(group == pc.index(named.dictionary, "").as_py())
        group[alone] = len(named.dictionary) + np.arange(len(alone))
        return GroupCap(group, np.full(len(named.dictionary) + len(alone), at_most, dtype=np.int64))

    def take(self, rows: IntArray) -> Scores:
        ids, groups = (None if column is None else column.take(pa.array(rows)) for column in (self.ids, self.groups))
        confidence, reading, own = (column[rows] for column in (self.confidence, self.reading, self.own))
        hours = {who: use[rows] for who, use in self.hours.items()}
        return Scores(ids, self.tasks, confidence, reading, own, groups, hours, self.ignored)


def read_scores(path: Path) -> Scores:
    """Read a table of scores, ``.csv`` or ``.parquet``. Tasks are in the order of their ``confidence`` columns."""
    file = open_table(path)
    names = file.names()
    try:
        columns = Columns.of(names)
    except DataError as wrong:
        raise DataError(wrong.message, path=path, line=file.header, fix=wrong.fix) from None
    confidences = [f"confidence:{task}" for task in columns.tasks]
    group = ["group"] if columns.group else []
    table = file.read(["id", *confidences, *columns.costs.values(), *columns.hours.values(), *group])
    ids = _ids(file, table)
    shape = (len(ids), len(columns.tasks))
    confidence, own = np.empty(shape), np.ones(shape)
    reading: FloatArray = np.zeros(len(ids))
    hours = {who: np.zeros(shape) for who, _ in columns.hours}
    for at, name in enumerate(confidences):
        confidence[:, at] = _numbers(file, table, name, 1.0, "give a number from 0 (no idea) to 1 (certain)")
    for task, name in columns.costs.items():
        cost = _numbers(file, table, name, math.inf, "give a number from 0 up")
        if task == "reading":
            reading = cost
        else:
            own[:, columns.tasks.index(task)] = cost
    for (who, task), name in columns.hours.items():
        fix = "give the hours that a label takes, from 0 up"
        hours[who][:, columns.tasks.index(task)] = _numbers(file, table, name, math.inf, fix)
    groups = _text(file, table, "group") if columns.group else None
    found = Scores(ids, columns.tasks, confidence, reading, own, groups, hours, columns.ignored)
    order = _by_id(file, ids)
    return found if order is None else found.take(order)


def _ids(file: TableFile, table: Any) -> Any:
    ids = _text(file, table, "id")
    missing = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(ids), ""), True)
    if (row := pc.index(missing, True).as_py()) >= 0:
        raise file.error("column 'id' is empty", row, fix="give every item a unique id")
    return ids


def _by_id(file: TableFile, ids: Any) -> IntArray | None:
    """Positions sorted by id; ``None`` if they are sorted already. Duplicate ids are an error."""
    if len(ids) < 2 or pc.all(pc.less(ids[:-1], ids[1:])).as_py():
        return None
    order: IntArray = pc.sort_indices(ids).to_numpy().astype(np.int64)
    by_id = ids.take(pa.array(order))
    twice = np.flatnonzero(pc.equal(by_id[:-1], by_id[1:]).to_numpy(zero_copy_only=False))
    if len(twice):
        at = int(twice[np.maximum(order[twice], order[twice + 1]).argmin()])
        first, second = sorted(order[at : at + 2].tolist())
        message = f"the id is in {file.where(first)} already"
        raise file.error(message, second, by_id[at].as_py(), fix="give every item one row")
    return order


def _text(file: TableFile, table: Any, name: str) -> Any:
    """A column as one array of strings."""
    column = _plain(table.column(name))
    if not (_is_text(column.type) or pa.types.is_integer(column.type)):
        raise DataError(f"column {name!r} holds {column.type}", path=file.path, fix="convert it to text")
    return pc.cast(column, pa.large_string()).combine_chunks()


def _numbers(file: TableFile, table: Any, name: str, most: float, fix: str) -> FloatArray:
    """A column as finite numbers from 0 to ``most``."""
    column = _plain(table.column(name))
    kind = column.type
    if pa.types.is_float16(kind) or pa.types.is_float32(kind):  # read 0.1 as 0.1, not as the nearest float32
        column = pc.cast(pc.cast(column, pa.float32()), pa.string())
    elif not any(is_it(kind) for is_it in (_is_text, pa.types.is_integer, pa.types.is_float64, pa.types.is_decimal)):
        raise DataError(f"column {name!r} holds {kind}", path=file.path, fix=fix)
    try:
        values = _floats(column)
        bad = ~((values >= 0) & (values <= most) & (values < math.inf))
        if not bad.any():
            return values
        row = int(bad.argmax())
    except pa.ArrowInvalid:
        row = _first_failing(column)
    found = table.column(name)[row].as_py()
    holds = "is empty" if found is None or found == "" else f"holds {found!r}"
    raise file.error(f"column {name!r} {holds}", row, str(table.column("id")[row].as_py()), fix=fix)


def _floats(column: Any) -> FloatArray:
    """A column as floats; missing values become NaN."""
    try:
        found = pc.cast(column, pa.float64(), safe=False)
    except pa.ArrowInvalid:  # perhaps because of spaces around a number
        found = pc.cast(pc.utf8_trim_whitespace(column), pa.float64())
    values: FloatArray = found.to_numpy()
    return values


def _first_failing(column: Any) -> int:
    """The first row that is not a number, by bisection."""
    good, bad = 0, len(column)  # rows before ``good`` are numbers; a row before ``bad`` is not
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            _floats(column[good:middle])
            good = middle
        except pa.ArrowInvalid:
            bad = middle
    return good


def _plain(column: Any) -> Any:
    return pc.cast(column, column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


# -- writing a selection ---------------------------------------------------------------------------------------------
def selection_table(scores: Scores, selection: Selection) -> Any:
    """A selection as an Arrow table, best item first: ``id``, ``tasks``, and ``cost`` in the file's currency."""
    subsets, of = np.unique(selection.tasks @ (1 << np.arange(len(scores.tasks))), return_inverse=True)
    names = [BETWEEN_TASKS.join(t for at, t in enumerate(scores.tasks) if code >> at & 1) for code in subsets.tolist()]
    tasks = pa.array(names, pa.large_string()).take(pa.array(of))
    places = scores.units.places
    cost = selection.cost if places == 0 else selection.cost / 10.0**places
    return pa.table({"id": scores.ids.take(pa.array(selection.items)), "tasks": tasks, "cost": cost})


def csv_text(table: Any) -> str:
    """A table as CSV."""
    columns = [_quoted(pc.cast(column, pa.large_string())) for column in table.columns]
    lines = pc.binary_join_element_wise(*columns, pa.scalar(",", pa.large_string())).to_pylist()
    return "\n".join([",".join(table.column_names), *lines, ""])


def _quoted(column: Any) -> Any:
    special = pc.match_substring_regex(column, r'[",\r\n]')
    quote, nothing = pa.scalar('"', pa.large_string()), pa.scalar("", pa.large_string())
    between = pc.binary_join_element_wise(quote, pc.replace_substring(column, '"', '""'), quote, nothing)
    return pc.if_else(special, between, column)


def check_target(path: Path, source: Path) -> None:
    """Reject an output path that could not be written, before any work is done."""
    if path.suffix.lower() not in SUFFIXES:
        raise DataError("the name ends in neither .csv nor .parquet", path=path, fix="use one of these suffixes")
    if not path.parent.is_dir():
        raise DataError(f"there is no folder {path.parent}", path=path, fix="create it first")
    if path.is_dir():
        raise DataError("this is a folder", path=path, fix="name a file in it")
    if path.exists() and source.exists() and path.samefile(source):
        raise DataError("this is the file of scores", path=path, fix="write to another file")


def write_selection(table: Any, path: Path) -> None:
    """Write a selection to ``.csv`` or ``.parquet``, atomically."""
    if path.suffix.lower() == ".csv":
        content = csv_text(table).encode()
    else:
        buffer = io.BytesIO()
        pyarrow.parquet.write_table(table, buffer)
        content = buffer.getvalue()
    try:
        with replacing_bytes(path) as file:
            file.write(content)
    except OSError as wrong:
        raise DataError(f"cannot be written: {wrong.strerror}", path=path) from None
