"""The start page: a lead hands over a file, sees what was found out, and creates a project.

It is served to this machine only. Nothing is written but the project; the uploaded file is kept until then in a
temporary folder.
"""

from __future__ import annotations

import re
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import BaseModel, Field

from bursar.annotation.projects import Wishes, create_project, draft_project, full_cost, listed_task, money_text
from bursar.campaign.participants import Observer
from bursar.corpus import Corpus, guess_format, read
from bursar.corpus.formats.table_files import Table
from bursar.corpus.formats.tables import corpus_of_table, find_roles, read_table, table_format
from bursar.corpus.metadata import shown_cell
from bursar.corpus.schema import describe_task
from bursar.errors import BursarError, ConfigError
from bursar.tasks import Task
from bursar.web.accounts import same_secret
from bursar.web.api import CSRF, RequestBody, add_error_handlers
from bursar.web.http_errors import HTTPError
from bursar.web.pages import ENVIRONMENT, add_static, is_page
from bursar.web.security import Guard, HostPolicy

EXAMPLES = 3  # rows that are shown
LONGEST = 200  # characters of an example
PROJECT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}")
KINDS = {"classification": "one label per item", "tagging": "spans of words", "regression": "a number"}
router = APIRouter()
Short = Annotated[str, Field(max_length=200)]
Amount = Annotated[float, Field(gt=0, lt=1e12, allow_inf_nan=False)]


# -- the file ----------------------------------------------------------------------------------------------------------
class WishedTask(BaseModel, frozen=True, extra="forbid"):
    """A task as it is typed in: labels are separated by commas, ``column`` holds labels that are known."""

    name: Short
    kind: Annotated[str, Field(max_length=40)] = "classification"
    labels: Annotated[str, Field(max_length=20_000)] = ""
    column: Short | None = None

    def task(self) -> Task:
        if not self.name.strip():
            raise ConfigError("a task has no name", fix="name it, as in intent")
        return listed_task(self.name.strip(), self.kind, [self.labels] if self.labels.strip() else [])


@dataclass(frozen=True)
class Look:
    """What was found out about a file; ``problem`` and ``fix`` say why it cannot become a project yet."""

    items: int
    notes: tuple[str, ...]
    columns: Sequence[Mapping[str, Any]]  # their names and first cells
    text: str | None
    id: str | None
    problem: str | None = None
    fix: str | None = None


class Upload:
    """A file that was handed over. It is read once; its name in messages is that of the file alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._newest: tuple[object, Corpus] | None = None  # the corpus, and what was chosen for it

    @cached_property
    def table(self) -> Table | None:
        """Its columns; ``None`` if it is no table, such as plain text."""
        return None if table_format(self.path) is None else read_table(self.path)

    def look(self, text: str | None = None, id: str | None = None, skip_empty: bool = False) -> Look:
        """What was found out, with the columns of the texts and the ids that are chosen, or those that are likely."""
        table = self.table
        if table is None:
            corpus = self.corpus()
            texts = (corpus[at].text for at in range(len(corpus)))
            return Look(len(corpus), corpus.notes, [_first_cells("text", texts)], "text", None)
        columns = [_first_cells(name, cells) for name, cells in table.columns.items()]
        try:
            roles, _ = find_roles(table, Path(self.path.name), {"text": text, "id": id}, {})
        except BursarError as wrong:
            return Look(len(table), table.notes, columns, None, id, wrong.message, "choose the column of the texts")
        try:
            corpus = self.corpus(text, id, skip_empty=skip_empty)
        except BursarError as wrong:
            place = str(wrong).partition(". Fix: ")[0]
            fix = wrong.fix and wrong.fix.replace("pass over them with skip_empty=yes", "leave them out")
            return Look(len(table), table.notes, columns, roles.text, roles.id, place, fix)
        return Look(len(corpus), corpus.notes, columns, roles.text, roles.id)

    def corpus(
        self,
        text: str | None = None,
        id: str | None = None,
        tasks: tuple[WishedTask, ...] = (),
        skip_empty: bool = False,
    ) -> Corpus:
        """The file as a corpus, with the columns of the texts and the ids and the tasks that are chosen."""
        chosen = (text, id, tasks, skip_empty)
        if self._newest is None or self._newest[0] != chosen:
            if len({wished.name.strip() for wished in tasks}) < len(tasks):
                raise ConfigError("two tasks have one name", fix="rename one of them")
            listed = [wished for wished in tasks if wished.labels.strip() or not wished.column]
            described = {wished.name.strip(): wished.task() for wished in listed}
            labels = {wished.name.strip(): wished.column for wished in tasks if wished.column}
            columns: dict[str, Any] = {"text": text, "id": id}
            try:
                if self.table is not None and guess_format(self.path).general:  # not read again
                    schema = {name: describe_task(task) for name, task in described.items()}
                    corpus = corpus_of_table(self.table, self.path, columns, labels, schema, skip_empty)
                else:
                    given = columns | {"labels": labels or None} if self.table is not None else {}
                    given |= {"skip_empty": True} if skip_empty else {}
                    corpus = read(self.path, tasks=described, **given)
            except BursarError as wrong:
                raise self.without_folder(wrong) from None
            self._newest = chosen, corpus
        return self._newest[1]

    def without_folder(self, wrong: BursarError) -> BursarError:
        """The same error without the folder that the file was put into, with its line in the message."""
        message = str(wrong).replace(f"{self.path.parent}/", "")
        return BursarError(message.removesuffix(f". Fix: {wrong.fix}"), fix=wrong.fix)


def _first_cells(column: str, cells: Iterable[Any]) -> dict[str, Any]:
    return {"name": column, "examples": [shortened(cell) for cell in islice(cells, EXAMPLES)]}


def shortened(cell: Any) -> str:
    """A cell as it is shown among the first rows."""
    text = shown_cell(cell)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


# -- the project -------------------------------------------------------------------------------------------------------
class StartState(Observer):
    """The uploaded file, and the project that was created from it. ``on_created`` is called once it is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.on_created: Callable[[], None] = lambda: None
        self.csrf = secrets.token_urlsafe(24)
        self.created: Path | None = None
        self.progress = ""
        self._place = tempfile.TemporaryDirectory(prefix="bursar-start-")
        self._uploads: dict[str, Upload] = {}
        self._creating = threading.Lock()

    def close(self) -> None:
        self._place.cleanup()

    def place_for(self, name: str) -> Path:
        """Where a file of this name is put."""
        return Path(tempfile.mkdtemp(dir=self._place.name)) / name

    def keep(self, path: Path) -> str:
        """Keep a file in place of the one before."""
        for upload in self._uploads.values():
            upload.path.unlink(missing_ok=True)
        key = secrets.token_urlsafe(12)
        self._uploads = {key: Upload(path)}
        return key

    def upload(self, key: str) -> Upload:
        if key not in self._uploads:
            raise HTTPError(404, "no_table", "this file is no longer here", fix="choose the file again")
        return self._uploads[key]

    def corpus_for(self, asked: CostRequest) -> Corpus:
        """The file with the columns and tasks that are chosen."""
        return self.upload(asked.table).corpus(asked.text, asked.id, asked.tasks, asked.skip_empty)

    def stage(self, round: int, what: str, done: float) -> None:
        """Follows the selection of the first items."""
        self.progress = f"Selecting the first items: {100 * done:.0f} %"

    def create(self, asked: ProjectRequest) -> Path:
        """Create the project; nothing is written if something is wrong."""
        if not PROJECT_NAME.fullmatch(asked.name):
            fix = "use letters, digits, spaces, dots, hyphens and underscores"
            raise ConfigError(f"{asked.name!r} is no name for a project", fix=fix)
        if not self._creating.acquire(blocking=False):
            raise HTTPError(409, "creating", "a project is being created", fix="wait a moment")
        try:
            if self.created is not None:
                raise HTTPError(409, "created", "the project was created already", fix="reload the page")
            draft = draft_project(self.corpus_for(asked), asked.wishes())
            create_project(self.folder / asked.name, draft, watcher=self)
            self.created = self.folder / asked.name
        finally:
            self._creating.release()
        return self.created


# -- requests ----------------------------------------------------------------------------------------------------------
class LookRequest(RequestBody):
    """The columns that are chosen."""

    table: Short
    text: Short | None = None
    id: Short | None = None
    skip_empty: bool = False


class CostRequest(LookRequest):
    """The tasks and what an hour of annotation costs."""

    tasks: Annotated[tuple[WishedTask, ...], Field(min_length=1, max_length=50)]
    hourly: Amount = 20.0
    currency: Annotated[str, Field(max_length=8)] = "€"

    def wishes(self) -> Wishes:
        return Wishes("project", 0.0, hourly=self.hourly, currency=self.currency)


class ProjectRequest(CostRequest):
    """All that a new project needs."""

    name: Short
    budget: Amount

    def wishes(self) -> Wishes:
        return Wishes(self.name, self.budget, hourly=self.hourly, currency=self.currency)


# -- routes ------------------------------------------------------------------------------------------------------------
async def get_start(request: Request) -> StartState:
    """The state, for a request that comes from the start page if it changes something."""
    start: StartState = request.app.state.start
    if request.method == "POST" and not same_secret(start.csrf, request.headers.get(CSRF, "")):
        raise HTTPError(403, "csrf", f"the header {CSRF} is missing or wrong", fix="reload the page")
    return start


StartDep = Annotated[StartState, Depends(get_start)]


@router.get("/", response_class=HTMLResponse)
def start_page(start: StartDep) -> HTMLResponse:
    """The page itself."""
    text = ENVIRONMENT.get_template("new.html").render(
        page="new", me=None, project="Bursar", accounts=False, csrf=start.csrf, kinds=KINDS, folder=str(start.folder)
    )
    return HTMLResponse(text)


@router.post("/api/tables")
async def upload(request: Request, start: StartDep, name: Annotated[str, Query(max_length=200)]) -> dict[str, Any]:
    """Hand over a file; what was found out about it."""
    plain = re.sub(r"[^\w.() -]+", "-", Path(name).name).strip(" .") or "file"
    path = start.place_for(plain)
    with open(path, "wb") as file:
        async for block in request.stream():
            file.write(block)
    key = start.keep(path)
    return await run_in_threadpool(_look, start, LookRequest(table=key))


@router.post("/api/look")
def look(start: StartDep, asked: LookRequest) -> dict[str, Any]:
    """What was found out with other columns."""
    return _look(start, asked)


def _look(start: StartState, asked: LookRequest) -> dict[str, Any]:
    upload = start.upload(asked.table)
    try:
        look = upload.look(asked.text, asked.id, asked.skip_empty)
        return asdict(look) | {"table": asked.table}
    except BursarError as wrong:
        raise HTTPError(400, "bad_file", upload.without_folder(wrong).message, fix=wrong.fix) from None


@router.post("/api/cost")
def cost(start: StartDep, asked: CostRequest) -> dict[str, Any]:
    """What labelling everything would cost."""
    found = full_cost(start.corpus_for(asked), asked.wishes())
    shown = money_text(asked.currency, found.total)
    return {"items": found.items, "total": found.total, "price": found.price, "shown": shown}


@router.post("/api/projects")
def create(start: StartDep, asked: ProjectRequest) -> dict[str, str]:
    """Create the project. Its pages are served at the same address a moment later."""
    folder = start.create(asked)
    start.on_created()
    return {"folder": str(folder), "page": "/annotate"}


@router.get("/api/creating")
def creating(start: StartDep) -> dict[str, str]:
    """How far the creation of the project is."""
    return {"progress": start.progress}


def make_start_app(start: StartState, host_policy: HostPolicy) -> Guard:
    """The start page as an ASGI application."""
    app = FastAPI(title="Bursar", openapi_url=None, docs_url=None, redoc_url=None)
    app.state.start = start
    add_error_handlers(app, _to_start)
    app.include_router(router)
    add_static(app)
    return Guard(app, host_policy)


def _to_start(request: Request, error: HTTPError) -> RedirectResponse | None:
    """From an address of a project, which is not there yet, to the start page."""
    return RedirectResponse("/", 303) if error.status == 404 and is_page(request) else None
