"""Work in the background of the server: previews of settings, advice on splitting the budget, and labelled data.

Advice and labelled data are worked out in a process of their own, one request at a time.
"""

from __future__ import annotations

import json
import queue
import re
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, Field

from bursar.annotation.session import AnnotationSession, SessionState
from bursar.annotation.subprocess_events import PYTHON, WorkerProcess, listen
from bursar.corpus.formats.format import replacing
from bursar.errors import DataError
from bursar.web.events import Hub
from bursar.web.http_errors import ErrorBody, HTTPError, failed_in_background

MOST_PREVIEWS = 50  # kept
MOST_WAITING = 8  # unfinished previews
MOST_FILES = 4  # kept
PUBLISH_EVERY = 0.5  # seconds between two progress events
ADVICE_FILE = "advice.json"
STAGES = ("who informs whom", "how fast tasks saturate", "how hard tasks are", "if one estimate is off")
ASKED_AT = {"round", "spent"}
SHOWN = {"budget", "shares", "gains", "whole", "reasons", "informs", "tables"}  # keys that the page needs


class Job(BaseModel):
    """Work in progress, or its result."""

    done: bool = False
    progress: float = 0.0
    result: dict[str, Any] | None = None
    wrong: ErrorBody | None = None


class Preview(Job):
    """A running preview, or its result."""

    job: str

    def note(self, what: str, done: float) -> None:
        self.progress = done


class Previews:
    """Runs previews one at a time in a thread, and publishes an event when each is done."""

    def __init__(self, session: AnnotationSession, hub: Hub) -> None:
        self._session, self._hub = session, hub
        self._lock = threading.Lock()
        self._jobs: dict[str, Preview] = {}
        self._asked: queue.SimpleQueue[tuple[Preview, dict[str, Any]] | None] = queue.SimpleQueue()
        # A daemon thread: a running preview ends with the process.
        threading.Thread(target=self._work, name="preview", daemon=True).start()

    def start(self, changes: Mapping[str, Any]) -> Preview:
        job = Preview(job=secrets.token_hex(8))
        with self._lock:
            if sum(not known.done for known in self._jobs.values()) >= MOST_WAITING:
                raise HTTPError(429, "too_many_previews", "too many previews are waiting", retry_after=5)
            self._jobs[job.job] = job
            for old in list(self._jobs)[:-MOST_PREVIEWS]:
                del self._jobs[old]
        self._asked.put((job, dict(changes)))
        return job

    def get(self, job: str) -> Preview:
        if job not in self._jobs:
            raise HTTPError(404, "no_preview", "this preview does not exist or has expired")
        return self._jobs[job]

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


# -- one process at a time ---------------------------------------------------------------------------------------------
class ProcessJob(Job):
    """What a process works out, or has worked out."""

    what: str = ""


J = TypeVar("J", bound=ProcessJob)


class ProcessJobs(Generic[J]):
    """Runs one process at a time and publishes its progress. ``newest`` is the latest request."""

    event: ClassVar[str]
    failed: ClassVar[str]  # the kind of an error that the process reports
    under_way: ClassVar[tuple[str, str]]  # the kind of error and the message while another request runs

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._lock = threading.Lock()
        self._process: WorkerProcess | None = None
        self._closed = False
        self._published_at = 0.0
        self._request: object = None
        self.newest: J | None = None

    def close(self) -> None:
        """Stop the process, if it is running."""
        self._closed = True
        if (process := self._process) is not None:
            process.kill()

    def _begin(self, job: J, request: object, command: Callable[[], Sequence[str]]) -> J:
        """Start a job. While one is running, it is returned for the same request, and refuses another one."""
        with self._lock:
            if self.newest is not None and not self.newest.done:
                if self._request == request:
                    return self.newest
                raise HTTPError(409, *self.under_way, fix="wait until it is done")
            self.newest, self._request = job, request
        threading.Thread(target=self._work, args=(job, command), name=self.event, daemon=True).start()
        return job

    def _work(self, job: J, command: Callable[[], Sequence[str]]) -> None:
        try:
            self._process = process = WorkerProcess(command())
            if self._closed:
                process.kill()
            job.result = listen(process, partial(self._note, job))
        except Exception as error:  # show any failure on the page
            job.wrong = failed_in_background(error, self.failed)
        self._process = None
        if not self._closed:
            job.progress, job.what = 1.0, ""
            self._keep(job)  # before anybody is told
            job.done = True
            self._publish(job)

    def _note(self, job: J, what: str, done: float) -> None:
        job.what, job.progress = what, self._share(what, done)
        if time.monotonic() - self._published_at >= PUBLISH_EVERY:
            self._published_at = time.monotonic()
            self._publish(job)

    def _publish(self, job: J) -> None:
        self._hub.publish(self.event, job.model_dump(include={"job", "done", "progress", "what"}))

    def _keep(self, job: J) -> None:
        """Store a finished job."""

    def _share(self, what: str, done: float) -> float:
        """The share of the whole work that is done."""
        return done


class Advice(ProcessJob):
    """Running or finished advice on a budget split."""

    amount: str  # of money, as requested
    asked_at: dict[str, Any] = Field(description="The round and the amount spent when it was requested.")


def advice_command(folder: Path, amount: str) -> list[str]:
    """The command that computes a split of this amount."""
    return [*PYTHON, "bursar.web.advice_worker", str(folder), amount]


class Advising(ProcessJobs[Advice]):
    """Works out how to split the budget between tasks. The latest result is kept in the project folder."""

    event, failed = "advice", "no_advice"
    under_way = "advice_under_way", "another split is being computed"

    def __init__(self, folder: Path, hub: Hub, state: Callable[[], SessionState]) -> None:
        super().__init__(hub)
        self._folder, self._state, self._command = folder, state, advice_command
        with suppress(OSError, ValueError):
            known = Advice.model_validate_json((folder / ADVICE_FILE).read_bytes())
            if known.done and (known.result or {}).keys() >= SHOWN and known.asked_at.keys() >= ASKED_AT:
                self.newest = known

    def start(self, amount: str) -> Advice:
        """Start, unless the same request is already running."""
        state = self._state()
        advice = Advice(amount=amount, asked_at={"round": state.round, "spent": state.spent})
        return self._begin(advice, amount, lambda: self._command(self._folder, amount))

    def _keep(self, job: Advice) -> None:
        if job.result is not None:
            with suppress(OSError, DataError), replacing(self._folder / ADVICE_FILE) as file:
                file.write(job.model_copy(update={"done": True}).model_dump_json())

    def _share(self, what: str, done: float) -> float:
        return round(((STAGES.index(what) if what in STAGES else 0) + done) / len(STAGES), 3)


class LabellingOptions(BaseModel):
    """What is written: the format, and which labels."""

    format: str
    thresholds: dict[str, float] = {}
    tasks: list[str] = []
    lose: list[str] = []


class Labelling(ProcessJob):
    """A running request for labelled data, or its result."""

    job: str
    options: LabellingOptions
    result: dict[str, Any] | None = Field(
        default=None, description="The file's name, how many labels are by whom, and the errors to expect by task."
    )


def predict_command(project: Path, folder: Path, request: str, trust: bool) -> list[str]:
    """The command that writes a file of labelled data."""
    options = ["--trust"] if trust else []
    return [*PYTHON, "bursar.web.predict_worker", *options, "--", str(project), str(folder), request]


class LabelledData(ProcessJobs[Labelling]):
    """Labels every item and writes files to download. The latest ones are kept until the server stops."""

    event, failed = "predictions", "no_labels"
    under_way = "labelling_under_way", "another file is being written"

    def __init__(self, project: Path, hub: Hub, name: str, trust: bool = False) -> None:
        super().__init__(hub)
        self._project, self._command = project, partial(predict_command, trust=trust)
        self._name = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "project"
        self._jobs: dict[str, Labelling] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="bursar-labelled-", ignore_cleanup_errors=True)

    def start(self, options: LabellingOptions) -> Labelling:
        """Start, unless the same request is already running."""
        new = Labelling(job=secrets.token_hex(8), options=options)
        job = self._begin(new, options, lambda: self._command_for(new))
        with self._lock:
            self._jobs[job.job] = job
            for old in list(self._jobs)[:-MOST_FILES]:
                del self._jobs[old]
                shutil.rmtree(self._place(old), ignore_errors=True)
        return job

    def get(self, job: str) -> Labelling:
        if job not in self._jobs:
            raise HTTPError(404, "no_labelling", "this request does not exist or has expired")
        return self._jobs[job]

    def file(self, job: str) -> Path:
        """The file of a finished request."""
        found = self.get(job)
        if found.result is None:
            raise HTTPError(409, "no_file", "there is no file of this request", fix="wait until it is done")
        return self._place(job) / str(found.result["file"])

    def close(self) -> None:
        """Stop the process, if it is running, and delete the files."""
        super().close()
        self._folder.cleanup()

    def _place(self, job: str) -> Path:
        return Path(self._folder.name) / job

    def _command_for(self, job: Labelling) -> list[str]:
        self._place(job.job).mkdir()
        request = json.dumps(job.options.model_dump() | {"name": f"{self._name}-labelled"})
        return self._command(self._project, self._place(job.job), request)
