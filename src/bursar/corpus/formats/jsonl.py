"""Native JSONL: one item per line, with an optional schema on the first line.

```
{"bursar": 1, "tasks": {"intent": {"kind": "classification", "labels": ["alarm", "music"]}}}
{"id": "u1", "split": "train", "text": "wake me at seven", "labels": {"intent": "alarm", "slots": [[3, 4, "time"]]}}
```
Only ``text`` (or ``image``) is required. Without ``words`` (``[[start, end], …]`` in characters) words are found by
rule; without an ``id`` an item is named by its line; without a schema, tasks are inferred from their labels. An item
may have ``metadata``: values by column, which are shown beside it and exported again.
"""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from bursar.corpus.corpus import Corpus, Schema
from bursar.corpus.formats.characters import check_word_spans
from bursar.corpus.formats.format import FORMATS, FileReader, Format, read_files
from bursar.corpus.formats.json_files import Record, first_line_object, json_lines, write_json_lines
from bursar.corpus.formats.write_checks import WriteChecks
from bursar.corpus.metadata import cell_of_json
from bursar.errors import LabelError
from bursar.tasks import KINDS, make_task

VERSION = 1
KEYS = {"id", "split", "text", "words", "pair", "image", "group", "labels", "metadata"}
STRING_OR_NULL = {str, type(None)}
SUFFIXES = (".jsonl", ".ndjson")


def sniff(path: Path) -> bool:
    """A first line that is a schema, or an item with a text or an image and no keys of its own."""
    first = first_line_object(path, SUFFIXES)
    return "bursar" in first or (first.keys() <= KEYS and not first.keys().isdisjoint({"text", "image"}))


def read(path: Path, schema: Schema = None) -> Corpus:
    """Read a file, or a folder with one file per split; ``schema`` gives the tasks if the file does not."""
    return read_files(path, SUFFIXES, _read_file, schema)


def _read_file(reader: FileReader) -> None:
    for record in json_lines(reader):
        if "bursar" in record:
            _read_header(reader, record)
        else:
            record.setdefault("id", reader.line_id())
            _read_item(reader, record)


def _read_header(reader: FileReader, record: Record) -> None:
    tasks = record.get("tasks", {})
    if record["bursar"] != VERSION:
        raise reader.error(f"format version {record['bursar']!r} is not known", fix=f"this Bursar reads {VERSION}")
    if not isinstance(tasks, dict) or not all(isinstance(task, dict) for task in tasks.values()):
        raise reader.error("tasks must map names to descriptions", fix='{"intent": {"kind": "classification"}}')
    for name, task in tasks.items():
        with reader.locating():
            reader.declare(make_task(name, task))
    table = record.get("table", {})
    known: Record = table if isinstance(table, dict) else {"columns": None}
    names, labels = known.get("columns", []), known.get("labels", [])
    lists = isinstance(names, list) and isinstance(labels, list)
    if not lists or not all(isinstance(name, str) for name in [*names, *labels, known.get("text") or ""]):
        raise reader.error("table must have columns and labels, lists of names, and text, one of them")
    reader.columns = tuple(dict.fromkeys([*reader.columns, *names]))
    reader.text_column = known.get("text") or reader.text_column
    reader.label_columns = tuple(dict.fromkeys([*reader.label_columns, *labels]))


def _read_item(reader: FileReader, record: Record) -> None:
    get = record.get
    id, text, image = record["id"], get("text"), get("image")
    pair, group, split = get("pair"), get("group"), get("split")
    if not isinstance(id, str):
        raise reader.error(f"id must be a string, not {id!r}")
    if not KEYS.issuperset(record):
        extra = sorted(set(record) - KEYS)
        raise reader.error(f"unknown key {extra[0]!r}", item=id, fix=f"known keys: {', '.join(sorted(KEYS))}")
    if not STRING_OR_NULL.issuperset((type(text), type(pair), type(group), type(split))):
        raise reader.error("text, pair, group and split must be strings", item=id)
    if (text is None) == (image is None):
        raise reader.error("an item needs either a text or an image", item=id)
    labels = get("labels") or {}
    if not isinstance(labels, dict):
        raise reader.error("labels must map task names to labels", item=id)
    if not isinstance(get("metadata") or {}, dict):
        raise reader.error("metadata must map columns to values", item=id)
    for name, value in labels.items():
        if name not in reader:
            every_word = {"every_word": True} if isinstance(value, list) and value and isinstance(value[0], str) else {}
            reader.add_task(name, {"kind": _kind_of(reader, name, value, id)} | every_word)
    words = get("words")
    try:  # quicker than a context manager, for every item
        words = None if words is None else check_word_spans(words, text or "")
    except LabelError as wrong:
        raise reader.error(wrong.message, item=id) from None
    reader.add(
        id,
        split=split or reader.split,
        text=text,
        words=words,
        pair=pair,
        image=None if image is None else _image(reader, image, id),
        group=group,
        labels=labels,
        metadata={name: cell_of_json(cell) for name, cell in (get("metadata") or {}).items()},
    )


def _image(reader: FileReader, value: Any, id: str) -> np.ndarray[Any, Any]:
    try:
        image = np.array(value)
    except ValueError:
        image = np.array(None)
    numbers = image.dtype.kind in "iu" and image.ndim in (2, 3)
    if not numbers or image.min(initial=0) < 0 or image.max(initial=0) > 255:
        raise reader.error("an image must be rows of numbers from 0 to 255, all of one length", item=id)
    return image.astype(np.uint8)


def _kind_of(reader: FileReader, name: str, value: Any, id: str) -> str:
    if kind := next((kind for kind in KINDS if KINDS[kind].recognises(value)), None):
        return kind
    message = f"task {name!r}: {value!r} is no label of a known kind"
    raise reader.error(message, item=id, fix="state the schema on line 1")


def write(corpus: Corpus, path: Path) -> None:
    """Write all splits to one file, with the schema on its first line."""
    checks = WriteChecks(corpus, "jsonl")
    if corpus.images is not None and corpus.images.dtype != np.uint8:
        raise checks.error(f"holds images of bytes, not of {corpus.images.dtype}", corpus.ids[0], fix="write npz")
    tasks = {name: task.describe() for name, task in corpus.schema.items()}
    header: Record = {"bursar": VERSION, "tasks": tasks}
    if corpus.metadata is not None:
        header["table"] = corpus.metadata.header()
    write_json_lines(path, chain([header], (_written(corpus, at) for at in range(len(corpus)))))


def _written(corpus: Corpus, at: int) -> Record:
    item = corpus[at]
    cells = {} if corpus.metadata is None else corpus.metadata.cells
    record: Record = {
        "id": item.id,
        "split": item.split,
        "text": item.text,
        "words": None if item.text is None else item.spans,
        "pair": item.pair,
        "image": None if item.image is None else item.image.tolist(),
        "group": item.group,
        "labels": item.labels,
        "metadata": None if corpus.metadata is None else {name: json.loads(cells[name][at]) for name in cells},
    }
    return {key: value for key, value in record.items() if value is not None}


FORMATS.add("jsonl", Format("jsonl", "one JSON object per item (native)", sniff, read, write))
