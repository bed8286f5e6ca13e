"""Read the content of files with estimates, and find the line of a key for error messages."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from bursar.errors import DataError

NEEDED = ("price", "beta", "block")
KEYS = (*NEEDED, "low", "high", "seed_score", "min", "cap")
MOST = Decimal(10**12)  # largest number in a table, and largest budget
LONGEST = 50  # most digits of a number, before and after the point

Line = Callable[[str, str | None, str | None], int | None]  # from a section, a task and a key (or just a top-level key)
Content = tuple[Mapping[str, Any], Line]


# -- numbers ---------------------------------------------------------------------------------------------------------
def shown(value: Any) -> str:
    """A value as in the file, shortened if necessary.

    >>> shown([Decimal("0.25"), 1]), shown("0.05"), shown(True)
    ('[0.25, 1]', '"0.05"', 'true')
    """
    if isinstance(value, int) and value.bit_length() > 4 * LONGEST:
        return "a number of far too many digits"
    if isinstance(value, list):
        text = f"[{', '.join(map(shown, value))}]"
    else:
        text = str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def number_in(text: str) -> Decimal | None:
    """The number in a text; ``None`` if it is not a finite number or has too many digits.

    >>> number_in("0.05"), number_in("1e-99999999"), number_in("many"), number_in("inf")
    (Decimal('0.05'), None, None, None)
    """
    try:
        found = Decimal(text)
    except ArithmeticError:
        return None
    if not found.is_finite():
        return None
    exponent = int(found.as_tuple().exponent)
    return found if len(text) <= LONGEST and -LONGEST <= exponent <= LONGEST else None


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
    except RecursionError:
        raise _too_deep(path) from None

    def line(section: str, task: str | None, key: str | None) -> int | None:
        if task is None:
            return _line_of(text, [rf"^\s*\[?[\"']?{re.escape(key or '')}[\"']?\s*[=\].]"])
        header = rf"^\s*\[\s*{section}\s*\.\s*[\"']?{re.escape(task)}[\"']?\s*\]"
        return _line_of(text, [header, *([] if key is None else [rf"^\s*[\"']?{re.escape(key)}[\"']?\s*="])])

    return content, line


def _json(path: Path, text: str) -> Content:
    try:
        content = json.loads(text, parse_float=_cell, parse_int=_cell, object_pairs_hook=_once)
    except json.JSONDecodeError as wrong:
        raise DataError(f"this is not JSON: {wrong.msg}", path=path, line=wrong.lineno) from None
    except _TwiceError as wrong:
        raise DataError(f"the key {wrong.args[0]!r} is given twice", path=path, fix="give it once") from None
    except RecursionError:
        raise _too_deep(path) from None
    if not isinstance(content, dict):
        raise DataError("this is not a table of estimates", path=path, fix='begin with {"tasks": {…')

    def line(section: str, task: str | None, key: str | None) -> int | None:
        if task is None:
            return _line_of(text, [rf"{re.escape(json.dumps(key, ensure_ascii=False))}\s*:"])
        start = [f'"{section}"\\s*:', rf"{re.escape(json.dumps(task, ensure_ascii=False))}\s*:\s*\{{"]
        last = [] if key is None else [rf"{re.escape(json.dumps(key, ensure_ascii=False))}\s*:"]
        return _line_of(text, start + last)

    return content, line


def _too_deep(path: Path) -> DataError:
    return DataError("tables are nested too deep", path=path, fix="see docs/allocation.md for the format")


class _TwiceError(Exception):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _TwiceError(key)
        found[key] = value
    return found


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
    rows = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        header = [name.strip() for name in next(rows, [])]
        if header[:1] != ["task"]:
            mark = next((mark for mark in ";\t" if header and mark in header[0]), None)
            fix = f"separate cells by commas, not by {'tabs' if mark == chr(9) else mark}" if mark else None
            raise DataError(
                "the first column is not 'task'", path=path, line=1, fix=fix or f"begin with task,{','.join(KEYS)}"
            )
        if twice := [key for key in header if header.count(key) > 1]:
            raise DataError(f"column {twice[0]!r} occurs twice", path=path, line=1, fix="remove one")
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                message = f"there are {len(row)} cells, and the header has {len(header)}"
                raise DataError(message, path=path, line=rows.line_num)
            task, cells = row[0].strip(), dict(zip(header[1:], row[1:], strict=True))
            if task in tasks:
                raise DataError(f"task {task!r} is given twice", path=path, line=rows.line_num, fix="give it once")
            lines[task] = rows.line_num
            tasks[task] = {key: _cell(cell) for key, cell in cells.items() if ":" not in key and cell.strip()}
            informs[task] = {
                key.removeprefix("informs:"): [_cell(cell), _cell(cells.get(f"error:{key[8:]}", "").strip() or "0")]
                for key, cell in cells.items()
                if key.startswith("informs:") and cell.strip()
            }
            for key, cell in cells.items():
                if key.startswith("error:") and cell.strip() and key[6:] not in informs[task]:
                    message = f"task {task!r}: {key} is given without informs:{key[6:]}"
                    raise DataError(message, path=path, line=rows.line_num, fix="give both, or none")
    except csv.Error as wrong:
        raise DataError(f"this is not CSV: {wrong}", path=path, line=rows.line_num) from None
    for key in header:
        kind, colon, other = key.partition(":")
        if colon and (kind not in ("informs", "error") or other not in tasks):
            raise DataError(f"column {key!r} is of no task", path=path, line=1, fix="use informs:TASK or error:TASK")
    content: dict[str, Any] = {"tasks": tasks, "informativeness": informs}
    return content, lambda section, task, key: None if task is None else lines.get(task)


def _cell(text: str) -> Decimal | str:
    """The number in a cell, or its text."""
    try:
        return Decimal(text.strip())
    except ArithmeticError:
        return text


FORMATS: Mapping[str, Callable[[Path, str], Content]] = {".toml": _toml, ".json": _json, ".csv": _csv}
