"""Worker processes that print events as JSON lines: both sides of the pipe."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bursar.errors import BursarError, ComputeError, ConfigError, is_storage_fault
from bursar.learners.learner import Progress

LOG = logging.getLogger("bursar.worker")
WRONG = 2  # exit code for errors that a retry cannot fix
NO_STORAGE = os.EX_TEMPFAIL  # exit code for storage faults, which are worth a retry
PYTHON = (sys.executable, "-P", "-m")  # -P: do not import modules from the current folder
TAIL = 40  # lines of standard error

SendEvent = Callable[[Mapping[str, Any]], None]


# -- the worker's side -------------------------------------------------------------------------------------------------
def run_worker(work: Callable[[SendEvent], object], niceness: int) -> int:
    """Do the work of a process and print its events to standard output; returns the exit code.

    Other output goes to standard error. The process ends with its parent. ``niceness`` lowers its priority.
    """
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # other output must not mix with the events
    last = ""

    def send(event: Mapping[str, Any]) -> None:
        nonlocal last
        line = json.dumps(event, ensure_ascii=False)
        if line != last:
            last = line
            out.write(line + "\n")
            out.flush()

    _end_with_parent()
    with suppress(OSError):
        os.nice(niceness)
    try:
        work(send)
    except BursarError as wrong:
        send({"event": "failed", "error": wrong.message, "fix": wrong.fix})
        sys.stderr.write(f"{wrong}\n")
        return NO_STORAGE if is_storage_fault(wrong) else WRONG
    except BrokenPipeError:
        return 1
    except Exception as broken:
        traceback.print_exc()
        send({"event": "failed", "error": f"{type(broken).__name__}: {broken}", "fix": None})
        return NO_STORAGE if is_storage_fault(broken) else 1
    return 0


def _end_with_parent() -> None:
    """If standard input is a pipe, exit when the parent closes it or ends."""
    if not stat.S_ISFIFO(os.fstat(0).st_mode):
        return

    def wait() -> None:
        with suppress(OSError):
            while os.read(0, 4096):
                pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def stages_sent(send: SendEvent) -> Progress:
    """Progress as events."""
    return lambda what, done: send({"event": "stage", "round": 0, "what": what, "done": round(done, 3)})


# -- the parent's side -------------------------------------------------------------------------------------------------
class WorkerProcess:
    """A running worker. Read ``events`` to their end, then ``code`` and ``message`` say how it ended."""

    def __init__(self, command: Sequence[str]) -> None:
        pipe = subprocess.PIPE  # the worker ends when its standard input closes
        self._process = subprocess.Popen(
            list(command), stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8", errors="replace"
        )
        self._tail: deque[str] = deque(maxlen=TAIL)
        self.code = 1

    def kill(self) -> None:
        self._process.kill()

    def events(self) -> Iterator[dict[str, Any]]:
        """The worker's events until it ends; other lines are logged. The worker is killed if you stop reading."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        reader = threading.Thread(target=self._tail.extend, args=(process.stderr,), daemon=True)
        reader.start()
        try:
            for line in process.stdout:
                try:
                    event = json.loads(line)
                    event["event"]
                except (ValueError, KeyError, TypeError):
                    LOG.info("worker: %s", line.rstrip())
                    continue
                yield event
            self.code = process.wait()
        finally:
            process.kill()
            process.wait()
            reader.join(timeout=2)
            for stream in (process.stdin, process.stdout, process.stderr):
                stream.close()

    @property
    def message(self) -> str:
        """The last line of standard error."""
        lines = [line.strip() for line in self._tail if line.strip()]
        return lines[-1] if lines else f"the training process exited with code {self.code}"


def training_command(
    folder: Path, trust: bool = False, changes: Mapping[str, Any] | None = None, engine: str = "here"
) -> list[str]:
    """The command that trains the next round of a project, or previews it with changes."""
    options = [*(["--trust"] if trust else []), *(["--engine", engine] if engine != "here" else [])]
    options += [] if changes is None else ["--preview", json.dumps(changes)]
    return [*PYTHON, "bursar.annotation.round_worker", *options, "--", str(folder)]


def listen(worker: WorkerProcess, progress: Progress) -> dict[str, Any]:
    """Wait for a worker to end; returns the last event that is not progress, or what it found."""
    last: dict[str, Any] = {}
    for event in worker.events():
        if event["event"] == "stage":
            progress(event["what"], event["done"])
        elif event["event"] != "scored":
            last = event
    if worker.code == WRONG and last.get("event") == "failed":
        raise ConfigError(last["error"], fix=last["fix"])
    if worker.code != 0:
        raise ComputeError(worker.message, fix="try again")
    found: dict[str, Any] = last.get("found", last)
    return found
