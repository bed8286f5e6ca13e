"""doccano: one JSON object per line, as in its export and import.

```
{"text": "wake me at seven", "label": ["alarm"]}                                             classes
{"text": "wake me at seven", "label": [[11, 16, "time"]]}                                    spans
{"text": "wake me at seven", "cats": ["alarm"], "entities": [[11, 16, "time"]]}              both
{"text": "Ada met Bo", "entities": [{"id": 0, "start_offset": 0, …}], "relations": [{"from_id": 0, …}]}
```
The tasks are ``label``, ``entities`` and ``relations``. Spans are in characters. An empty list of spans means that
there are none; an empty list of classes means that the item is not labelled. doccano keeps ``id``, ``split``, ``group``
and ``words`` as metadata and exports them again.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from bursar.corpus.corpus import Corpus, Item, Names, Schema
from bursar.corpus.formats.characters import ToWords, check_cut, in_characters, in_words, words_of
from bursar.corpus.formats.format import FORMATS, FileReader, Format, read_files
from bursar.corpus.formats.json_files import Record, first_line_object, json_lines, write_json_lines
from bursar.corpus.formats.write_checks import WriteChecks, stated
from bursar.errors import LabelError
from bursar.tasks import Classification, Relations, Tagging

SUFFIXES = (".jsonl",)
LABEL, ENTITIES, RELATIONS = Classification("label"), Tagging("entities"), Relations("relations")
EITHER = ("label", "labels")  # classes or spans, depending on the project; older versions use the second


def sniff(path: Path) -> bool:
    """A first line that is an object with a text and a list of labels."""
    record = first_line_object(path, SUFFIXES)
    lists = [isinstance(record.get(key), list) for key in (*EITHER, "cats", "entities")]
    return "text" in record and any(lists) and "spans" not in record and "answer" not in record


def read(path: Path, schema: Schema = None, cut: str = "refuse") -> Corpus:
    """Read a file, or a folder with one file per split; ``cut = widen`` widens spans to whole words."""
    return read_files(path, SUFFIXES, partial(_read_file, cut=check_cut(cut)), schema)


def _read_file(reader: FileReader, cut: str) -> None:
    records = [(reader.line, record) for record in json_lines(reader)]
    spans = _declare(reader, [record for _, record in records])
    for reader.line, record in records:
        _read_item(reader, record, spans, cut)


def _declare(reader: FileReader, records: list[Record]) -> bool:
    """Add the tasks of the records to the corpus; return whether ``label`` is a list of spans."""
    either = [record[key] for record in records for key in EITHER if isinstance(record.get(key), list)]
    spans, classes = (any(isinstance(label, kind) for labels in either for label in labels) for kind in (list, str))
    if not spans and not classes:
        spans = "entities" in reader and "label" not in reader
    keys = {key for record in records for key in record}
    if classes or "cats" in keys or any(isinstance(record.get(key), str) for record in records for key in EITHER):
        reader.declare(LABEL)
    if (either and spans) or "entities" in keys:
        reader.declare(ENTITIES)
    if "relations" in keys:
        reader.declare(RELATIONS)
    return spans


def _read_item(reader: FileReader, record: Record, spans: bool, cut: str) -> None:
    name, text = record.get("id", reader.line_id()), record.get("text")
    if type(name) not in (str, int):
        raise reader.error(f"id must be a string or a number, not {name!r}")
    id = str(name)
    if not isinstance(text, str):
        raise reader.error("an item needs a text", item=id)
    strings = reader.strings(id, split=record.get("split"), group=record.get("group"))
    with reader.locating(id):
        words_at = words_of(record, text)
        labels = _labels(record, spans, partial(in_words, text, words_at, cut=cut))
    reader.add(id, text=text, words=words_at, labels=labels, **strings)


def _labels(record: Record, spans: bool, to_words: ToWords) -> Record:
    classes, entities = record.get("cats"), record.get("entities")
    for key in EITHER:
        if record.get(key) is not None and spans:
            entities = record[key]
        elif record.get(key) is not None:
            classes = record[key]
    labels: Record = {}
    if classes is not None and (label := _class(classes)) is not None:
        labels["label"] = label
    if entities is not None:
        if not isinstance(entities, list):
            raise LabelError(f"spans must be a list, not {entities!r}")
        found = [_entity(entity, to_words) for entity in entities]
        labels["entities"] = [span for _, span in found]
        if record.get("relations") is not None:
            labels["relations"] = _relations(record["relations"], found)
    elif record.get("relations") is not None:
        raise LabelError("relations without entities")
    return labels


def _class(classes: Any) -> str | None:
    match classes:
        case str():
            return classes
        case []:
            return None
        case [str(label)]:
            return label
        case [str(), str(), *_]:
            raise LabelError(f"an item has one class, and this one has {len(classes)}")
    raise LabelError(f"classes must be a list of strings, not {classes!r}")


def _entity(entity: Any, to_words: ToWords) -> tuple[Any, list[Any]]:
    """The id of a span, if it has one, and the span in words."""
    match entity:
        case [start, end, label]:
            id = None
        case {"start_offset": start, "end_offset": end, "label": label}:
            id = entity.get("id")
        case _:
            raise LabelError(f"a span must be [start, end, label] in characters, not {entity!r}")
    return id, [*to_words(start, end), label]


def _relations(relations: Any, entities: list[tuple[Any, list[Any]]]) -> list[Any]:
    spans = {id: span for id, span in entities if isinstance(id, str | int)}
    found = []
    for relation in relations if isinstance(relations, list) else [relations]:
        match relation:
            case {"from_id": str() | int() as source, "to_id": str() | int() as target, "type": label}:
                for end in (source, target):
                    if end not in spans:
                        raise LabelError(f"the relation {relation} is with {end!r}, which is no entity's id")
                found.append([spans[source], spans[target], label])
            case _:
                raise LabelError(f"a relation must have from_id, to_id and type, not {relation!r}")
    return found


# -- writing --------------------------------------------------------------------------------------------------------
def write(corpus: Corpus, path: Path, lose: Names = ()) -> None:
    """Write all splits to one file."""
    checks = WriteChecks(corpus, "doccano", lose)
    checks.refuse("images", "pairs")
    checks.tasks([LABEL, ENTITIES, RELATIONS], needed=["entities"] if "relations" in corpus.schema else [])
    if {"label", "relations"} <= set(corpus.schema):
        raise checks.error("has no project for classes and relations at once", fix="leave one of these tasks out")
    write_json_lines(path, (_written(checks, item) for item in checks.items()))


def _written(checks: WriteChecks, item: Item) -> Record:
    tasks = set(checks.corpus.schema)
    spans = [[*in_characters(item.spans, start, end), kind] for start, end, kind in item.labels.get("entities", [])]
    record: Record = {"id": item.id, "text": item.text, **stated(item)}
    if "label" in item.labels:
        record["cats" if "entities" in tasks else "label"] = [item.labels["label"]]
    if "entities" in item.labels and "relations" not in tasks:
        # An empty list under "label" could mean classes, so a corpus without any span uses "entities".
        alone = tasks == {"entities"} and len(checks.corpus.labels["entities"].rows.values)
        record["label" if alone else "entities"] = spans
    elif "entities" in item.labels:
        record["entities"] = [
            {"id": at, "start_offset": start, "end_offset": end, "label": kind}
            for at, (start, end, kind) in enumerate(spans)
        ]
    if "relations" in item.labels:
        record["relations"] = [_relation(checks, item, relation) for relation in item.labels["relations"]]
    return record


def _relation(checks: WriteChecks, item: Item, relation: list[Any]) -> Record:
    *ends, label = relation
    entities = item.labels.get("entities", [])
    for end in ends:
        if end not in entities:
            raise checks.error(f"cannot hold a relation of {end}, which is no entity", item)
    return {"from_id": entities.index(ends[0]), "to_id": entities.index(ends[1]), "type": label}


FORMATS.add("doccano", Format("doccano", "doccano's lines of JSON", sniff, read, write))
