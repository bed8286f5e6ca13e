"""Checks of what a format cannot store. Writers use them, so that nothing is ever dropped silently.

Most formats store less than a corpus: no ids, no documents, words separated by single spaces. A writer rejects what its
format cannot store and names the item. The user lists what may be lost in ``lose``:

- ``ids``: items are numbered when they are read again
- ``groups``: groups are numbered, or not stored at all
- ``spacing``: the text becomes its words separated by single spaces
- ``words``: words are found again by rule
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from bursar.corpus.builder import without_labels
from bursar.corpus.corpus import SPLITS, Corpus, Item, Names
from bursar.corpus.formats.format import IdCounter, parse_names, replacing, split_files, split_of
from bursar.corpus.words import find_words
from bursar.errors import ConfigError, DataError, LabelError
from bursar.tasks import Task
from bursar.tasks.schemes import spans_of_tags, tags_of_spans

LOSSES = ("ids", "groups", "spacing", "words")
LACKS = {  # what a format may lack: the message and the fix for a corpus that has it
    "images": ("holds texts, not images", "write npz, idx or jsonl"),
    "pairs": ("holds no second text", None),
    "wordless": ("cannot hold a sentence without words", None),
    "groups": ("holds no groups", "lose = groups"),
    "spacing": ("stores words separated by single spaces, and this text has other spaces", "lose = spacing"),
    "words": ("does not store words, and these are not the ones that the rule finds", "lose = words"),
}


class UnknownTaskError(DataError):
    """A format has no task of that name; ``places`` are the tasks that it has."""

    def __init__(self, message: str, places: Mapping[str, Task], fix: str) -> None:
        super().__init__(message, fix=fix)
        self.places = dict(places)


def suggest_task_names(tasks: Mapping[str, Task], places: Mapping[str, Task]) -> dict[str, str]:
    """New names for tasks that a format does not know, where only one of its tasks is of the same kind."""
    unknown = {name: without_labels(task) for name, task in tasks.items() if name not in places}
    free = {name: without_labels(place) for name, place in places.items() if name not in tasks}
    found = {}
    for name, task in unknown.items():
        fitting = [place for place, other in free.items() if other == task]
        if len(fitting) == 1 and [*unknown.values()].count(task) == 1:
            found[name] = fitting[0]
    return found


def stated(item: Item, *, words: bool = True) -> dict[str, Any]:
    """What a record says of an item beside its text: its split, its group, and its words if no rule finds them."""
    group = {} if item.group is None else {"group": item.group}
    spans = {"words": item.spans} if words and item.spans != find_words(item.text or "") else {}
    return {"split": item.split, **group, **spans}


class WriteChecks:
    """A corpus to be written in a format: each method rejects one thing that the format cannot store."""

    def __init__(self, corpus: Corpus, format: str, lose: Names = ()) -> None:
        self.lose = frozenset(parse_names(lose))
        for loss in self.lose:
            if loss not in LOSSES:
                raise ConfigError(f"there is no loss {loss!r}", fix=f"lose = some of {', '.join(LOSSES)}")
        if not len(corpus):
            raise DataError(f"{format}: there is no item to write")
        self.corpus = corpus
        self.format = format
        self.counter = IdCounter()

    def error(self, message: str, item: Item | str | None = None, fix: str | None = None) -> DataError:
        return DataError(f"{self.format} {message}", item=item.id if isinstance(item, Item) else item, fix=fix)

    # -- items ------------------------------------------------------------------------------------------------------
    def refuse(self, *lacks: str) -> None:
        """Refuse a corpus with something that the format lacks: a key of ``LACKS``."""
        for what in lacks:
            at = None if what in self.lose else next(self._having(what), None)
            if at is not None:
                message, fix = LACKS[what]
                raise self.error(message, self.corpus.ids[at], fix=fix)

    def _having(self, what: str) -> Iterator[int]:
        """The positions of items that have it."""
        texts, pairs, groups = self.corpus.texts, self.corpus.pairs, self.corpus.groups
        match what:
            case "images" if texts is None:
                yield 0
            case "pairs" if pairs is not None:
                yield from np.flatnonzero(np.diff(pairs.strings.offsets)).tolist()
            case "groups" if groups is not None:
                yield from np.flatnonzero(np.diff(groups.offsets)).tolist()
            case "wordless" if texts is not None:
                yield from np.flatnonzero(texts.word_counts == 0).tolist()
            case "spacing" if texts is not None:
                yield from (at for at, words in enumerate(texts.all_words()) if " ".join(words) != texts.strings[at])
            case "words":
                yield from self.other_words()

    def other_words(self) -> Iterator[int]:
        """The positions of items whose words are not those found by rule."""
        texts = self.corpus.texts
        for at, text in enumerate(texts.strings.tolist() if texts is not None else ()):
            if texts is not None and [*map(tuple, texts.spans[at].tolist())] != find_words(text):
                yield at

    def id(self, item: Item, expected: str) -> None:
        """The id that the item will get when it is read again must be its own."""
        if item.id != expected and "ids" not in self.lose:
            raise self.error(f"holds no ids: it would be read as {expected!r}", item, fix="lose = ids")

    def numbered(self, item: Item, prefix: str | None = None) -> None:
        """The id of an item must be the next number of its split (or of a prefix), as a reader will count."""
        self.id(item, self.counter.next(prefix or item.split))

    def group(self, item: Item, expected: str | None) -> None:
        if item.group != expected and "groups" not in self.lose:
            message = f"cannot keep group {item.group!r}: it would be read as {expected!r}"
            raise self.error(message, item, fix="lose = groups")

    def cell(self, item: Item, value: str, forbidden: str = " ") -> str:
        """Check a value between separators: not empty, one line, none of ``forbidden`` in it."""
        if not value or value[0] == "\ufeff" or any(mark in value for mark in f"\t\n\r{forbidden}"):
            raise self.error(f"has no way to write {value!r}", item)
        return value

    # -- labels -----------------------------------------------------------------------------------------------------
    def tasks(self, known: Iterable[Task], needed: Collection[str] = ()) -> None:
        """Every task must be one that the format knows, apart from labels; those ``needed`` must exist."""
        places = {task.name: task for task in known}
        for name, task in self.corpus.schema.items():
            if name not in places:
                fix = f"rename it to {' or '.join(places)}, or leave it out"
                raise UnknownTaskError(f"{self.format} has no place for task {name!r}", places, fix)
            if without_labels(task) != without_labels(places[name]):
                raise self.error(f"cannot hold task {name!r} as it is: {without_labels(task)}")
        for name in needed:
            if name not in self.corpus.schema:
                raise self.error(f"needs a task {name!r}, and this corpus has none")

    def label(self, item: Item, task: str) -> Any:
        """The label of an item, for formats in which every item has one."""
        if task not in item.labels:
            raise self.error(f"cannot leave task {task!r} unlabelled", item, fix="corpus.take(…) the labelled items")
        return item.labels[task]

    def tags(self, item: Item, task: str, scheme: str = "IOB2") -> list[str]:
        """The spans of an item as tags that read back as the same spans."""
        spans = sorted((start, end, kind) for start, end, kind in self.label(item, task))
        try:
            tags = tags_of_spans(spans, len(item.words), scheme)
        except LabelError as wrong:
            raise self.error(f"cannot hold task {task!r}: {wrong.message}", item, fix=wrong.fix) from None
        if spans_of_tags(tags) != spans:
            message = f"in scheme {scheme} cannot separate adjacent spans of one type"
            raise self.error(message, item, fix="use IOB1, IOB2 or BIOES")
        return tags

    # -- files ------------------------------------------------------------------------------------------------------
    @contextmanager
    def writing(
        self, path: Path, suffixes: Sequence[str], names: Mapping[str, str] | None = None
    ) -> Iterator[Iterator[tuple[str, IO[str]]]]:
        """Open the file of each split that has items; the files replace older ones together, once all are complete.

        A path with a suffix is one file for one split; any other is a folder with one file per split, named with the
        first of the ``suffixes`` of the format, and with its name for the split.
        """
        splits = self.splits()
        if path.suffix and not path.is_dir():
            if splits != [split_of(path.name) or "train"]:
                what = f"is read as split {split_of(path.name) or 'train'!r}, and this corpus has {', '.join(splits)}"
                raise self.error(f"file {path.name} {what}", fix="write to a folder")
            files = {splits[0]: path}
        else:
            self.known_splits(splits)
            splits.sort(key=SPLITS.index)
            files = {split: path / f"{(names or {}).get(split, split)}{suffixes[0]}" for split in splits}
            others = {file for _, file in split_files(path, suffixes)} if path.is_dir() else set()
            if others := others - set(files.values()):  # they would be read as part of this corpus
                fix = "use an empty folder"
                raise DataError("a file of another corpus is in this folder", path=min(others), fix=fix)
        with ExitStack() as stack:
            yield ((split, stack.enter_context(replacing(file))) for split, file in files.items())

    def splits(self) -> list[str]:
        return [split for split, count in self.corpus.split_counts().items() if count]

    def known_splits(self, splits: Iterable[str]) -> None:
        for split in splits:
            if split not in SPLITS:
                item = self.corpus.ids[int(self.corpus.in_split(split)[0])]
                raise self.error(f"has files for train, dev and test, not for a split {split!r}", item)

    def items(self, split: str | None = None) -> Iterator[Item]:
        places = range(len(self.corpus)) if split is None else self.corpus.in_split(split).tolist()
        return (self.corpus[at] for at in places)
