"""The HTML pages: server-rendered frames filled by scripts. Item texts are never inserted as markup.

A task kind has a widget on the annotation page: a JavaScript file that is found by its name.
"""

from __future__ import annotations

import mimetypes
import sys
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from fastapi import APIRouter, FastAPI, Request
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles

from bursar.corpus import FORMATS
from bursar.errors import StorageError
from bursar.report import render
from bursar.tasks import Task
from bursar.web.accounts import MAX_PASSWORD, MIN_PASSWORD, Caller
from bursar.web.api import AppStateDep, find_caller
from bursar.web.app_state import AppState
from bursar.web.http_errors import HTTPError
from bursar.web.panels import sorted_panels
from bursar.web.security import REPORT_CONTENT_POLICY

router = APIRouter(include_in_schema=False)

STATIC = Path(__file__).parent / "static"
FALLBACK = "other"  # the widget where labels are typed as JSON
CHARTS = Path(str(files("bursar.report"))) / "static"  # what reports draw their charts with
ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(str(files("bursar.web"))) / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
LEAD_PAGES = ("watch", "decide", "review", "files", "start", "report")  # visible to leads only
# formats with the columns of the source, as they are offered for labelled data
TABLES = {"xlsx": "Excel", "csv": "CSV", "tsv": "TSV", "parquet": "Parquet", "json": "JSON", "json-lines": "JSON lines"}
LOSS_NAMES = {
    "ids": "item ids",
    "groups": "groups of items",
    "spacing": "spaces between words",
    "words": "word boundaries",
}


def add_static(app: FastAPI) -> None:
    """Serve scripts and styles, compressed."""
    mimetypes.add_type("text/javascript", ".js")  # some systems map it to a type that browsers refuse
    app.mount("/static/charts", StaticFiles(directory=CHARTS), name="charts")
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)


def page(name: str, app_state: AppState, me: Caller | None, status: int = 200, **values: Any) -> HTMLResponse:
    """Render a page."""
    text = ENVIRONMENT.get_template(f"{name}.html").render(
        page=name, me=me, project=app_state.session.config.name, accounts=app_state.accounts.exist(), **values
    )
    return HTMLResponse(text, status)


@router.get("/")
def home(request: Request, app_state: AppStateDep) -> Response:
    """Redirect to the page where the caller continues."""
    me = find_caller(request, app_state)
    if me is None:
        return _redirect("/login")
    if not me.is_lead:
        return _redirect("/annotate")
    state = app_state.state()
    if state.phase == "ended":
        return _redirect("/watch")
    return _redirect("/annotate" if state.round > 0 or state.answered else "/start")


@router.get("/login")
def login(request: Request, app_state: AppStateDep) -> Response:
    """The sign-in page."""
    if find_caller(request, app_state) is not None:
        return _redirect("/")
    return page("login", app_state, None)


def widget_path(task: Task) -> str:
    """The path of the widget on the server: ours, one beside the Python file of the kind, or the fallback."""
    if _beside(task).is_file():
        return f"/static/widgets/{task.widget}.js"
    known = (STATIC / "annotate" / f"{task.widget}.js").is_file()
    return f"/static/annotate/{task.widget if known else FALLBACK}.js"


def widget_file(name: str, tasks: Mapping[str, Task]) -> Path | None:
    """The file of a widget that came with the Python file of a kind."""
    beside = (_beside(task) for task in tasks.values() if task.widget == name)
    return next((file for file in beside if file.is_file()), None)


def _beside(task: Task) -> Path:
    module = sys.modules[type(task).__module__]
    return Path(str(module.__file__)).with_name(f"{task.widget}.js")


@router.get("/static/widgets/{name}.js")
def widget(app_state: AppStateDep, name: str) -> Response:
    """The widget of a task kind from another package."""
    file = widget_file(name, app_state.session.corpus.schema)
    if file is None:
        raise HTTPError(404, "not_found", f"there is no widget {name!r}")
    return FileResponse(file, media_type="text/javascript")


def watch_panels() -> list[dict[str, str]]:
    """The panels of the watch page: id, title, name in the list of contents, and script, if there is one."""
    scripts = {path.stem for path in (STATIC / "watch" / "panels").glob("*.js")}
    return [
        {"name": name, "title": panel.title, "link": panel.link}
        | {"script": f"/static/watch/panels/{name}.js" if name in scripts else ""}
        for name, panel in sorted_panels().items()
    ]


def _start(app_state: AppState) -> dict[str, Any]:
    """An overview before the first answer."""
    tasks = [{"labels": [], "low": None, "high": None} | task for task in app_state.session.tasks()]
    return {"about": about(app_state), "tasks": tasks, "state": app_state.state()}


def _spending(app_state: AppState) -> dict[str, Any]:
    """The state of the campaign, and how its amounts are shown."""
    session = app_state.session
    by_item = session.config.budget.counts == "items"
    return {"state": app_state.state(), "show": session.settings.costs.show, "by_item": by_item}


def _files(app_state: AppState) -> dict[str, Any]:
    """What can be exported."""
    formats = {name: FORMATS[name].summary for name in FORMATS}
    return {"formats": formats, "tables": TABLES, "losses": LOSS_NAMES, "tasks": list(app_state.session.corpus.schema)}


CONTENTS: dict[str, Callable[[AppState], dict[str, Any]]] = {  # by page: what its template needs
    "start": _start,
    "annotate": lambda _: {},
    "watch": lambda app_state: {"panels": watch_panels()} | _spending(app_state),
    "decide": _spending,
    "review": lambda _: {},
    "files": _files,
    "people": lambda _: {"shortest": MIN_PASSWORD, "longest": MAX_PASSWORD},
}


def show(request: Request, app_state: AppStateDep) -> Response:
    """A page of ``CONTENTS`` or the report, for people who are signed in."""
    name, me = request.url.path.strip("/"), find_caller(request, app_state)
    if me is None:
        return _redirect(f"/login?next={quote(request.url.path)}")
    if name in LEAD_PAGES and not me.is_lead:
        words = "Only leads of this project can see this page."
        return page("message", app_state, me, 403, title="For leads only", words=words, fix=None)
    if name == "report":  # sandboxed, because it brings its own scripts
        text = render(app_state.result(), app_state.session.corpus)
        return HTMLResponse(text, headers={"content-security-policy": REPORT_CONTENT_POLICY})
    return page(name, app_state, me, **CONTENTS[name](app_state))


for _name in (*CONTENTS, "report"):
    router.add_api_route(f"/{_name}", show)


@router.get("/api/docs")
def docs(request: Request, app_state: AppStateDep) -> Response:
    """The API reference, from the OpenAPI description."""
    return page("docs", app_state, find_caller(request, app_state), parts=calls_of(request.app.openapi()))


def calls_of(api: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The calls of an OpenAPI description by tag, each with its summary and fields."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for path, methods in api["paths"].items():
        for method, call in methods.items():
            fields = [
                (one["name"], f"{one['in']}{'' if one.get('required') else ', optional'}", one.get("description", ""))
                for one in call.get("parameters", [])
            ]
            body = call.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            model = api["components"]["schemas"].get(body.get("$ref", "").rpartition("/")[2], {})
            needed = model.get("required", [])
            fields += [
                (name, "body" if name in needed else "body, optional", field.get("description", ""))
                for name, field in model.get("properties", {}).items()
            ]
            about = {"summary": call["summary"], "description": call.get("description", ""), "fields": fields}
            parts.setdefault(call["tags"][0], []).append({"method": method.upper(), "path": path} | about)
    return parts


def about(app_state: AppState) -> dict[str, Any]:
    """Key figures of a project for the start page."""
    session, budget = app_state.session, app_state.session.config.budget
    costs, by_item = session.settings.costs, budget.counts == "items"
    per_round = f"{budget.per_round:,.0f} items" if by_item else costs.show(costs.units(budget.per_round))
    return {part: len(getattr(session.parts, part)) for part in ("pool", "dev", "test")} | {
        "seed": budget.seed_items,
        "per_round": per_round,
        "rounds": budget.rounds,
        "strategy": session.config.strategy.name,
        "learner": session.config.learner.name,
    }


def _redirect(place: str) -> RedirectResponse:
    return RedirectResponse(place, 303)


def is_page(request: Request) -> bool:
    """Whether a browser opened an address that may be a page."""
    accepted = request.headers.get("accept", "")
    return "text/html" in accepted and not request.url.path.startswith(("/api/", "/static/"))


def error_page(request: Request, error: HTTPError) -> HTMLResponse | None:
    """An error as a page for a browser; None for API requests."""
    if not is_page(request):
        return None
    app_state: AppState = request.app.state.bursar
    title = "Page not found" if error.status == 404 else "Something went wrong"
    words = error.message[:1].upper() + error.message[1:] + "."
    try:
        me = find_caller(request, app_state)
        shown = page("message", app_state, me, error.status, title=title, words=words, fix=error.fix)
    except StorageError:  # the page shows the caller's name, which cannot be read either
        return None
    if error.retry_after is not None:
        shown.headers["retry-after"] = str(error.retry_after)
    return shown
