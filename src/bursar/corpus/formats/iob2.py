"""IOB2 layers: named entities on the sentences of a CoNLL-U file, as Universal NER publishes them.

```
# sent_id = letters-1
# text = Ada sings
1	Ada	B-PER	-	annotator
2	sings	O	-	-
```
Such a file is read alone, or joined to its treebank with ``layer=…`` of the format ``conllu``. Types that mean "none of
these" (``OTH``, and ``O`` if a file has ``B-O``) are not entities; ``drop`` lists them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bursar.corpus.corpus import Corpus
from bursar.corpus.formats.format import (
    FORMATS,
    FileReader,
    Format,
    first_lines,
    parse_names,
    read_files,
    spans_at,
    split_files,
)
from bursar.corpus.formats.sentences import Sentence, group_of, sentences, text_of, write_comments
from bursar.corpus.formats.write_checks import WriteChecks
from bursar.errors import DataError
from bursar.tasks import Tagging
from bursar.tasks.schemes import Span

SUFFIXES = (".iob2",)
WIDTHS = range(3, 6)  # number, word, tag, and optionally a comment and the annotator
DROPPED = ("OTH", "O")
ENTITIES = Tagging("entities")
ROW = re.compile(r"[0-9]+\t[^\t]+\t(O|[BI]-[^\t]+)(\t[^\t]*){0,2}")


def sniff(path: Path) -> bool:
    """Sentences with an id, and numbered words with a tag."""
    lines = [line for line in first_lines(path, SUFFIXES) if line]
    rows = [line for line in lines if line[0] != "#"]
    named = any(line.startswith("# sent_id") for line in lines)
    return named and bool(rows) and all(ROW.fullmatch(row) for row in rows)


def read(path: Path, drop: str | Collection[str] = DROPPED, schema: Mapping[str, Any] | None = None) -> Corpus:
    """Read a file, or a folder with one file per split."""
    return read_files(path, SUFFIXES, partial(_read_file, drop=parse_names(drop)), schema)


def _read_file(reader: FileReader, drop: Collection[str]) -> None:
    reader.declare(ENTITIES)
    group: str | None = None
    for found in sentences(reader, WIDTHS):
        group = group_of(reader, found, group)
        text, words = text_of(reader, found)
        labels = {"entities": entities_of(reader, found, drop)}
        id = found.comments.get("sent_id") or reader.next_id()
        reader.add(id, split=reader.split, text=text, words=words, group=group, labels=labels)


def entities_of(reader: FileReader, found: Sentence, drop: Collection[str]) -> list[Span]:
    """The spans of a sentence, without those that mean "none of these"."""
    spans = spans_at(reader, [row[2] for row in found.rows], found.lines, found.comments.get("sent_id"))
    return [span for span in spans if span[2] not in drop]


@dataclass
class _LayerSentence:
    path: Path
    line: int
    words: list[str]
    spans: list[Span]
    used: bool = False


class EntityLayer:
    """The sentences of a layer by ``sent_id``, each to be claimed by a sentence of the treebank."""

    def __init__(self, path: Path, drop: Collection[str]) -> None:
        self.path = path
        self._sentences: dict[str, _LayerSentence] = {}
        files = split_files(path, SUFFIXES)
        if not files:
            raise DataError("the folder holds no train, dev or test .iob2 file", path=path)
        reader = FileReader()
        for _, reader.file in files:
            for found in sentences(reader, WIDTHS):
                id = found.comments.get("sent_id")
                if id is None or id in self._sentences:
                    raise reader.error("a sentence of a layer needs a sent_id of its own", item=id)
                spans = entities_of(reader, found, drop)
                self._sentences[id] = _LayerSentence(found.path, found.line, found.forms, spans)

    def claim(self, reader: FileReader, id: str, words: list[str]) -> list[Span]:
        """The entities of a sentence; its words must be the same in both files."""
        mine = self._sentences.get(id)
        if mine is None:
            raise reader.error(f"the layer {self.path} does not have this sentence", item=id)
        if mine.words != words:
            at = next((i for i, (a, b) in enumerate(zip(words, mine.words, strict=False)) if a != b), -1)
            what = f"word {at + 1} is {mine.words[at]!r}, in the treebank {words[at]!r}" if at >= 0 else "more or fewer"
            raise DataError(f"not the words of the treebank: {what}", path=mine.path, line=mine.line, item=id)
        mine.used = True
        return mine.spans

    def check_all_claimed(self) -> None:
        """Every sentence of a layer file in use must have been claimed."""
        used = {sentence.path for sentence in self._sentences.values() if sentence.used}
        for id, sentence in self._sentences.items():
            if sentence.path in used and not sentence.used:
                raise DataError("the treebank has no such sentence", path=sentence.path, line=sentence.line, item=id)


def write(corpus: Corpus, path: Path, drop: str | Collection[str] = DROPPED, lose: str | Collection[str] = ()) -> None:
    """Write a folder with one file per split, or one file."""
    checks = WriteChecks(corpus, "iob2", lose)
    checks.refuse("images", "pairs")
    checks.tasks([ENTITIES], needed=["entities"])
    dropped = parse_names(drop)
    with checks.writing(path, SUFFIXES) as files:
        for split, file in files:
            group: str | None = None
            for item in checks.items(split):
                write_comments(checks, file, item, group)
                group = item.group
                for number, (word, tag) in enumerate(zip(item.words, checks.tags(item, "entities"), strict=True), 1):
                    if tag[2:] in dropped and tag != "O":
                        raise checks.error(f"takes {tag} for no entity", item, fix="write and read with drop=()")
                    cells = (checks.cell(item, word, ""), checks.cell(item, tag, ""))
                    file.write(f"{number}\t{cells[0]}\t{cells[1]}\t-\t-\n")
                file.write("\n")


FORMATS.add("iob2", Format("iob2", "entities on the sentences of a CoNLL-U file", sniff, read, write))
