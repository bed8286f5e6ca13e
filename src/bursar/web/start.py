"""The start page: a lead hands over a file, sees what was found out, and creates a project.

It is served to this machine only. Nothing is written but the project; the uploaded file is kept until then in a
temporary folder.
"""

from __future__ import annotations

import mimetypes
import re
import secrets
import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from pydantic import Field

from bursar.annotation.projects import Wishes, create_project, money_text
from bursar.annotation.uploads import Choice, Upload, WishedTask
from bursar.campaign.participants import Observer
from bursar.errors import BursarError, ConfigError
from bursar.web.accounts import same_secret
from bursar.web.api import CSRF, RequestBody, add_error_handlers
from bursar.web.http_errors import HTTPError
from bursar.web.pages import CHARTS, ENVIRONMENT
from bursar.web.security import Guard, HostPolicy
from bursar.web.widgets import STATIC

PROJECT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}")
KINDS = {
    "classification": "one label per item",
    "tagging": "spans of words",
    "regression": "a number",
}
router = APIRouter()
Short = Annotated[str, Field(max_length=200)]
Amount = Annotated[float, Field(gt=0, lt=1e12, allow_inf_nan=False)]


class StartState(Observer):
    """The uploaded file, and the project that was created from it. ``on_created`` is called once it is there."""

    def __init__(self, folder: Path, on_created: Callable[[], None] = lambda: None) -> None:
        self.folder, self.on_created = folder, on_created
        self.csrf = secrets.token_urlsafe(24)
        self.created: Path | None = None
        self.progress = ""
        self._place = tempfile.TemporaryDirectory(prefix="bursar-start-")
        self._uploads: dict[str, Upload] = {}
        self._creating = threading.Lock()

    def close(self) -> None:
        """Remove the uploaded file."""
        self._place.cleanup()

    def place_for(self, name: str) -> Path:
        """A new folder for a file of this name."""
        return Path(tempfile.mkdtemp(dir=self._place.name)) / name

    def keep(self, path: Path) -> str:
        """Keep a file in place of the one before."""
        for upload in self._uploads.values():
            upload.path.unlink(missing_ok=True)
        key = secrets.token_urlsafe(12)
        self._uploads = {key: Upload(path)}
        return key

    def upload(self, key: str) -> Upload:
        """The file that was handed over last."""
        if key not in self._uploads:
            raise HTTPError(404, "no_table", "this file is no longer here", fix="choose the file again")
        return self._uploads[key]

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
            draft = self.upload(asked.table).draft(asked.choice(), asked.wishes())
            create_project(self.folder / asked.name, draft, watcher=self)
            self.created = self.folder / asked.name
        finally:
            self._creating.release()
        return self.created


class TaskIn(RequestBody):
    """A task to annotate."""

    name: Short
    kind: Annotated[str, Field(max_length=40)] = "classification"
    labels: Annotated[str, Field(max_length=20_000)] = ""
    column: Short | None = None


class LookRequest(RequestBody):
    """The columns that are chosen."""

    table: Short
    text: Short | None = None
    id: Short | None = None
    skip_empty: bool = False


class CostRequest(LookRequest):
    """The tasks and what an hour of annotation costs."""

    tasks: Annotated[list[TaskIn], Field(min_length=1, max_length=50)]
    hourly: Amount = 20.0
    currency: Annotated[str, Field(max_length=8)] = "€"

    def choice(self) -> Choice:
        """The columns and tasks."""
        return Choice(
            self.text, self.id, tuple(WishedTask(**task.model_dump()) for task in self.tasks), self.skip_empty
        )

    def wishes(self) -> Wishes:
        """The options of the project."""
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
        found = asdict(upload.look(asked.text, asked.id, asked.skip_empty))
    except BursarError as wrong:
        message = str(wrong).replace(f"{upload.path.parent}/", "").removesuffix(f". Fix: {wrong.fix}")
        raise HTTPError(400, "bad_file", message, fix=wrong.fix) from None
    columns = [{"name": name, "examples": examples} for name, examples in found["columns"].items()]
    return found | {"table": asked.table, "columns": columns}


@router.post("/api/cost")
def cost(start: StartDep, asked: CostRequest) -> dict[str, Any]:
    """What labelling everything would cost."""
    found = start.upload(asked.table).cost(asked.choice(), asked.wishes())
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
    add_error_handlers(app, lambda request, error: RedirectResponse("/", 303) if _is_page(request, error) else None)
    app.include_router(router)
    mimetypes.add_type("text/javascript", ".js")
    app.mount("/static/charts", StaticFiles(directory=CHARTS), name="charts")
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)
    return Guard(app, host_policy)


def _is_page(request: Request, error: HTTPError) -> bool:
    """Whether a browser opened an address of a project, which is not there yet."""
    path = request.url.path
    wants_page = "text/html" in request.headers.get("accept", "")
    return error.status == 404 and wants_page and not path.startswith(("/api/", "/static/"))
