"""Advice on splitting the budget between tasks, computed in a separate process.

It trains many small models, so only one request runs at a time. The latest result is kept in the project folder with
the campaign state at the time of the request. The process runs ``bursar.web.advice_worker``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from bursar.annotation.session import SessionState
from bursar.annotation.subprocess_events import PYTHON, WorkerProcess, listen
from bursar.corpus.formats.format import replacing
from bursar.web.events import Hub
from bursar.web.http_errors import ErrorBody, HTTPError, failed_in_background

ADVICE_FILE = "advice.json"
STAGES = ("who informs whom", "how fast tasks saturate", "how hard tasks are", "if one estimate is off")
ASKED_AT = {"round", "spent"}
SHOWN = {"budget", "shares", "gains", "whole", "reasons", "informs", "tables"}  # keys that the page needs
PUBLISH_EVERY = 0.5  # seconds between two progress events


class Advice(BaseModel):
    """Running or finished advice on a budget split."""

    amount: str  # of money, as requested
    asked_at: dict[str, Any] = Field(description="The round and the amount spent when it was requested.")
    done: bool = False
    progress: float = 0.0
    what: str = ""
    result: dict[str, Any] | None = None
    wrong: ErrorBody | None = None


class Advising:
    """Runs the advice process and keeps its latest result."""

    def __init__(
        self,
        folder: Path,
        hub: Hub,
        state: Callable[[], SessionState],
        command: Callable[[Path, str], list[str]] | None = None,
    ) -> None:
        self._folder, self._hub, self._state = folder, hub, state
        self._command = command or advice_command
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
            advice = Advice(amount=amount, asked_at={"round": state.round, "spent": state.spent})
            self.newest = advice
        threading.Thread(target=self._work, args=(advice,), name="advice", daemon=True).start()
        return advice

    def close(self) -> None:
        """Stop the process, if it is running."""
        self._closed = True
        if (process := self._process) is not None:
            process.kill()

    def _work(self, advice: Advice) -> None:
        try:
            self._process = process = WorkerProcess(self._command(self._folder, advice.amount))
            if self._closed:
                process.kill()
            advice.result = listen(process, lambda what, done: self._note(advice, what, done))
        except Exception as error:  # show any failure on the page
            advice.wrong = failed_in_background(error, "no_advice")
        self._process = None
        if self._closed:
            return
        if advice.result is not None:  # save it before listeners are notified
            found = advice.model_copy(update={"done": True, "progress": 1.0, "what": ""})
            with suppress(OSError), replacing(self._folder / ADVICE_FILE) as file:
                file.write(found.model_dump_json())
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
        known = Advice.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    whole = known.done and known.result is not None and known.result.keys() >= SHOWN
    return known if whole and known.asked_at.keys() >= ASKED_AT else None
