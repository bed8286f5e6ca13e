"""Tables in CSV or Parquet files, with errors that name the line or row."""

from __future__ import annotations

import csv
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from bursar.errors import DataError

SUFFIXES = (".csv", ".parquet")
BLOCK = 1 << 23  # bytes of CSV parsed at a time


class TableFile(ABC):
    """A table on disk that can locate its rows in error messages."""

    header: int | None = None  # line of the header

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def names(self) -> list[str]:
        """The columns' names."""

    @abstractmethod
    def read(self, names: list[str]) -> Any:
        """Some columns, as an Arrow table."""

    def error(self, message: str, row: int, item: str | None = None, *, fix: str) -> DataError:
        """An error about a row, counted from 0."""
        return DataError(message, path=f"{self.path}: {self.where(row)}", item=item, fix=fix)

    def where(self, row: int) -> str:
        return f"row {row + 1}"


class CsvFile(TableFile):
    """A CSV file. Cells are read as text, so that 007 stays 007 and a bad number can be quoted in an error."""

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """The first line and the cells of each record, header included. Slow: only used to explain errors."""
        csv.field_size_limit(2**31 - 1)
        with open(self.path, encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
            reader, begins = csv.reader(lines, strict=True), 1
            try:
                for record in reader:
                    if record:  # skip blank lines
                        yield begins, record
                    begins = reader.line_num + 1
            except csv.Error:
                raise DataError(
                    "a quote is opened and not closed before a comma or the end of the line",
                    path=self.path,
                    line=begins,
                    fix='close it; a quote within quotes is written ""',
                ) from None

    def names(self) -> list[str]:
        line, names = next(self.records(), (1, []))
        self.header = line
        if not names:
            raise DataError("the file is empty", path=self.path, fix="put the names of the columns on the first line")
        if any(map(_no_utf8, names)):
            raise DataError("this is not text in UTF-8", path=self.path, line=line, fix="save it as CSV in UTF-8")
        if len(names) == 1 and (other := re.search(r"[;\t|]", names[0])):
            raise DataError(
                f"columns are separated by {other[0]!r}", path=self.path, line=line, fix="separate them by commas"
            )
        return names

    def read(self, names: list[str]) -> Any:
        for block in (BLOCK, min(self.path.stat().st_size + 1, 2**31 - 1)):
            try:
                table = self._parsed(names, block)
                break
            except pa.ArrowInvalid as wrong:
                if block != BLOCK or "straddl" not in str(wrong):  # else a record is longer than a block
                    raise self._explained(names, str(wrong)) from None
        if self._lines() != len(table) + 1:  # line breaks within quotes: check that every quote is closed
            for _ in self.records():
                pass
        return table

    def _parsed(self, names: list[str], block: int) -> Any:
        return pyarrow.csv.read_csv(
            self.path,
            read_options=pyarrow.csv.ReadOptions(block_size=block),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=names, column_types=dict.fromkeys(names, pa.string())
            ),
        )

    def _lines(self) -> int:
        count, last = 0, b"\n"
        with open(self.path, "rb") as file:
            while part := file.read(BLOCK):
                count, last = count + part.count(b"\n"), part[-1:]
        return count + (last != b"\n")

    def _explained(self, names: list[str], reason: str) -> DataError:
        """An error that names the line that could not be parsed."""
        header = self.names()
        wanted = [header.index(name) for name in names]
        for line, record in self.records():
            if len(record) != len(header):
                return DataError(
                    f"the line has {len(record)} cells, but the header has {len(header)}",
                    path=self.path,
                    line=line,
                    fix='quote text that contains commas or line breaks, and write a quote within it as ""',
                )
            for column in wanted:
                if _no_utf8(record[column]):
                    message = f"column {header[column]!r} is not text in UTF-8"
                    return DataError(message, path=self.path, line=line, fix="save it as CSV in UTF-8")
        return DataError(f"cannot be read as CSV: {reason.splitlines()[0]}", path=self.path)

    def error(self, message: str, row: int, item: str | None = None, *, fix: str) -> DataError:
        return DataError(message, path=self.path, line=self.line(row), item=item, fix=fix)

    def line(self, row: int) -> int:
        return next(islice(self.records(), row + 1, None))[0]

    def where(self, row: int) -> str:
        return f"line {self.line(row)}"


class ParquetFile(TableFile):
    """A Parquet file; errors count its rows from 1."""

    def names(self) -> list[str]:
        return list(self._opened(lambda file: file.schema_arrow.names))

    def read(self, names: list[str]) -> Any:
        return self._opened(lambda file: file.read(columns=names))

    def _opened(self, get: Callable[[Any], Any]) -> Any:
        try:
            with pyarrow.parquet.ParquetFile(self.path) as file:
                return get(file)
        except (pa.ArrowException, OSError) as wrong:
            raise DataError(f"cannot be read as Parquet: {str(wrong).splitlines()[0]}", path=self.path) from None


def _no_utf8(text: str) -> bool:
    """Whether the text was decoded from bytes that are not UTF-8 (``surrogateescape``)."""
    return any("\udc80" <= character <= "\udcff" for character in text)


def open_table(path: Path) -> TableFile:
    """Open a table by its suffix; raise an error if it is missing or of another kind."""
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise DataError("the name ends in neither .csv nor .parquet", path=path, fix="give the scores as one of them")
    if not path.is_file():
        raise DataError("this is a folder" if path.is_dir() else "there is no such file", path=path)
    try:
        path.open("rb").close()
    except OSError as wrong:
        raise DataError(f"cannot be read: {wrong.strerror}", path=path) from None
    return CsvFile(path) if kind == ".csv" else ParquetFile(path)
