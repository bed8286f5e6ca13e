"""Hugging Face ``datasets``: a folder written by ``save_to_disk``, or the name of a dataset on the hub.

Columns are recognised by name and type: class labels are classification; lists of class labels next to a column of
words are tagging (spans if their names are tags such as B-LOC, else one label per word); floats are regression.
``columns`` overrides this, such as ``{"text": "utterance", "labels": ["intent"]}``. The package is imported only when
this format is used.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bursar.corpus.builder import CorpusBuilder
from bursar.corpus.corpus import Corpus, Item, Names, Schema
from bursar.corpus.formats.format import FORMATS, SPLIT_NAMES, Format, IdCounter, parse_names
from bursar.corpus.formats.write_checks import WriteChecks
from bursar.corpus.words import align_words, join_tokens
from bursar.errors import ConfigError, DataError
from bursar.tasks import Classification, Regression, Tagging, Task
from bursar.tasks.schemes import spans_of_tags, split_tag

PAIRS = "text pair, sentence1 sentence2, premise hypothesis, question1 question2, question sentence, question context"
ROLES = {
    "words": "tokens words",
    "text": "text sentence utterance question",
    "pair": "",
    "id": "id idx",
    "group": "group",
}
Tables = Mapping[str, Mapping[str, list[Any]]]  # columns by split
TAG = re.compile(r"O|[BIESLU]-.+", re.DOTALL)
NO_LABEL = -1
SPLIT_NAME = re.compile(r"\w+(\.\w+)*")


def _datasets() -> Any:
    try:
        import datasets
    except ImportError:
        raise DataError("the package 'datasets' is not installed", fix="pip install 'bursar[datasets]'") from None
    return datasets


def sniff(path: Path) -> bool:
    """A folder that ``save_to_disk`` wrote."""
    alone = all((path / name).is_file() for name in ("dataset_info.json", "state.json"))
    return alone or (path / "dataset_dict.json").is_file()


# -- reading --------------------------------------------------------------------------------------------------------
def read(
    path: Path, columns: Mapping[str, Names] | None = None, config: str | None = None, schema: Schema = None
) -> Corpus:
    """Read a folder, or a dataset of the hub by name; ``config`` chooses one of its configurations.

    ``columns`` maps ``text``, ``pair``, ``words``, ``id`` and ``group`` to column names, and ``labels`` to a list.
    """
    for role in columns or {}:
        if role not in (*ROLES, "labels"):
            raise ConfigError(f"columns: there is no {role!r}", fix=f"use {', '.join(ROLES)} or labels")
    splits = _load(path, config)
    tables = {name: _columns(path, data) for name, data in splits.items()}
    first = next(iter(splits.values()))
    builder = CorpusBuilder(schema if schema is not None else _schema_of(first.info.description))
    builder.at(path)
    roles = _roles(builder, first.features, columns or {})
    tasks = _tasks(builder, first.features, tables, columns or {})
    ids = _ids(tables, roles.get("id"))
    for name, table in tables.items():
        for column in (*roles.values(), *tasks):
            if splits[name].features.get(column) != first.features[column] or len(table[column]) != len(ids[name]):
                raise builder.error(f"column {column!r} of split {name!r} is not what it is in the first split")
        for at, id in enumerate(ids[name]):
            about = {role: table[column][at] for role, column in roles.items() if role != "id"}
            labels = {task: _label(builder, id, task, table[task][at], names) for task, names in tasks.items()}
            about["labels"] = {task: label for task, label in labels.items() if label is not None}
            _read_item(builder, id, SPLIT_NAMES.get(name, name), about, roles.get("words"))
    if not len(builder):
        raise builder.error("there is no item in it")
    return builder.build()


def _load(path: Path, config: str | None) -> dict[str, Any]:
    datasets = _datasets()
    try:
        on_disk = path.exists()
        loaded = datasets.load_from_disk(str(path)) if on_disk else datasets.load_dataset(path.as_posix(), config)
    except Exception as wrong:  # the package, the disk and the network raise many types
        raise DataError(f"datasets cannot load this: {wrong}", path=path) from None
    splits = dict(loaded) if isinstance(loaded, dict) else {str(loaded.split or "train"): loaded}
    if not splits:
        raise DataError("there is no split in it", path=path)
    return splits


def _columns(path: Path, data: Any) -> dict[str, list[Any]]:
    """The columns of one split as plain values; a broken file is rejected before it is used."""
    try:
        table = data.with_format("arrow")[:]
        table.validate(full=True)
        return {name: table.column(name).to_pylist() for name in table.column_names}
    except Exception as wrong:  # Arrow raises many types
        raise DataError(f"the table is broken: {wrong}", path=path) from None


def _schema_of(description: str) -> dict[str, Any] | None:
    """The schema that ``write`` stored in the description, if there is one."""
    record: Any = None
    with suppress(ValueError, RecursionError, TypeError):
        record = json.loads(description)
    tasks = record.get("bursar_tasks") if isinstance(record, dict) else None
    return tasks if isinstance(tasks, dict) else None


def _inner(feature: Any) -> Any:
    return feature[0] if isinstance(feature, list) and feature else getattr(feature, "feature", None)


def _roles(builder: CorpusBuilder, features: Mapping[str, Any], columns: Mapping[str, Any]) -> dict[str, str]:
    """Which column is the text, its pair, the words, the id and the group."""

    def fits(role: str, name: Any) -> bool:
        feature = _inner(features.get(name)) if role == "words" else features.get(name)
        dtype = str(getattr(feature, "dtype", ""))
        names = getattr(feature, "names", None) is None
        return names and ("string" in dtype or (role == "id" and dtype.startswith(("int", "uint"))))

    roles = {role: str(columns[role]) for role in ROLES if role in columns}
    for role, name in roles.items():
        if not fits(role, name):
            raise builder.error(f"column {name!r} cannot be the {role}", fix=f"it has {', '.join(features)}")
    if "text" not in roles and "words" not in roles:
        pairs = [pair.split() for pair in PAIRS.split(",")]
        both = next(((text, pair) for text, pair in pairs if fits("text", text) and fits("pair", pair)), None)
        roles |= {} if both is None else {"text": both[0], "pair": both[1]}
    for role, names in ROLES.items():
        known = [name for name in names.split() if fits(role, name)]
        if known and not (role == "text" and "words" in columns):
            roles.setdefault(role, known[0])
    if "text" not in roles and "words" not in roles:
        raise builder.error("no column is a text or a list of words", fix='columns = {"text": "…"}')
    return roles


def _tasks(
    builder: CorpusBuilder, features: Mapping[str, Any], tables: Tables, columns: Mapping[str, Any]
) -> dict[str, list[str] | None]:
    """Add the columns that are tasks to the builder; return the label names of each."""
    asked = parse_names(columns["labels"]) if "labels" in columns else None
    tasks: dict[str, list[str] | None] = {}
    for name, feature in features.items():
        if asked is not None and name not in asked:
            continue
        inner = _inner(feature)
        names = getattr(feature if inner is None else inner, "names", None)
        task: Task | None = None
        if names is not None:
            task = Classification(name, tuple(names)) if inner is None else _tagging(builder, name, names)
        elif inner is None and str(getattr(feature, "dtype", "")).startswith("float"):
            values = [v for table in tables.values() for v in table.get(name, []) if v is not None and math.isfinite(v)]
            low, high = math.floor(min(values, default=0)), math.ceil(max(values, default=1))
            task = Regression(name, low=min(low, 0), high=max(high, 1))
        elif asked is not None and inner is None:
            task = Classification(name)
        if task is not None:
            stated = builder.task(name)
            builder.declare(stated if isinstance(stated, Regression) and task.kind == "regression" else task)
            tasks[name] = names
    for name in asked or ():
        if name not in tasks:
            raise builder.error(f"column {name!r} cannot be a task", fix=f"it has {', '.join(features)}")
    return tasks


def _tagging(builder: CorpusBuilder, name: str, names: list[str]) -> Tagging:
    """Spans if the names are tags, else one label per word, unless the schema says otherwise."""
    stated = builder.task(name)
    by_names = "O" not in names or not all(TAG.fullmatch(tag) for tag in names)
    every_word = stated.every_word if isinstance(stated, Tagging) else by_names
    kinds = names if every_word else [split_tag(tag)[1] for tag in names if tag != "O"]
    return Tagging(name, tuple(dict.fromkeys(kinds)), every_word=every_word)


def _ids(tables: Tables, column: str | None) -> dict[str, list[str]]:
    """An id for every item. If a column restarts in each split, the split is put before the number."""
    counter, splits = IdCounter(), {name: SPLIT_NAMES.get(name, name) for name in tables}
    found: dict[str, list[str]] = {}
    for name, table in tables.items():
        given = table.get(column or "", [None] * len(next(iter(table.values()), [])))
        found[name] = [counter.next(splits[name]) if id is None else str(id) for id in given]
    flat = [id for ids in found.values() for id in ids]
    if len(set(flat)) == len(flat):
        return found
    return {name: [f"{splits[name]}-{id}" for id in ids] for name, ids in found.items()}


def _read_item(builder: CorpusBuilder, id: str, split: str, about: dict[str, Any], words_column: str | None) -> None:
    text, words = about.get("text"), about.pop("words", None)
    missing = words_column is not None and (words is None or not all(words))
    if missing or ("text" in about and text is None):
        raise builder.error("a text or a word is missing or empty", item=id)
    if words is not None:
        about["text"], about["words"] = join_tokens(words) if text is None else (text, align_words(text, words))
        if about["words"] is None:
            fix = f'columns = {{"words": "{words_column}"}} leaves the text out'
            raise builder.error("the words are not those of the text", item=id, fix=fix)
    builder.add(id, split=split, **about)


def _label(builder: CorpusBuilder, id: str, task: str, value: Any, names: list[str] | None) -> Any:
    if value is None or (value == NO_LABEL and names is not None):
        return None
    if names is None:
        return value if isinstance(value, float) else str(value)
    codes = value if isinstance(value, list) else [value]
    if not all(isinstance(code, int) and 0 <= code < len(names) for code in codes):
        raise builder.error(f"task {task!r}: {value!r} is no label", item=id)
    tags = [names[code] for code in codes]
    if not isinstance(value, list):
        return tags[0]
    stated = builder.task(task)
    return tags if isinstance(stated, Tagging) and stated.every_word else spans_of_tags(tags)


# -- writing --------------------------------------------------------------------------------------------------------
def write(corpus: Corpus, path: Path, lose: Names = ()) -> None:
    """Write a folder for ``datasets.load_from_disk``, with one dataset per split."""
    datasets = _datasets()
    checks = WriteChecks(corpus, "huggingface", lose)
    checks.refuse("images")
    features = _features(checks, datasets)
    codes = {name: {label: code for code, label in enumerate(_names(task))} for name, task in corpus.schema.items()}
    description = json.dumps({"bursar_tasks": {name: task.describe() for name, task in corpus.schema.items()}})
    parts = {}
    for split in checks.splits():
        name = {"dev": "validation"}.get(split, split)
        if not SPLIT_NAME.fullmatch(name) or SPLIT_NAMES.get(name, name) != split or name == "all":
            raise checks.error(f"has no way to name a split {split!r}", next(checks.items(split)))
        rows = [_row(checks, item, features, codes) for item in checks.items(split)]
        table = {column: [row[column] for row in rows] for column in features}
        info = datasets.DatasetInfo(description=description, features=features)
        parts[name] = datasets.Dataset.from_dict(table, features=features, info=info)
    silent = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        datasets.DatasetDict(parts).save_to_disk(str(path))
    except OSError as wrong:
        raise DataError(f"cannot be written: {wrong}", path=path) from None
    finally:
        if not silent:
            datasets.enable_progress_bars()


def _features(checks: WriteChecks, datasets: Any) -> Any:
    corpus, string = checks.corpus, datasets.Value("string")
    tagged = any(isinstance(task, Tagging) for task in corpus.schema.values())
    tokens = tagged or next(checks.other_words(), None) is not None
    optional = {"pair": corpus.pairs is not None, "group": corpus.groups is not None}
    own = ["id", "text", *["tokens"] * tokens, *(name for name, wanted in optional.items() if wanted)]
    columns: dict[str, Any] = {name: datasets.Sequence(string) if name == "tokens" else string for name in own}
    for name, task in corpus.schema.items():
        if name in own:
            raise checks.error(f"has a column {name!r} of its own, and cannot have a task of that name")
        match task:
            case Classification() if task.labels:
                columns[name] = datasets.ClassLabel(names=_names(task))
            case Tagging():
                columns[name] = datasets.Sequence(datasets.ClassLabel(names=_names(task)))
            case Regression():
                columns[name] = datasets.Value("float64")
            case _:
                raise checks.error(f"has no column for task {name!r}: {task.kind}, {len(task.labels)} labels")
    return datasets.Features(columns)


def _names(task: Task) -> list[str]:
    """What the codes of a task's column mean: its labels, or tags where it has spans."""
    if isinstance(task, Tagging) and not task.every_word:
        return ["O", *(f"{prefix}-{label}" for label in task.labels for prefix in "BI")]
    return [*task.labels]


def _row(
    checks: WriteChecks, item: Item, features: Collection[str], codes: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    row: dict[str, Any] = {"id": item.id, "text": item.text, "pair": item.pair, "group": item.group}
    if "tokens" in features:
        row["tokens"] = item.words
        if not all(item.words) or not item.is_its_words:
            raise checks.error("cannot hold a text that is more than its words and the blanks between them", item)
    for name, task in checks.corpus.schema.items():
        label = item.labels.get(name)
        if label is None:
            row[name] = NO_LABEL if isinstance(task, Classification) else None
        elif isinstance(task, Tagging):
            tags = label if task.every_word else checks.tags(item, name)
            row[name] = [codes[name][tag] for tag in tags]
        else:
            row[name] = codes[name][label] if isinstance(task, Classification) else label
    return row


FORMATS.add("huggingface", Format("huggingface", "Hugging Face datasets, saved or on the hub", sniff, read, write))
