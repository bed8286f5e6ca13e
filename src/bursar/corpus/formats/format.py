"""The ``Format`` type, and functions shared by readers: numbered lines, splits from file names, atomic writes."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import shutil
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from inspect import signature
from itertools import islice
from pathlib import Path
from typing import IO, cast

from bursar.corpus.builder import CorpusBuilder
from bursar.corpus.corpus import SPLITS, Corpus, Names, Schema
from bursar.errors import ConfigError, DataError, LabelError
from bursar.registry import Registry
from bursar.tasks.schemes import Span, spans_of_tags, split_tag

SYNONYMS = {"train": "train training", "dev": "dev valid validation val eval testa", "test": "test testing testb t10k"}
SPLIT_NAMES = {name: split for split, names in SYNONYMS.items() for name in names.split()}


@dataclass(frozen=True)
class Format:
    """A file format: how to recognise it, read it and write it."""

    name: str
    summary: str
    sniff: Callable[[Path], bool]
    read: Callable[..., Corpus]
    write: Callable[..., None]
    general: bool = False  # fits many files: guessed only if no other format fits


FORMATS: Registry[Format] = Registry("format", "bursar.formats")


def check_options(format: str, function: Callable[..., object], options: Iterable[str]) -> None:
    """Refuse options that a reader or writer does not have."""
    known = [name for name in signature(function).parameters if name not in ("corpus", "path", "source", "kind")]
    for option in options:
        if option not in known:
            fix = f"it has {', '.join(name for name in known if name != 'schema') or 'none'}"
            raise ConfigError(f"format {format!r} has no option {option!r} here", fix=fix)


def opened(path: Path) -> IO[bytes]:
    """Open a file to read its bytes, which may be compressed."""
    return cast(IO[bytes], gzip.open(path) if path.suffix == ".gz" else open(path, "rb"))


def read_bytes(path: Path) -> bytes:
    """The bytes of a file, which may be compressed."""
    try:
        with opened(path) as file:
            return file.read()
    except (OSError, EOFError, zlib.error) as wrong:
        raise DataError(f"cannot be read: {wrong}", path=path) from None


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file, numbered from 1, without line ends (``\\n`` or ``\\r\\n``) and byte order mark.

    Only ``\\n`` ends a line: a text may contain other Unicode line separators.
    """
    try:
        with opened(path) as file:
            for number, raw in enumerate(file, start=1):
                if number == 1 and raw.startswith(codecs.BOM_UTF8):
                    raw = raw[3:]
                try:
                    line = raw.decode()
                except UnicodeDecodeError as wrong:
                    message = f"byte {wrong.start + 1} of the line is not UTF-8"
                    raise DataError(message, path=path, line=number, fix="save the file as UTF-8") from None
                yield number, line.rstrip("\n").removesuffix("\r")
    except (OSError, EOFError, zlib.error) as wrong:
        raise DataError(f"cannot be read: {wrong}", path=path) from None


def head_of(path: Path, lines: int = 20) -> list[str]:
    """The first lines, for guessing a format; empty if it is not a readable text file."""
    try:
        return [line for _, line in islice(numbered_lines(path), lines)] if path.is_file() else []
    except DataError:
        return []


def split_of(name: str) -> str | None:
    """The split that a file name indicates."""
    parts = name.lower().replace("-", ".").replace("_", ".").split(".")
    return next((SPLIT_NAMES[part] for part in parts if part in SPLIT_NAMES), None)


def split_files(path: Path, suffixes: Sequence[str]) -> list[tuple[str, Path]]:
    """The files of a folder, compressed or not, by split (train, dev, test first), or a single file with its split."""
    if not path.is_dir():
        return [(split_of(path.name) or "train", path)]
    files = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith(".")]
    files = [file for file in files if Path(file.name.removesuffix(".gz")).suffix in suffixes]
    found = [(split, file) for file in files if (split := split_of(file.name))]
    return sorted(found, key=lambda pair: (SPLITS.index(pair[0]), pair[1].name))


def only_file(path: Path, suffix: str) -> Path:
    """A file, or the only one with this suffix in a folder."""
    files = list(path.glob(f"*{suffix}")) if path.is_dir() else [path]
    if len(files) != 1:
        raise DataError(f"the folder must hold one {suffix} file, not {len(files)}", path=path)
    return files[0]


def first_lines(path: Path, suffixes: Sequence[str], lines: int = 20) -> list[str]:
    """The first lines of a file, or of the first split file of a folder, for guessing a format."""
    files = split_files(path, suffixes)
    return head_of(files[0][1], lines) if files else []


class FileReader(CorpusBuilder):
    """A corpus builder that reads files one after the other: their lines, splits, and ids for items without any."""

    file = Path()  # the file that is being read
    prefix = "line"  # of ids made from line numbers

    def __init__(self, schema: Schema = None) -> None:
        super().__init__(schema)
        self.counter = IdCounter()

    def lines(self) -> Iterator[str]:
        """The lines of the file. Errors name the line that was read last."""
        self.path = self.file
        for number, line in numbered_lines(self.file):
            self.line = number
            yield line

    def next_id(self, prefix: str | None = None) -> str:
        """An id for the next item of the split (or of a prefix), counted over all files."""
        return self.counter.next(prefix or self.split)

    def line_id(self) -> str:
        return numbered_id(self.prefix, self.line or 0)

    def spans_at(self, tags: Sequence[str], lines: Iterable[int], item: str | None = None) -> list[Span]:
        """The spans of tags on these lines; an error names the line of the invalid tag."""
        try:
            return spans_of_tags(tags)
        except LabelError:
            for self.line, tag in zip(lines, tags, strict=True):
                with self.locating(item):
                    split_tag(tag)
            raise


def read_files(
    path: Path, suffixes: Sequence[str], read_file: Callable[[FileReader], None], schema: Schema = None
) -> Corpus:
    """Find the files of a path, read each with ``read_file``, and build the corpus; an empty file is an error."""
    files = split_files(path, suffixes)
    if not files:
        kinds = ", ".join(suffix or "(no suffix)" for suffix in suffixes)
        raise DataError(f"the folder holds no train, dev or test file ({kinds})", path=path)
    reader = FileReader(schema)
    for reader.split, reader.file in files:
        reader.at(reader.file)
        reader.prefix = reader.file.stem if path.is_dir() else "line"
        before = len(reader)
        read_file(reader)
        if len(reader) == before:
            raise DataError("there is no item in it", path=reader.file)
    return reader.build()


class IdCounter(Counter[str]):
    """Numbers items without ids over all files of a corpus, by prefix."""

    def next(self, prefix: str) -> str:
        self[prefix] += 1
        return numbered_id(prefix, self[prefix])


def numbered_id(prefix: str, number: int) -> str:
    """An id from a prefix and a number."""
    return f"{prefix}-{number:06d}"


def parse_names(option: Names) -> list[str]:
    """Parse an option that lists names: a list, or a string with commas."""
    return [name.strip() for name in option.split(",") if name.strip()] if isinstance(option, str) else [*option]


def blank_cells(line: str) -> list[str]:
    """Split at spaces and tabs only: a no-break space belongs to its word."""
    return [cell for cell in line.replace("\t", " ").split(" ") if cell]


@contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """Write a text file atomically; compressed if its name ends in ``.gz``."""
    with (
        replacing_bytes(path) as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else nullcontext(raw) as stream,
    ):
        text = io.TextIOWrapper(cast(IO[bytes], stream), encoding="utf-8", newline="\n")
        try:
            yield text
        finally:
            text.detach()


@contextmanager
def replacing_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Write a file atomically: it appears under its name only when it is complete."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(draft, "wb")  # noqa: SIM115
    except OSError as wrong:
        raise DataError(f"cannot be written: {wrong}", path=path) from None
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Fill a new folder, which appears under its name only when it is complete."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} already exists", fix="choose another folder")
    place = folder.absolute()
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(f".{place.name}.new-{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    try:
        yield draft
        os.replace(draft, place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
