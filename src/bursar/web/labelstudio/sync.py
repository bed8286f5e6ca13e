"""Synchronizes a campaign with a Label Studio project: push open items, pull annotations.

Push and pull can be interrupted and repeated. A task is imported only if the project has none for its item and round.
An annotation has its own ledger key, so it is paid for once however often it is pulled. The file ``label-studio.json``
in the run's folder records what was pulled, so that changes and deletions are detected.

- The first answer to an item is paid for. Other people's answers are recorded as overlap, to measure agreement.
- A changed annotation is recorded as a correction, at no cost.
- An annotation deleted at Label Studio stays in the ledger.
- An item skipped there is skipped here: its cost returns to the budget.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import BaseModel

from bursar.annotation.session import AnnotationSession
from bursar.corpus.formats.format import replacing
from bursar.errors import BursarError, ConfigError
from bursar.learners.learner import Progress, no_progress
from bursar.ledger import Answer
from bursar.ledger.records import ANSWER, CORRECTION, OVERLAP
from bursar.web.labelstudio.tasks import StudioAnnotation, annotations_in, config_for, key_of, task_of

if TYPE_CHECKING:
    from bursar.web.labelstudio.client import Studio

FILE = "label-studio.json"
VERSION = 1
BATCH = 50  # tasks per import request
SKIP = "skip"


# -- stored state ----------------------------------------------------------------------------------------------------
class PulledAnnotation(BaseModel):
    """An annotation as it was pulled, and the role in which it was recorded."""

    item: str
    round: int
    labels: dict[str, Any]
    role: str  # answer, overlap or skip
    gone: bool = False  # deleted at Label Studio


class SyncState(BaseModel):
    """The Label Studio project of a run, and the annotations pulled so far."""

    version: int = VERSION
    url: str
    mark: str  # in the project's description and configuration, to find it again
    project: int | None = None
    taken: dict[int, PulledAnnotation] = {}  # by annotation

    @classmethod
    def load(cls, folder: Path) -> SyncState | None:
        """The stored state; None if there is none."""
        path = folder / FILE
        try:
            stored = cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            fix = "delete it: the next push finds or creates the project, and nothing is paid for twice"
            raise ConfigError(f"{path} cannot be read: {type(error).__name__} {error}", fix=fix) from None
        if stored.version != VERSION:
            raise ConfigError(f"{path} has version {stored.version!r}", fix=f"this Bursar reads version {VERSION}")
        return stored

    def save(self, folder: Path) -> None:
        with replacing(folder / FILE) as file:
            file.write(self.model_dump_json(indent=1))


@dataclass(frozen=True)
class Pushed:
    """The result of a push."""

    project: int
    new: int  # imported tasks
    there: int  # tasks that existed already
    suggested: int  # new tasks with model suggestions


@dataclass
class Pulled:
    """The result of a pull: items by outcome, and annotations that could not be used."""

    answered: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)  # overlap: another person's answer to an answered item
    corrected: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    cost: int = 0  # in whole units of money

    @property
    def anything(self) -> bool:
        return any((self.answered, self.beside, self.corrected, self.skipped, self.deleted, self.problems))


# -- sync ------------------------------------------------------------------------------------------------------------
class Sync:
    """Pushes to and pulls from one server."""

    def __init__(self, session: AnnotationSession, server: Studio) -> None:
        self.session = session
        self.server = server
        self.sync_state = SyncState.load(session.folder)
        if session.config.costs.pricing != "predicted":
            raise ConfigError(
                f"{session.folder} is a simulation: it takes its prices from gold labels (costs.pricing = 'gold')",
                fix='set costs.pricing = "predicted" for a campaign with human annotators',
            )

    def push(self, progress: Progress = no_progress) -> Pushed:
        """Import open items that are not in the project yet, with suggestions."""
        config = config_for(self.session.corpus)  # raises if a task is not supported, before anything is created
        project = self._project_for_push(config)
        there = {key for tasks in self.server.pages(project) for task in tasks if (key := key_of(task))}
        wanted = self.session.wanted()
        new = [want for want in wanted if (want.round, want.id) not in there]
        tasks = [task_of(self.session.corpus, want, self.session.suggestions(want.id)) for want in new]
        for start in range(0, len(tasks), BATCH):
            progress("importing", start / len(tasks))
            self.server.import_tasks(project, tasks[start : start + BATCH])
        progress("importing", 1.0)
        return Pushed(project, len(new), len(wanted) - len(new), sum("predictions" in task for task in tasks))

    def _project_for_push(self, config: str) -> int:
        """The run's project, created if necessary. Its mark is saved first, so that there is only ever one."""
        state = self.sync_state
        found = None if state is None else self.server.find_project(state.mark, state.project)
        if state is None or (found is None and (state.project is not None or state.taken)):
            # This is the first push, or the project was deleted, or this is another server.
            state = SyncState(url=self.server.url, mark=f"bursar run {secrets.token_hex(8)}")
            state.save(self.session.folder)
        if found is None:
            about = f"Made by Bursar: please keep this line. {state.mark}"
            marked = config.replace("<View", f'<View run="{state.mark}"', 1)
            found = self.server.create_project(self.session.config.name, about, marked)
        state.project, state.url, self.sync_state = found, self.server.url, state
        state.save(self.session.folder)
        return found

    def project(self) -> int:
        """The id of the run's project; raises before the first push."""
        sync_state = self.sync_state
        found = None if sync_state is None else self.server.find_project(sync_state.mark, sync_state.project)
        if found is None:
            raise ConfigError(
                f"{self.session.folder} has no project at {self.server.url}",
                fix="push it first: bursar label-studio push",
            )
        return found

    def pull(self, progress: Progress = no_progress) -> Pulled:
        """Record annotations made since the last pull."""
        project, sync_state = self.project(), self.sync_state
        assert sync_state is not None  # there is a project
        people, pulled = self.server.people(), Pulled()
        seen: set[int] = set()
        for tasks in self.server.pages(project):
            for task in tasks:
                for annotation in annotations_in(self.session.corpus, task):
                    seen.add(annotation.id)
                    person = people.get(annotation.person, f"user {annotation.person}")
                    self._take(sync_state, annotation, person, pulled)
            sync_state.save(self.session.folder)
        for id, taken in sync_state.taken.items():
            if id not in seen and not taken.gone:
                pulled.deleted.append(taken.item)
            taken.gone = id not in seen
        sync_state.save(self.session.folder)
        return pulled

    # -- one annotation ----------------------------------------------------------------------------------------------
    def _take(self, sync_state: SyncState, annotation: StudioAnnotation, person: str, pulled: Pulled) -> None:
        """Record an annotation if it is new or has changed."""
        before = sync_state.taken.get(annotation.id)
        if before is not None and before.labels == annotation.labels and annotation.skipped == (before.role == SKIP):
            return
        try:
            if annotation.problem is not None:
                raise ConfigError(annotation.problem)
            if annotation.skipped:
                role = self._skip(before, annotation, person, pulled)
            elif before is not None:
                role = self._change(before.role, annotation, person, pulled)
            else:
                role = self._new(annotation, person, pulled)
        except BursarError as error:
            pulled.problems.append(f"item {annotation.item!r}, annotation {annotation.id}: {error}")
            return
        about: Any = {name: getattr(annotation, name) for name in ("item", "round", "labels")}
        sync_state.taken[annotation.id] = PulledAnnotation(**about, role=role)

    def _open(self, annotation: StudioAnnotation) -> bool:
        return any((want.round, want.id) == (annotation.round, annotation.item) for want in self.session.wanted())

    def _skip(self, before: PulledAnnotation | None, annotation: StudioAnnotation, person: str, pulled: Pulled) -> str:
        if before is not None and before.role != SKIP:
            raise ConfigError("it was cancelled after it had been recorded; the recorded labels stay")
        if self._open(annotation):
            self.session.recorder.skip(_key(annotation), annotation.item, "skipped at Label Studio", person)
            pulled.skipped.append(annotation.item)
        return SKIP

    def _new(self, annotation: StudioAnnotation, person: str, pulled: Pulled) -> str:
        """Record as an answer, as overlap, or, if the same person has answered before, as a correction."""
        answers = self.session.ledger.answers(annotation.item)
        earlier = [e for e in answers if e.round == annotation.round and e.role in (ANSWER, OVERLAP)]
        mine = [entry for entry in earlier if entry.annotator == person]
        open = self._open(annotation)
        if not open and not earlier:
            raise ConfigError("the item is not open: it was skipped, or its round was closed")
        if open or not mine:
            role = ANSWER if open else OVERLAP
            answer = Answer(annotation.item, annotation.labels, person, role=role)
            pulled.cost += self.session.recorder.record(answer).cost
            (pulled.answered if open else pulled.beside).append(annotation.item)
            return role
        role = mine[0].role
        stands = {task: label for e in answers if e.annotator == person for task, label in e.labels.items()}
        if any(stands.get(task) != label for task, label in annotation.labels.items()):
            return self._change(role, annotation, person, pulled)
        return role

    def _change(self, role: str, annotation: StudioAnnotation, person: str, pulled: Pulled) -> str:
        """Record a changed annotation, which was recorded in this role before."""
        if role != ANSWER:
            raise ConfigError(f"it was changed, but it was recorded as {role} and cannot be corrected")
        key = f"{_key(annotation)}: {annotation.updated}"
        answer = Answer(annotation.item, annotation.labels, person, role=CORRECTION, key=key)
        self.session.recorder.record(answer)
        pulled.corrected.append(annotation.item)
        return ANSWER


def _key(annotation: StudioAnnotation) -> str:
    return f"label-studio annotation {annotation.id}"


def watch_project(
    sync: Sync,
    *,
    pause: Callable[[], object],
    report: Callable[[Pulled | Pushed], object],
    progress: Progress = no_progress,
) -> str:
    """Pull until the campaign ends, training and pushing each next round. Returns why it ended."""
    reported: set[str] = set()
    while True:
        pulled = sync.pull(progress)
        pulled.problems = [problem for problem in pulled.problems if problem not in reported]  # report each once
        reported.update(pulled.problems)
        if pulled.anything:
            report(pulled)
        if sync.session.ready():
            sync.session.next_round(progress)
            if sync.session.wanted():
                report(sync.push(progress))
        state = sync.session.state()
        if state.phase == "ended":
            return state.why or "the campaign has ended"
        if not sync.session.ready():
            pause()


# -- calls from Label Studio -------------------------------------------------------------------------------------------
MAX_BYTES = 1 << 20  # of a message that are read
TIMEOUT = 10.0  # seconds to wait for data


class WebhookListener:
    """Listens at a local address for calls that trigger the next pull. Their content is not trusted or used."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if parts.scheme != "http" or host is None or port is None:
            fix = "use an address of this machine, such as http://127.0.0.1:8123/"
            raise ConfigError(f"{url!r} is not a webhook address", fix=fix)
        self._called = threading.Event()
        path = parts.path or "/"
        try:
            self._server = ThreadingHTTPServer((host, port), _handler(path, self._called))
        except OSError as error:
            why = error.strerror or error
            raise ConfigError(f"{url}: cannot listen there: {why}", fix="use another port or address") from None
        self._server.daemon_threads = True
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_address[1]}{path}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="webhook", daemon=True)

    def __enter__(self) -> WebhookListener:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def wait(self, seconds: float) -> bool:
        """Wait for a call, up to this long. Returns whether there was one; several calls count as one."""
        called = self._called.wait(seconds)
        self._called.clear()
        return called


def _handler(path: str, called: threading.Event) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = TIMEOUT

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "0")
            self.rfile.read(min(int(length), MAX_BYTES) if length.isdigit() else 0)
            known = urlsplit(self.path).path == path
            if known:
                called.set()
            self.send_response(204 if known else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:
            """Log nothing; pulls are reported instead."""

    return Handler
