"""A folder that only one process may write to."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock, Timeout

from bursar.errors import LedgerError


class Lock:
    """An exclusive lock, held until it is released or the process ends."""

    def __init__(self, path: Path, patience: float = 3.0) -> None:
        """Take the lock, waiting up to ``patience`` seconds for a process that is just ending."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(path, thread_local=False)  # any thread may release it
        try:
            self._lock.acquire(timeout=patience, poll_interval=0.1)
        except Timeout:
            raise LedgerError(f"another process is at work in {path.parent}", fix="wait for it or stop it") from None

    def release(self) -> None:
        """Let other processes in."""
        self._lock.release()
