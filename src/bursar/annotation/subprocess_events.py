"""Starts the process that trains beside a live campaign, listens to it and hands back what it found."""

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

WRONG = 2  # the exit code that says: this will not get better by trying again
PYTHON = (sys.executable, "-P", "-m")  # -P: never a module from the folder that the command is given in
TAIL = 20  # lines of what a child complained of


def run_child(
    folder: Path, changes: Mapping[str, Any] | None, progress: Progress, *, trust: bool = False
) -> dict[str, Any]:
    """Let a child train the next round, or preview it with changes; what it told last, apart from its stages."""
    return listen(training_command(folder, trust, changes), progress)


def training_command(
    folder: Path, trust: bool = False, changes: Mapping[str, Any] | None = None, engine: str = "here"
) -> list[str]:
    """What trains the next round of a project, its pool scored by an engine, or previews it with changes."""
    options = (["--trust"] if trust else []) + ([] if changes is None else ["--preview", json.dumps(changes)])
    options += [] if engine == "here" else ["--engine", engine]
    return [*PYTHON, "bursar.annotation.round_worker", *options, "--", str(folder)]


def listen(
    command: Sequence[str], progress: Progress, started: Callable[[subprocess.Popen[str]], None] = lambda child: None
) -> dict[str, Any]:
    """Start a child that tells its stages as JSON, a line each; what it told last, apart from those."""
    child = subprocess.Popen(
        list(command),
        stdin=subprocess.PIPE,  # open for as long as this process lives: the child ends with it
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
        raise ComputeError(said[-1] if said else f"the training process ended with code {code}", fix="try again")
    found: dict[str, Any] = last.get("found", last)
    return found
