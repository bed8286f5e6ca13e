"""Trains the next round in a separate process, one at a time, and restarts it after a crash.

Nothing is lost if the process is killed: each decision is written to the ledger in one transaction, and running it
again gives the same result. The process ends with the server.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal

from bursar.annotation.subprocess_events import NO_STORAGE, WRONG, WorkerProcess
from bursar.errors import StorageError, is_storage_fault
from bursar.web.http_errors import STORAGE_LOG, HTTPError

LOG = logging.getLogger("bursar.web")

STORAGE_PAUSE = 5.0  # seconds before a restart after a storage fault; not limited in number

EventCallback = Callable[[str, Mapping[str, Any]], None]


class Trainer:
    """Starts a training process whenever the round is complete, and forwards its events."""

    pauses: Sequence[float] = (
        1.0,
        5.0,
        20.0,
    )  # seconds before each restart after a crash; then the training has failed

    def __init__(
        self, command: Sequence[str], ready: Callable[[], bool], on_event: EventCallback, on_end: Callable[[], None]
    ) -> None:
        self._command, self._ready = list(command), ready
        self._on_event, self._on_end = on_event, on_end  # the process has ended, successfully or not
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._process: WorkerProcess | None = None
        self._starting = threading.Lock()  # from the check for completeness to the start of the process
        self._crashes = 0
        self.failure: str | None = None  # why training has failed

    @property
    def phase(self) -> Literal["idle", "training", "failed"]:
        if self.failure is not None:
            return "failed"
        return "training" if self._process is not None else "idle"

    def start(self) -> None:
        self._thread = threading.Thread(target=self._watch, name="training", daemon=True)
        self._thread.start()
        self.wake()

    def wake(self) -> None:
        """Check whether the round is complete."""
        self._woken.set()

    def retry(self) -> None:
        """Try again after a failure."""
        self.failure, self._crashes = None, 0
        self._on_event("retry", {})
        self.wake()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Prevent training from starting, for changes that reopen an item. Raises if training is running."""
        with self._starting:
            if self._process is not None:
                fix = "try again when training is done"
                raise HTTPError(409, "training", "the next round is being trained", fix=fix)
            yield

    def stop(self) -> None:
        self._stopped.set()
        self._woken.set()
        if (process := self._process) is not None:
            process.kill()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _watch(self) -> None:
        while not self._stopped.is_set():
            self._woken.wait()
            self._woken.clear()
            try:
                while not self._stopped.is_set() and self.failure is None and (process := self._begin()):
                    self._run(process)
            except Exception as error:  # show any failure on the page
                if is_storage_fault(error):
                    self._wait(error)
                else:
                    LOG.exception("cannot start training")
                    self._fail(f"{type(error).__name__}: {error}")

    def _wait(self, fault: object) -> None:
        """Try again later, until the storage works."""
        STORAGE_LOG.error("training is waiting for storage: %s", fault)
        self._stopped.wait(STORAGE_PAUSE)
        self._woken.set()

    def _begin(self) -> WorkerProcess | None:
        """Start the process, if the round is complete."""
        with self._starting:
            if not self._ready():
                return None
            self._process = WorkerProcess(self._command)
            return self._process

    def _run(self, process: WorkerProcess) -> None:
        """Wait for the process to end, and restart or fail."""
        code, message = self._listen(process)
        if self._stopped.is_set():
            return
        if code not in (0, NO_STORAGE):
            LOG.error("training exited with code %d: %s", code, message)
        if code == 0:
            self._crashes = 0
            self._on_end()
        elif code == NO_STORAGE:
            self._wait(message)
        elif code == WRONG or self._crashes >= len(self.pauses):
            self._fail(message)
        else:
            self._on_end()
            self._stopped.wait(self.pauses[self._crashes])
            self._crashes += 1

    def _listen(self, process: WorkerProcess) -> tuple[int, str]:
        """Forward the events of the process; returns its exit code and its last message."""
        error = None
        try:
            if self._stopped.is_set():
                process.kill()
            for event in process.events():
                name = str(event.pop("event"))
                if name == "failed":
                    error = ". Fix: ".join(str(event[key]) for key in ("error", "fix") if event.get(key))
                else:
                    self._on_event(name, event)
        finally:
            self._process = None
        return process.code, error or process.message

    def _fail(self, message: str) -> None:
        self.failure = message
        self._on_event("failed", {"message": message})
        with suppress(StorageError):  # the state is refreshed when the storage works again
            self._on_end()
