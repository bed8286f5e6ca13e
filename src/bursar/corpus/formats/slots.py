"""Sentences with an intent and a tag for every word: in three files side by side, or as ``word:TAG`` lines.

**slots**: ``seq.in`` (words), ``seq.out`` (their tags) and ``label`` (the intent), as ATIS and SNIPS are published. A
folder has the three files, or a folder with them for each of train, dev and test.

**wordtag**: one sentence per line, with an optional label at the end; ``<NULL>`` means that there is none. The tag
follows the last colon of a word.
```
wake:O me:O at:O seven:B-time <=> alarm
play:O jazz:B-genre <=> <NULL>
```
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bursar.corpus.corpus import SPLITS, Corpus, Names, Schema
from bursar.corpus.formats.format import (
    FORMATS,
    FileReader,
    Format,
    blank_cells,
    first_lines,
    numbered_lines,
    read_files,
    replacing,
    split_of,
)
from bursar.corpus.formats.write_checks import WriteChecks
from bursar.corpus.words import join_tokens
from bursar.errors import DataError
from bursar.tasks import Classification, Tagging
from bursar.tasks.schemes import spans_of_tags

WORDS, TAGS, LABEL = FILES = ("seq.in", "seq.out", "label")
INTENT, SLOTS, ENTITIES = Classification("intent"), Tagging("slots"), Tagging("entities")
SUFFIXES = ("", ".txt", ".wordtag")
ENDING, NO_LABEL = " <=> ", "<NULL>"
# The prefix is required: otherwise any word with a colon would have a tag.
CELL = re.compile(r"(.+):(O|[BIESLU]-[^:]+)", re.DOTALL)


# -- three files side by side ------------------------------------------------------------------------------------------
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


def read(path: Path, schema: Schema = None) -> Corpus:
    """Read a folder with the three files, or with one folder per split."""
    folders = _folders(path)
    if not folders:
        raise DataError(f"the folder does not hold {', '.join(FILES)}", path=path)
    reader = FileReader(schema)
    reader.at(path)
    for task in (INTENT, SLOTS):
        reader.declare(task)
    for reader.split, folder in folders:
        for reader.line, words, tags, intent in _rows(folder):
            reader.path = folder / TAGS
            id, tokens, tag_cells = reader.next_id(), blank_cells(words), blank_cells(tags)
            if not tokens or len(tokens) != len(tag_cells):
                raise reader.error(f"{len(tag_cells)} tags for {len(tokens)} words", item=id)
            with reader.locating(id):
                slots = spans_of_tags(tag_cells)
            text, spans = join_tokens(tokens)
            reader.path = folder / LABEL
            labels = {"intent": intent.strip(" \t"), "slots": slots}
            reader.add(id, split=reader.split, text=text, words=spans, labels=labels)
    return reader.build()


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


def write(corpus: Corpus, path: Path, lose: Names = ()) -> None:
    """Write a folder for each of train, dev and test, with the three files in it."""
    checks = WriteChecks(corpus, "slots", lose)
    checks.refuse("images", "pairs", "groups", "spacing", "wordless")
    checks.tasks([INTENT, SLOTS], needed=("intent", "slots"))
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
                words.write(" ".join(checks.cell(item, word) for word in item.words) + "\n")
                tags.write(" ".join(checks.cell(item, tag) for tag in checks.tags(item, "slots")) + "\n")
                intent = checks.label(item, "intent")
                if intent != intent.strip(" \t"):
                    raise checks.error(f"cannot keep the blanks around the intent {intent!r}", item)
                intents.write(checks.cell(item, intent, "") + "\n")


FORMATS.add("slots", Format("slots", "folders with seq.in, seq.out and label", sniff, read, write))


# -- word:TAG lines ----------------------------------------------------------------------------------------------------
def sniff_lines(path: Path) -> bool:
    """Lines on which every word has a tag."""
    lines = [line for line in first_lines(path, SUFFIXES) if line.strip(" \t")]
    cells = (cell for line in lines for cell in blank_cells(line.partition(ENDING)[0]))
    return bool(lines) and all(CELL.fullmatch(cell) for cell in cells)


def read_lines(path: Path, schema: Schema = None) -> Corpus:
    """Read a file, or a folder with one file per split."""
    return read_files(path, SUFFIXES, _read_lines, schema)


def _read_lines(reader: FileReader) -> None:
    reader.declare(ENTITIES)
    for line in reader.lines():
        if not line.strip(" \t"):
            continue
        id = reader.next_id()
        body, ending, label = line.partition(ENDING)
        words, tags = [], []
        for cell in blank_cells(body):
            parts = CELL.fullmatch(cell)
            if parts is None:
                raise reader.error(f"{cell!r} is not a word, a colon and a tag", item=id, fix="such as seven:B-time")
            words.append(parts[1])
            tags.append(parts[2])
        if not words:
            raise reader.error("there is no word on the line", item=id)
        labels: dict[str, Any] = {"entities": spans_of_tags(tags)}
        label = label.strip(" \t")
        if ending and label != NO_LABEL:
            reader.declare(INTENT)
            labels["intent"] = label
        text, spans = join_tokens(words)
        reader.add(id, split=reader.split, text=text, words=spans, labels=labels)


def write_lines(corpus: Corpus, path: Path, lose: Names = ()) -> None:
    """Write a folder with the files train, valid and test, or one file."""
    checks = WriteChecks(corpus, "wordtag", lose)
    checks.refuse("images", "pairs", "groups", "spacing", "wordless")
    checks.tasks([ENTITIES, INTENT], needed=["entities"])
    with checks.writing(path, SUFFIXES, {"dev": "valid"}) as files:
        for split, file in files:
            for item in checks.items(split):
                checks.numbered(item)
                tags = [checks.cell(item, tag, " :") for tag in checks.tags(item, "entities")]
                cells = [f"{checks.cell(item, word)}:{tag}" for word, tag in zip(item.words, tags, strict=True)]
                label = item.labels.get("intent", NO_LABEL)
                if label != label.strip(" \t") or item.labels.get("intent") == NO_LABEL:
                    raise checks.error(f"cannot keep the intent {label!r}", item)
                file.write(" ".join(cells))
                file.write(f"{ENDING}{checks.cell(item, label, '')}\n" if "intent" in corpus.schema else "\n")


_SUMMARY = "word:TAG lines, optionally with a label"
FORMATS.add("wordtag", Format("wordtag", _SUMMARY, sniff_lines, read_lines, write_lines))
