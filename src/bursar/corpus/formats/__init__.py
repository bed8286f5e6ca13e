"""File formats, one file each, reader beside writer. ``read`` guesses which one it has before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bursar.corpus.corpus import Corpus
from bursar.corpus.formats import jsonl
from bursar.corpus.formats.format import FORMATS, Format
from bursar.errors import DataError

__all__ = ["FORMATS", "Format", "guess_format", "jsonl", "read", "write"]


def guess_format(path: Path) -> Format:
    """The format of a file or folder, by looking into it."""
    if not path.exists():
        raise DataError("there is no such file or folder", path=path)
    for name in FORMATS:
        if FORMATS[name].sniff(path):
            return FORMATS[name]
    raise DataError("no known format fits this", path=path, fix=f"name one with --format: {', '.join(FORMATS.names())}")


def read(path: str | Path, format: str | None = None, **options: Any) -> Corpus:
    """A corpus from a file or folder, in a format that is named or guessed."""
    path = Path(path)
    chosen = guess_format(path) if format is None else FORMATS[format]
    return chosen.read(path, **options)


def write(corpus: Corpus, path: str | Path, format: str, **options: Any) -> None:
    """A corpus to a file or folder, in a named format."""
    FORMATS[format].write(corpus, Path(path), **options)
