"""Advice on splitting the budget between tasks, computed in a separate process.

It trains many small models, so only one request runs at a time. The latest result is kept in the project folder with
the campaign state at the time of the request. The process runs ``bursar.web.advice_worker``.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bursar.annotation.subprocess_events import PYTHON, WorkerProcess, listen
from bursar.corpus.formats.format import replacing
from bursar.errors import BursarError
from bursar.web.api_models import AdviceOut
from bursar.web.events import Hub
from bursar.web.http_errors import HTTPError

ADVICE_FILE = "advice.json"
STAGES = ("who informs whom", "how fast tasks saturate", "how hard tasks are", "if one estimate is off")
ASKED_AT = {"round", "spent"}
SHOWN = {"budget", "shares", "gains", "whole", "reasons", "informs", "tables"}  # keys that the page needs
PUBLISH_EVERY = 0.5  # seconds between two progress events


@dataclass
class Advice:
    """Requested advice: running, finished or failed."""

    amount: str  # of money, as requested
    asked_at: dict[str, Any]  # round and amount spent at the request
    done: bool = False
    progress: float = 0.0
    what: str = ""
    result: dict[str, Any] | None = None
    wrong: dict[str, str | None] | None = None


class Advising:
    """Runs the advice process and keeps its latest result."""

    def __init__(
        self,
        folder: Path,
        hub: Hub,
        state: Callable[[], Mapping[str, Any]],
        command: Callable[[Path, str], list[str]] | None = None,
    ) -> None:
        self._folder = folder
        self._command = command or advice_command
        self._hub = hub
        self._state = state
        self._lock = threading.Lock()
        self._process: WorkerProcess | None = None
        self._closed = False
        self._published_at = 0.0
        self.newest = _load(folder / ADVICE_FILE)

    def start(self, amount: str) -> Advice:
        """Start, unless the same request is already running."""
        state = self._state()
        with self._lock:
            if self.newest is not None and not self.newest.done:
                if self.newest.amount == amount:
                    return self.newest
                raise HTTPError(409, "advice_under_way", "another split is being computed", fix="wait until it is done")
            advice = Advice(amount, {"round": state["round"], "spent": state["spent"]})
            self.newest = advice
        threading.Thread(target=self._work, args=(advice,), name="advice", daemon=True).start()
        return advice

    def close(self) -> None:
        """Stop the process, if it is running."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()

    def _work(self, advice: Advice) -> None:
        try:
            self._process = process = WorkerProcess(self._command(self._folder, advice.amount))
            if self._closed:
                process.kill()
            advice.result = listen(process, lambda what, done: self._note(advice, what, done))
        except BursarError as error:
            advice.wrong = {"error": error.message, "fix": error.fix, "kind": "no_advice"}
        except Exception as error:  # show any failure on the page
            advice.wrong = {"error": f"{type(error).__name__}: {error}", "fix": None, "kind": "broken"}
        self._process = None
        if self._closed:
            return
        if advice.result is not None:  # save it before listeners are notified
            found = asdict(replace(advice, done=True, progress=1.0, what=""))
            with suppress(OSError), replacing(self._folder / ADVICE_FILE) as file:
                json.dump(found, file)
        advice.progress, advice.done = 1.0, True
        self._hub.publish("advice", {"done": True, "progress": 1.0, "what": ""})

    def _note(self, advice: Advice, what: str, done: float) -> None:
        at = STAGES.index(what) if what in STAGES else 0
        advice.what, advice.progress = what, round((at + done) / len(STAGES), 3)
        if time.monotonic() - self._published_at >= PUBLISH_EVERY:
            self._published_at = time.monotonic()
            self._hub.publish("advice", {"done": False, "progress": advice.progress, "what": what})


def advice_command(folder: Path, amount: str) -> list[str]:
    """The command that computes a split of this amount."""
    return [*PYTHON, "bursar.web.advice_worker", str(folder), amount]


def _load(path: Path) -> Advice | None:
    """The saved advice; None if there is none or the file is incomplete."""
    try:
        known = AdviceOut.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    whole = known.done and known.result is not None and known.result.keys() >= SHOWN
    return Advice(**known.model_dump()) if whole and known.asked_at.keys() >= ASKED_AT else None
