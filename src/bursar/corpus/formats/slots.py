"""Intents and slots in three files side by side: ``seq.in`` (words), ``seq.out`` (their tags), ``label`` (the intent).

A folder has the three files, or a folder with them for each of train, dev and test, as ATIS and SNIPS are published.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bursar.corpus.corpus import SPLITS, Corpus
from bursar.corpus.formats.format import FORMATS, FileReader, Format, blank_cells, numbered_lines, replacing, split_of
from bursar.corpus.formats.write_checks import WriteChecks
from bursar.corpus.words import join_tokens
from bursar.errors import DataError
from bursar.tasks import Classification, Tagging
from bursar.tasks.schemes import Span, spans_of_tags

WORDS, TAGS, INTENT = FILES = ("seq.in", "seq.out", "label")
TASKS = (Classification("intent"), Tagging("slots"))


def sniff(path: Path) -> bool:
    """A folder with the three files, or with folders that have them."""
    return bool(_folders(path))


def _folders(path: Path) -> list[tuple[str, Path]]:
    if not path.is_dir():
        return []
    if any((path / name).is_file() for name in FILES):
        return [(split_of(path.name) or "train", path)]
    folders = [folder for folder in sorted(path.iterdir()) if any((folder / name).is_file() for name in FILES)]
    found = [(split, folder) for folder in folders if (split := split_of(folder.name))]
    return sorted(found, key=lambda pair: SPLITS.index(pair[0]))


def read(path: Path, schema: Mapping[str, Any] | None = None) -> Corpus:
    """Read a folder with the three files, or with one folder per split."""
    folders = _folders(path)
    if not folders:
        raise DataError(f"the folder does not hold {', '.join(FILES)}", path=path)
    reader = FileReader(schema)
    reader.at(path)
    for task in TASKS:
        reader.declare(task)
    for reader.split, folder in folders:
        for reader.line, words, tags, intent in _rows(folder):
            reader.path = folder / TAGS
            id, tokens, slots = _tagged(reader, words, tags)
            text, spans = join_tokens(tokens)
            reader.path = folder / INTENT
            labels = {"intent": intent.strip(" \t"), "slots": slots}
            reader.add(id, split=reader.split, text=text, words=spans, labels=labels)
    return reader.build()


def _tagged(reader: FileReader, words: str, tags: str) -> tuple[str, list[str], list[Span]]:
    id, tokens, tag_cells = reader.next_id(), blank_cells(words), blank_cells(tags)
    if not tokens or len(tokens) != len(tag_cells):
        raise reader.error(f"{len(tag_cells)} tags for {len(tokens)} words", item=id)
    with reader.locating(id):
        return id, tokens, spans_of_tags(tag_cells)


def _rows(folder: Path) -> Iterator[tuple[int, str, str, str]]:
    """The lines of the three files side by side; all must have the same number of lines, at least one."""
    columns = {name: [line for _, line in numbered_lines(folder / name)] for name in FILES}
    for lines in columns.values():
        while lines and not lines[-1].strip(" \t"):
            lines.pop()  # ignore blank lines at the end
    most = max(map(len, columns.values()))
    for name, lines in columns.items():
        if len(lines) < most or not most:
            message = f"the file ends here, and another of {', '.join(FILES)} has {most} lines" if most else "is empty"
            raise DataError(message, path=folder / name, line=len(lines) + 1)
    return zip(range(1, most + 1), *columns.values(), strict=True)


def write(corpus: Corpus, path: Path, lose: str | Collection[str] = ()) -> None:
    """Write a folder for each of train, dev and test, with the three files in it."""
    checks = WriteChecks(corpus, "slots", lose)
    checks.refuse("images", "pairs", "groups", "spacing")
    checks.tasks(TASKS, needed=("intent", "slots"))
    splits = checks.splits()
    checks.known_splits(splits)
    others = {split for split, _ in _folders(path)} - set(splits)
    if others:
        raise DataError("a split of another corpus is in this folder", path=path / min(others))
    with ExitStack() as stack:
        for split in splits:
            words, tags, intents = (stack.enter_context(replacing(path / split / name)) for name in FILES)
            for item in checks.items(split):
                checks.numbered(item)
                if not item.words:
                    raise checks.error("cannot hold an item without words", item)
                words.write(" ".join(checks.cell(item, word) for word in item.words) + "\n")
                tags.write(" ".join(checks.cell(item, tag) for tag in checks.tags(item, "slots")) + "\n")
                intent = checks.label(item, "intent")
                if intent != intent.strip(" \t"):
                    raise checks.error(f"cannot keep the blanks around the intent {intent!r}", item)
                intents.write(checks.cell(item, intent, "") + "\n")


FORMATS.add("slots", Format("slots", "folders with seq.in, seq.out and label", sniff, read, write))
