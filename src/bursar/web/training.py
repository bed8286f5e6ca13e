"""The next round is trained in a process of its own, beside the server: one at a time, started again if it crashes.

A child that is killed loses nothing: everything it decides goes to the ledger whole, and running it again gives the
same. It ends with the server, however that ends.
"""

from __future__ import annotations

import json
import logging
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal

from bursar.annotation.round_worker import NO_STORAGE
from bursar.errors import StorageError, is_storage_fault
from bursar.web.http_errors import HTTPError
from bursar.web.logs import STORAGE_LOG

LOG = logging.getLogger("bursar.web")

PAUSES = (1.0, 5.0, 20.0)  # seconds before a child that crashed is started again; after the last it has failed
LATER = 5.0  # seconds before a child that found no storage is started again, however often that is
WRONG = 2  # the exit code that says: this will not get better by trying again
TAIL = 40  # lines of what a child complained of

EventCallback = Callable[[str, Mapping[str, Any]], None]


class Trainer:
    """Starts a child whenever the round is complete, passes on what it tells, and says so when it fails for good."""

    def __init__(
        self,
        command: Sequence[str],
        ready: Callable[[], bool],
        told: EventCallback,
        ended: Callable[[], None],
        pauses: Sequence[float] = PAUSES,
        later: float = LATER,
    ) -> None:
        self._command = list(command)
        self._ready = ready
        self._told = told
        self._ended = ended  # a child has ended, well or not
        self._pauses, self._later = pauses, later
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._child: subprocess.Popen[str] | None = None
        self._starting = threading.Lock()  # from the question whether the round is complete to the child's start
        self._crashes = 0
        self._complaint: str | None = None  # what the child said was wrong
        self.failure: str | None = None  # why it has failed for good

    @property
    def phase(self) -> Literal["idle", "training", "failed"]:
        """What it is doing."""
        if self.failure is not None:
            return "failed"
        return "training" if self._child is not None else "idle"

    def start(self) -> None:
        """Begin to watch over the campaign."""
        self._thread = threading.Thread(target=self._watch, name="training", daemon=True)
        self._thread.start()
        self.wake()

    def wake(self) -> None:
        """The round may be complete now."""
        self._woken.set()

    def retry(self) -> None:
        """Try again after a failure."""
        self.failure = None
        self._crashes = 0
        self._told("retry", {})
        self.wake()

    @contextmanager
    def held(self) -> Iterator[None]:
        """No training begins meanwhile; refused while one is under way. For what opens an item again."""
        with self._starting:
            if self._child is not None:
                raise HTTPError(409, "training", "the next round is being trained", fix="try again when it is open")
            yield

    def stop(self) -> None:
        """End the child and stop watching."""
        self._stopped.set()
        self._woken.set()
        child = self._child
        if child is not None:
            child.kill()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _watch(self) -> None:
        while not self._stopped.is_set():
            self._woken.wait()
            self._woken.clear()
            try:
                while not self._stopped.is_set() and self.failure is None and (child := self._begin()):
                    self._run(child)
            except Exception as broken:  # whatever it is, people must see it
                if is_storage_fault(broken):
                    self._wait(broken)
                else:
                    LOG.exception("training cannot be started")
                    self._fail(f"{type(broken).__name__}: {broken}")

    def _wait(self, fault: object) -> None:
        """Try again after a while, as often as it takes: storage comes back."""
        STORAGE_LOG.error("training waits for the storage: %s", fault)
        self._stopped.wait(self._later)
        self._woken.set()

    def _begin(self) -> subprocess.Popen[str] | None:
        """Start a child, if the round is complete."""
        with self._starting:
            if not self._ready():
                return None
            self._complaint = None
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,  # open for as long as this process lives
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
            )
            return self._child

    def _run(self, child: subprocess.Popen[str]) -> None:
        """One child from beginning to end."""
        code, complaint = self._listen(child)
        if self._stopped.is_set():
            return
        if code == 0:
            self._crashes = 0
            self._ended()
            return
        if code == NO_STORAGE:
            self._wait(complaint)
            return
        LOG.error("training ended with code %d: %s", code, complaint)
        if code == WRONG or self._crashes >= len(self._pauses):
            self._fail(complaint)
            return
        self._ended()
        self._stopped.wait(self._pauses[self._crashes])
        self._crashes += 1

    def _listen(self, child: subprocess.Popen[str]) -> tuple[int, str]:
        """Pass on what a child tells; its exit code and its last words."""
        assert child.stdout is not None
        assert child.stderr is not None
        words: deque[str] = deque(maxlen=TAIL)
        reader = threading.Thread(target=words.extend, args=(child.stderr,), daemon=True)
        reader.start()
        try:
            if self._stopped.is_set():
                child.kill()
            for line in child.stdout:
                self._pass_on(line)
            code = child.wait()
        finally:
            child.kill()
            child.wait()
            reader.join(timeout=2)
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream is not None:
                    stream.close()
            self._child = None
        said = [line.strip() for line in words if line.strip()]
        return code, self._complaint or (said[-1] if said else f"the training process ended with code {code}")

    def _pass_on(self, line: str) -> None:
        """A line that is no event of ours is somebody's print: it is left to the log."""
        try:
            event = json.loads(line)
            name = event.pop("event")
        except (ValueError, AttributeError, KeyError, TypeError):
            LOG.info("training: %s", line.rstrip())
            return
        if name == "failed":
            self._complaint = ". Fix: ".join(str(event[key]) for key in ("error", "fix") if event.get(key))
        else:
            self._told(str(name), event)

    def _fail(self, message: str) -> None:
        self.failure = message
        self._told("failed", {"message": message})
        with suppress(StorageError):  # what was decided is looked at when the storage is back
            self._ended()
