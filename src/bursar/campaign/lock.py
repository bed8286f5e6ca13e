"""A folder that only one process may write to."""

from __future__ import annotations

import fcntl
import time
from pathlib import Path

from bursar.errors import LedgerError


class Lock:
    """Held until it is released, or until the process ends, however it ends."""

    def __init__(self, path: Path, patience: float = 3.0) -> None:
        """Take the lock; wait a little for a holder that is just ending, then say who is in the way."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "w")  # noqa: SIM115
        until = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError:
                if time.monotonic() > until:
                    self._file.close()
                    raise LedgerError(
                        f"another process is at work in {path.parent}", fix="wait for it or stop it"
                    ) from None
                time.sleep(0.1)

    def release(self) -> None:
        """Let others in."""
        self._file.close()
