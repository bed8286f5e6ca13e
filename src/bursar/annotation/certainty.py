"""Keeps memory and ledger consistent across storage faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bursar.errors import StorageError
from bursar.ledger import Ledger


class Certainty:
    """Tracks whether memory matches the ledger; ``read`` reloads everything.

    After a broken connection it is unknown whether the last write was kept, and whether another process has written
    since. ``doubts`` counts these cases, for callers that cache more of the ledger.
    """

    def __init__(self, ledger: Ledger, read: Callable[[], None]) -> None:
        self._ledger = ledger
        self._read = read
        self._stale = True
        self.doubts = 0

    def catch_up(self) -> None:
        """Own the ledger and reload if necessary. Call it before assigning or writing; raises while storage is down."""
        if self._ledger.own():
            self._doubt()
        if self._stale:
            self.read()

    def read(self) -> None:
        """Reload from the ledger. If that fails, the next call tries again."""
        self._stale = True
        self._read()
        self._stale = False

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """Wrap a write: memory is current before it, and marked as stale if the connection breaks."""
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
