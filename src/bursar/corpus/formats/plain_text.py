"""Plain text: every line is an item, or every paragraph."""

from __future__ import annotations

from pathlib import Path

from bursar.corpus.builder import CorpusBuilder
from bursar.corpus.corpus import Corpus
from bursar.corpus.formats.format import FORMATS, Format, numbered_id, replacing
from bursar.corpus.formats.table_files import ENCODINGS, decoded, suffix_of
from bursar.corpus.formats.write_checks import WriteChecks
from bursar.errors import ConfigError, DataError

UNITS = ("line", "paragraph")


def sniff(path: Path) -> bool:
    """A .txt file."""
    return path.is_file() and suffix_of(path) in (".txt", ".text") and path.stat().st_size > 0


def read(path: Path, *, unit: str | None = None, encoding: str | None = None) -> Corpus:
    """Read one item per line or per paragraph; by default paragraphs if blank lines separate blocks of lines."""
    if unit is not None and unit not in UNITS:
        raise ConfigError(f"unit = {unit!r}", fix=f"use {' or '.join(UNITS)}")
    blocks: list[list[tuple[int, str]]] = [[]]
    text, encoding = decoded(path, encoding)
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        line = line.removesuffix("\r")
        if line.strip():
            blocks[-1].append((number, line))
        elif blocks[-1]:
            blocks.append([])
    blocks = [block for block in blocks if block]
    if not blocks:
        raise DataError("there is no item in it", path=path)
    unit = unit or ("paragraph" if len(blocks) > 1 and max(map(len, blocks)) > 1 else "line")
    builder = CorpusBuilder()
    builder.notes.append(
        f"one item per {unit}" + ("" if encoding == "utf-8" else f", {ENCODINGS.get(encoding, encoding)}")
    )
    items = blocks if unit == "paragraph" else [[entry] for block in blocks for entry in block]
    for block in items:
        builder.at(path, block[0][0])
        builder.add(numbered_id("line", block[0][0]), text="\n".join(line for _, line in block))
    return builder.build()


def write(corpus: Corpus, path: Path, lose: str = "") -> None:
    """Write one text per line, without labels."""
    checks = WriteChecks(corpus, "text", lose)
    checks.refuse("images", "pairs", "groups", "words")
    checks.tasks(())
    if checks.splits() != ["train"]:
        raise checks.error("holds items of the split train only")
    with replacing(path) as file:
        for number, item in enumerate(checks.items(), start=1):
            checks.id(item, numbered_id("line", number))
            if not (item.text or "").strip():
                raise checks.error("cannot hold an item without a text", item)
            file.write(checks.cell(item, item.text or "", forbidden="") + "\n")


FORMATS.add("text", Format("text", "plain text: an item per line or paragraph", sniff, read, write, general=True))
