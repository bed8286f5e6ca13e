"""Labelled data to download: a separate process labels every item and writes the file, one request at a time.

Files are in a temporary folder, which is removed when the server stops; those of the latest requests are kept. The
process runs ``bursar.web.predict_worker``.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from bursar.annotation.subprocess_events import PYTHON, WorkerProcess, listen
from bursar.web.events import Hub
from bursar.web.http_errors import ErrorBody, HTTPError, failed_in_background

MOST_KEPT = 4  # files
PUBLISH_EVERY = 0.5  # seconds between two progress events


class LabellingOptions(BaseModel):
    """What is written: the format, and which labels."""

    format: str
    thresholds: dict[str, float] = {}
    tasks: list[str] = []
    lose: list[str] = []


class Labelling(BaseModel):
    """A running request for labelled data, or its result."""

    job: str
    options: LabellingOptions
    done: bool = False
    progress: float = 0.0
    what: str = ""
    result: dict[str, Any] | None = Field(
        default=None, description="The file's name, how many labels are by whom, and the errors to expect by task."
    )
    wrong: ErrorBody | None = None


class LabelledData:
    """Runs the process and keeps its files."""

    def __init__(
        self,
        project: Path,
        hub: Hub,
        name: str,
        *,
        trust: bool = False,
        command: Callable[[Path, Path, str, bool], list[str]] | None = None,
    ) -> None:
        self._project, self._hub, self._trust = project, hub, trust
        self._name = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "project"
        self._command = command or predict_command
        self._lock = threading.Lock()
        self._jobs: dict[str, Labelling] = {}
        self._process: WorkerProcess | None = None
        self._closed = False
        self._published_at = 0.0
        self._folder = tempfile.TemporaryDirectory(prefix="bursar-labelled-", ignore_cleanup_errors=True)

    def start(self, options: LabellingOptions) -> Labelling:
        """Start, unless the same request is already running."""
        with self._lock:
            newest = self.newest
            if newest is not None and not newest.done:
                if newest.options == options:
                    return newest
                fix = "wait until it is done"
                raise HTTPError(409, "labelling_under_way", "another file is being written", fix=fix)
            job = Labelling(job=secrets.token_hex(8), options=options)
            self._jobs[job.job] = job
            for old in list(self._jobs)[:-MOST_KEPT]:
                del self._jobs[old]
                shutil.rmtree(self._place(old), ignore_errors=True)
        threading.Thread(target=self._work, args=(job,), name="labelled data", daemon=True).start()
        return job

    @property
    def newest(self) -> Labelling | None:
        """The latest request, if there was one."""
        return next(reversed(self._jobs.values()), None)

    def get(self, job: str) -> Labelling:
        """A request by its id."""
        try:
            return self._jobs[job]
        except KeyError:
            raise HTTPError(404, "no_labelling", "this request does not exist or has expired") from None

    def file(self, job: str) -> Path:
        """The file of a finished request."""
        found = self.get(job)
        if found.result is None:
            raise HTTPError(409, "no_file", "there is no file of this request", fix="wait until it is done")
        return self._place(job) / str(found.result["file"])

    def close(self) -> None:
        """Stop the process, if it is running, and delete the files."""
        self._closed = True
        if (process := self._process) is not None:
            process.kill()
        self._folder.cleanup()

    def _place(self, job: str) -> Path:
        return Path(self._folder.name) / job

    def _work(self, job: Labelling) -> None:
        try:
            place = self._place(job.job)
            place.mkdir()
            request = json.dumps(job.options.model_dump() | {"name": f"{self._name}-labelled"})
            self._process = process = WorkerProcess(self._command(self._project, place, request, self._trust))
            if self._closed:
                process.kill()
            job.result = listen(process, lambda what, done: self._note(job, what, done))
        except Exception as error:  # show any failure on the page
            job.wrong = failed_in_background(error, "no_labels")
        self._process = None
        job.progress, job.done = 1.0, True
        if not self._closed:
            self._hub.publish("predictions", {"job": job.job, "done": True, "progress": 1.0, "what": ""})

    def _note(self, job: Labelling, what: str, done: float) -> None:
        job.what, job.progress = what, done
        if time.monotonic() - self._published_at >= PUBLISH_EVERY:
            self._published_at = time.monotonic()
            self._hub.publish("predictions", {"job": job.job, "done": False, "progress": done, "what": what})


def predict_command(project: Path, folder: Path, request: str, trust: bool) -> list[str]:
    """The command that writes a file of labelled data."""
    options = ["--trust"] if trust else []
    return [*PYTHON, "bursar.web.predict_worker", *options, "--", str(project), str(folder), request]
