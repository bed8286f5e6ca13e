"""Runs the worker process, reads its events, and returns its result."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bursar.errors import ComputeError, ConfigError
from bursar.learners.learner import Progress

WRONG = 2  # exit code for errors that a retry cannot fix
PYTHON = (sys.executable, "-P", "-m")  # -P: do not import modules from the current folder
TAIL = 20  # lines of standard error


def run_child(
    folder: Path, changes: Mapping[str, Any] | None, progress: Progress, *, trust: bool = False
) -> dict[str, Any]:
    """Train the next round, or preview it with changes, in a worker process; returns its result."""
    return listen(training_command(folder, trust, changes), progress)


def training_command(
    folder: Path, trust: bool = False, changes: Mapping[str, Any] | None = None, engine: str = "here"
) -> list[str]:
    """The command that trains the next round of a project, or previews it with changes."""
    options = (["--trust"] if trust else []) + ([] if changes is None else ["--preview", json.dumps(changes)])
    options += [] if engine == "here" else ["--engine", engine]
    return [*PYTHON, "bursar.annotation.round_worker", *options, "--", str(folder)]


def listen(
    command: Sequence[str], progress: Progress, started: Callable[[subprocess.Popen[str]], None] = lambda child: None
) -> dict[str, Any]:
    """Run a process that prints events as JSON lines; returns the last event that is not progress."""
    child = subprocess.Popen(
        list(command),
        stdin=subprocess.PIPE,  # the child ends when this closes
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    words: deque[str] = deque(maxlen=TAIL)
    listener = threading.Thread(target=words.extend, args=(child.stderr,), daemon=True)
    listener.start()
    started(child)
    last: dict[str, Any] = {}
    try:
        for line in child.stdout:
            event = json.loads(line)
            if event["event"] == "stage":
                progress(event["what"], event["done"])
            elif event["event"] != "scored":
                last = event
        code = child.wait()
    finally:
        child.kill()
        child.wait()
        listener.join(timeout=2)
        for stream in (child.stdin, child.stdout, child.stderr):
            stream.close()
    if code == WRONG and last.get("event") == "failed":
        raise ConfigError(last["error"], fix=last["fix"])
    if code != 0:
        said = [line.strip() for line in words if line.strip()]
        raise ComputeError(said[-1] if said else f"the training process exited with code {code}", fix="try again")
    found: dict[str, Any] = last.get("found", last)
    return found
