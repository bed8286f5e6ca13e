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
from bursar.web.api import SiteHere, who
from bursar.web.app_state import AppState
from bursar.web.http_errors import Problem
from bursar.web.security import REPORT_POLICY

router = APIRouter(include_in_schema=False)

STATIC = Path(str(files("bursar.web"))) / "static"
CHARTS = Path(str(files("bursar.report"))) / "static"  # what reports draw their charts with
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


def page(name: str, site: AppState, me: Caller | None, status: int = 200, **values: Any) -> HTMLResponse:
    """A page in its frame."""
    text = ENVIRONMENT.get_template(f"{name}.html").render(
        page=name, me=me, project=site.live.config.name, accounts=site.accounts.exist(), **values
    )
    return HTMLResponse(text, status)


def message(
    site: AppState, me: Caller | None, status: int, title: str, words: str, fix: str | None = None
) -> HTMLResponse:
    """A page that says one thing."""
    return page("message", site, me, status, title=title, words=words, fix=fix)


@router.get("/")
def home(request: Request, site: SiteHere) -> Response:
    """Where one goes on: to annotate, to watch what came of it, or to begin."""
    me = who(request, site)
    if me is None:
        return _to("/login")
    if not me.leads:
        return _to("/annotate")
    state = site.state()
    if state["phase"] == "ended":
        return _to("/watch")
    return _to("/annotate" if state["round"] > 0 or state["answered"] else "/start")


@router.get("/login")
def login(request: Request, site: SiteHere) -> Response:
    """Name and password."""
    if who(request, site) is not None:
        return _to("/")
    return page("login", site, None)


@router.get("/start")
def start(request: Request, site: SiteHere) -> Response:
    """What this project is about, before the first answer."""
    tasks = [{"shape": shape_of(task), "labels": [], "low": None, "high": None} | task for task in site.live.tasks()]
    return _shown(request, site, "start", about=about(site), tasks=tasks, state=site.state())


@router.get("/annotate")
def annotate(request: Request, site: SiteHere) -> Response:
    """The page on which people annotate."""
    return _shown(request, site, "annotate")


@router.get("/watch")
def watch(request: Request, site: SiteHere) -> Response:
    """What came of it so far."""
    items = site.live.config.budget.counts == "items"
    return _shown(request, site, "watch", state=site.state(), show=site.live.costs.show, items=items)


@router.get("/decide")
def decide(request: Request, site: SiteHere) -> Response:
    """What the next round does."""
    by_item = site.live.config.budget.counts == "items"
    return _shown(request, site, "decide", state=site.state(), show=site.live.costs.show, by_item=by_item)


@router.get("/review")
def review(request: Request, site: SiteHere) -> Response:
    """Where people differ."""
    return _shown(request, site, "review")


@router.get("/files")
def files_page(request: Request, site: SiteHere) -> Response:
    """What was annotated, out; answers that were made elsewhere, in."""
    formats = {name: FORMATS[name].summary for name in FORMATS}
    return _shown(request, site, "files", formats=formats, losses=LOSSES_SHOWN, tasks=list(site.live.corpus.schema))


@router.get("/people")
def people(request: Request, site: SiteHere) -> Response:
    """Accounts; for whoever leads nothing, their own."""
    return _shown(request, site, "people", shortest=SHORTEST, longest=LONGEST)


@router.get("/report")
def report(request: Request, site: SiteHere) -> Response:
    """The report of the run as it is now: a page that brings its own scripts, in a box of its own."""
    me = who(request, site)
    if me is None:
        return _to(f"/login?next={quote('/report')}")
    if not me.leads:
        return _refused(site, me)
    text = render(site.result(), site.live.corpus)
    return HTMLResponse(text, headers={"content-security-policy": REPORT_POLICY})


@router.get("/api/docs")
def docs(request: Request, site: SiteHere) -> Response:
    """The API, as its description has it."""
    return page("docs", site, who(request, site), parts=calls_of(request.app.openapi()))


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


def about(site: AppState) -> dict[str, Any]:
    """What a project is about, in a few figures."""
    live, budget = site.live, site.live.config.budget
    counted = "items" if budget.counts == "items" else None
    per_round = f"{budget.per_round:,.0f} items" if counted else live.costs.show(live.costs.units(budget.per_round))
    return {
        "pool": len(live.parts.pool),
        "dev": len(live.parts.dev),
        "test": len(live.parts.test),
        "seed": budget.seed_items,
        "per_round": per_round,
        "rounds": budget.rounds,
        "strategy": live.config.strategy.name,
        "learner": live.config.learner.name,
    }


def _shown(request: Request, site: AppState, name: str, **values: Any) -> Response:
    me = who(request, site)
    if me is None:
        return _to(f"/login?next={quote(request.url.path)}")
    if name in LEADS and not me.leads:
        return _refused(site, me)
    return page(name, site, me, **values)


def _refused(site: AppState, me: Caller) -> HTMLResponse:
    return message(site, me, 403, "For leads only", "This page is for those who lead the project.")


def _to(place: str) -> RedirectResponse:
    return RedirectResponse(place, 303)


def page_of_problem(request: Request, problem: Problem) -> HTMLResponse | None:
    """A refusal as a page, for a person who typed an address; nothing for programs."""
    if request.url.path.startswith(("/api/", "/static/")) or "text/html" not in request.headers.get("accept", ""):
        return None
    site: AppState = request.app.state.site
    title = "Nothing here" if problem.status == 404 else "That did not work"
    words = problem.message[:1].upper() + problem.message[1:] + "."
    try:
        shown = message(site, who(request, site), problem.status, title, words, problem.fix)
    except StorageError:  # a page says who looks at it, and that cannot be read either
        return None
    if problem.retry_after is not None:
        shown.headers["retry-after"] = str(problem.retry_after)
    return shown
