"""``word:TAG`` lines: one sentence per line, each word with its tag, with an optional sentence label at the end.

```
wake:O me:O at:O seven:B-time <=> alarm
play:O jazz:B-genre <=> <NULL>
```
The tag follows the last colon of a word. The label is the task ``intent``; ``<NULL>`` means that there is none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from bursar.corpus.corpus import Corpus
from bursar.corpus.formats.format import FORMATS, FileReader, Format, blank_cells, first_lines, read_files
from bursar.corpus.formats.write_checks import WriteChecks
from bursar.corpus.words import join_tokens
from bursar.tasks import Classification, Tagging
from bursar.tasks.schemes import spans_of_tags

SUFFIXES = ("", ".txt", ".wordtag")
ENDING, NO_LABEL = " <=> ", "<NULL>"
ENTITIES, INTENT = Tagging("entities"), Classification("intent")
# The prefix is required: otherwise any word with a colon would have a tag.
CELL = re.compile(r"(.+):(O|[BIESLU]-[^:]+)", re.DOTALL)


def sniff(path: Path) -> bool:
    """Lines on which every word has a tag."""
    lines = [line for line in first_lines(path, SUFFIXES) if line.strip(" \t")]
    cells = (cell for line in lines for cell in blank_cells(line.partition(ENDING)[0]))
    return bool(lines) and all(CELL.fullmatch(cell) for cell in cells)


def read(path: Path, schema: Mapping[str, Any] | None = None) -> Corpus:
    """Read a file, or a folder with one file per split."""
    return read_files(path, SUFFIXES, _read_file, schema)


def _read_file(reader: FileReader) -> None:
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


def write(corpus: Corpus, path: Path, lose: str | Collection[str] = ()) -> None:
    """Write a folder with the files train, valid and test, or one file."""
    checks = WriteChecks(corpus, "wordtag", lose)
    checks.refuse("images", "pairs", "groups", "spacing")
    checks.tasks([ENTITIES, INTENT], needed=["entities"])
    with checks.writing(path, SUFFIXES, {"dev": "valid"}) as files:
        for split, file in files:
            for item in checks.items(split):
                checks.numbered(item)
                if not item.words:
                    raise checks.error("cannot hold a sentence without words", item)
                tags = [checks.cell(item, tag, " :") for tag in checks.tags(item, "entities")]
                cells = [f"{checks.cell(item, word)}:{tag}" for word, tag in zip(item.words, tags, strict=True)]
                label = item.labels.get("intent", NO_LABEL)
                if label != label.strip(" \t") or item.labels.get("intent") == NO_LABEL:
                    raise checks.error(f"cannot keep the intent {label!r}", item)
                file.write(" ".join(cells))
                file.write(f"{ENDING}{checks.cell(item, label, '')}\n" if "intent" in corpus.schema else "\n")


FORMATS.add("wordtag", Format("wordtag", "word:TAG lines, optionally with a label", sniff, read, write))
