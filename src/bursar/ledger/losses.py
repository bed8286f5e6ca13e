"""Detect lost entries when a ledger is opened, and continue without them if the user accepts the loss.

The head file beside a ledger says which entry is its newest. It is written after every commit, before the commit is
acknowledged. So if a process is killed, the head file may be behind the ledger, but never ahead of it: a ledger that
ends before its head file has lost entries.
"""

from __future__ import annotations

import fcntl  # not filelock: readers share the lock, and it is on the head file itself
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bursar.errors import LedgerError, StorageError
from bursar.ledger.log import Head, audit_log, digest_at, head_of, last_loss, record_decision, relog, running_number
from bursar.ledger.places import Store, holds_ledger, is_url, opened, public_url, read_only, read_url
from bursar.ledger.records import LossAccepted
from bursar.ledger.schema import migrate, version_of

NAME = "ledger.head"
_sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync
TAIL = 500  # entries checked against their digests at every opening; ``bursar check`` checks all
SLOT = 256  # bytes of a line; entries alternate, so that a write cut short by a power failure damages one of two


class HeadFile:
    """Two lines of JSON, of which the newer is valid. Written in place, and on disk when ``advance`` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of_ledger(cls, place: str | Path, folder: Path | None) -> HeadFile | None:
        """The head file of a ledger: next to its file, or in the run's folder if the ledger is on a server."""
        if is_url(place):
            return None if folder is None else cls(folder / NAME)
        return None if str(place) == ":memory:" else cls(Path(place).with_suffix(".head"))

    def read(self) -> Head | None:
        """The newest entry stored; ``None`` if the file is missing or was never written to."""
        try:
            with self._held(os.O_RDONLY, fcntl.LOCK_SH) as file:
                return self._read(file)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as wrong:
            raise LedgerError(f"{self.path} cannot be read: {wrong.strerror}") from None

    @property
    def knows_entries(self) -> bool:
        """Whether the ledger ever had entries; also true if the file is damaged."""
        try:
            known = self.read()
        except LedgerError:
            return True
        return known is not None and known.entry > 0

    def advance(self, head: Head) -> None:
        """Store the newest entry, unless another process has stored a newer one of the same ledger."""
        with self._writing() as file:
            known = self._read(file)
            if known is None or not known.entry:  # an empty ledger may have been created again
                self._write(file, 0, _line(head) + _line(head))
            elif known.ledger != head.ledger:
                raise LedgerError(f"{self.path} belongs to another ledger by now", fix="open the project again")
            elif head.entry > known.entry:
                self._write(file, SLOT * (head.entry % 2), _line(head))

    def replace(self, head: Head) -> None:
        """Store this entry, whatever was stored before."""
        with self._writing() as file:
            self._write(file, 0, _line(head) + _line(head))

    @contextmanager
    def _writing(self) -> Iterator[int]:
        try:
            with self._held(os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX) as file:
                yield file
        except OSError as wrong:  # the ledger itself is written already
            fix = "do it again when it can be written: nothing is recorded twice"
            raise StorageError(f"{self.path} cannot be written: {wrong.strerror}", fix=fix, in_doubt=True) from None

    @contextmanager
    def _held(self, flags: int, lock: int) -> Iterator[int]:
        file = os.open(self.path, flags, 0o666)
        try:
            fcntl.flock(file, lock)
            yield file
        finally:
            os.close(file)

    def _read(self, file: int) -> Head | None:
        text = os.pread(file, 2 * SLOT, 0)
        if not text:  # killed between creating and writing the file
            return None
        found = [head for head in map(_head, (text[:SLOT], text[SLOT:])) if head is not None]
        if not found:
            raise LedgerError(f"{self.path} is damaged: it does not say how many entries this project had")
        return max(found, key=lambda head: head.entry)

    @staticmethod
    def _write(file: int, at: int, text: bytes) -> None:
        os.pwrite(file, text, at)
        _sync(file)


def _line(head: Head) -> bytes:
    """A head as one line of JSON of fixed length, with a checksum."""
    about = asdict(head)
    text = json.dumps(about | {"check": _check(about)})
    return text.ljust(SLOT - 1).encode() + b"\n"


def _head(line: bytes) -> Head | None:
    """The head in a line; ``None`` if the line is damaged."""
    try:
        about = json.loads(line)
        check = about.pop("check")
        return Head(**about) if check == _check(about) else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _check(about: dict[str, str | int]) -> int:
    return zlib.crc32(json.dumps(about, sort_keys=True).encode())


# -- at opening --------------------------------------------------------------------------------------------------------
def check_for_loss(place: str | Path, file: HeadFile | None, begun: bool = False) -> None:
    """Reject a ledger that has fewer or other entries than the head file says. Writes nothing."""
    if file is not None and (lost := find_loss(place, file, begun)):
        raise LedgerError(lost, fix=how_to_restore(place, file))


def find_loss(place: str | Path, file: HeadFile, begun: bool = False) -> str | None:
    """Describe what a ledger has lost; ``None`` if a quick check finds nothing."""
    try:
        known = file.read()
    except LedgerError as damaged:
        return damaged.message
    if known is None:
        return _without_head(place, file, begun)
    if not known.entry:
        return None
    found = _gone(place)
    if found is None:
        with read_only(place) as connection:
            found = _compare(connection, known)
    entries = f"{known.entry:,} entr{'y' if known.entry == 1 else 'ies'}"
    return None if found is None else f"{_shown(place)} {found}: this project had {entries}"


def _without_head(place: str | Path, file: HeadFile, begun: bool) -> str | None:
    """What a ledger without a head file has lost. A ledger on a server may be new to this folder."""
    gone = _gone(place)
    if is_url(place):
        gone = "holds no ledger" if begun and not holds_ledger(place) else None
    elif gone is None:
        with read_only(place) as connection:
            written = version_of(connection) > 0 and head_of(connection).entry > 0
        if written and file.read() is None:  # read again: another process may just have created both
            return f"{file.path} is missing: it says how many entries this project had"
    return f"{_shown(place)} {gone}: this project was begun" if gone and begun else None


def _compare(connection: sa.Connection, known: Head) -> str | None:
    """How a ledger contradicts its head file; ``None`` if it only has newer entries."""
    if not version_of(connection):
        return "holds no ledger"
    own = head_of(connection)
    if own.ledger != known.ledger:
        return "is another ledger than this project's"
    if own.entry < known.entry:
        return f"ends at entry {own.entry}"
    if digest_at(connection, known.entry) != known.digest:
        return f"has another entry {known.entry} than this project recorded"
    problems = audit_log(connection, max(1, own.entry - TAIL + 1, last_loss(connection))).problems
    return f"is damaged ({problems[0]})" if problems else None


def audit_entries(place: str | Path) -> tuple[int, list[str]]:
    """The number of a ledger's entries, and the problems found in all of them."""
    with read_only(place) as connection:
        if not version_of(connection):
            return 0, []
        return head_of(connection).entry, audit_log(connection).problems


def file_problems(place: str | Path) -> list[str]:
    """Problems in the file of an SQLite database; none for a server."""
    if is_url(place):
        return []
    try:
        with read_only(place) as connection:
            said = list(connection.exec_driver_sql("PRAGMA integrity_check").scalars())
            strays = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    except LedgerError as wrong:
        return [str(wrong)]
    problems = [] if said == ["ok"] else [f"{place}: {line}" for line in said]
    return problems + [f"{place}: row {row} of {table} is of no known {parent}" for table, row, parent, _ in strays]


def note_head(store: Store, file: HeadFile | None) -> None:
    """Update the head file."""
    if file is None:
        return
    with store.reader.connect() as connection:
        head = head_of(connection)
    file.path.parent.mkdir(parents=True, exist_ok=True)  # needed if the ledger is on a server
    file.advance(head)


def how_to_restore(place: str | Path, file: HeadFile) -> str:
    """A fix for the user: restore the ledger, or continue without the lost entries."""
    name = Path(place).name
    restore = f"put a backup of {name} back, with {name}-wal if there is one"
    if is_url(place):
        restore = "restore the database from a newer backup"
    return f"{restore}; to go on without what is lost: bursar check {file.path.parent} --accept-loss"


# -- accepting a loss --------------------------------------------------------------------------------------------------
def accept_loss(place: str | Path, file: HeadFile, lost: str) -> int:
    """Continue with what is left, record that as an entry, and return its number."""
    try:
        had: Any = vars(file.read() or Head("", 0, ""))
    except LedgerError:
        had = None
    if not is_url(place) and Path(place).exists() and not Path(place).stat().st_size:
        Path(place).unlink()
    with opened(place) as store, store.translate_errors(" cannot be opened as a ledger"):
        migrate(store)
        with store.writer.begin() as connection:
            kept = head_of(connection).entry
            relog(connection, audit_log(connection).unlogged)
            number, content = running_number(connection, LossAccepted), audit_log(connection).content
            record_decision(connection, LossAccepted(round=number, lost=lost, had=had, kept=kept, content=content))
            head = head_of(connection)
        file.replace(head)
    return head.entry


# -- messages ----------------------------------------------------------------------------------------------------------
def _gone(place: str | Path) -> str | None:
    if is_url(place):
        return None
    if not Path(place).exists():
        return "is missing"
    return None if Path(place).stat().st_size else "is empty"


def _shown(place: str | Path) -> str:
    return public_url(read_url(str(place))) if is_url(place) else str(place)
