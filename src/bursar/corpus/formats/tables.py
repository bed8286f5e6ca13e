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
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

from bursar.corpus.builder import CorpusBuilder
from bursar.corpus.corpus import Corpus
from bursar.corpus.formats.format import FORMATS, SPLIT_NAMES, Format, numbered_id
from bursar.corpus.formats.json_files import first_line_object, first_object
from bursar.corpus.formats.table_files import EXCEL, READERS, Table, listed_lines, suffix_of, table_of_frame
from bursar.corpus.formats.table_writers import write_table
from bursar.corpus.formats.write_checks import WriteChecks
from bursar.errors import ConfigError, DataError
from bursar.tasks import KINDS, Task

TEXT_NAMES: tuple[str, ...] = (
    "text",
    "body",
    "message",
    "content",
    "sentence",
    "utterance",
    "comment",
    "review",
    "question",
    "query",
)
TEXT_NAMES += ("description", "abstract", "title", "subject")
ID_NAMES = ("id", "item id", "item", "uid", "uuid", "key", "ticket", "ticket id", "number", "nr", "no")
SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet", ".json": "json"}
SUFFIXES |= dict.fromkeys((".jsonl", ".ndjson"), "json-lines") | dict.fromkeys(EXCEL, "xlsx")
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
    path: Path,
    *,
    text: str | None = None,
    id: str | None = None,
    labels: Mapping[str, str] | str | None = None,
    schema: Mapping[str, Any] | None = None,
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
    """Read a file of a kind, such as ``.csv``; by default as its name says."""
    given = {"text": text, "id": id, "split": split, "group": group, "pair": pair}
    options = {"delimiter": delimiter, "encoding": encoding, "header": header, "sheet": sheet}
    table = read_table(path, kind, **{name: value for name, value in options.items() if value is not None})
    return corpus_of_table(table, path, given, labels, schema, skip_empty in (True, "yes", "true"))


def read_table(path: Path, kind: str | None = None, **options: Any) -> Table:
    """The columns of a file of a kind, such as ``.csv``; by default as its name says."""
    kind = suffix_of(path) if suffix_of(path) in READERS else kind or ""
    if path.is_dir() or kind not in READERS:
        raise DataError("not a file of a table", path=path, fix=f"give a file that ends in {', '.join(READERS)}")
    known = list(signature(READERS[kind]).parameters)[1:]
    for name in options:
        if name not in known:
            raise ConfigError(f"a {kind} file has no option {name!r}", fix=f"it has {', '.join(known) or 'none'}")
    if isinstance(options.get("header"), str):
        options["header"] = options["header"].lower() in ("yes", "true", "1")
    return READERS[kind](path, **options)


def read_frame(
    frame: Any,
    *,
    text: str | None = None,
    id: str | None = None,
    labels: Mapping[str, str] | None = None,
    schema: Mapping[str, Any] | None = None,
    split: str | None = None,
    group: str | None = None,
    pair: str | None = None,
    skip_empty: bool = False,
) -> Corpus:
    """Read a pandas DataFrame."""
    given = {"text": text, "id": id, "split": split, "group": group, "pair": pair}
    return corpus_of_table(table_of_frame(frame), Path("the frame"), given, labels, schema, skip_empty)


def corpus_of_table(
    table: Table,
    path: Path,
    given: Mapping[str, str | None],
    labels: Mapping[str, str] | str | None = None,
    schema: Mapping[str, Any] | None = None,
    skip_empty: bool = False,
) -> Corpus:
    """Make a corpus of a table; ``given`` maps roles to the columns that the user named."""
    if not len(table):
        raise DataError("there is no item in it", path=path)
    builder = CorpusBuilder(schema)
    builder.at(path)
    roles, notes = find_roles(table, path, given, _labels_of(labels))
    builder.notes += [*table.notes, *notes]
    _add_items(builder, table, roles, skip_empty)
    return builder.build()


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
        _check_column(table, column, path)
    notes = []
    if "text" not in named:
        named["text"], why = _text_column(table, path, {*named.values(), *labels.values()})
        notes.append(f"text: column {named['text']!r}{why}")
    if "id" not in named:
        found = _id_column(table, {*named.values(), *labels.values()})
        if found is not None:
            named["id"] = found
            notes.append(f"ids: column {found!r}")
        else:
            notes.append("ids: numbers of rows, since no column holds different ids")
    for role in ("split", "pair", "group"):  # as our own tables name them
        if role not in named and role in table.columns and (role != "split" or _are_splits(table.columns[role])):
            named[role] = role
    own = [name for name in table.columns if name.startswith((LABEL, VALUE, JSON))] if not labels else []
    labels = labels | {name.partition(":")[2]: name for name in own}
    used = {*named.values(), *labels.values()}
    others = [name for name in table.columns if name not in used]
    if others:
        notes.append(f"kept as metadata: {', '.join(others)}")
    return Roles(**named, labels=labels), notes


def _check_column(table: Table, column: str, path: Path) -> None:
    if column not in table.columns:
        close = get_close_matches(column, table.columns, 1, 0.6)
        known = f"did you mean {close[0]!r}? " if close else ""
        raise DataError(
            f"there is no column {column!r}",
            path=path,
            line=1,
            fix=f"{known}The columns are {', '.join(table.columns)}{_about_header(table)}",
        )


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
    columns = ", ".join(table.columns)
    raise DataError(
        "it is not clear which column holds the text",
        path=path,
        line=1,
        fix=f"name it: text = one of {columns} (in the command line: --text-column){_about_header(table)}",
    )


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
    empty = [at for at, cell in enumerate(texts) if cell is None or not str(cell).strip()]
    if empty and not skip_empty:
        lines = [table.lines[at] for at in empty]
        builder.line = lines[0]
        raise builder.error(
            f"column {roles.text!r} has no text in {listed_lines(lines)}",
            fix="fill or delete these rows, or pass over them with skip_empty=yes",
        )
    if empty:
        builder.notes.append(f"passed over without a text: {listed_lines([table.lines[at] for at in empty])}")
    skipped = set(empty)
    ours = [*columns][:3] == ["id", "split", "text"]  # a corpus written as a table: these columns are no metadata
    all_strings = all(isinstance(cell, str) for cell in texts)
    used = {roles.id, roles.split, roles.pair, roles.group, *roles.labels.values()} if ours else set()
    used |= {roles.text} if all_strings else set()
    kept = {name: cells for name, cells in columns.items() if name not in used}
    builder.columns = tuple(kept if ours else columns)
    builder.text_column = None if ours else roles.text
    builder.label_columns = tuple(name for name in roles.labels.values() if name in kept)
    encoders = {task: _label_reader(builder, task, columns[name], name) for task, name in roles.labels.items()}
    for at, line in enumerate(table.lines):
        if at in skipped:
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
    """What reads the cells of a task's column; the task is added if the schema does not have it.

    Without a schema, a column of JSON arrays has the kind that its values show, and any other one holds classes.
    """
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
                return _class_name(cell)
            if kind == "regression":
                return float(cell)
            return json.loads(cell) if isinstance(cell, str) else cell
        except ValueError:
            what = "a number" if kind == "regression" else "JSON"
            raise builder.error(f"column {column!r}: {cell!r} is not {what}", item=id) from None

    return read_cell


def _number(cell: Any) -> float | None:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def _class_name(cell: Any) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return _id_text(cell)


def _guess_kind(cells: Sequence[Any], column: str) -> tuple[str, dict[str, Any]]:
    """The kind of a column of labels, by its name or its first JSON value."""
    if column.startswith(LABEL):
        return "classification", {}
    if column.startswith(VALUE):
        numbers = [number for number in map(_number, cells) if number is not None]
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
def write(corpus: Corpus, path: Path, lose: str | Sequence[str] = (), *, kind: str) -> None:
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
        labels = corpus.labels[name]
        columns[column_of(task)] = [
            _cell_of(task, task.value(labels.rows[at])) if labels.present[at] else None for at in range(len(corpus))
        ]
    if corpus.metadata is not None:
        columns |= {name: corpus.metadata.column(name) for name in corpus.metadata.cells if name not in columns}
    return columns


def column_of(task: Task) -> str:
    """The column of a task's labels."""
    prefix = {"classification": LABEL, "regression": VALUE}.get(task.kind, JSON)
    return prefix + task.name


def _cell_of(task: Task, value: Any) -> Any:
    return value if task.kind in ("classification", "regression") else json.dumps(value, ensure_ascii=False)


def table_format(path: Path) -> str | None:
    """The format of a table by the file's name; ``None`` if it is no table.

    >>> table_format(Path("m.xlsx")), table_format(Path("train.conll"))
    ('xlsx', None)
    """
    return SUFFIXES.get(suffix_of(path))


# -- guessing ---------------------------------------------------------------------------------------------------------
def _sniff_csv(path: Path, suffixes: Sequence[str]) -> bool:
    return path.is_file() and suffix_of(path) in suffixes and path.stat().st_size > 0


def _sniff_excel(path: Path) -> bool:
    return path.is_file() and suffix_of(path) in EXCEL


def _sniff_parquet(path: Path) -> bool:
    return path.is_file() and suffix_of(path) == ".parquet"


def _sniff_json(path: Path) -> bool:
    return path.is_file() and any(isinstance(value, str) for value in first_object(path).values())


def _sniff_json_lines(path: Path) -> bool:
    return path.is_file() and any(
        isinstance(value, str) for value in first_line_object(path, (".jsonl", ".ndjson")).values()
    )


for _name, _kind, _summary, _sniff in (
    ("csv", ".csv", "a CSV file with any columns", partial(_sniff_csv, suffixes=(".csv",))),
    ("tsv", ".tsv", "a table separated by tabs", partial(_sniff_csv, suffixes=(".tsv", ".tab"))),
    ("xlsx", ".xlsx", "an Excel workbook", _sniff_excel),
    ("parquet", ".parquet", "a Parquet file with any columns", _sniff_parquet),
    ("json", ".json", "an array of JSON objects with any keys", _sniff_json),
    ("json-lines", ".jsonl", "one JSON object per line with any keys", _sniff_json_lines),
):
    FORMATS.add(
        _name, Format(_name, _summary, _sniff, partial(read, kind=_kind), partial(write, kind=_kind), general=True)
    )
