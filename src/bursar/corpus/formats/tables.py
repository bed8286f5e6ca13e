"""Tables: spreadsheets, Parquet files, JSON objects and data frames whose columns may have any names.

One column holds the text. Others may hold the id, the split, a group or labels. All are kept as metadata, so that a
table comes back with the columns that it had. Columns that are not named are found out, and what was found is noted.

A corpus that is written as a table names its columns so that it is read back without options: ``id``, ``split``,
``text``, ``pair``, ``group``, and a column per task: ``label:intent`` (a class), ``value:urgency`` (a number),
``json:slots`` (other labels, as JSON).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bursar.corpus.builder import CorpusBuilder
from bursar.corpus.corpus import Corpus, Names, Schema
from bursar.corpus.formats.format import FORMATS, SPLIT_NAMES, Format, check_options, numbered_id
from bursar.corpus.formats.json_files import first_line_object, first_object
from bursar.corpus.formats.table_files import EXCEL, READERS, Table, listed_lines, read_frame, suffix_of, write_table
from bursar.corpus.formats.write_checks import WriteChecks
from bursar.errors import DataError
from bursar.registry import suggestion
from bursar.tasks import KINDS

TEXT_NAMES = (
    "text body message content sentence utterance comment review question query description abstract title subject"
).split()
ID_NAMES = "id item uid uuid key ticket number nr no".split()  # and whatever ends in "id"
LABEL, VALUE, JSON = "label:", "value:", "json:"


@dataclass(frozen=True)
class Roles:
    """Which columns hold what; ``labels`` maps tasks to columns."""

    text: str
    id: str | None = None
    split: str | None = None
    group: str | None = None
    pair: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


# -- reading ----------------------------------------------------------------------------------------------------------
def read(
    source: Any,
    *,
    text: str | None = None,
    id: str | None = None,
    labels: Mapping[str, str] | str | None = None,
    schema: Schema = None,
    split: str | None = None,
    group: str | None = None,
    pair: str | None = None,
    skip_empty: bool | str = False,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool | str | None = None,
    sheet: str | None = None,
    kind: str | None = None,
) -> Corpus:
    """Read a file of a kind, such as ``.csv``, by default as its name says; or a pandas DataFrame."""
    path = source if isinstance(source, Path) else Path("the frame")
    stated = {"delimiter": delimiter, "encoding": encoding, "header": header, "sheet": sheet}
    options = {option: value for option, value in stated.items() if value is not None}
    table = read_table(path, kind, **options) if source is path else read_frame(source, **options)
    given = {"text": text, "id": id, "split": split, "group": group, "pair": pair}
    return corpus_of_table(table, path, given, labels, schema, skip_empty in (True, "yes", "true"))


def corpus_of_table(
    table: Table,
    path: Path,
    given: Mapping[str, str | None],
    labels: Mapping[str, str] | str | None,
    schema: Schema,
    skip_empty: bool,
) -> Corpus:
    """The rows of a table as a corpus; what is not given about its columns is found out."""
    if not len(table):
        raise DataError("there is no item in it", path=path)
    builder = CorpusBuilder(schema)
    builder.at(path)
    roles, notes = find_roles(table, path, given, _labels_of(labels))
    builder.notes += [*table.notes, *notes]
    _add_items(builder, table, roles, skip_empty)
    return builder.build()


def read_table(path: Path, kind: str | None = None, **options: Any) -> Table:
    """The columns of a file of a kind, such as ``.csv``; by default as its name says."""
    kind = suffix_of(path) if suffix_of(path) in READERS else kind or ""
    if path.is_dir() or kind not in READERS:
        raise DataError("not a file of a table", path=path, fix=f"give a file that ends in {', '.join(READERS)}")
    check_options(kind.lstrip("."), READERS[kind], options)
    if isinstance(options.get("header"), str):
        options["header"] = options["header"].lower() in ("yes", "true", "1")
    return READERS[kind](path, **options)


def _labels_of(given: Mapping[str, str] | str | None) -> dict[str, str]:
    """Tasks to columns, from a mapping or from ``intent=Category;urgency=Priority``."""
    if isinstance(given, str):
        return {task.strip(): column.strip() for task, _, column in (p.partition("=") for p in given.split(";"))}
    return {task: str(column) for task, column in (given or {}).items()}


def find_roles(
    table: Table, path: Path, given: Mapping[str, str | None], labels: dict[str, str]
) -> tuple[Roles, list[str]]:
    """The roles of the columns: those that were given, and those that can be found out, with notes."""
    named = {role: str(column) for role, column in given.items() if column is not None}  # a frame may have numbers
    for column in [*named.values(), *labels.values()]:
        if column not in table.columns:
            fix = f"{suggestion(column, table.columns)}The columns are {', '.join(table.columns)}{_about_header(table)}"
            raise DataError(f"there is no column {column!r}", path=path, line=1, fix=fix)
    notes = []
    if "text" not in named:
        named["text"], why = _text_column(table, path, {*named.values(), *labels.values()})
        notes.append(f"text: column {named['text']!r}{why}")
    if "id" not in named:
        if found := _id_column(table, {*named.values(), *labels.values()}):
            named["id"] = found
        notes.append(f"ids: column {found!r}" if found else "ids: numbers of rows, since no column holds different ids")
    for role in ("split", "pair", "group"):  # as our own tables name them
        if role not in named and role in table.columns and (role != "split" or _are_splits(table.columns[role])):
            named[role] = role
    own = [name for name in table.columns if name.startswith((LABEL, VALUE, JSON))] if not labels else []
    labels = labels | {name.partition(":")[2]: name for name in own}
    if others := [name for name in table.columns if name not in (*named.values(), *labels.values())]:
        notes.append(f"kept as metadata: {', '.join(others)}")
    return Roles(**named, labels=labels), notes


def _text_column(table: Table, path: Path, taken: set[str]) -> tuple[str, str]:
    """The column of the text, by its name or because its cells are the longest, and why."""
    free = {name: cells for name, cells in table.columns.items() if name not in taken and ":" not in name}
    words = {name: _mean_words(cells) for name, cells in free.items() if any(isinstance(c, str) for c in cells[:1000])}
    by_name = {name.strip().lower(): name for name in words}
    for name in TEXT_NAMES:
        if name in by_name:
            return by_name[name], ""
    ranked = sorted(words, key=lambda name: -words[name])
    if len(ranked) == 1:
        return ranked[0], " (the only one with texts)"
    if ranked and words[ranked[0]] >= 2 and words[ranked[0]] >= 1.5 * words[ranked[1]]:
        return ranked[0], " (the longest texts)"
    fix = (
        f"name it: text = one of {', '.join(table.columns)} (in the command line: --text-column){_about_header(table)}"
    )
    raise DataError("it is not clear which column holds the text", path=path, line=1, fix=fix)


def _about_header(table: Table) -> str:
    found = any("without a header" in note for note in table.notes)
    return "; the first row was not taken for a header: header=yes says that it is" if found else ""


def _mean_words(cells: Sequence[Any]) -> float:
    shown = [cell for cell in cells[:1000] if isinstance(cell, str) and cell.strip()]
    return sum(len(cell.split()) for cell in shown) / max(len(shown), 1)


def _id_column(table: Table, taken: set[str]) -> str | None:
    """A column that is named like an id and holds different values for all rows."""
    for name, cells in table.columns.items():
        plain = name.strip().lower().replace("_", " ").replace("-", " ")
        if name in taken or not (plain in ID_NAMES or plain.endswith(" id")):
            continue
        ids = [_id_text(cell) for cell in cells]
        if all(ids) and len(set(ids)) == len(ids) and not any("\n" in id or "\x00" in id for id in ids):
            return name
    return None


def _id_text(cell: Any) -> str:
    """An id as text: 7 and 7.0 are "7"."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return "" if cell is None or not str(cell).strip() else str(cell)


def _are_splits(cells: Sequence[Any]) -> bool:
    known = {*SPLIT_NAMES, *SPLIT_NAMES.values(), "pool"}
    return all(isinstance(cell, str) and cell.strip() for cell in cells) and set(cells) <= known


def _add_items(builder: CorpusBuilder, table: Table, roles: Roles, skip_empty: bool) -> None:
    """Add every row as an item; rows without a text are refused by number, or passed over."""
    columns = table.columns
    texts = columns[roles.text]
    skipped = {line for line, cell in zip(table.lines, texts, strict=True) if cell is None or not str(cell).strip()}
    if skipped and not skip_empty:
        builder.line = min(skipped)
        message = f"column {roles.text!r} has no text in {listed_lines(sorted(skipped))}"
        raise builder.error(message, fix="fill or delete these rows, or pass over them with skip_empty=yes")
    if skipped:
        builder.notes.append(f"passed over without a text: {listed_lines(sorted(skipped))}")
    ours = [*columns][:3] == ["id", "split", "text"]  # a corpus written as a table: these columns are no metadata
    used = {roles.id, roles.split, roles.pair, roles.group, *roles.labels.values()} if ours else set()
    used |= {roles.text} if all(isinstance(cell, str) for cell in texts) else set()
    kept = {name: cells for name, cells in columns.items() if name not in used}
    builder.columns = tuple(kept if ours else columns)
    builder.text_column = None if ours else roles.text
    builder.label_columns = tuple(name for name in roles.labels.values() if name in kept)
    encoders = {task: _label_reader(builder, task, columns[name], name) for task, name in roles.labels.items()}
    for at, line in enumerate(table.lines):
        if line in skipped:
            continue
        builder.line = line
        id = _id_text(columns[roles.id][at]) if roles.id else numbered_id("row", line)
        known = {task: encoders[task](columns[name][at], id) for task, name in roles.labels.items()}
        builder.add(
            id,
            split=_split(columns[roles.split][at]) if roles.split else "train",
            text=str(texts[at]),
            pair=_optional(columns[roles.pair][at]) if roles.pair else None,
            group=_optional(columns[roles.group][at]) if roles.group else None,
            labels={task: label for task, label in known.items() if label is not None},
            metadata={name: cells[at] for name, cells in kept.items()},
        )


def _split(cell: Any) -> str:
    name = str(cell).strip()
    return SPLIT_NAMES.get(name.lower(), name)


def _optional(cell: Any) -> str | None:
    return None if cell is None or cell == "" else str(cell)


def _label_reader(builder: CorpusBuilder, task: str, cells: Sequence[Any], column: str) -> Callable[[Any, str], Any]:
    """What reads the cells of a task's column; an unknown task is added, of the kind that its values show."""
    known = builder.task(task)
    if known is None:
        kind, options = _guess_kind(cells, column)
        with builder.locating():
            builder.add_task(task, {"kind": kind, **options})
        known = builder.task(task)
    assert known is not None
    kind = known.kind

    def read_cell(cell: Any, id: str) -> Any:
        if cell is None or cell == "":
            return None
        try:
            if kind == "classification":
                return ("yes" if cell else "no") if isinstance(cell, bool) else _id_text(cell)
            if kind == "regression":
                return float(cell)
            return json.loads(cell) if isinstance(cell, str) else cell
        except ValueError:
            what = "a number" if kind == "regression" else "JSON"
            raise builder.error(f"column {column!r}: {cell!r} is not {what}", item=id) from None

    return read_cell


def _guess_kind(cells: Sequence[Any], column: str) -> tuple[str, dict[str, Any]]:
    """The kind of a column of labels, by its name or its first JSON value."""
    if column.startswith(LABEL):
        return "classification", {}
    if column.startswith(VALUE):
        numbers = []
        for cell in cells:
            with suppress(TypeError, ValueError):  # read_cell will refuse it with its line
                numbers.append(float(cell))
        low, high = min(numbers, default=0.0), max(numbers, default=1.0)
        return "regression", {"low": low, "high": high if high > low else low + 1}
    for cell in cells:
        value = cell
        if isinstance(cell, str) and cell.lstrip().startswith(("[", "{")):
            try:
                value = json.loads(cell)
            except ValueError:
                continue
        if isinstance(value, list | dict) and value:
            kind = next((kind for kind in KINDS if KINDS[kind].recognises(value)), None)
            if kind is not None:
                every = isinstance(value, list) and isinstance(value[0], str)
                return kind, {"every_word": True} if every else {}
    return "tagging" if column.startswith(JSON) else "classification", {}


# -- writing ----------------------------------------------------------------------------------------------------------
def write(corpus: Corpus, path: Path, lose: Names = (), *, kind: str) -> None:
    """Write all items to one table of a kind, such as ``.csv``, with their metadata."""
    checks = WriteChecks(corpus, kind.lstrip("."), lose)
    checks.refuse("images", "words")
    checks.known_splits(checks.splits())
    for item in checks.items():
        if not (item.text or "").strip():
            raise checks.error("cannot hold an item without a text", item)
    write_table(corpus_columns(corpus), path, kind)


def corpus_columns(corpus: Corpus) -> dict[str, list[Any]]:
    """The columns of a corpus: ids, splits, texts, labels and metadata."""
    assert corpus.texts is not None
    columns: dict[str, list[Any]] = {
        "id": corpus.ids.tolist(),
        "split": [corpus.splits[code] for code in corpus.split_codes],
        "text": corpus.texts.strings.tolist(),
    }
    if corpus.pairs is not None:
        columns["pair"] = [pair or None for pair in corpus.pairs.strings.tolist()]
    if corpus.groups is not None:
        columns["group"] = [group or None for group in corpus.groups.tolist()]
    for name, task in corpus.schema.items():
        labels, prefix = corpus.labels[name], {"classification": LABEL, "regression": VALUE}.get(task.kind, JSON)
        values = [task.value(rows) if known else None for rows, known in zip(labels.rows, labels.present, strict=True)]
        if prefix == JSON:
            values = [None if value is None else json.dumps(value, ensure_ascii=False) for value in values]
        columns[prefix + name] = values
    if corpus.metadata is not None:
        columns |= {name: corpus.metadata.column(name) for name in corpus.metadata.cells if name not in columns}
    return columns


def table_format(path: Path) -> str | None:
    """The format of a table by the file's name; ``None`` if it is no table."""
    return next((name for name, (suffixes, _) in TABLES.items() if suffix_of(path) in suffixes), None)


def _sniff(path: Path, name: str) -> bool:
    """Whether a file is a table of this format: objects must have a text, and rows need no more than the suffix."""
    if not path.is_file():
        return False
    if name in ("json", "json-lines"):
        first = first_object(path) if name == "json" else first_line_object(path, TABLES[name][0])
        return any(isinstance(value, str) for value in first.values())
    return suffix_of(path) in TABLES[name][0] and path.stat().st_size > 0


TABLES = {  # format: suffixes, the first of them that of a written file, and a summary
    "csv": ((".csv",), "a CSV file with any columns"),
    "tsv": ((".tsv", ".tab"), "a table separated by tabs"),
    "xlsx": (EXCEL, "an Excel workbook"),
    "parquet": ((".parquet",), "a Parquet file with any columns"),
    "json": ((".json",), "an array of JSON objects with any keys"),
    "json-lines": ((".jsonl", ".ndjson"), "one JSON object per line with any keys"),
}
for _name, (_suffixes, _summary) in TABLES.items():
    _read, _write = partial(read, kind=_suffixes[0]), partial(write, kind=_suffixes[0])
    FORMATS.add(_name, Format(_name, _summary, partial(_sniff, name=_name), _read, _write, general=True))
