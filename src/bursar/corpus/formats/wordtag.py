"""``word:TAG`` lines: a sentence a line, each word with its tag, and perhaps a label of the sentence at the end.

```
wake:O me:O at:O seven:B-time <=> alarm
play:O jazz:B-genre <=> <NULL>
```
The tag stands after the last colon of a word. ``<NULL>`` says that there is no label, which is the task ``intent``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from bursar.corpus.builder import CorpusBuilder
from bursar.corpus.corpus import Corpus
from bursar.corpus.formats.format import (
    FORMATS,
    Format,
    Places,
    blank_cells,
    declare,
    first_lines,
    numbered_lines,
    read_files,
    replacing,
)
from bursar.corpus.formats.limits import Limits
from bursar.corpus.words import lay_out
from bursar.tasks import Classification, Tagging
from bursar.tasks.schemes import spans_of_tags

SUFFIXES = ("", ".txt", ".wordtag")
ENDING, NO_LABEL = " <=> ", "<NULL>"
ENTITIES, INTENT = Tagging("entities"), Classification("intent")
# A bare type would make a tag of any word with a colon in it: the prefix has to be there.
CELL = re.compile(r"(.+):(O|[BIESLU]-[^:]+)", re.DOTALL)


def sniff(path: Path) -> bool:
    """Lines on which every word has a tag."""
    lines = [line for line in first_lines(path, SUFFIXES) if line.strip(" \t")]
    return bool(lines) and all(
        all(CELL.fullmatch(cell) for cell in blank_cells(line.partition(ENDING)[0])) for line in lines
    )


def read(path: Path, schema: Mapping[str, Any] | None = None) -> Corpus:
    """A file, or a folder with a file a split."""
    return read_files(path, SUFFIXES, CorpusBuilder(schema), partial(_read_file, places=Places()))


def _read_file(builder: CorpusBuilder, path: Path, split: str, places: Places) -> None:
    builder.at(path)
    declare(builder, ENTITIES)
    for number, line in numbered_lines(path):
        if not line.strip(" \t"):
            continue
        builder.at(path, number)
        id = places.next(split)
        body, ending, label = line.partition(ENDING)
        words, tags = [], []
        for cell in blank_cells(body):
            parts = CELL.fullmatch(cell)
            if parts is None:
                raise builder.error(f"{cell!r} is not a word, a colon and a tag", item=id, fix="such as seven:B-time")
            words.append(parts[1])
            tags.append(parts[2])
        if not words:
            raise builder.error("there is no word on the line", item=id)
        labels: dict[str, Any] = {"entities": spans_of_tags(tags)}
        label = label.strip(" \t")
        if ending and label != NO_LABEL:
            declare(builder, INTENT)
            labels["intent"] = label
        text, spans = lay_out(words)
        builder.add(id, split=split, text=text, words=spans, labels=labels)


def write(corpus: Corpus, path: Path, lose: str | Collection[str] = ()) -> None:
    """A folder with the files train, valid and test, or one file."""
    limits = Limits(corpus, "wordtag", lose)
    limits.texts_only()
    limits.no_pairs()
    limits.no_groups()
    limits.single_blanks()
    limits.tasks([ENTITIES, INTENT], needed=["entities"])
    places = Places()
    with ExitStack() as stack:
        for split, path_of_split in limits.files(path, SUFFIXES, {"dev": "valid"}):
            file = stack.enter_context(replacing(path_of_split))
            for item in limits.items(split):
                limits.id(item, places.next(split))
                if not item.words:
                    raise limits.error("cannot hold a sentence without words", item)
                tags = [limits.cell(item, tag, " :") for tag in limits.tags(item, "entities")]
                cells = [f"{limits.cell(item, word)}:{tag}" for word, tag in zip(item.words, tags, strict=True)]
                label = item.labels.get("intent", NO_LABEL)
                if label != label.strip(" \t") or item.labels.get("intent") == NO_LABEL:
                    raise limits.error(f"cannot keep the intent {label!r}", item)
                file.write(" ".join(cells))
                file.write(f"{ENDING}{limits.cell(item, label, '')}\n" if "intent" in corpus.schema else "\n")


FORMATS.add("wordtag", Format("wordtag", "word:TAG lines, perhaps with a label", sniff, read, write))
