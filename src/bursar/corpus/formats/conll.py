"""CoNLL columns: one word per line, a blank line between sentences, ``-DOCSTART-`` lines between documents.

```
-DOCSTART- -X- -X- O

Ada NNP B-NP B-PER
sings VBZ B-VP O
```
Cells are separated by tabs or spaces. Two columns are a word and its entity tag, four are those of CoNLL-2003; with any
other number the first is the word and the last the entity tag, unless ``columns`` names them. Tags are read in any
scheme, so reading a file and writing it with ``scheme=…`` converts it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from bursar.corpus.corpus import Corpus, Item, Names, Schema
from bursar.corpus.formats.format import FORMATS, FileReader, Format, blank_cells, first_lines, parse_names, read_files
from bursar.corpus.formats.write_checks import WriteChecks
from bursar.corpus.words import join_tokens
from bursar.errors import ConfigError
from bursar.tasks import Tagging
from bursar.tasks.schemes import SCHEMES

Row = tuple[int, list[str]]  # its line and its cells
SUFFIXES = (".txt", ".conll", ".bio", ".iob", ".tsv", "")
DOCUMENT = "-DOCSTART-"
WORD, SKIPPED = "word", "_"
CONLL2003 = (WORD, "pos", "chunk", "entities")
EVERY_WORD = ("pos", "upos", "xpos")  # columns with one label per word, not spans
TAG = re.compile(r"O|[BIESLU]-(?!\S*:(O|[BIESLU]-))\S+")  # but not the last cell of a line of word:TAG cells


def sniff(path: Path) -> bool:
    """Lines with equally many cells, at least two, of which the last is a tag."""
    rows = [_cells(line) for line in first_lines(path, SUFFIXES)]
    rows = [row for row in rows if row and row[0] != DOCUMENT]
    return bool(rows) and len(rows[0]) > 1 and all(len(r) == len(rows[0]) and TAG.fullmatch(r[-1]) for r in rows)


def read(path: Path, columns: Names = (), schema: Schema = None) -> Corpus:
    """Read a file, or a folder with one file per split.

    ``columns`` names every column: ``word``, a task, or ``_`` for one to skip. Columns called pos, upos or xpos have a
    label for every word, others have spans; ``schema`` overrides this.
    """
    names = _column_names(columns) if columns else []
    return read_files(path, SUFFIXES, partial(_read_file, columns=names), schema)


def _column_names(columns: Names) -> list[str]:
    names = parse_names(columns)
    named = [name for name in names if name != SKIPPED]
    if WORD not in named or len(set(named)) != len(named):
        raise ConfigError(f"columns = {columns!r} must name 'word' and each task once", fix=f"columns = {CONLL2003}")
    return names


def _cells(line: str) -> list[str]:
    """The cells of a line; none if it is blank."""
    if "\t" in line:
        return line.split("\t") if line.strip(" \t") else []
    return blank_cells(line)


def _read_file(reader: FileReader, columns: Sequence[str]) -> None:
    names: Sequence[str] = ()  # of the columns, from the first sentence on
    group: str | None = None
    numbered = ((reader.line or 1, _cells(line)) for line in reader.lines())
    for kind, found in groupby(numbered, lambda pair: pair[1] and (DOCUMENT if pair[1][0] == DOCUMENT else WORD)):
        rows = [*found]
        if kind == DOCUMENT:
            group = [reader.next_id(f"{reader.split}-doc") for _ in rows][-1]
        elif kind == WORD:
            names = names or _declare(reader, columns, *rows[0])
            _read_sentence(reader, names, rows, group)


def _declare(reader: FileReader, columns: Sequence[str], line: int, cells: list[str]) -> Sequence[str]:
    """Add the tasks of the columns; return the names of all columns."""
    reader.line, width = line, len(cells)
    if width < 2:
        raise reader.error("expected a word and its tag", fix="separate them by a tab or a space")
    names = columns or (CONLL2003 if width == 4 else (WORD, *[SKIPPED] * (width - 2), "entities"))
    for name in (name for name in names if name not in (WORD, SKIPPED)):
        stated = reader.task(name)
        every_word = stated.every_word if isinstance(stated, Tagging) else name in EVERY_WORD
        reader.declare(Tagging(name, every_word=every_word))
    return names


def _read_sentence(reader: FileReader, names: Sequence[str], rows: list[Row], group: str | None) -> None:
    for reader.line, cells in rows:
        if len(cells) != len(names) or "" in cells:
            raise reader.error(f"expected {len(names)} cells ({', '.join(names)}), not {cells}")
    columns = dict(zip(names, zip(*(cells for _, cells in rows), strict=True), strict=True))
    columns.pop(SKIPPED, None)
    lines = [line for line, _ in rows]
    reader.line = lines[0]
    text, words = join_tokens(columns.pop(WORD))
    labels: dict[str, Any] = {}
    for name, tags in columns.items():
        task = reader.task(name)
        every_word = isinstance(task, Tagging) and task.every_word
        labels[name] = list(tags) if every_word else reader.spans_at(tags, lines)
    reader.add(reader.next_id(), split=reader.split, text=text, words=words, group=group, labels=labels)


def write(
    corpus: Corpus, path: Path, columns: Names = (), scheme: str = "IOB2", separator: str = " ", lose: Names = ()
) -> None:
    """Write a folder with train.txt, valid.txt and test.txt, or one file; ``scheme`` is IO, IOB1, IOB2 or BIOES.

    A corpus with tasks other than ``entities`` or those of CoNLL-2003 needs ``columns``, for writing and reading.
    """
    if scheme not in SCHEMES or separator not in (" ", "\t"):
        fix = f"use one of {SCHEMES}, and a space or a tab"
        raise ConfigError(f"scheme = {scheme!r}, separator = {separator!r}", fix=fix)
    checks = WriteChecks(corpus, "conll", lose)
    checks.refuse("images", "pairs", "spacing", "wordless")
    names = _columns_to_write(checks, columns)
    with checks.writing(path, SUFFIXES, {"dev": "valid"}) as files:
        for split, file in files:
            group: str | None = None
            named: str | None = None
            for item in checks.items(split):
                if item.group != group:
                    group, named = item.group, checks.counter.next(f"{split}-doc")
                    file.write(separator.join([DOCUMENT, *["-X-"] * (len(names) - 2), "O"]) + "\n\n")
                checks.group(item, named)
                checks.numbered(item)
                for row in _rows(checks, item, names, scheme):
                    file.write(separator.join(checks.cell(item, cell, separator) for cell in row) + "\n")
                file.write("\n")


def _columns_to_write(checks: WriteChecks, columns: Names) -> Sequence[str]:
    schema = checks.corpus.schema
    if not columns:
        usual = CONLL2003 if len(schema) > 1 else (WORD, "entities")
        checks.tasks([Tagging(name, every_word=name in EVERY_WORD) for name in usual[1:]], needed=usual[1:])
        return usual
    names = _column_names(columns)
    checks.tasks([task if isinstance(task, Tagging) else Tagging(n) for n, task in schema.items() if n in names])
    return names


def _rows(checks: WriteChecks, item: Item, names: Sequence[str], scheme: str) -> Iterator[tuple[str, ...]]:
    columns: list[Sequence[str]] = []
    for name in names:
        task = checks.corpus.schema.get(name)
        if name == WORD:
            columns.append(item.words)
        elif isinstance(task, Tagging) and task.every_word:
            columns.append(checks.label(item, name))
        else:
            columns.append([SKIPPED] * len(item.words) if task is None else checks.tags(item, name, scheme))
    if DOCUMENT in columns[0]:
        raise checks.error(f"takes {DOCUMENT} for the start of a document, not for a word", item)
    return zip(*columns, strict=True)


FORMATS.add("conll", Format("conll", "CoNLL columns: word … tag", sniff, read, write))
