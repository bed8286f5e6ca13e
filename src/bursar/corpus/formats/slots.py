"""Intents and slots in three files side by side: ``seq.in`` (words), ``seq.out`` (their tags), ``label`` (the intent).

A folder has the three files, or a folder with them for each of train, dev and test, as ATIS and SNIPS are published.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bursar.corpus.builder import CorpusBuilder
from bursar.corpus.corpus import Corpus
from bursar.corpus.formats.format import (
    FORMATS,
    SPLIT_NAMES,
    Format,
    IdCounter,
    blank_cells,
    declare,
    numbered_lines,
    replacing,
    split_of,
)
from bursar.corpus.formats.write_checks import WriteChecks
from bursar.corpus.words import join_tokens
from bursar.errors import DataError, LabelError
from bursar.tasks import Classification, Tagging
from bursar.tasks.schemes import spans_of_tags

WORDS, TAGS, INTENT = FILES = ("seq.in", "seq.out", "label")
TASKS = (Classification("intent"), Tagging("slots"))


def sniff(path: Path) -> bool:
    """A folder with the three files, or with folders that have them."""
    return bool(_folders(path))


def _folders(path: Path) -> list[tuple[str, Path]]:
    """The folders with any of the three files, by split."""
    if not path.is_dir():
        return []
    if any((path / name).is_file() for name in FILES):
        return [(split_of(path.name) or "train", path)]
    order = [*dict.fromkeys(SPLIT_NAMES.values())]
    found = [
        (split, folder)
        for folder in sorted(path.iterdir())
        if (split := split_of(folder.name)) and any((folder / name).is_file() for name in FILES)
    ]
    return sorted(found, key=lambda pair: order.index(pair[0]))


def read(path: Path, schema: Mapping[str, Any] | None = None) -> Corpus:
    """Read a folder with the three files, or with one folder per split."""
    folders = _folders(path)
    if not folders:
        raise DataError(f"the folder does not hold {', '.join(FILES)}", path=path)
    builder = CorpusBuilder(schema)
    builder.at(path)
    for task in TASKS:
        declare(builder, task)
    counter = IdCounter()
    for split, folder in folders:
        for number, words, tags, intent in _rows(folder):
            _add(builder, counter.next(split), split, folder, number, words, tags, intent)
    return builder.build()


def _rows(folder: Path) -> Iterator[tuple[int, str, str, str]]:
    """The lines of the three files side by side; all must have the same number of lines, at least one."""
    columns = []
    for name in FILES:
        lines = [line for _, line in numbered_lines(folder / name)]
        while lines and not lines[-1].strip(" \t"):
            lines.pop()  # ignore blank lines at the end
        columns.append(lines)
    most = max(len(lines) for lines in columns)
    for name, lines in zip(FILES, columns, strict=True):
        if len(lines) < most or not most:
            message = f"the file ends here, and another of {', '.join(FILES)} has {most} lines" if most else "is empty"
            raise DataError(message, path=folder / name, line=len(lines) + 1)
    return zip(range(1, most + 1), *columns, strict=True)


def _add(
    builder: CorpusBuilder, id: str, split: str, folder: Path, number: int, words: str, tags: str, intent: str
) -> None:
    tokens, tag_cells = blank_cells(words), blank_cells(tags)
    builder.at(folder / TAGS, number)
    if not tokens or len(tokens) != len(tag_cells):
        raise builder.error(f"{len(tag_cells)} tags for {len(tokens)} words", item=id)
    try:
        slots = spans_of_tags(tag_cells)
    except LabelError as wrong:
        raise builder.error(wrong.message, item=id, fix=wrong.fix) from None
    text, spans = join_tokens(tokens)
    builder.at(folder / INTENT, number)
    builder.add(id, split=split, text=text, words=spans, labels={"intent": intent.strip(" \t"), "slots": slots})


def write(corpus: Corpus, path: Path, lose: str | Collection[str] = ()) -> None:
    """Write a folder for each of train, dev and test, with the three files in it."""
    checks = WriteChecks(corpus, "slots", lose)
    checks.texts_only()
    checks.no_pairs()
    checks.no_groups()
    checks.single_blanks()
    checks.tasks(TASKS, needed=("intent", "slots"))
    splits = [split for split, count in corpus.split_counts().items() if count]
    checks.known_splits(splits)
    others = {split for split, _ in _folders(path)} - set(splits)
    if others:
        raise DataError("a split of another corpus is in this folder", path=path / min(others))
    counter = IdCounter()
    with ExitStack() as stack:
        for split in splits:
            words, tags, intents = (stack.enter_context(replacing(path / split / name)) for name in FILES)
            for item in checks.items(split):
                checks.id(item, counter.next(split))
                if not item.words:
                    raise checks.error("cannot hold an item without words", item)
                words.write(" ".join(checks.cell(item, word) for word in item.words) + "\n")
                tags.write(" ".join(checks.cell(item, tag) for tag in checks.tags(item, "slots")) + "\n")
                intent = checks.label(item, "intent")
                if intent != intent.strip(" \t"):
                    raise checks.error(f"cannot keep the blanks around the intent {intent!r}", item)
                intents.write(checks.cell(item, intent, "") + "\n")


FORMATS.add("slots", Format("slots", "folders with seq.in, seq.out and label", sniff, read, write))
