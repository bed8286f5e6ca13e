"""DyGIE documents: one JSON object per line with sentences, entities and relations, in words of the document.

```
{"doc_key": "d1", "sentences": [["Ada", "sings"]], "ner": [[[0, 0, "PER"]]], "relations": [[]]}
```
The items are the sentences, called ``d1-0``, ``d1-1``, …; the group is the document. Spans include their last word
here, and become spans of the sentence with an exclusive end. Relations take the types of their ends from the entities.
"""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

from bursar.corpus.corpus import Corpus, Item, Names, Schema
from bursar.corpus.formats.format import FORMATS, FileReader, Format, numbered_id, read_files
from bursar.corpus.formats.json_files import Record, first_line_object, json_lines
from bursar.corpus.formats.write_checks import WriteChecks
from bursar.corpus.words import join_tokens
from bursar.errors import LabelError
from bursar.tasks import Relations, Tagging

SUFFIXES = (".json", ".jsonl")
COLUMNS = {"ner": Tagging("entities"), "relations": Relations("relations")}


def sniff(path: Path) -> bool:
    """A first line that is a JSON object with sentences."""
    record = first_line_object(path, SUFFIXES)
    return isinstance(record.get("sentences"), list) and "text" not in record


def read(path: Path, schema: Schema = None) -> Corpus:
    """Read a file, or a folder with one file per split."""
    return read_files(path, SUFFIXES, _read_file, schema)


def _read_file(reader: FileReader) -> None:
    for record in json_lines(reader):
        _read_document(reader, record)


def _read_document(reader: FileReader, record: Record) -> None:
    key = record.get("doc_key", numbered_id(reader.split, reader.line or 0))
    if not isinstance(key, str) or not key:
        raise reader.error(f"doc_key must be a string, not {key!r}")
    sentences = _lists(reader, record.get("sentences"), "sentences", None)
    if not sentences:
        raise reader.error("the document has no sentences", item=key)
    columns = {name: _lists(reader, record[name], name, len(sentences)) for name in COLUMNS if name in record}
    for name in columns:
        reader.declare(COLUMNS[name])
    if "relations" in columns and "ner" not in columns:
        raise reader.error("the document has relations but no entities", item=key)
    start = 0
    for n, words in enumerate(sentences):
        id = f"{key}-{n}"
        if not all(isinstance(word, str) and word for word in words):
            raise reader.error("words must be strings that are not empty", item=id)
        sentence = range(start, start + len(words))
        labels: Record = {}
        with reader.locating(id):
            if "ner" in columns:
                labels["entities"] = [_entity(entry, sentence) for entry in columns["ner"][n]]
            if "relations" in columns:
                types = _types(labels["entities"])
                labels["relations"] = [_relation(entry, sentence, types) for entry in columns["relations"][n]]
        text, spans = join_tokens(words)
        reader.add(id, split=reader.split, text=text, words=spans, group=key, labels=labels)
        start += len(words)


def _lists(reader: FileReader, value: Any, name: str, length: int | None) -> list[list[Any]]:
    if not isinstance(value, list) or not all(isinstance(entry, list) for entry in value):
        raise reader.error(f"{name} must be a list with a list for each sentence")
    if length not in (None, len(value)):
        raise reader.error(f"{name} has {len(value)} lists for {length} sentences")
    return value


def _span(first: Any, last: Any, sentence: range) -> tuple[int, int]:
    """Convert first and last word in the document to start and end in the sentence."""
    if type(first) is not int or type(last) is not int:
        raise LabelError(f"a span must be two numbers, not {first!r} and {last!r}")
    if not (first in sentence and last in sentence and first <= last):
        words = f"words {sentence.start} to {sentence.stop - 1}"
        raise LabelError(f"span [{first}, {last}] is outside its sentence, which is {words}")
    return first - sentence.start, last + 1 - sentence.start


def _entity(entry: Any, sentence: range) -> list[Any]:
    if not isinstance(entry, list) or len(entry) != 3:
        raise LabelError(f"an entity must be [first, last, type], not {entry!r}")
    return [*_span(entry[0], entry[1], sentence), entry[2]]


def _types(entities: list[Any]) -> dict[tuple[int, int], set[Any]]:
    """The types of each span: one, unless it was annotated twice."""
    types: dict[tuple[int, int], set[Any]] = {}
    for start, end, kind in entities:
        types.setdefault((start, end), set()).add(str(kind))
    return types


def _relation(entry: Any, sentence: range, types: dict[tuple[int, int], set[Any]]) -> list[Any]:
    if not isinstance(entry, list) or len(entry) != 5:
        raise LabelError(f"a relation must be [first, last, first, last, label], not {entry!r}")
    ends = []
    for first, last in (entry[0:2], entry[2:4]):
        span = _span(first, last, sentence)
        found = types.get(span, set())
        if len(found) != 1:
            what = f"has several types: {', '.join(sorted(found))}" if found else "is no entity"
            raise LabelError(f"relation {entry}: span [{first}, {last}] {what}")
        ends.append([*span, *found])
    return [*ends, entry[4]]


def write(corpus: Corpus, path: Path, lose: Names = ()) -> None:
    """Write a folder with one file per split, or one file. Consecutive items of one group are a document."""
    checks = WriteChecks(corpus, "dygie", lose)
    checks.refuse("images", "pairs", "spacing")
    checks.tasks(COLUMNS.values())
    with checks.writing(path, SUFFIXES) as files:
        for split, file in files:
            for number, (_, items) in enumerate(groupby(checks.items(split), lambda i: i.group or i.id), start=1):
                record = _document(checks, [*items], numbered_id(split, number))
                file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _document(checks: WriteChecks, items: list[Item], unnamed: str) -> Record:
    """One document; the key is left out if reading would give the same name without it."""
    key = items[0].group or unnamed
    record: Record = {} if key == unnamed else {"doc_key": key}
    record["sentences"] = [item.words for item in items]
    for task in ("entities", "relations"):
        bare = [item for item in items if task not in item.labels]
        if 0 < len(bare) < len(items):
            raise checks.error(f"labels whole documents, and task {task!r} has labels for some sentences only", bare[0])
    start = 0
    for n, item in enumerate(items):
        checks.group(item, key)
        checks.id(item, f"{key}-{n}")
        if "relations" in item.labels:
            _check_ends(checks, item)
        if "entities" in item.labels:
            entities = [[start + a, start + b - 1, kind] for a, b, kind in item.labels["entities"]]
            record.setdefault("ner", []).append(entities)
        if "relations" in item.labels:
            links = [
                [start + a, start + b - 1, start + c, start + d - 1, label]
                for (a, b, _), (c, d, _), label in item.labels["relations"]
            ]
            record.setdefault("relations", []).append(links)
        start += len(item.words)
    return record


def _check_ends(checks: WriteChecks, item: Item) -> None:
    """The ends of relations must be entities with one type each, because that is how they are read."""
    types = _types(item.labels.get("entities", []))
    for *ends, _ in item.labels["relations"]:
        for start, end, kind in ends:
            if types.get((start, end)) != {kind}:
                raise checks.error(f"cannot hold a relation of [{start}, {end}, {kind!r}], which is no entity", item)


FORMATS.add("dygie", Format("dygie", "documents with entities and relations (DyGIE, SciERC)", sniff, read, write))
