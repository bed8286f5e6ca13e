"""Argilla 2: the folder of a dataset, as ``to_disk`` writes it and ``from_disk`` reads it, or its records only.

```
records.json             [{"id": "u1", "fields": {"text": "…"}, "responses": {"intent": [{"value": "alarm", …}]}}]
.argilla/settings.json   the fields and questions
.argilla/dataset.json    its name
```
A label question is a class, a span question has spans in characters, a rating is a number. Responses are labels,
suggestions are not; if the responses of an item disagree, ``several`` says which one counts. Splits, groups and words
are in the metadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from bursar.corpus.builder import CorpusBuilder
from bursar.corpus.corpus import Corpus, Item, Names, Schema
from bursar.corpus.formats.characters import AnnotationOptions, ToWords, in_characters, in_words, read_span, words_of
from bursar.corpus.formats.format import FORMATS, Format, numbered_id, numbered_lines, parse_names, replacing
from bursar.corpus.formats.json_files import Record, first_object, json_array, write_json_array
from bursar.corpus.formats.write_checks import WriteChecks, stated
from bursar.errors import DataError, LabelError, SchemaError
from bursar.tasks import Classification, Regression, Tagging, Task, make_task

RECORDS, SETTINGS, DATASET = "records.json", ".argilla/settings.json", ".argilla/dataset.json"
NAME = re.compile(r"(?=.*[a-z0-9])[a-z0-9_-]+")  # of a question, by Argilla's rule
LARGEST_RATING = 10
NO_USER = "00000000-0000-0000-0000-000000000000"


def sniff(path: Path) -> bool:
    """An array whose first object has Argilla's fields."""
    return isinstance(first_object(_records_file(path)).get("fields"), dict)


def _records_file(path: Path) -> Path:
    return path / RECORDS if path.is_dir() else path


def read(
    path: Path,
    schema: Schema = None,
    text: str | None = None,
    several: str = "refuse",
    cut: str = "refuse",
    skip: Names = (),
) -> Corpus:
    """Read the folder of a dataset, or a file of records; options as for ``label-studio``, ``skip`` names questions."""
    options = AnnotationOptions(several, cut, frozenset(parse_names(skip)))
    file = _records_file(path)
    builder = CorpusBuilder(schema)
    records = [*json_array(file)]
    if not records:
        raise DataError("there is no item in it", path=file)
    settings = file.parent / SETTINGS
    fields = _read_settings(builder, settings, options.skip) if settings.is_file() else []
    if (dataset := file.parent / DATASET).is_file():
        _read_json(builder, dataset)  # not used, but it must be valid
    for line, record in records:
        builder.at(file, line)
        _announce(builder, record, options.skip)
    for number, (line, record) in enumerate(records, start=1):
        builder.at(file, line)
        field = text or next(iter(fields), "text")
        _read_record(builder, record, numbered_id("record", number), field, options)
    return builder.build()


# -- tasks ----------------------------------------------------------------------------------------------------------
def _read_settings(builder: CorpusBuilder, path: Path, skip: Collection[str]) -> list[str]:
    """Add the questions as tasks to the builder; return the names of the text fields."""
    settings = _read_json(builder, path)
    try:
        questions = [(q["name"], q["settings"]) for q in settings["questions"] if q["name"] not in skip]
        fields = [field["name"] for field in settings["fields"] if field["settings"]["type"] == "text"]
        with builder.locating():
            tasks = [_question(str(name), about) for name, about in questions]
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise builder.error(f"these are not the settings of a dataset: {type(wrong).__name__} {wrong}") from None
    for task in tasks:
        builder.declare(task)
    return [str(name) for name in fields]


def _read_json(builder: CorpusBuilder, path: Path) -> Any:
    text = "\n".join(line for _, line in numbered_lines(path))
    builder.at(path, 1)
    try:
        found = json.loads(text)
        json.dumps(found, ensure_ascii=False).encode()  # rejects half a surrogate pair
    except (ValueError, RecursionError) as wrong:
        builder.at(path, getattr(wrong, "lineno", 1))
        raise builder.error(f"not JSON: {wrong}") from None
    if not isinstance(found, dict):
        raise builder.error("not a JSON object")
    return found


def _question(name: str, about: Mapping[str, Any]) -> Task:
    options = [option["value"] for option in about.get("options", ())]
    match about["type"]:
        case "label_selection" | "multi_label_selection":
            return make_task(name, {"kind": "classification", "labels": options})
        case "span":
            return make_task(name, {"kind": "tagging", "labels": options})
        case "rating":
            return make_task(name, {"kind": "regression", "low": min(options), "high": max(options)})
    raise SchemaError(f"question {name!r} is of type {about['type']!r}, which is no known kind", fix=f"skip = {name}")


def _announce(builder: CorpusBuilder, record: Record, skip: Collection[str]) -> None:
    """Add tasks that are not in the settings, inferred from their answers."""
    responses = record.get("responses")
    for name, answers in (responses if isinstance(responses, dict) else {}).items():
        for answer in answers if isinstance(answers, list) and name not in builder and name not in skip else ():
            match answer.get("value") if isinstance(answer, dict) else None:
                case str() | [str(), *_]:
                    builder.add_task(name, {"kind": "classification"})
                case [{"start": _, "end": _}, *_]:
                    builder.add_task(name, {"kind": "tagging"})
                case int():
                    builder.add_task(name, {"kind": "regression", "low": 0, "high": LARGEST_RATING})


# -- one record -----------------------------------------------------------------------------------------------------
def _read_record(builder: CorpusBuilder, record: Record, unnamed: str, field: str, options: AnnotationOptions) -> None:
    name = record.get("id")
    id = str(name) if type(name) in (str, int) and name != "" else unnamed
    fields, metadata, responses = (record.get(key) or {} for key in ("fields", "metadata", "responses"))
    if not all(isinstance(part, dict) for part in (fields, metadata, responses)):
        raise builder.error("fields, metadata and responses must be objects", item=id)
    text = fields.get(field)
    if not isinstance(text, str):
        known = ", ".join(key for key, value in fields.items() if isinstance(value, str)) or "none"
        raise builder.error(f"it has no text field {field!r}", item=id, fix=f"text = one of: {known}")
    strings = builder.strings(id, metadata.get("split"), pair=fields.get("pair"), group=metadata.get("group"))
    with builder.locating(id):
        words_at = words_of({"words": _word_ends(metadata["words"])} if "words" in metadata else {}, text)
        to_words = partial(in_words, text, words_at, cut=options.cut)
        labels: Record = {}
        for task, answers in responses.items():
            if task not in options.skip and answers:
                labels |= _answer(builder, task, answers, to_words, options)
    builder.add(id, text=text, words=words_at, labels=labels, **strings)


def _answer(builder: CorpusBuilder, name: str, answers: Any, to_words: ToWords, options: AnnotationOptions) -> Record:
    """The label from the responses to one question; empty if there is none."""
    if not isinstance(answers, list) or not all(isinstance(answer, dict) for answer in answers):
        raise LabelError(f"the responses to {name!r} must be a list of objects")
    task = builder.task(name)
    given = [answer["value"] for answer in answers if answer.get("value") is not None]
    if task is None and any(given):
        raise LabelError(f"the answer {given[0]!r} to {name!r} is no label of a known kind", fix=f"skip = {name}")
    if task is None or not given:
        return {}
    value = options.pick(given, f"responses to {name!r}")
    if isinstance(task, Tagging):
        spans = value if isinstance(value, list) else [value]
        return {name: [read_span(span, to_words, f"a span of {name!r}") for span in spans]}
    classes = value if isinstance(task, Classification) and isinstance(value, list) else [value]
    if len(classes) > 1:
        raise LabelError(f"an item has one class, and {name!r} has {len(classes)} here")
    return {name: classes[0]} if classes else {}


def _word_ends(words: Any) -> list[Any]:
    """Parse ``0-4 5-7``, since metadata are strings."""
    cells = words.split() if isinstance(words, str) else [words]
    pairs = [re.fullmatch(r"([0-9]{1,9})-([0-9]{1,9})", str(cell)) for cell in cells]
    return [[int(pair[1]), int(pair[2])] if pair else words for pair in pairs]


# -- writing --------------------------------------------------------------------------------------------------------
def write(corpus: Corpus, path: Path, lose: Names = (), user: str = NO_USER) -> None:
    """Write the folder of a dataset. ``user`` is the id of the Argilla user who gives the labels."""
    checks = WriteChecks(corpus, "argilla", lose)
    checks.refuse("images")
    questions = [_written_question(checks, task) for task in corpus.schema.values()]
    names = ["text", "pair"] if corpus.pairs is not None else ["text"]
    plain = {"type": "text", "use_markdown": False}
    fields = [{"name": name, "title": name, "required": name == "text", "settings": plain} for name in names]
    settings = {"guidelines": None, "allow_extra_metadata": True, "fields": fields, "questions": questions}
    with ExitStack() as stack:
        records, about, dataset = (stack.enter_context(replacing(path / name)) for name in (RECORDS, SETTINGS, DATASET))
        about.write(json.dumps(settings | {"vectors": [], "metadata": []}, ensure_ascii=False) + "\n")
        dataset.write(json.dumps({"name": path.name or "corpus", "allow_extra_metadata": True}) + "\n")
        write_json_array(records, (_written(checks, at, user) for at in range(len(corpus))))


def _written_question(checks: WriteChecks, task: Task) -> Record:
    if not NAME.fullmatch(task.name) or task.name in ("text", "pair"):
        raise checks.error(f"has no question called {task.name!r}", fix="rename it: small letters, digits, _ and -")
    options = [{"value": label, "text": label} for label in task.labels]
    about: Record
    match task:
        case Classification():
            about = {"type": "label_selection", "options": options}
        case Tagging(every_word=False):
            about = {"type": "span", "field": "text", "allow_overlapping": True, "options": options}
        case Regression(low=low, high=high) if low % 1 == high % 1 == 0 <= low and high <= LARGEST_RATING:
            about = {"type": "rating", "options": [{"value": n} for n in range(int(low), int(high) + 1)]}
        case Regression():
            raise checks.error(f"rates by whole numbers from 0 to {LARGEST_RATING}, and task {task.name!r} does not")
        case _:
            raise checks.error(f"has no question for task {task.name!r}: {task.describe()['kind']}")
    return {"name": task.name, "title": task.name, "description": None, "required": True, "settings": about}


def _written(checks: WriteChecks, at: int, user: str) -> Record:
    corpus = checks.corpus
    item = corpus[at]
    metadata = stated(item)
    if "words" in metadata:
        metadata["words"] = " ".join(f"{start}-{end}" for start, end in item.spans)
    fields = {"text": item.text} | ({"pair": item.pair or ""} if corpus.pairs is not None else {})
    responses = {task: [{"value": _value(checks, item, task), "user_id": user}] for task in item.labels}
    return {"id": item.id, "fields": fields, "metadata": metadata, "responses": responses, "suggestions": {}}


def _value(checks: WriteChecks, item: Item, task: str) -> Any:
    label = item.labels[task]
    match checks.corpus.schema[task]:
        case Tagging():
            ends = [(*in_characters(item.spans, start, end), kind) for start, end, kind in label]
            return [{"start": start, "end": end, "label": kind} for start, end, kind in ends]
        case Regression():
            if label % 1:
                raise checks.error(f"rates by whole numbers, not by {label}", item)
            return int(label)
    return label


FORMATS.add("argilla", Format("argilla", "an Argilla dataset on disk", sniff, read, write))
