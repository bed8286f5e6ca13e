"""Previews of changed settings, computed one at a time in a background thread."""

from __future__ import annotations

import queue
import secrets
import threading
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from bursar.annotation.session import AnnotationSession
from bursar.web.events import Hub
from bursar.web.http_errors import ErrorBody, HTTPError, failed_in_background

MOST_KEPT = 50
MOST_WAITING = 8  # unfinished previews


class Preview(BaseModel):
    """A running preview, or its result."""

    job: str
    done: bool = False
    progress: float = 0.0
    result: dict[str, Any] | None = None
    wrong: ErrorBody | None = None

    def note(self, what: str, done: float) -> None:
        """Note the progress."""
        self.progress = done


class Previews:
    """Runs previews and publishes an event when each is done."""

    def __init__(self, session: AnnotationSession, hub: Hub) -> None:
        self._session, self._hub = session, hub
        self._lock = threading.Lock()
        self._jobs: dict[str, Preview] = {}
        self._asked: queue.SimpleQueue[tuple[Preview, dict[str, Any]] | None] = queue.SimpleQueue()
        # A daemon thread: a running preview ends with the process.
        threading.Thread(target=self._work, name="preview", daemon=True).start()

    def start(self, changes: Mapping[str, Any]) -> Preview:
        """Start a preview."""
        job = Preview(job=secrets.token_hex(8))
        with self._lock:
            if sum(not known.done for known in self._jobs.values()) >= MOST_WAITING:
                raise HTTPError(429, "too_many_previews", "too many previews are waiting", retry_after=5)
            self._jobs[job.job] = job
            for old in list(self._jobs)[:-MOST_KEPT]:
                del self._jobs[old]
        self._asked.put((job, dict(changes)))
        return job

    def get(self, job: str) -> Preview:
        """A preview by its id."""
        try:
            return self._jobs[job]
        except KeyError:
            raise HTTPError(404, "no_preview", "this preview does not exist or has expired") from None

    def close(self) -> None:
        """Stop the thread after the current preview."""
        self._asked.put(None)

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            job, changes = asked
            try:
                job.result = self._session.preview(changes, job.note)
            except Exception as error:  # the thread must go on
                job.wrong = failed_in_background(error, "bad_settings")
            job.progress, job.done = 1.0, True
            self._hub.publish("preview", {"job": job.job, "done": True})
