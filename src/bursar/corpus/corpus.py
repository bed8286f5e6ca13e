"""The corpus: items with stable ids and splits, and their known labels, stored in columns."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bursar.corpus.metadata import Metadata
from bursar.corpus.words import Texts, align_words
from bursar.errors import DataError, SchemaError
from bursar.ragged import BoolArray, IntArray, Ragged, Strings
from bursar.registry import suggestion
from bursar.tasks import Task

Schema = Mapping[str, Any] | None  # of readers: descriptions of tasks, by name
Names = str | Iterable[str]  # of readers and writers: a list of names, or a string with commas
SPLITS = ("train", "dev", "test")
Column = TypeVar("Column", Texts, Strings)


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of many items for one task. An item without a label has no rows and is not ``present``."""

    present: BoolArray  # (items,)
    rows: Ragged

    def __len__(self) -> int:
        return len(self.present)

    def take(self, items: IntArray) -> Labels:
        return Labels(self.present[items], self.rows.take(items))

    def take_or_none(self, items: IntArray) -> Labels:
        """The labels at these positions; −1 stands for an item without a label."""
        nothing = Labels(np.zeros(1, dtype=bool), Ragged(self.rows.values[:0], np.zeros(2, np.int64)))
        return Labels.concatenate([self, nothing]).take(np.where(np.asarray(items) < 0, len(self), items))

    @staticmethod
    def none(items: int, task: Task) -> Labels:
        empty = Ragged(np.zeros((0, task.width), task.dtype), np.zeros(items + 1, np.int64))
        return Labels(np.zeros(items, dtype=bool), empty)

    @staticmethod
    def of(items: Corpus, task: str, *values: Any) -> Labels:
        """From JSON labels, one for each item of a corpus."""
        kind = items.schema[task]
        rows = [kind.encode(value, int(words)) for value, words in zip(values, items.words, strict=True)]
        return Labels(np.ones(len(items), dtype=bool), Ragged.of(rows, kind.width, kind.dtype))

    @staticmethod
    def concatenate(parts: Sequence[Labels]) -> Labels:
        return Labels(np.concatenate([p.present for p in parts]), Ragged.concatenate([p.rows for p in parts]))


@dataclass(frozen=True, eq=False)
class Item:
    """One item for display, read from the columns on request."""

    id: str
    split: str
    text: str | None
    spans: list[tuple[int, int]]  # start and end of each word, in characters
    words: list[str]
    pair: str | None
    image: NDArray[Any] | None
    group: str | None
    labels: dict[str, Any]
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def is_its_words(self) -> bool:
        """Whether the text is its words and the spaces between them."""
        text = self.text or ""
        spans = align_words(text, self.words)
        return spans is not None and [text[a:b] for a, b in spans] == self.words


@dataclass(frozen=True, eq=False)
class Corpus:
    """Items and their labels in columns. A corpus is immutable: every operation returns a new one.

    >>> from bursar.corpus import CorpusBuilder
    >>> builder = CorpusBuilder({"intent": {"kind": "classification"}})
    >>> builder.add("u1", text="wake me at seven", labels={"intent": "alarm"})
    >>> builder.add("u2", text="play some jazz")
    >>> corpus = builder.build()
    >>> len(corpus), corpus[0].words, corpus[1].labels
    (2, ['wake', 'me', 'at', 'seven'], {})
    >>> corpus.labels["intent"].present.tolist()
    [True, False]
    """

    ids: Strings
    split_codes: NDArray[np.int16]  # (items,) into ``splits``
    splits: tuple[str, ...]
    schema: Mapping[str, Task]
    labels: Mapping[str, Labels]
    texts: Texts | None = None
    pairs: Texts | None = None
    images: NDArray[Any] | None = None  # (items, height, width[, channels])
    groups: Strings | None = None  # the document, source or speaker an item belongs to
    metadata: Metadata | None = None  # other columns of the table that the items came from
    notes: tuple[str, ...] = ()  # what the reader found out about the file by itself
    _positions: dict[str, int] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Item]:
        return (self[item] for item in range(len(self)))

    def __getitem__(self, item: int) -> Item:
        text = self.texts.strings[item] if self.texts is not None else None
        spans = [(start, end) for start, end in self.texts.spans[item].tolist()] if self.texts is not None else []
        return Item(
            id=self.ids[item],
            split=self.splits[self.split_codes[item]],
            text=text,
            spans=spans,
            words=[text[start:end] for start, end in spans] if text is not None else [],
            pair=(self.pairs.strings[item] or None) if self.pairs is not None else None,
            image=self.images[item] if self.images is not None else None,
            group=self.groups[item] or None if self.groups is not None else None,
            labels={
                name: self.schema[name].value(column.rows[item])
                for name, column in self.labels.items()
                if column.present[item]
            },
            metadata={} if self.metadata is None else self.metadata.row(item),
        )

    # -- lookup --------------------------------------------------------------------------------------------------
    @cached_property
    def words(self) -> IntArray:
        """The number of words of each item, without those of its pair."""
        return self.texts.word_counts if self.texts is not None else np.zeros(len(self), dtype=np.int64)

    @cached_property
    def reading(self) -> IntArray:
        """The number of words to read in each item: its text's and its pair's."""
        return self.words + (self.pairs.word_counts if self.pairs is not None else 0)

    @cached_property
    def id_ranks(self) -> IntArray:
        """The rank of each item by id, for breaking ties."""
        ranks = np.empty(len(self), dtype=np.int64)
        ranks[np.argsort(np.array(self.ids.tolist(), dtype=object), kind="stable")] = np.arange(len(self))
        return ranks

    def by_id(self, items: IntArray) -> IntArray:
        """Positions in the order of their items' ids, so that draws depend on ids and seed alone."""
        return items[np.argsort(self.id_ranks[items])]

    def positions(self, ids: Iterable[str]) -> IntArray:
        """The positions of the items with these ids; an unknown id is an error."""
        if not self._positions:
            self._positions.update({id: at for at, id in enumerate(self.ids.tolist())})
        try:
            return np.array([self._positions[id] for id in ids], dtype=np.int64)
        except KeyError as missing:
            raise DataError("no such item in this corpus", item=str(missing.args[0])) from None

    def in_split(self, split: str) -> IntArray:
        """The positions of a split's items."""
        if split not in self.splits:
            raise DataError(f"there is no split {split!r}", fix=f"this corpus has {', '.join(self.splits)}")
        return np.flatnonzero(self.split_codes == self.splits.index(split))

    def split_counts(self) -> dict[str, int]:
        counts = np.bincount(self.split_codes, minlength=len(self.splits)).tolist()
        return dict(zip(self.splits, counts, strict=True))

    # -- derived corpora --------------------------------------------------------------------------------------------
    def take(self, items: IntArray) -> Corpus:
        """The items at these positions, in this order."""
        items = np.asarray(items, dtype=np.int64)
        columns = [(name, getattr(self, name)) for name in ("texts", "pairs", "groups", "metadata")]
        taken: dict[str, Any] = {name: column.take(items) for name, column in columns if column is not None}
        return replace(
            self,
            ids=self.ids.take(items),
            split_codes=self.split_codes[items],
            labels={name: column.take(items) for name, column in self.labels.items()},
            images=None if self.images is None else self.images[items],
            _positions={},
            **taken,
        )

    def split(self, name: str) -> Corpus:
        return self.take(self.in_split(name))

    def with_tasks(self, names: Sequence[str]) -> Corpus:
        """The same items with these tasks only."""
        for name in names:
            if name not in self.schema:
                known = f"{suggestion(name, self.schema)}This corpus has {', '.join(self.schema) or 'no tasks'}"
                raise SchemaError(f"there is no task {name!r}", fix=known)
        return self.with_labels({name: self.labels[name] for name in names})

    def with_renamed_tasks(self, names: Mapping[str, str]) -> Corpus:
        """The same items with some tasks under other names, such as ``{"slots": "entities"}``."""
        self.with_tasks(list(names))  # raises for an unknown task
        new = {name: names.get(name, name) for name in self.schema}
        if len(set(new.values())) < len(new):
            raise SchemaError(f"two tasks would have one name: {', '.join(new.values())}")
        return replace(
            self,
            schema={new[name]: replace(task, name=new[name]) for name, task in self.schema.items()},
            labels={new[name]: column for name, column in self.labels.items()},
        )

    def with_labels(self, labels: Mapping[str, Labels]) -> Corpus:
        """The same items with these labels and no others."""
        schema = {name: self.schema[name] for name in labels}
        return replace(self, labels=dict(labels), schema=schema, _positions=self._positions)

    def digest(self) -> str:
        """A digest of the contents: equal corpora have equal digests."""
        digest = hashlib.blake2b(digest_size=12)
        arrays = [self.ids.data, self.ids.offsets, self.split_codes]
        for texts in (self.texts, self.pairs):
            if texts is not None:
                arrays += [texts.strings.data, texts.strings.offsets, texts.spans.values]
        for labels in self.labels.values():
            arrays += [labels.present, labels.rows.values, labels.rows.offsets]
        arrays += [] if self.images is None else [self.images]
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(repr([task.describe() for task in self.schema.values()]).encode())
        return digest.hexdigest()

    def unlabelled(self) -> Corpus:
        """The same items without labels, as a strategy may see a pool."""
        return self.with_labels({name: Labels.none(len(self), task) for name, task in self.schema.items()})


def concatenate(parts: Sequence[Corpus]) -> Corpus:
    """Concatenate corpora: tasks are merged; an item has no labels for tasks that its part did not have."""
    from bursar.corpus.builder import merge_schemas, recode

    if len(parts) == 1:
        return parts[0]
    schema = merge_schemas([part.schema for part in parts])
    splits = tuple(dict.fromkeys(name for part in parts for name in part.splits))
    shapes = {None if part.images is None else part.images.shape[1:] for part in parts}
    if len(shapes) > 1:
        raise DataError("images of different sizes, or images and texts, cannot be in one corpus")

    def column(part: Corpus, name: str) -> Labels:
        if name not in part.schema:
            return Labels.none(len(part), schema[name])
        return recode(part.labels[name], part.schema[name], schema[name])

    codes = [np.array([splits.index(name) for name in part.splits], dtype=np.int16)[part.split_codes] for part in parts]
    images = [part.images for part in parts if part.images is not None]
    merged = Corpus(
        ids=Strings.concatenate([part.ids for part in parts]),
        split_codes=np.concatenate(codes),
        splits=splits,
        schema=schema,
        labels={name: Labels.concatenate([column(part, name) for part in parts]) for name in schema},
        texts=_joined(Texts, [(part.texts, len(part)) for part in parts]),
        pairs=_joined(Texts, [(part.pairs, len(part)) for part in parts]),
        images=np.concatenate(images) if images else None,
        groups=_joined(Strings, [(part.groups, len(part)) for part in parts]),
        metadata=Metadata.concatenate([(part.metadata, len(part)) for part in parts]),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )
    doubles = [id for id, count in Counter(merged.ids).items() if count > 1]
    if doubles:
        raise DataError("this id is in two of the files", item=doubles[0], fix="give every item a unique id")
    return merged


def _joined(kind: type[Column], parts: Sequence[tuple[Column | None, int]]) -> Column | None:
    """A column of all parts, each with its number of items; empty strings for a part without it."""
    if all(column is None for column, _ in parts):
        return None
    return kind.concatenate([kind.of([""] * count) if column is None else column for column, count in parts])
