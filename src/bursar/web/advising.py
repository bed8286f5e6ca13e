"""How should the budget be split between the tasks? Asked beside the server, in a process of its own.

Measuring trains many small models, so it takes a while: one question at a time, and what came of the newest is kept in
the project's folder with the state that it was asked at. ``bursar.web.advice_worker`` is what the process runs.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bursar.annotation.subprocess_events import PYTHON, listen
from bursar.corpus.formats.format import replacing
from bursar.errors import BursarError
from bursar.web.api_models import AdviceOut
from bursar.web.events import Hub
from bursar.web.http_errors import HTTPError

ADVICE_FILE = "advice.json"
STAGES = ("who informs whom", "how fast tasks saturate", "how hard tasks are", "if one estimate is off")
ASKED_AT = {"round", "spent"}
SHOWN = {"budget", "shares", "gains", "whole", "reasons", "informs", "tables"}  # what the page needs of a split
EVERY = 0.5  # seconds between two news of the progress


@dataclass
class Advice:
    """Advice that was asked for: under way, found, or why there is none."""

    amount: str  # of money, as it was asked
    asked_at: dict[str, Any]  # the round, and what had been spent
    done: bool = False
    progress: float = 0.0
    what: str = ""
    result: dict[str, Any] | None = None
    wrong: dict[str, str | None] | None = None


class Advising:
    """Asks a child how to split money, and keeps its newest answer."""

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
        self._child: subprocess.Popen[str] | None = None
        self._closed = False
        self._told = 0.0
        self.newest = _kept(folder / ADVICE_FILE)

    def start(self, amount: str) -> Advice:
        """Begin, unless the same is being asked already."""
        state = self._state()
        with self._lock:
            if self.newest is not None and not self.newest.done:
                if self.newest.amount == amount:
                    return self.newest
                raise HTTPError(409, "advice_under_way", "another split is being worked out", fix="wait for it")
            asked = Advice(amount, {"round": state["round"], "spent": state["spent"]})
            self.newest = asked
        threading.Thread(target=self._work, args=(asked,), name="advice", daemon=True).start()
        return asked

    def close(self) -> None:
        """End the child, if there is one."""
        self._closed = True
        child = self._child
        if child is not None:
            child.kill()

    def _work(self, asked: Advice) -> None:
        command = self._command(self._folder, asked.amount)
        try:
            asked.result = listen(command, lambda what, done: self._note(asked, what, done), self._started)
        except BursarError as error:
            asked.wrong = {"error": error.message, "fix": error.fix, "kind": "no_advice"}
        except Exception as broken:  # people must see it, whatever it is
            asked.wrong = {"error": f"{type(broken).__name__}: {broken}", "fix": None, "kind": "broken"}
        self._child = None
        if self._closed:
            return
        if asked.result is not None:  # on disk before anybody is told
            found = asdict(replace(asked, done=True, progress=1.0, what=""))
            with suppress(OSError), replacing(self._folder / ADVICE_FILE) as file:
                json.dump(found, file)
        asked.progress, asked.done = 1.0, True
        self._hub.publish("advice", {"done": True, "progress": 1.0, "what": ""})

    def _started(self, child: subprocess.Popen[str]) -> None:
        self._child = child
        if self._closed:
            child.kill()

    def _note(self, asked: Advice, what: str, done: float) -> None:
        at = STAGES.index(what) if what in STAGES else 0
        asked.what, asked.progress = what, round((at + done) / len(STAGES), 3)
        if time.monotonic() - self._told >= EVERY:
            self._told = time.monotonic()
            self._hub.publish("advice", {"done": False, "progress": asked.progress, "what": what})


def advice_command(folder: Path, amount: str) -> list[str]:
    """What works out how to split so much money."""
    return [*PYTHON, "bursar.web.advice_worker", str(folder), amount]


def _kept(path: Path) -> Advice | None:
    """What was found when the project was last open; a file that is not as we write it is none."""
    try:
        known = AdviceOut.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    whole = known.done and known.result is not None and known.result.keys() >= SHOWN
    return Advice(**known.model_dump()) if whole and known.asked_at.keys() >= ASKED_AT else None
