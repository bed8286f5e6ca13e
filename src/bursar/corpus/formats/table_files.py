"""Read and write files that hold one table: CSV and TSV, Excel, Parquet, JSON objects; and read frames of pandas.

What a file does not say (its encoding, its delimiter, whether it has a header) is found out and noted in words.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from bursar.corpus.formats.format import FileReader, read_bytes, replacing, replacing_bytes
from bursar.corpus.formats.json_files import json_array, json_lines, write_json_array, write_json_lines
from bursar.errors import ConfigError, DataError

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
ENCODINGS = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8", "utf-16": "UTF-16", "cp1252": "Windows-1252"}  # in words
SHOWN_LINES = 5  # named in a message
SAMPLE = 100  # rows that the delimiter and the header are found out from
LONGEST_NAME = 60  # characters of a column name
SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n")  # that Excel looks for
NUMBER = re.compile(r"[-+]?[\d.,]+%?")
EXCEL = (".xlsx", ".xlsm")
MOST_CHARACTERS = 32_767  # in a cell of Excel
MOST_ROWS = 1_048_575
CELLS = (str, int, float, bool, datetime, date, time, timedelta, Decimal)  # that Excel has
Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Table:
    """Columns of one length, the line or row of the file that each row came from, and what was found out."""

    columns: Mapping[str, list[Any]]
    lines: Sequence[int]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.lines)


# -- CSV --------------------------------------------------------------------------------------------------------------
def read_csv(
    path: Path, *, delimiter: str | None = None, encoding: str | None = None, header: bool | None = None
) -> Table:
    """Read a CSV or TSV file. What is not given is found out from its first rows."""
    text, encoding = decoded(path, encoding)
    if not text.strip():
        raise DataError("there is no item in it", path=path)
    if said := SEPARATOR_LINE.match(text):
        delimiter, text = delimiter or said[1], "\n" + text[said.end() :]
    delimiter = _named_delimiter(delimiter) if delimiter else _delimiter_of(text, path)
    records = list(_csv_records(text, delimiter, path))
    first = records[0][1]
    if header is None:
        header = _is_header(first, [cells for _, cells in records[1 : SAMPLE + 1]])
    names = _column_names(first if header else [f"column {n}" for n in range(1, len(first) + 1)], path, records[0][0])
    rows = records[1:] if header else records
    if not rows:
        raise DataError("there is no item in it, only a header", path=path)
    _check_widths(rows, len(names), path)
    columns = {name: [cells[at] for _, cells in rows] for at, name in enumerate(names)}
    columns = {name: cells for name, cells in columns.items() if not (header and _is_void(name, cells))}
    between = f"separated by {DELIMITERS.get(delimiter, repr(delimiter))}, " if len(names) > 1 else ""
    note = f"{between}{ENCODINGS.get(encoding, encoding)}, {'with' if header else 'without'} a header"
    return Table(columns, [line for line, _ in rows], (note,))


def _named_delimiter(delimiter: str) -> str:
    r"""A delimiter as it is typed in: one character, or ``\t``.

    >>> _named_delimiter(r"\t"), _named_delimiter("#")
    ('\t', '#')
    """
    delimiter = {r"\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ConfigError(f"delimiter = {delimiter!r}", fix=r"use one character, such as ; or \t for tabs")
    return delimiter


def decoded(path: Path, encoding: str | None) -> tuple[str, str]:
    """The text of a file, and its encoding: UTF-8 or what its byte order mark says, else Windows-1252."""
    data = read_bytes(path)
    halves = {data[:1]: "utf-16-be", data[1:2]: "utf-16-le"}.get(b"\x00", "utf-8")  # Latin letters without a mark
    first = encoding or next((name for bom, name in BOMS.items() if data.startswith(bom)), halves)
    try:
        return data.decode(first), first
    except LookupError:
        raise ConfigError(f"there is no encoding {encoding!r}", fix="use utf-8, cp1252 or utf-16") from None
    except UnicodeDecodeError as wrong:
        if encoding is None and first == "utf-8" and b"\x00" not in data[:4096]:
            with suppress(UnicodeDecodeError):
                return data.decode("cp1252"), "cp1252"
        line = data.count(b"\n", 0, wrong.start) + 1
        message = f"byte {wrong.start + 1} of the file is not {ENCODINGS.get(first, first)}"
        raise DataError(message, path=path, line=line, fix="save the file as UTF-8, or name its encoding") from None


def _delimiter_of(text: str, path: Path) -> str:
    """The delimiter that cuts the first rows into the same number of cells, the largest; a comma if none does."""
    sample = text[: 1 << 18]
    best, cells = ",", 1
    for delimiter in DELIMITERS:
        widths: Counter[int] = Counter()
        with suppress(DataError):  # the sample may end inside a quoted cell
            widths.update(len(row) for _, row in islice(_csv_records(sample, delimiter, path), SAMPLE))
        width, count = widths.most_common(1)[0] if widths else (1, 0)
        if width > cells and count >= 0.8 * widths.total():
            best, cells = delimiter, width
    return best


def _csv_records(text: str, delimiter: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows with the line that each begins on; empty lines are passed over."""
    csv.field_size_limit(1 << 30)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for row in reader:
            if row:
                yield line, row
            line = reader.line_num + 1
    except csv.Error as wrong:
        reason = "a quoted cell does not end" if "unexpected end" in str(wrong) else str(wrong)
        raise DataError(f"not a row of cells: {reason}", path=path, line=line) from None


def _is_header(row: Sequence[str], others: Sequence[Sequence[str]] = ()) -> bool:
    """Whether a row looks like column names: short, different, and no numbers.

    A name may be missing above an empty column or one of numbers, such as the index that pandas writes.
    """
    names = [cell.strip() for cell in row]
    given = [name for name in names if name]
    short = all(len(name) <= LONGEST_NAME and not NUMBER.fullmatch(name) for name in given)
    below = [other[at].strip() for other in others for at, name in enumerate(names) if not name and at < len(other)]
    bare = all(not cell or NUMBER.fullmatch(cell) for cell in below)
    several = len(names) > 1 or len(names[0].split()) <= 3
    return bool(given) and short and bare and several and len(set(given)) == len(given)


def _column_names(row: Sequence[Any], path: Path, line: int) -> list[str]:
    names = [str(cell).strip() if cell is not None else "" for cell in row]
    names = [name or f"column {at}" for at, name in enumerate(names, start=1)]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"two columns are named {twice!r}", path=path, line=line, fix="rename one of them")
    return names


def _check_widths(rows: Sequence[tuple[int, Sequence[Any]]], width: int, path: Path) -> None:
    wrong = [(line, len(cells)) for line, cells in rows if len(cells) != width]
    if wrong:
        line, cells = wrong[0]
        others = f" (so have {listed_lines([line for line, _ in wrong[1:]])})" if len(wrong) > 1 else ""
        message = f"the row has {cells} cells, and the first row has {width}{others}"
        raise DataError(message, path=path, line=line, fix="put cells that hold the separator in double quotes")


def listed_lines(lines: Sequence[int]) -> str:
    """Line numbers in words."""
    shown = ", ".join(map(str, lines[:SHOWN_LINES]))
    more = f" and {len(lines) - SHOWN_LINES} more" if len(lines) > SHOWN_LINES else ""
    return f"line{'s' if len(lines) > 1 else ''} {shown}{more}"


# -- Excel ------------------------------------------------------------------------------------------------------------
def read_excel(path: Path, *, sheet: str | None = None, header: bool | None = None) -> Table:
    """Read a sheet of an Excel workbook, by default the first that is not empty."""
    rows, name, others = _sheet_rows(path, sheet)
    rows = [(line, row) for line, row in rows if any(cell is not None for cell in row)]
    width = max((at + 1 for _, row in rows for at, cell in enumerate(row) if cell is not None), default=0)
    if not rows:
        fix = "name another one: sheet=NAME" if others else None
        raise DataError(f"sheet {name!r} is empty", path=path, fix=fix)
    rows = [(line, (*row[:width], *[None] * (width - len(row)))) for line, row in rows]
    first = rows[0][1]
    if header is None:
        header = all(cell is None or isinstance(cell, str) for cell in first)
    names = _column_names(first if header else [None] * width, path, rows[0][0])
    body = rows[1:] if header else rows
    if not body:
        raise DataError(f"sheet {name!r} has no item, only a header", path=path)
    notes = (f"sheet {name!r}" + (f" of {others + 1}" if others else ""),)
    columns = {}
    for at, column in enumerate(names):
        cells = [row[at] for _, row in body]
        if not _is_void(column, cells):
            columns[column] = cells
    return Table(columns, [line for line, _ in body], notes)


def _is_void(column: str, cells: Sequence[Any]) -> bool:
    """A column without a name and without cells, as between two blocks of a sheet."""
    return column.startswith("column ") and all(cell is None or cell == "" for cell in cells)


def _sheet_rows(path: Path, sheet: str | None) -> tuple[list[tuple[int, tuple[Any, ...]]], str, int]:
    """The rows of a sheet with their numbers, its name, and how many other sheets there are."""
    from openpyxl import load_workbook

    if not path.is_file():
        raise DataError("there is no such file", path=path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions that only Excel knows
            book = load_workbook(path, read_only=True, data_only=True)
            names = [one.title for one in book.worksheets]
            chosen = sheet if sheet is not None else names[0]
            rows: list[tuple[int, tuple[Any, ...]]] = []
            for one in [chosen] if sheet is not None else names:
                if one in names and not any(cell is not None for _, row in rows for cell in row):
                    chosen = one
                    book[one].reset_dimensions()  # some programs write wrong ones
                    rows = list(enumerate(book[one].iter_rows(values_only=True), start=1))
            book.close()
    except Exception as wrong:  # a damaged file can fail anywhere in its ZIP, XML or cells
        message = f"no Excel workbook that can be read: {wrong}"
        raise DataError(message, path=path, fix="save it as .xlsx or .csv") from None
    if chosen not in names:
        raise DataError(f"there is no sheet {chosen!r}", path=path, fix=f"it has {', '.join(names)}")
    return rows, chosen, len(names) - 1


# -- Parquet, JSON, data frames ---------------------------------------------------------------------------------------
def read_parquet(path: Path) -> Table:
    """Read a Parquet file."""
    import pyarrow.parquet as pq

    try:
        found = pq.read_table(path)
        cells = [column.to_pylist() for column in found.columns]
    except Exception as wrong:  # a damaged file can fail in its footer, its pages or its texts
        reason = (str(wrong).splitlines() or [type(wrong).__name__])[0]
        raise DataError(f"no Parquet file that can be read: {reason}", path=path) from None
    names = _column_names(found.column_names, path, 1)
    return Table(dict(zip(names, cells, strict=True)), range(1, found.num_rows + 1))


def read_json(path: Path) -> Table:
    """Read an array of JSON objects."""
    return _table_of_records(json_array(path))


def read_json_lines(path: Path) -> Table:
    """Read one JSON object per line."""
    reader = FileReader()
    reader.file = path
    return _table_of_records((reader.line or 0, record) for record in json_lines(reader))


def _table_of_records(records: Iterable[tuple[int, Mapping[str, Any]]]) -> Table:
    rows = list(records)
    names = dict.fromkeys(name for _, record in rows for name in record)
    return Table({name: [record.get(name) for _, record in rows] for name in names}, [line for line, _ in rows])


def read_frame(frame: Any) -> Table:
    """The table of a pandas DataFrame; missing values are empty cells."""
    missing = frame.isna()
    columns = {}
    for at, name in enumerate(frame.columns):
        cells = frame.iloc[:, at].tolist()
        empty = missing.iloc[:, at].tolist()
        columns[str(name)] = [None if void else _plain(cell) for cell, void in zip(cells, empty, strict=True)]
    if len(columns) < len(frame.columns):
        raise DataError("two columns of the frame have one name", fix="rename one of them")
    return Table(columns, range(1, len(frame) + 1))


def _plain(cell: Any) -> Any:
    """A timestamp or a duration of pandas as one of Python."""
    for convert in ("to_pydatetime", "to_pytimedelta"):
        if hasattr(cell, convert):
            return getattr(cell, convert)()
    return cell


READERS: dict[str, Callable[..., Table]] = {
    **dict.fromkeys((".csv", ".tsv", ".tab"), read_csv),
    **dict.fromkeys(EXCEL, read_excel),
    ".parquet": read_parquet,
    ".json": read_json,
    **dict.fromkeys((".jsonl", ".ndjson"), read_json_lines),
}


def suffix_of(path: Path) -> str:
    """The suffix that says what a file is, without that of its compression."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


# -- writing ----------------------------------------------------------------------------------------------------------
def write_table(columns: Columns, path: Path, kind: str | None = None) -> None:
    """Write columns of one length as a table of a kind, such as ``.csv``; by default as the file's name says."""
    kind = kind or suffix_of(path)
    if kind not in WRITERS:
        raise ConfigError(f"{path.name!r} has no known kind of table", fix=f"end it in {', '.join(WRITERS)}")
    WRITERS[kind](columns, path)


def _write_csv(columns: Columns, path: Path, delimiter: str = ",") -> None:
    with replacing(path) as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(columns)
        if len(columns) == 1:  # an empty cell alone would be an empty line
            writer = csv.writer(file, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerows(zip(*([_as_text(cell) for cell in cells] for cells in columns.values()), strict=True))


def _as_text(cell: Any) -> Any:
    return json.dumps(cell, ensure_ascii=False, default=str) if isinstance(cell, dict | list) else cell


def _write_excel(columns: Columns, path: Path) -> None:
    """Write one sheet with a bold header that stays in view, a filter, and columns as wide as their texts need."""
    from openpyxl import Workbook
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE, WriteOnlyCell
    from openpyxl.styles import Font
    from openpyxl.utils import get_column_letter

    rows = len(next(iter(columns.values()), ()))
    if rows > MOST_ROWS:
        raise DataError(f"Excel holds {MOST_ROWS:,} rows, not {rows:,}", path=path, fix="write .csv or .parquet")
    book = Workbook(write_only=True)
    sheet = book.create_sheet("items")
    sheet.freeze_panes = "A2"
    names = []
    for at, (name, cells) in enumerate(columns.items(), start=1):
        longest = max((len(str(cell)) for cell in cells[:1000] if cell is not None), default=0)
        sheet.column_dimensions[get_column_letter(at)].width = min(max(len(name), longest) + 2, 80)
        names.append(WriteOnlyCell(sheet, name))
        names[-1].font = Font(bold=True)
    if columns:
        sheet.auto_filter.ref = f"A1:{get_column_letter(len(columns))}{rows + 1}"
    sheet.append(names)

    def checked(row: int, name: str, cell: Any) -> Any:
        cell = cell if cell is None or isinstance(cell, CELLS) else _as_text(cell)
        if isinstance(cell, str):
            if len(cell) > MOST_CHARACTERS or ILLEGAL_CHARACTERS_RE.search(cell):
                what = "control characters" if len(cell) <= MOST_CHARACTERS else f"{len(cell):,} characters"
                message = f"Excel cannot hold a cell with {what} (column {name!r})"
                raise DataError(message, path=path, line=row, fix="write .csv or .parquet")
            if cell.startswith(("=", "+", "-", "@")):  # a text, never a formula
                written = WriteOnlyCell(sheet, cell)
                written.data_type = "s"
                return written
        elif isinstance(cell, float) and float(f"{cell:.16g}") != cell:  # openpyxl writes 16 digits
            written = WriteOnlyCell(sheet, cell)
            written._value = repr(cell)
            return written
        elif isinstance(cell, datetime | time) and cell.tzinfo is not None:
            return cell.isoformat()  # Excel has no time zones
        return cell

    try:
        for row, cells in enumerate(zip(*columns.values(), strict=True), start=2):
            sheet.append([checked(row, name, cell) for name, cell in zip(columns, cells, strict=True)])
    except DataError:
        sheet.close()  # else openpyxl complains when the sheet is forgotten
        raise
    packed = io.BytesIO()  # a file on a full disk would fail once more when the archive is forgotten
    book.save(packed)
    with replacing_bytes(path) as file:
        file.write(packed.getbuffer())


def _write_parquet(columns: Columns, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {}
    for name, cells in columns.items():
        try:
            arrays[name] = pa.array(cells)
        except (pa.ArrowException, OverflowError):  # values of several kinds
            arrays[name] = pa.array([None if cell is None else str(_as_text(cell)) for cell in cells], pa.string())
    with replacing_bytes(path) as file:
        pq.write_table(pa.table(arrays), file)


def _records(columns: Columns) -> Iterator[dict[str, Any]]:
    for row in zip(*columns.values(), strict=True):
        cells = (str(cell) if isinstance(cell, datetime | date | time | timedelta | Decimal) else cell for cell in row)
        yield dict(zip(columns, cells, strict=True))


def _write_json(columns: Columns, path: Path) -> None:
    with replacing(path) as file:
        write_json_array(file, _records(columns))


WRITERS: dict[str, Callable[[Columns, Path], None]] = {
    ".csv": _write_csv,
    ".tsv": partial(_write_csv, delimiter="\t"),
    ".xlsx": _write_excel,
    ".parquet": _write_parquet,
    ".json": _write_json,
    ".jsonl": lambda columns, path: write_json_lines(path, _records(columns)),
}
