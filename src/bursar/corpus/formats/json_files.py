"""Files of JSON objects, as an array or one per line; every object is read with the line it begins on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from bursar.corpus.formats.format import FileReader, first_lines, head_of, numbered_lines, replacing
from bursar.errors import DataError

Record = dict[str, Any]
BLANKS = " \t\n\r"
_DECODER = json.JSONDecoder()


def _decode(text: str, at: int = 0) -> tuple[Any, int]:
    """The JSON value at a position, and where it ends; ``ValueError`` says what is wrong."""
    try:
        value, end = _DECODER.raw_decode(text, at)
        if text.find("\\u", at, end) >= 0:  # check for half a surrogate pair, which UTF-8 cannot encode
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("an escape such as \\ud800 stands alone: that is no character") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value, end


# -- one per line ---------------------------------------------------------------------------------------------------
def json_lines(reader: FileReader) -> Iterator[Record]:
    """The objects of a file with one per line."""
    for line in reader.lines():
        if not line or line.isspace():
            continue
        line = line.strip(" \t")
        try:
            record, end = _decode(line)
            if end != len(line):
                raise ValueError(f"there is more after column {end}")
        except ValueError as wrong:
            raise reader.error(f"not JSON: {wrong}", fix="write one JSON object per line") from None
        if not isinstance(record, dict):
            raise reader.error("the line is not a JSON object", fix='write one such as {"id": "u1", "text": "…"}')
        yield record


def write_json_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write one object per line."""
    with replacing(path) as file:
        file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def first_line_object(path: Path, suffixes: Sequence[str]) -> Record:
    """The object on the first line, for guessing a format; empty if there is none."""
    first = next((line for line in first_lines(path, suffixes, 5) if line.strip()), "")
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


# -- an array -------------------------------------------------------------------------------------------------------
def json_array(path: Path) -> Iterator[tuple[int, Record]]:
    """The objects of an array, each with its line number; errors name the line."""
    text = "\n".join(line for _, line in numbered_lines(path))

    def error(message: str, fix: str | None = None) -> DataError:
        return DataError(message, path=path, line=1 + text.count("\n", 0, at), fix=fix)

    at = _skip(text, 0)
    if at == len(text):
        raise DataError("there is no item in it", path=path)
    if text[at] != "[":
        raise error("not a JSON array", fix="write [{…}, {…}, …]")
    at = _skip(text, at + 1)
    line, counted, more = 1, 0, text[at : at + 1] != "]"
    while more:
        line, counted = line + text.count("\n", counted, at), at
        try:
            record, at = _decode(text, at)
        except ValueError as wrong:
            raise DataError(f"not JSON: {wrong}", path=path, line=getattr(wrong, "lineno", line)) from None
        if not isinstance(record, dict):
            raise DataError("this element of the array is no object", path=path, line=line)
        yield line, record
        at = _skip(text, at)
        more = text[at : at + 1] == ","
        at = _skip(text, at + 1) if more else at
    if text[at : at + 1] != "]":
        raise error("not JSON: the array does not go on or end here")
    at = _skip(text, at + 1)
    if at < len(text):
        raise error("there is more after the array")


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in BLANKS:
        at += 1
    return at


def first_object(path: Path) -> Record:
    """The first object of an array, for guessing a format; empty if there is none."""
    if path.suffix != ".json" or not "".join(head_of(path)).lstrip(BLANKS).startswith("["):
        return {}
    try:
        return next(json_array(path), (0, {}))[1]
    except DataError:
        return {}


def write_json_array(file: IO[str], records: Iterable[Mapping[str, Any]]) -> None:
    """Write an array with one object per line."""
    separator = "[\n"
    for record in records:
        file.write(separator + json.dumps(record, ensure_ascii=False))
        separator = ",\n"
    file.write("\n]\n")
