"""What a format brings, and what all readers share: lines with their numbers, splits from file names."""

from __future__ import annotations

import codecs
import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bursar.corpus.corpus import Corpus
from bursar.errors import DataError
from bursar.registry import Registry

SPLIT_NAMES = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "valid": "dev",
    "validation": "dev",
    "val": "dev",
    "eval": "dev",
    "testa": "dev",
    "test": "test",
    "testing": "test",
    "testb": "test",
    "t10k": "test",
}


@dataclass(frozen=True)
class Format:
    """A file format: how to recognise it, read it and write it."""

    name: str
    summary: str
    sniff: Callable[[Path], bool]
    read: Callable[..., Corpus]
    write: Callable[..., None]


FORMATS: Registry[Format] = Registry("format", "bursar.formats")


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file, from 1, without line ends (``\\n`` or ``\\r\\n``) and byte order mark.

    Only ``\\n`` ends a line: a text may hold any other Unicode line separator.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            for number, raw in enumerate(file, start=1):
                if number == 1 and raw.startswith(codecs.BOM_UTF8):
                    raw = raw[3:]
                try:
                    line = raw.decode()
                except UnicodeDecodeError as wrong:
                    raise DataError(
                        f"byte {wrong.start + 1} of the line is not UTF-8",
                        path=path,
                        line=number,
                        fix="save the file as UTF-8",
                    ) from None
                yield number, line.rstrip("\n").removesuffix("\r")
    except (OSError, EOFError) as wrong:
        raise DataError(f"cannot be read: {wrong}", path=path) from None


def head_of(path: Path, lines: int = 20) -> list[str]:
    """The first lines, for guessing; nothing if it is not a readable text file."""
    if not path.is_file():
        return []
    found: list[str] = []
    try:
        for number, line in numbered_lines(path):
            found.append(line)
            if number >= lines:
                break
    except DataError:
        return []
    return found


def split_of(name: str) -> str | None:
    """The split that a file name speaks of.

    >>> split_of("alarm_eval.tsv"), split_of("en_ewt-ud-train.conllu"), split_of("notes.txt")
    ('dev', 'train', None)
    """
    parts = name.lower().replace("-", ".").replace("_", ".").split(".")
    return next((SPLIT_NAMES[part] for part in parts if part in SPLIT_NAMES), None)


def split_files(path: Path, suffixes: tuple[str, ...]) -> list[tuple[str, Path]]:
    """The data files of a folder by split (train, dev, test first), or a single file with its split."""
    if path.is_file():
        return [(split_of(path.name) or "train", path)]
    found = [
        (split, file)
        for file in sorted(path.iterdir())
        if file.is_file() and (file.suffix in suffixes or not suffixes) and (split := split_of(file.name))
    ]
    order = list(dict.fromkeys(SPLIT_NAMES.values()))
    return sorted(found, key=lambda pair: (order.index(pair[0]), pair[1].name))


@contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """Write a file whole or not at all: it appears under its name only when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        with open(draft, "w", encoding="utf-8", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
