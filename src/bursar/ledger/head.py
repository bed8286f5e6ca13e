"""The head file: the newest entry of a ledger, stored next to it to detect lost entries.

It is written after every commit, before the commit is acknowledged. So if a process is killed, the head file may be
behind the ledger, but never ahead of it: a ledger that ends before its head file has lost entries.
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

from bursar.errors import LedgerError, StorageError
from bursar.ledger.log import Head
from bursar.ledger.places import is_url

NAME = "ledger.head"
_sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync
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
