"""CoNLL-U: the treebanks of Universal Dependencies.

The tasks are ``dependencies`` (with full labels such as ``nsubj:pass``), ``upos`` and ``xpos``, if the file has them.
Words are aligned with ``# text``; the words of a multiword token share its characters; empty nodes are left out. With
``layer=PATH`` the entities of an IOB2 layer are joined on ``sent_id``, word by word.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

from bursar.corpus.corpus import Corpus, Item
from bursar.corpus.formats.format import FORMATS, FileReader, Format, first_lines, parse_names, read_files
from bursar.corpus.formats.iob2 import DROPPED, ENTITIES, EntityLayer
from bursar.corpus.formats.sentences import Sentence, group_of, sentences, text_of, write_comments
from bursar.corpus.formats.write_checks import WriteChecks
from bursar.tasks import Parsing, Tagging

SUFFIXES = (".conllu", ".conll", ".txt")
WIDTHS = range(10, 11)
UPOS, XPOS, HEAD, DEPREL = 3, 4, 6, 7
NOTHING = "_"
TASKS = (Parsing("dependencies"), Tagging("upos", every_word=True), Tagging("xpos", every_word=True))


def sniff(path: Path) -> bool:
    """Numbered words with ten cells per line."""
    rows = [line.split("\t") for line in first_lines(path, SUFFIXES) if line and line[0] != "#"]
    return bool(rows) and all(len(row) == 10 and row[0][:1].isdecimal() for row in rows)


def read(
    path: Path,
    layer: str | Path | None = None,
    drop: str | Collection[str] = DROPPED,
    schema: Mapping[str, Any] | None = None,
) -> Corpus:
    """Read a file, or a folder with one file per split; ``layer`` is an IOB2 file or folder, see there for ``drop``."""
    entities = None if layer is None else EntityLayer(Path(layer), parse_names(drop))
    corpus = read_files(path, SUFFIXES, partial(_read_file, layer=entities), schema)
    if entities is not None:
        entities.check_all_claimed()
    return corpus


def _read_file(reader: FileReader, layer: EntityLayer | None) -> None:
    if layer is not None:
        reader.declare(ENTITIES)
    group: str | None = None
    for found in sentences(reader, WIDTHS):
        group = group_of(reader, found, group)
        text, words = text_of(reader, found)
        labels = _labels(reader, found)
        id = found.comments.get("sent_id") or reader.next_id()
        for task in TASKS:
            if task.name in labels:
                reader.declare(task)
        if layer is not None:
            labels["entities"] = layer.claim(reader, id, found.forms)
        reader.add(id, split=reader.split, text=text, words=words, group=group, labels=labels)


def _labels(reader: FileReader, found: Sentence) -> dict[str, Any]:
    """The labels of a sentence; a column that is ``_`` for every word has none."""
    labels: dict[str, Any] = {}
    for name, column in (("upos", UPOS), ("xpos", XPOS)):
        tags = [row[column] for row in found.rows]
        if any(tag != NOTHING for tag in tags):
            labels[name] = tags
    heads = [row[HEAD] for row in found.rows]
    if any(head != NOTHING for head in heads):
        for line, head in zip(found.lines, heads, strict=True):
            if not head.isdecimal() or len(head) > 6:
                reader.line = line
                raise reader.error(f"the head {head!r} is not a number", item=found.comments.get("sent_id"))
        labels["dependencies"] = [[int(head), row[DEPREL]] for head, row in zip(heads, found.rows, strict=True)]
    return labels


def write(corpus: Corpus, path: Path, lose: str | Collection[str] = ()) -> None:
    """Write a folder with one file per split, or one file. Write entities as a layer with the format ``iob2``."""
    checks = WriteChecks(corpus, "conllu", lose)
    checks.refuse("images", "pairs")
    checks.tasks(TASKS)
    with checks.writing(path, SUFFIXES) as files:
        for split, file in files:
            group: str | None = None
            for item in checks.items(split):
                write_comments(checks, file, item, group)
                group = item.group
                _write_words(checks, file, item)


def _write_words(checks: WriteChecks, file: IO[str], item: Item) -> None:
    nothing = [NOTHING] * len(item.words)
    upos, xpos = item.labels.get("upos", nothing), item.labels.get("xpos", nothing)
    for name, tags in (("upos", upos), ("xpos", xpos)):
        if name in item.labels and set(tags) == {NOTHING}:
            raise checks.error(f"takes {NOTHING!r} for no label, and every word of task {name!r} has it", item)
    tree = item.labels.get("dependencies", [[NOTHING, NOTHING]] * len(item.words))
    text, at = item.text or "", 0
    for number, (word, up, xp, (head, deprel)) in enumerate(zip(item.words, upos, xpos, tree, strict=True), 1):
        at = text.index(word, at) + len(word)
        misc = NOTHING if at == len(text) or text[at].isspace() else "SpaceAfter=No"
        cells = [checks.cell(item, cell, "") for cell in (word, up, xp, deprel)]
        file.write(f"{number}\t{cells[0]}\t_\t{cells[1]}\t{cells[2]}\t_\t{head}\t{cells[3]}\t_\t{misc}\n")
    file.write("\n")


FORMATS.add("conllu", Format("conllu", "CoNLL-U treebanks, with an entity layer if wished", sniff, read, write))
