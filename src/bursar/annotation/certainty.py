"""Keeps memory and ledger in step across storage faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bursar.errors import StorageError
from bursar.ledger import Ledger


class Certainty:
    """Whether what a process has in memory is what the ledger says; ``read`` loads all of it again.

    A broken connection leaves two questions open: was the last write kept, and has another process written since?
    ``doubts`` counts these cases, for callers that cache more of the ledger.
    """

    def __init__(self, ledger: Ledger, read: Callable[[], None]) -> None:
        self._ledger = ledger
        self._read = read
        self._stale = True
        self.doubts = 0

    def catch_up(self) -> None:
        """Hold the ledger and know what it says. Call it before handing out or writing; raises while storage is out."""
        if self._ledger.own():
            self._doubt()
        if self._stale:
            self.read()

    def read(self) -> None:
        """Read the ledger again. If that fails half-way, the next call starts over."""
        self._stale = True
        self._read()
        self._stale = False

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """Around a write: memory is current before it, and marked as uncertain if the connection breaks in it."""
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
