"""Metadata: the other columns of a table, kept with its items, shown beside them and exported again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from bursar.ragged import IntArray, Strings

NOTHING = "null"
# Values that JSON does not have, as an object with one key.
_TAGS = {"$datetime": datetime.fromisoformat, "$date": date.fromisoformat, "$time": time.fromisoformat}
_TAGS |= {"$decimal": Decimal, "$seconds": lambda seconds: timedelta(microseconds=round(1e6 * float(seconds)))}


def encode_cell(value: Any) -> str:
    """A cell as JSON text; dates, times and decimals are tagged, as in ``{"$date": "2026-05-01"}``."""
    return json.dumps(_escaped(value), ensure_ascii=False, default=_tagged)


def decode_cell(text: str) -> Any:
    """The value of a cell; the inverse of ``encode_cell``."""
    return json.loads(text, object_hook=_untagged)


def cell_of_json(value: Any) -> Any:
    """The value of a cell that is parsed JSON already."""
    if isinstance(value, list):
        return [cell_of_json(one) for one in value]
    if isinstance(value, dict):
        return _untagged({key: cell_of_json(one) for key, one in value.items()})
    return value


def shown_cell(value: Any) -> str:
    """A cell as people read it."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(" ", "auto").removesuffix("00:00:00").removesuffix(":00").rstrip()
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value).strip()


def _tagged(value: Any) -> Any:
    if isinstance(value, datetime | date | time):
        return {f"${type(value).__name__}": value.isoformat()}
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, timedelta):
        return {"$seconds": str(value / timedelta(seconds=1))}
    if hasattr(value, "item"):  # a number of numpy
        return value.item()
    return str(value)


def _escaped(value: Any) -> Any:
    """JSON whose own objects look like a tag, such as the dates of MongoDB, with one more dollar."""
    if isinstance(value, list):
        return [_escaped(one) for one in value]
    if isinstance(value, dict):
        tag = len(value) == 1 and all(isinstance(key, str) and f"${key.lstrip('$')}" in _TAGS for key in value)
        return {f"${key}" if tag and key.startswith("$") else key: _escaped(one) for key, one in value.items()}
    return value


def _untagged(found: dict[str, Any]) -> Any:
    key, value = next(iter(found.items())) if len(found) == 1 else ("", None)
    if key in _TAGS and isinstance(value, str):
        with suppress(ValueError, ArithmeticError):  # else somebody else's
            return _TAGS[key](value)
    if key.startswith("$$") and f"${key.lstrip('$')}" in _TAGS:
        return {key[1:]: value}
    return found


@dataclass(frozen=True, eq=False)
class Metadata:
    """Columns of a table by name. The column that became the items' text has a place in the order, but no cells, unless
    some of them were no strings.
    """

    order: tuple[str, ...]  # all columns of the table
    cells: Mapping[str, Strings]  # JSON text, one cell per item
    text: str | None = None  # the column that became the text
    labels: tuple[str, ...] = ()  # the columns that became labels, which annotators do not see

    @classmethod
    def of(cls, columns: Mapping[str, Iterable[Any]], text: str | None = None) -> Metadata:
        """From values by column."""
        cells = {name: Strings.of(map(encode_cell, column)) for name, column in columns.items() if name != text}
        return cls(tuple(columns), cells, text)

    def row(self, item: int) -> dict[str, Any]:
        return {name: decode_cell(self.cells[name][item]) for name in self.order if name in self.cells}

    def column(self, name: str) -> list[Any]:
        return [decode_cell(cell) for cell in self.cells[name].tolist()]

    def take(self, items: IntArray) -> Metadata:
        return replace(self, cells={name: cells.take(items) for name, cells in self.cells.items()})

    def header(self) -> dict[str, Any]:
        """The columns, for the first line of a JSONL file."""
        return {"columns": list(self.order), "text": self.text} | ({"labels": list(self.labels)} if self.labels else {})

    def shown(self, item: int) -> list[dict[str, str]]:
        """What people see beside an item: the cells that are not empty, as text."""
        cells = {name: shown_cell(cell) for name, cell in self.row(item).items() if name not in self.labels}
        return [{"name": name, "value": cell} for name, cell in cells.items() if cell]

    @staticmethod
    def concatenate(parts: Sequence[tuple[Metadata | None, int]]) -> Metadata | None:
        """The rows of several tables, each with its number of items; a cell that a table lacks is empty."""
        tables = [part for part, _ in parts if part is not None]
        if not tables:
            return None
        order = tuple(dict.fromkeys(name for table in tables for name in table.order))
        cells = {}
        for name in dict.fromkeys(name for table in tables for name in table.cells):
            known = [(None if part is None else part.cells.get(name), count) for part, count in parts]
            columns = [Strings.of([NOTHING] * count) if column is None else column for column, count in known]
            cells[name] = Strings.concatenate(columns)
        labels = tuple(dict.fromkeys(name for table in tables for name in table.labels))
        return Metadata(order, cells, tables[0].text, labels)
