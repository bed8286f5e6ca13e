"""Build a corpus item by item, in columns. Every reader uses this."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.corpus.corpus import Corpus, Labels
from bursar.corpus.metadata import NOTHING, Metadata, encode_cell
from bursar.corpus.words import Texts, find_words
from bursar.errors import DataError, LabelError, SchemaError
from bursar.ragged import IntArray, Ragged, Strings, offsets_of
from bursar.tasks import Task, Vocabulary, make_task
from bursar.tasks.task import Row

MOST_SPLITS = 1000


class _Column:
    """One task's labels while they are being read."""

    def __init__(self, task: Task) -> None:
        self.task = task
        # A list of labels that is given is complete; otherwise labels are collected as they come.
        self.vocabulary = {f: Vocabulary(getattr(task, f), closed=bool(getattr(task, f))) for f in task.vocabularies}
        self.values = array("d" if task.dtype is np.float64 else "i")
        self.counts = array("i")
        self.present = bytearray()

    def add(self, rows: Sequence[Row] | None) -> None:
        self.present.append(rows is not None)
        self.counts.append(len(rows or ()))
        self.values.fromlist([*chain.from_iterable(rows or ())])  # type: ignore[list-item]

    def build(self) -> tuple[Task, Labels]:
        options = {f.name: getattr(self.task, f.name) for f in fields(self.task)}
        task = type(self.task)(**options | {f: v.labels for f, v in self.vocabulary.items()})
        values = np.array(self.values, dtype=self.task.dtype).reshape(-1, task.width)
        rows = Ragged(values, offsets_of(np.array(self.counts)))
        return task, Labels(np.frombuffer(bytes(self.present), dtype=np.bool_), rows)


class CorpusBuilder:
    """Collects items; ``build()`` returns the corpus. Errors name the file and line last set with ``at``.

    A schema maps task names to descriptions such as ``{"kind": "tagging", "labels": [...]}``. Listed labels are the
    only ones allowed; if none are listed, labels are collected as they come.

    >>> builder = CorpusBuilder({"intent": {"kind": "classification", "labels": ["alarm", "music"]}})
    >>> builder.add("u1", text="wake me at seven", labels={"intent": "alarm"})
    >>> builder.add("u2", split="test", text="play some jazz")
    >>> builder.build().split_counts()
    {'train': 1, 'test': 1}
    """

    def __init__(self, schema: Mapping[str, Mapping[str, Any] | Task] | None = None) -> None:
        self._columns: dict[str, _Column] = {}
        self._ids: dict[str, None] = {}
        self._splits: dict[str, int] = {}
        self._split_codes, self._spans, self._span_counts = array("h"), array("i"), array("i")
        self._texts: list[str] = []
        self._pairs: list[str] = []
        self._groups: list[str] = []
        self._images: list[NDArray[Any]] = []
        self._metadata: dict[str, list[str]] = {}
        self.columns: tuple[str, ...] = ()  # of the table that is read, in order
        self.text_column: str | None = None
        self.label_columns: tuple[str, ...] = ()
        self.notes: list[str] = []
        self.split = "train"  # of items that do not name theirs
        self.path: Path | None = None
        self.line: int | None = None
        for name, task in (schema or {}).items():
            self.add_task(name, task)

    def at(self, path: Path, line: int | None = None) -> None:
        self.path, self.line = path, line

    def error(self, message: str, *, item: str | None = None, fix: str | None = None) -> DataError:
        return DataError(message, path=self.path, line=self.line, item=item, fix=fix)

    @contextmanager
    def locating(self, item: str | None = None) -> Iterator[None]:
        """Add the position and the item to the errors of labels and tasks."""
        try:
            yield
        except (LabelError, SchemaError) as wrong:
            raise self.error(wrong.message, item=item, fix=wrong.fix) from None

    def strings(self, item: str, split: Any, **values: Any) -> dict[str, Any]:
        """The split and other values of an item, which must be strings or missing."""
        for key, value in (("split", split), *values.items()):
            if not isinstance(value, str | None):
                raise self.error(f"{key} must be a string, not {value!r}", item=item)
        return values | {"split": split or self.split}

    def add_task(self, name: str, task: Mapping[str, Any] | Task) -> None:
        """Add a task. Items added before it have no label for it."""
        if name in self._columns:
            return
        if not isinstance(task, Task):
            with self.locating():
                task = make_task(name, task)
        column = _Column(task)
        column.present.extend(bytes(len(self._ids)))
        column.counts.extend([0] * len(self._ids))
        self._columns[name] = column

    def declare(self, task: Task) -> None:
        """Add a task of a format. If the schema has it already, it must be the same apart from labels."""
        stated = self.task(task.name)
        if stated is None:
            self.add_task(task.name, task)
        elif without_labels(stated) != without_labels(task):
            raise self.error(f"task {task.name!r} is {without_labels(task)} here, the schema says {stated.describe()}")

    def add(
        self,
        id: str,
        *,
        split: str = "train",
        text: str | None = None,
        words: Sequence[Sequence[int]] | None = None,
        pair: str | None = None,
        image: NDArray[Any] | None = None,
        group: str | None = None,
        labels: Mapping[str, Any] | None = None,
        rows: Mapping[str, Sequence[Row]] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Add an item. ``labels`` are JSON values, which are checked; ``rows`` are label rows encoded by the reader."""
        if not id:
            raise self.error("an id must not be empty")
        if id in self._ids:
            raise self.error("this id was used before", item=id, fix="give every item a unique id")
        if "\x00" in id or "\n" in id:
            raise self.error("an id must be one line of text", item=id)
        spans: Sequence[Sequence[int]] = ()
        if text is not None:
            spans = find_words(text) if words is None else words
        coded = dict(rows) if rows else {}
        for name, value in (labels or {}).items():
            column = self._columns.get(name)
            if column is None:
                raise self.error(f"there is no task {name!r} in the schema", item=id, fix=f"known: {self.tasks}")
            try:
                coded[name] = column.task.rows(value, len(spans), column.vocabulary)
            except LabelError as wrong:
                raise self.error(f"task {name!r}: {wrong.message}", item=id, fix=wrong.fix) from None
        if split not in self._splits and len(self._splits) >= MOST_SPLITS:
            raise self.error(f"the items have more than {MOST_SPLITS} splits", item=id, fix="use few, such as train")
        self._ids[id] = None
        self._split_codes.append(self._splits.setdefault(split, len(self._splits)))
        self._texts.append(text if text is not None else "")
        self._spans.fromlist([*chain.from_iterable(spans)])
        self._span_counts.append(len(spans))
        self._pairs.append(pair or "")
        self._groups.append(group or "")
        if image is not None:
            self._images.append(image)
        for name, column in self._columns.items():
            column.add(coded.get(name))
        if metadata or self._metadata:
            self._add_metadata(metadata or {})

    def _add_metadata(self, cells: Mapping[str, Any]) -> None:
        for name in cells:
            if name not in self._metadata:
                self._metadata[name] = [NOTHING] * (len(self._ids) - 1)
        for name, column in self._metadata.items():
            column.append(encode_cell(cells.get(name)))

    @property
    def tasks(self) -> list[str]:
        return list(self._columns)

    def __contains__(self, task: str) -> bool:
        return task in self._columns

    def task(self, name: str) -> Task | None:
        """The task of this name as it was added; ``None`` if there is none."""
        column = self._columns.get(name)
        return None if column is None else column.task

    def code(self, task: str, label: str, field: str = "labels") -> int:
        """The code of a label, for readers that encode rows themselves."""
        return self._columns[task].vocabulary[field].code(label)

    def __len__(self) -> int:
        return len(self._ids)

    def build(self, images: NDArray[Any] | None = None) -> Corpus:
        """Make the corpus. Images may be given as one array instead of item by item."""
        try:
            return self._build(images)
        except UnicodeEncodeError as wrong:
            raise self.error(f"{wrong.object[:60]!r} holds half a surrogate pair, which is no character") from None

    def _build(self, images: NDArray[Any] | None) -> Corpus:
        if images is None and self._images:
            if len({image.shape for image in self._images}) > 1 or len(self._images) != len(self._ids):
                raise self.error("every item must have an image, and all images must have one size")
            images = np.stack(self._images)
        built = {name: column.build() for name, column in self._columns.items()}
        spans = Ragged(np.array(self._spans, np.int32).reshape(-1, 2), offsets_of(np.array(self._span_counts)))
        order = tuple(dict.fromkeys([*self.columns, *self._metadata]))
        cells = {name: Strings.of(column) for name, column in self._metadata.items()}
        return Corpus(
            ids=Strings.of(self._ids),
            split_codes=np.array(self._split_codes, dtype=np.int16),
            splits=tuple(self._splits),
            schema={name: task for name, (task, _) in built.items()},
            labels={name: labels for name, (_, labels) in built.items()},
            texts=Texts(Strings.of(self._texts), spans) if images is None else None,
            pairs=Texts.of(self._pairs) if any(self._pairs) else None,
            images=images,
            groups=Strings.of(self._groups) if any(self._groups) else None,
            metadata=Metadata(order, cells, self.text_column, self.label_columns) if order else None,
            notes=tuple(self.notes),
        )


def without_labels(task: Task) -> dict[str, Any]:
    """The kind and options of a task, without labels."""
    return {key: value for key, value in task.describe().items() if key not in task.vocabularies}


def merge_schemas(schemas: Sequence[Mapping[str, Task]]) -> dict[str, Task]:
    """Merge tasks of the same name into one with the labels of all; their kinds and options must agree."""
    merged: dict[str, Task] = {}
    for schema in schemas:
        for name, task in schema.items():
            if name not in merged:
                merged[name] = task
                continue
            mine, yours = merged[name].describe(), task.describe()
            for f in task.vocabularies:
                mine[f] = yours[f] = [*mine[f], *(label for label in yours[f] if label not in set(mine[f]))]
            if mine != yours:
                raise SchemaError(f"task {name!r} is not the same in all parts: {mine} against {yours}")
            merged[name] = make_task(name, mine)
    return merged


def recode(labels: Labels, old: Task, new: Task) -> Labels:
    """Convert labels to the codes of another task's label lists; −1 for labels that it lacks."""
    values = labels.rows.values
    for field, columns in old.code_columns.items():
        if getattr(old, field) == getattr(new, field)[: len(getattr(old, field))]:
            continue
        place = {label: code for code, label in enumerate(getattr(new, field))}
        mapping: IntArray = np.array([place.get(label, -1) for label in getattr(old, field)], dtype=np.int64)
        values = values.copy()
        for column in columns:
            values[:, column] = mapping[values[:, column]]
    return Labels(labels.present, Ragged(values, labels.rows.offsets))
