"""Whether a process still knows what its ledger says: a fault of the storage may have cut it off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bursar.errors import StorageError
from bursar.ledger import Ledger


class Certainty:
    """Keeps what is in memory in step with a ledger, by ``read``, which reads all of it again.

    A connection that broke leaves two things open: whether the last write was kept, and whether somebody else took the
    ledger and wrote. ``doubts`` counts how often that was so, for those who keep more of the ledger in memory.
    """

    def __init__(self, ledger: Ledger, read: Callable[[], None]) -> None:
        self._ledger = ledger
        self._read = read
        self._stale = True
        self.doubts = 0

    def catch_up(self) -> None:
        """Before anything is handed out or written: hold the ledger, and know what it says. Else the fault is told."""
        if self._ledger.own():
            self._doubt()
        if self._stale:
            self.read()

    def read(self) -> None:
        """Read the ledger again; what is half read is not known."""
        self._stale = True
        self._read()
        self._stale = False

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """Write something on what the ledger says."""
        self.catch_up()
        try:
            yield
        except StorageError as fault:
            if fault.in_doubt:
                self._doubt()
            raise

    def _doubt(self) -> None:
        self._stale = True
        self.doubts += 1
