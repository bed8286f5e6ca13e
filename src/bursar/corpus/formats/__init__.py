"""File formats. ``read`` guesses the format.

A format is one module of this package: ``sniff``, ``read`` and ``write``, registered in ``FORMATS`` at its end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from importlib import import_module
from inspect import signature
from itertools import islice
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from bursar.corpus.corpus import Corpus
from bursar.corpus.formats.format import FORMATS, Format, numbered_lines
from bursar.errors import ConfigError, DataError

__all__ = ["FORMATS", "Format", "guess_format", "read", "write"]

for _module in iter_modules(__path__):  # importing a module registers its format
    import_module(f"{__name__}.{_module.name}")


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
            fix = f"it has {', '.join(known) or 'none'}"
            raise ConfigError(f"format {format!r} has no option {option!r} here", fix=fix)
