"""The pages: server-rendered frames that small scripts of ours fill. No text of an item is ever in one as markup."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from bursar.corpus import FORMATS
from bursar.errors import StorageError
from bursar.report import render
from bursar.web.accounts import LONGEST, SHORTEST, Caller
from bursar.web.api import AppStateDep, who
from bursar.web.app_state import AppState
from bursar.web.http_errors import HTTPError
from bursar.web.security import REPORT_POLICY

router = APIRouter(include_in_schema=False)

STATIC = Path(str(files("bursar.web"))) / "static"
ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(str(files("bursar.web"))) / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
LEADS = ("watch", "decide", "review", "files", "start")  # pages that only a lead sees
LOSSES_SHOWN = {
    "ids": "the names of items",
    "groups": "which items belong together",
    "spacing": "blanks between words",
    "words": "where words begin and end",
}


def page(name: str, app_state: AppState, me: Caller | None, status: int = 200, **values: Any) -> HTMLResponse:
    """A page in its frame."""
    text = ENVIRONMENT.get_template(f"{name}.html").render(
        page=name, me=me, project=app_state.session.config.name, accounts=app_state.accounts.exist(), **values
    )
    return HTMLResponse(text, status)


def message(
    app_state: AppState, me: Caller | None, status: int, title: str, words: str, fix: str | None = None
) -> HTMLResponse:
    """A page that says one thing."""
    return page("message", app_state, me, status, title=title, words=words, fix=fix)


@router.get("/")
def home(request: Request, app_state: AppStateDep) -> Response:
    """Where one goes on: to annotate, to watch what came of it, or to begin."""
    me = who(request, app_state)
    if me is None:
        return _to("/login")
    if not me.is_lead:
        return _to("/annotate")
    state = app_state.state()
    if state["phase"] == "ended":
        return _to("/watch")
    return _to("/annotate" if state["round"] > 0 or state["answered"] else "/start")


@router.get("/login")
def login(request: Request, app_state: AppStateDep) -> Response:
    """Name and password."""
    if who(request, app_state) is not None:
        return _to("/")
    return page("login", app_state, None)


@router.get("/start")
def start(request: Request, app_state: AppStateDep) -> Response:
    """What this project is about, before the first answer."""
    tasks = [
        {"shape": shape_of(task), "labels": [], "low": None, "high": None} | task for task in app_state.session.tasks()
    ]
    return _shown(request, app_state, "start", about=about(app_state), tasks=tasks, state=app_state.state())


@router.get("/annotate")
def annotate(request: Request, app_state: AppStateDep) -> Response:
    """The page on which people annotate."""
    return _shown(request, app_state, "annotate")


@router.get("/watch")
def watch(request: Request, app_state: AppStateDep) -> Response:
    """What came of it so far."""
    items = app_state.session.config.budget.counts == "items"
    return _shown(request, app_state, "watch", state=app_state.state(), show=app_state.session.costs.show, items=items)


@router.get("/decide")
def decide(request: Request, app_state: AppStateDep) -> Response:
    """What the next round does."""
    by_item = app_state.session.config.budget.counts == "items"
    return _shown(
        request, app_state, "decide", state=app_state.state(), show=app_state.session.costs.show, by_item=by_item
    )


@router.get("/review")
def review(request: Request, app_state: AppStateDep) -> Response:
    """Where people differ."""
    return _shown(request, app_state, "review")


@router.get("/files")
def files_page(request: Request, app_state: AppStateDep) -> Response:
    """What was annotated, out; answers that were made elsewhere, in."""
    formats = {name: FORMATS[name].summary for name in FORMATS}
    return _shown(
        request, app_state, "files", formats=formats, losses=LOSSES_SHOWN, tasks=list(app_state.session.corpus.schema)
    )


@router.get("/people")
def people(request: Request, app_state: AppStateDep) -> Response:
    """Accounts; for whoever leads nothing, their own."""
    return _shown(request, app_state, "people", shortest=SHORTEST, longest=LONGEST)


@router.get("/report")
def report(request: Request, app_state: AppStateDep) -> Response:
    """The report of the run as it is now: a page that brings its own scripts, in a box of its own."""
    me = who(request, app_state)
    if me is None:
        return _to(f"/login?next={quote('/report')}")
    if not me.is_lead:
        return _refused(app_state, me)
    text = render(app_state.result(), app_state.session.corpus)
    return HTMLResponse(text, headers={"content-security-policy": REPORT_POLICY})


@router.get("/api/docs")
def docs(request: Request, app_state: AppStateDep) -> Response:
    """The API, as its description has it."""
    return page("docs", app_state, who(request, app_state), parts=calls_of(request.app.openapi()))


def calls_of(api: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """What an OpenAPI description says of every call, by part: what it does, and what is sent with it."""
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


def shape_of(task: Mapping[str, Any]) -> str:
    """What the label of a task looks like, in words.

    >>> shape_of({"kind": "tagging", "every_word": True})
    'a label for every word'
    """
    shapes = {
        "classification": "one label an item",
        "tagging": "a label for every word" if task.get("every_word") else "spans of words with a label",
        "parsing": "a head and a label for every word",
        "relations": "links between spans",
        "regression": "a number an item",
    }
    return shapes.get(str(task["kind"]), str(task["kind"]))


def about(app_state: AppState) -> dict[str, Any]:
    """What a project is about, in a few figures."""
    session, budget = app_state.session, app_state.session.config.budget
    counted = "items" if budget.counts == "items" else None
    per_round = (
        f"{budget.per_round:,.0f} items" if counted else session.costs.show(session.costs.units(budget.per_round))
    )
    return {
        "pool": len(session.parts.pool),
        "dev": len(session.parts.dev),
        "test": len(session.parts.test),
        "seed": budget.seed_items,
        "per_round": per_round,
        "rounds": budget.rounds,
        "strategy": session.config.strategy.name,
        "learner": session.config.learner.name,
    }


def _shown(request: Request, app_state: AppState, name: str, **values: Any) -> Response:
    me = who(request, app_state)
    if me is None:
        return _to(f"/login?next={quote(request.url.path)}")
    if name in LEADS and not me.is_lead:
        return _refused(app_state, me)
    return page(name, app_state, me, **values)


def _refused(app_state: AppState, me: Caller) -> HTMLResponse:
    return message(app_state, me, 403, "For leads only", "This page is for those who lead the project.")


def _to(place: str) -> RedirectResponse:
    return RedirectResponse(place, 303)


def error_page(request: Request, error: HTTPError) -> HTMLResponse | None:
    """A refusal as a page, for a person who typed an address; nothing for programs."""
    if request.url.path.startswith(("/api/", "/static/")) or "text/html" not in request.headers.get("accept", ""):
        return None
    app_state: AppState = request.app.state.bursar
    title = "Nothing here" if error.status == 404 else "That did not work"
    words = error.message[:1].upper() + error.message[1:] + "."
    try:
        shown = message(app_state, who(request, app_state), error.status, title, words, error.fix)
    except StorageError:  # a page says who looks at it, and that cannot be read either
        return None
    if error.retry_after is not None:
        shown.headers["retry-after"] = str(error.retry_after)
    return shown
