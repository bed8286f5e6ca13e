"""Prodigy: one JSON object per line, as ``db-out`` writes them and ``db-in`` and recipes read them.

```
{"text": "at seven", "tokens": [{"text": "at", "start": 0, "end": 2, "id": 0, "ws": true}, …],
 "spans": [{"start": 3, "end": 8, "token_start": 1, "token_end": 1, "label": "time"}],
 "options": [{"id": "alarm", "text": "alarm"}, …], "accept": ["alarm"], "answer": "accept"}
```
(on one line). ``spans`` are the task ``entities``; the accepted one of the ``options`` (or the ``label`` of an accepted
line) is the task ``label``; ``relations`` are the task of that name. Tokens are words. A line that was rejected or
ignored has no labels; one without an answer counts as accepted, as for ``db-in``. Ids, splits and groups are in
``meta``.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from bursar.corpus.corpus import Corpus, Item, Names, Schema
from bursar.corpus.formats.characters import ToWords, check_cut, check_word_spans, in_characters, in_words, read_span
from bursar.corpus.formats.format import FORMATS, FileReader, Format, read_files
from bursar.corpus.formats.json_files import Record, first_line_object, json_lines, write_json_lines
from bursar.corpus.formats.write_checks import WriteChecks, stated
from bursar.corpus.words import find_words
from bursar.errors import LabelError
from bursar.tasks import Classification, Relations, Tagging

SUFFIXES = (".jsonl",)
LABEL, ENTITIES, RELATIONS = Classification("label"), Tagging("entities"), Relations("relations")
ANSWERS = ("accept", "reject", "ignore")
OWN_KEYS = {"spans", "tokens", "options", "accept", "answer", "_input_hash", "_task_hash"}


def sniff(path: Path) -> bool:
    """A first line that is an object with a text and a key that only Prodigy writes."""
    record = first_line_object(path, SUFFIXES)
    return "text" in record and not OWN_KEYS.isdisjoint(record)


def read(path: Path, schema: Schema = None, cut: str = "refuse") -> Corpus:
    """Read a file, or a folder with one file per split; ``cut = widen`` widens spans to whole words."""
    return read_files(path, SUFFIXES, partial(_read_file, cut=check_cut(cut)), schema)


def _read_file(reader: FileReader, cut: str) -> None:
    records = [(reader.line, record) for record in json_lines(reader)]
    keys = {key for _, record in records for key in record}
    for task, marks in ((LABEL, ("label", "accept", "options")), (ENTITIES, ("spans",)), (RELATIONS, ("relations",))):
        if not keys.isdisjoint(marks):
            reader.declare(task)
    for reader.line, record in records:
        _read_item(reader, record, cut)


def _read_item(reader: FileReader, record: Record, cut: str) -> None:
    meta, text = record.get("meta"), record.get("text")
    about = meta if isinstance(meta, dict) else {}
    id = str(about["id"]) if type(about.get("id")) in (str, int) else reader.line_id()
    if not isinstance(text, str):
        raise reader.error("an item needs a text", item=id)
    strings = reader.strings(id, split=about.get("split"), group=about.get("group"))
    answer = record.get("answer")
    if answer is not None and answer not in ANSWERS:
        raise reader.error(f"the answer must be {', '.join(ANSWERS)}, not {answer!r}", item=id)
    with reader.locating(id):
        words_at = find_words(text) if "tokens" not in record else _tokens(record["tokens"], text)
        to_words = partial(in_words, text, words_at, cut=cut)
        labels = _labels(reader, record, to_words) if answer in (None, "accept") else {}
    reader.add(id, text=text, words=words_at, labels=labels, **strings)


def _tokens(tokens: Any, text: str) -> list[list[int]]:
    if not isinstance(tokens, list) or not all(isinstance(token, dict) for token in tokens):
        raise LabelError("tokens must be a list of objects")
    # spaCy makes tokens of repeated spaces; those are not words.
    words = [token for token in tokens if not isinstance(token.get("text"), str) or token["text"].strip()]
    return check_word_spans([[token.get("start"), token.get("end")] for token in words], text)


def _labels(reader: FileReader, record: Record, to_words: ToWords) -> Record:
    labels: Record = {}
    chosen = record.get("accept", record.get("label"))
    match chosen:
        case None | []:
            pass
        case str() | [str()]:
            labels["label"] = chosen if isinstance(chosen, str) else chosen[0]
        case [_, _, *_]:
            raise LabelError(f"an item has one class, and {len(chosen)} are accepted here")
        case _:
            raise LabelError(f"what is accepted must be a list of options, not {chosen!r}")
    # An accepted line without spans means that there are none.
    empty: list[Any] | None = [] if record.get("answer") == "accept" else None
    for key, task, read_one in (("spans", "entities", read_span), ("relations", "relations", _relation)):
        found = record.get(key, empty)
        if found is not None and task in reader:
            if not isinstance(found, list):
                raise LabelError(f"{key} must be a list, not {found!r}")
            labels[task] = [read_one(each, to_words) for each in found]
    return labels


def _relation(relation: Any, to_words: ToWords) -> list[Any]:
    match relation:
        case {"head_span": head, "child_span": child, "label": label}:
            return [read_span(head, to_words), read_span(child, to_words), label]
    raise LabelError(f"a relation must have head_span, child_span and label, not {relation!r}")


# -- writing --------------------------------------------------------------------------------------------------------
def write(corpus: Corpus, path: Path, lose: Names = ()) -> None:
    """Write all splits to one file. Items with every label are accepted; the others are left to annotate in Prodigy."""
    checks = WriteChecks(corpus, "prodigy", lose)
    checks.refuse("images", "pairs")
    checks.tasks([LABEL, ENTITIES, RELATIONS])
    write_json_lines(path, (_written(checks, item) for item in checks.items()))


def _written(checks: WriteChecks, item: Item) -> Record:
    text, schema = item.text or "", checks.corpus.schema
    meta = {"id": item.id} | stated(item, words=False)
    tokens = [
        {"text": text[start:end], "start": start, "end": end, "id": n, "ws": text[end : end + 1].isspace()}
        for n, (start, end) in enumerate(item.spans)
    ]
    if not all(text[start:end].strip() for start, end in item.spans):
        raise checks.error("holds no word of blanks", item)
    record: Record = {"text": text, "tokens": tokens, "meta": meta}
    if "label" in schema:
        record["options"] = [{"id": label, "text": label} for label in schema["label"].labels]
    if "label" in item.labels:
        record["accept"] = [item.labels["label"]]
    if "entities" in item.labels:
        record["spans"] = [_marked(item, span) for span in item.labels["entities"]]
    if "relations" in item.labels:
        record["relations"] = [
            {"head": a[1] - 1, "child": b[1] - 1, "head_span": _marked(item, a), "child_span": _marked(item, b)}
            | {"label": label}
            for a, b, label in item.labels["relations"]
        ]
    return record | ({"answer": "accept"} if set(item.labels) == set(schema) else {})


def _marked(item: Item, span: list[Any]) -> Record:
    start, end = in_characters(item.spans, span[0], span[1])
    return {"start": start, "end": end, "token_start": span[0], "token_end": span[1] - 1, "label": span[2]}


FORMATS.add("prodigy", Format("prodigy", "Prodigy's lines of JSON", sniff, read, write))
