"""File formats. ``read`` guesses the format.

A format is one module of this package: ``sniff``, ``read`` and ``write``, registered in ``FORMATS`` at its end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from importlib import import_module
from inspect import signature
from itertools import islice
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from bursar.corpus.corpus import Corpus
from bursar.corpus.formats.format import FORMATS, Format, check_options, numbered_lines
from bursar.corpus.formats.tables import TABLES, table_format
from bursar.corpus.formats.tables import read as read_any_table
from bursar.corpus.schema import describe_task, with_schema
from bursar.errors import ConfigError, DataError

OTHER_PROGRAMS = (".xls", ".xlsb", ".ods", ".numbers", ".doc", ".docx", ".odt", ".pdf", ".sav")

__all__ = ["FORMATS", "Format", "columns_left_out", "guess_format", "read", "write"]

for _module in iter_modules(__path__):  # importing a module registers its format
    import_module(f"{__name__}.{_module.name}")


def guess_format(path: Path) -> Format:
    """Guess the format of a file or folder from its contents."""
    if not path.exists():
        raise DataError("there is no such file or folder", path=path)
    # Ours late, since other tools' lines look like it; those that fit many files last.
    for name in sorted(FORMATS, key=lambda name: (FORMATS[name].general, name == "jsonl")):
        if FORMATS[name].sniff(path):
            return FORMATS[name]
    if path.suffix.lower() in OTHER_PROGRAMS:
        raise DataError(f"{path.suffix} files cannot be read", path=path, fix="save it as .xlsx, .csv or .txt")
    if path.is_file() and not path.stat().st_size:
        raise DataError("the file is empty", path=path)
    if path.is_file():
        deque(islice(numbered_lines(path), 20), maxlen=0)  # raises if it is not text
    raise DataError("no known format fits this", path=path, fix=f"name one with --format: {', '.join(FORMATS.names())}")


def read(
    source: Any,
    format: str | None = None,
    *,
    text: str | None = None,
    id: str | None = None,
    labels: Mapping[str, str] | None = None,
    tasks: Mapping[str, Any] | None = None,
    **options: Any,
) -> Corpus:
    """Read a corpus from a file, a folder or a pandas DataFrame, in a given or guessed format.

    For tables (CSV, Excel, Parquet, JSON, DataFrames), ``text`` and ``id`` name columns, and ``labels`` maps tasks to
    the columns of known labels. ``tasks`` describes what to annotate: a list of class names, ``spans("product",
    "date")``, or a description such as ``{"kind": "regression", "low": 0, "high": 5}``. What the reader found out by
    itself is in ``corpus.notes``.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"Ticket": [7, 8], "Body": ["where is my order", "refund me please"]})
    >>> corpus = read(frame, text="Body", tasks={"intent": ["order", "refund"]})
    >>> len(corpus), corpus[1].text, corpus[1].metadata, corpus.schema["intent"].labels
    (2, 'refund me please', {'Ticket': 8}, ('order', 'refund'))
    """
    schema = {name: describe_task(task) for name, task in (tasks or {}).items()}
    roles: dict[str, Any] = {"text": text, "id": id, "labels": labels}
    given = {role: column for role, column in roles.items() if column is not None}
    if not isinstance(source, str | Path):
        if not hasattr(source, "iloc") or not hasattr(source, "columns"):
            raise ConfigError(f"cannot read a {type(source).__name__}", fix="give a path or a pandas DataFrame")
        return read_any_table(source, schema=schema, **given, **options)
    path = Path(source)
    if format is None and given and not path.is_dir() and not _takes(_guessed(path), given):
        format = table_format(path)
    chosen = _guessed(path) if format is None else FORMATS[format]
    if unknown := [role for role in given if not _takes(chosen, [role])]:
        fix = f"leave out {' and '.join(unknown)}, or give a table, such as .csv or .xlsx"
        raise ConfigError(f"{path} is read as {chosen.name}, which has no columns to name", fix=fix)
    options |= given
    takes_schema = "schema" in signature(chosen.read).parameters
    if schema and takes_schema:
        options["schema"] = schema
    check_options(chosen.name, chosen.read, options)
    corpus = chosen.read(path, **options)
    return corpus if takes_schema or not schema else with_schema(corpus, schema)


def _guessed(path: Path) -> Format:
    """The format of a file; a file that fits none is read as its name says, to learn what is wrong with it."""
    try:
        return guess_format(path)
    except DataError:
        named = table_format(path)
        if named is None or not path.is_file() or not path.stat().st_size:
            raise
        return FORMATS[named]


def _takes(format: Format, options: Iterable[str]) -> bool:
    return set(options) <= signature(format.read).parameters.keys()


def write(corpus: Corpus, path: str | Path, format: str, **options: Any) -> None:
    """Write a corpus to a file or folder in a format.

    >>> import tempfile
    >>> from bursar.simulation import assistant_corpus
    >>> file = Path(tempfile.mkdtemp()) / "requests.jsonl"
    >>> write(assistant_corpus(20, seed=1), file, "jsonl")
    >>> len(read(file))
    20
    """
    chosen = FORMATS[format]
    check_options(chosen.name, chosen.write, options)
    chosen.write(corpus, Path(path), **options)


def columns_left_out(corpus: Corpus, format: str) -> list[str]:
    """The columns of the table that the items came from which a format does not hold, apart from their ids.

    >>> import pandas as pd
    >>> corpus = read(pd.DataFrame({"id": ["a"], "text": ["hello you"], "Agent": ["Ann"]}))
    >>> columns_left_out(corpus, "doccano"), columns_left_out(corpus, "xlsx")
    (['Agent'], [])
    """
    if corpus.metadata is None or format in (*TABLES, "jsonl") or not len(corpus):
        return []
    return [name for name, cell in corpus[0].metadata.items() if str(cell) != corpus[0].id]
