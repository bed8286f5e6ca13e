"""Native JSONL: one item a line, an optional first line with the schema.

```
{"bursar": 1, "tasks": {"intent": {"kind": "classification", "labels": ["alarm", "music"]}}}
{"id": "u1", "split": "train", "text": "wake me at seven", "labels": {"intent": "alarm", "slots": [[3, 4, "time"]]}}
```
Only ``text`` (or ``image``) is needed. Without ``words`` (``[[start, end], …]`` in characters) words are found by rule;
without an ``id`` an item is named by its line; without a schema, tasks are told by the look of their labels.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bursar.corpus.builder import CorpusBuilder
from bursar.corpus.corpus import Corpus
from bursar.corpus.formats.format import FORMATS, Format, head_of, numbered_lines, replacing, split_files, split_of
from bursar.errors import DataError

VERSION = 1
KEYS = {"id", "split", "text", "words", "pair", "image", "group", "labels"}
SUFFIXES = (".jsonl", ".ndjson", ".gz")


def sniff(path: Path) -> bool:
    """A first line that is a JSON object with a text, an image or a schema."""
    file = path
    if path.is_dir():
        files = split_files(path, SUFFIXES)
        if not files:
            return False
        file = files[0][1]
    first = next((line for line in head_of(file, 5) if line.strip()), "")
    try:
        record = json.loads(first)
    except ValueError:
        return False
    return isinstance(record, dict) and ("bursar" in record or "text" in record or "image" in record)


def read(path: Path, schema: Mapping[str, Any] | None = None) -> Corpus:
    """A file, or a folder with a file a split; ``schema`` states the tasks where the file does not."""
    builder = CorpusBuilder(schema)
    files = split_files(path, SUFFIXES) if path.is_dir() else [(split_of(path.name) or "train", path)]
    if not files:
        raise DataError("the folder holds no train, dev or test .jsonl file", path=path)
    for split, file in files:
        _read_file(builder, file, split, many=len(files) > 1)
    if not len(builder):
        raise DataError("there is no item in it", path=path)
    return builder.build()


def _read_file(builder: CorpusBuilder, path: Path, split: str, many: bool) -> None:
    stem = f"{path.stem}-" if many else "line-"
    loads = json.loads
    for number, line in numbered_lines(path):
        if not line or line.isspace():
            continue
        builder.at(path, number)
        try:
            record = loads(line)
        except (ValueError, RecursionError) as wrong:
            raise builder.error(f"not JSON: {wrong}", fix="one JSON object a line") from None
        if not isinstance(record, dict):
            raise builder.error("the line is not a JSON object", fix='such as {"id": "u1", "text": "…"}')
        if "bursar" in record:
            _read_header(builder, record)
        else:
            _read_item(builder, record, split, f"{stem}{number:06d}")


def _read_header(builder: CorpusBuilder, record: dict[str, Any]) -> None:
    tasks = record.get("tasks", {})
    if record["bursar"] != VERSION:
        raise builder.error(f"format version {record['bursar']!r} is not known", fix=f"this Bursar reads {VERSION}")
    if not isinstance(tasks, dict) or not all(isinstance(task, dict) for task in tasks.values()):
        raise builder.error("tasks must map names to descriptions", fix='{"intent": {"kind": "classification"}}')
    for name, task in tasks.items():
        builder.add_task(name, task)


def _read_item(builder: CorpusBuilder, record: dict[str, Any], split: str, fallback: str) -> None:
    id = record.get("id", fallback)
    if not isinstance(id, str):
        raise builder.error(f"id must be a string, not {id!r}")
    if not KEYS.issuperset(record):
        extra = sorted(set(record) - KEYS)
        raise builder.error(f"unknown key {extra[0]!r}", item=id, fix=f"known keys: {', '.join(sorted(KEYS))}")
    for key in ("text", "pair", "group", "split"):
        if not isinstance(record.get(key, ""), str):
            raise builder.error(f"{key} must be a string", item=id)
    text, image = record.get("text"), record.get("image")
    if (text is None) == (image is None):
        raise builder.error("an item needs either a text or an image", item=id)
    labels = record.get("labels") or {}
    if not isinstance(labels, dict):
        raise builder.error("labels must map task names to labels", item=id)
    for name, value in labels.items():
        if name not in builder.tasks:
            builder.add_task(name, {"kind": _kind_of(builder, name, value, id)} | _every_word(value))
    builder.add(
        id,
        split=record.get("split") or split,
        text=text,
        words=_words(builder, record["words"], text or "", id) if record.get("words") is not None else None,
        pair=record.get("pair"),
        image=_image(builder, image, id) if image is not None else None,
        group=record.get("group"),
        labels=labels,
    )


def _words(builder: CorpusBuilder, value: Any, text: str, id: str) -> list[tuple[int, int]]:
    if not isinstance(value, list):
        raise builder.error("words must be a list of [start, end]", item=id)
    end, size = 0, len(text)
    for word in value:
        match word:
            case [int(a), int(b)] if end <= a < b <= size:
                end = b
            case _:
                raise builder.error(
                    f"words must be [start, end] in characters of the text, in order and apart; {word!r} is not",
                    item=id,
                )
    return value


def _image(builder: CorpusBuilder, value: Any, id: str) -> np.ndarray[Any, Any]:
    try:
        image = np.array(value)
    except ValueError:
        image = np.array(None)
    if (
        image.dtype.kind not in "iu"
        or image.ndim not in (2, 3)
        or image.min(initial=0) < 0
        or image.max(initial=0) > 255
    ):
        raise builder.error("an image must be rows of numbers from 0 to 255, all of one length", item=id)
    return image.astype(np.uint8)


def _kind_of(builder: CorpusBuilder, name: str, value: Any, id: str) -> str:
    match value:
        case str():
            return "classification"
        case bool():
            pass
        case int() | float():
            return "regression"
        case [] | [[int(), int(), str()], *_] | [str(), *_]:
            return "tagging"
        case [[int(), str()], *_]:
            return "parsing"
        case [[[*_], [*_], str()], *_]:
            return "relations"
    raise builder.error(
        f"task {name!r}: {value!r} is no label of a known kind", item=id, fix="state the schema on line 1"
    )


def _every_word(value: Any) -> dict[str, bool]:
    return {"every_word": True} if isinstance(value, list) and value and isinstance(value[0], str) else {}


def write(corpus: Corpus, path: Path) -> None:
    """All splits in one file, the schema on its first line."""
    tasks = {name: task.describe() for name, task in corpus.schema.items()}
    with replacing(path) as file:
        file.write(json.dumps({"bursar": VERSION, "tasks": tasks}, ensure_ascii=False) + "\n")
        for at in range(len(corpus)):
            item = corpus[at]
            record: dict[str, Any] = {"id": item.id, "split": item.split}
            if corpus.texts is not None:
                record |= {"text": item.text, "words": corpus.texts.spans[at].tolist()}
            if item.pair is not None:
                record["pair"] = item.pair
            if item.image is not None:
                record["image"] = item.image.tolist()
            if item.group is not None:
                record["group"] = item.group
            file.write(json.dumps(record | {"labels": item.labels}, ensure_ascii=False) + "\n")


FORMATS.add("jsonl", Format("jsonl", "one JSON object an item (native)", sniff, read, write))
