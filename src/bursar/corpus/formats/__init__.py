"""File formats, one module each with reader and writer. ``read`` guesses the format."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from inspect import signature
from itertools import islice
from pathlib import Path
from typing import Any

from bursar.corpus.corpus import Corpus
from bursar.corpus.formats import (
    argilla,
    conll,
    conllu,
    doccano,
    dygie,
    glue,
    hub,
    images,
    iob2,
    jsonl,
    label_studio,
    prodigy,
    slots,
    topv2,
    wordtag,
)
from bursar.corpus.formats.format import FORMATS, Format, numbered_lines
from bursar.errors import ConfigError, DataError

# Importing these modules registers their formats in FORMATS.
__all__ = ["FORMATS", "Format", "argilla", "conll", "conllu", "doccano", "dygie", "glue", "guess_format", "hub"]
__all__ += ["images", "iob2", "jsonl", "label_studio", "prodigy", "read", "slots", "topv2", "wordtag", "write"]


def guess_format(path: Path) -> Format:
    """Guess the format of a file or folder from its contents."""
    if not path.exists():
        raise DataError("there is no such file or folder", path=path)
    for name in sorted(FORMATS, key=lambda name: name == "jsonl"):  # ours last: other tools' lines look like it
        if FORMATS[name].sniff(path):
            return FORMATS[name]
    if path.is_file() and not path.stat().st_size:
        raise DataError("the file is empty", path=path)
    if path.is_file():
        deque(islice(numbered_lines(path), 20), maxlen=0)  # raises if it is not text
    raise DataError("no known format fits this", path=path, fix=f"name one with --format: {', '.join(FORMATS.names())}")


def read(path: str | Path, format: str | None = None, **options: Any) -> Corpus:
    """Read a corpus from a file or folder, in a given or guessed format."""
    path = Path(path)
    chosen = guess_format(path) if format is None else FORMATS[format]
    _check_options(chosen.name, chosen.read, options)
    return chosen.read(path, **options)


def write(corpus: Corpus, path: str | Path, format: str, **options: Any) -> None:
    """Write a corpus to a file or folder in a format."""
    chosen = FORMATS[format]
    _check_options(chosen.name, chosen.write, options)
    chosen.write(corpus, Path(path), **options)


def _check_options(format: str, function: Callable[..., object], options: Iterable[str]) -> None:
    known = [name for name in signature(function).parameters if name not in ("corpus", "path")]
    for option in options:
        if option not in known:
            raise ConfigError(
                f"format {format!r} has no option {option!r} here", fix=f"it has {', '.join(known) or 'none'}"
            )
