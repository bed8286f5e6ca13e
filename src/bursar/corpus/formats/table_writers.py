"""Write one table as CSV, TSV, Excel, Parquet, a JSON array or JSON lines. A file appears when it is complete."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from bursar.corpus.formats.format import replacing, replacing_bytes
from bursar.corpus.formats.json_files import write_json_array, write_json_lines
from bursar.corpus.formats.table_files import suffix_of
from bursar.errors import ConfigError, DataError

Columns = Mapping[str, Sequence[Any]]
MOST_CHARACTERS = 32_767  # in a cell of Excel
MOST_ROWS = 1_048_575
CELLS = (str, int, float, bool, datetime, date, time, timedelta, Decimal)  # that Excel has


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


def _write_tsv(columns: Columns, path: Path) -> None:
    _write_csv(columns, path, "\t")


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
        sheet.column_dimensions[get_column_letter(at)].width = _width(name, cells)
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


def _width(name: str, cells: Sequence[Any]) -> int:
    """The width of a column: that of its longest text, within limits."""
    longest = max((len(str(cell)) for cell in cells[:1000] if cell is not None), default=0)
    return min(max(len(name), longest) + 2, 80)


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
    for cells in zip(*columns.values(), strict=True):
        yield {name: _for_json(cell) for name, cell in zip(columns, cells, strict=True)}


def _for_json(cell: Any) -> Any:
    return str(cell) if isinstance(cell, datetime | date | time | timedelta | Decimal) else cell


def _write_json(columns: Columns, path: Path) -> None:
    with replacing(path) as file:
        write_json_array(file, _records(columns))


def _write_json_lines(columns: Columns, path: Path) -> None:
    write_json_lines(path, _records(columns))


WRITERS: dict[str, Callable[[Columns, Path], None]] = {
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".xlsx": _write_excel,
    ".parquet": _write_parquet,
    ".json": _write_json,
    ".jsonl": _write_json_lines,
}
