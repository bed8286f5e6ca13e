"""The API for leads: watching, deciding and reviewing."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from sse_starlette import EventSourceResponse

from bursar.annotation.session import SessionState
from bursar.ledger import Answer
from bursar.ledger.records import ADJUDICATION
from bursar.web.agreement import Agreement, agreement_by_task, alike
from bursar.web.api import ERROR_RESPONSES, AppStateDep, CallerDep, Key, LeadDep, ReceiptOut, RequestBody, receipt_out
from bursar.web.api_work import CorrectionRequest
from bursar.web.events import event_stream
from bursar.web.http_errors import HTTPError
from bursar.web.jobs import Advice, Preview
from bursar.web.panels import dashboard as dashboard_of
from bursar.web.queue import Overlap

router = APIRouter(prefix="/api", responses=ERROR_RESPONSES)
Limit = Annotated[int, Query(ge=1, le=200)]
Offset = Annotated[int, Query(ge=0, le=10_000_000)]
Shared = tuple[str, dict[str, Answer], list[str], Answer | None]  # item, answers, tasks that differ, adjudication


# -- watching --------------------------------------------------------------------------------------------------------
@router.get("/events", tags=["watching"], summary="Live events", response_class=EventSourceResponse)
async def events(app_state: AppStateDep, me: CallerDep) -> EventSourceResponse:
    """Server-sent events: `state` (first, and whenever it changes), `stage`, `scored`, `preview`, `advice`.

    Also `predictions` and `ping`.
    """
    return await event_stream(app_state.hub, me.is_lead)


@router.get("/dashboard", tags=["watching"], summary="Everything about the run")
def dashboard(
    app_state: AppStateDep,
    me: LeadDep,
    whole: Annotated[bool, Query(description="Include `result`, the data of the full report.")] = True,
) -> dict[str, Any]:
    """The campaign state, the contents of the watch page (`shown`) and the data of the report (`result`)."""
    state, result, session = app_state.state(), app_state.result(), app_state.session
    in_force = result.model_copy(update={"config": session.settings.in_force})  # it has the initial settings
    shown = dashboard_of(in_force, state, str(session.folder))
    return {"state": state, "shown": shown} | ({"result": result.to_json()} if whole else {})


class AdviceRequest(RequestBody):
    """Ask how to split an amount between the tasks."""

    amount: float = Field(gt=0, le=1_000_000_000, allow_inf_nan=False, description="In the currency of the prices.")


@router.post("/advice", tags=["watching"], status_code=202, summary="Ask for advice on splitting the budget")
def ask_advice(app_state: AppStateDep, me: LeadDep, sent: AdviceRequest) -> Advice:
    """Start working out how to split the budget between tasks. Progress comes as `advice` events. One at a time."""
    return app_state.advising.start(f"{Decimal(str(sent.amount)):f}")


@router.get("/advice", tags=["watching"], summary="The latest budget split advice")
def advice(app_state: AppStateDep, me: LeadDep) -> dict[str, Advice | None]:
    """Its progress or result, and the campaign state when it was requested."""
    return {"advice": app_state.advising.newest}


# -- deciding --------------------------------------------------------------------------------------------------------
Changes = Annotated[dict[str, Any], Field(max_length=100, description="New values by setting.")]


class SettingsRequest(RequestBody):
    """Change the settings of the next round."""

    changes: Changes
    key: Key
    after: int | None = Field(
        None,
        ge=0,
        le=1_000_000,
        description="Number of the latest change you know of; refused if there is a newer one.",
    )


class PreviewRequest(RequestBody):
    """Preview the next round with changed settings."""

    changes: Changes


class RoundRequest(RequestBody):
    """Train the next round now."""

    key: Key
    close: bool = Field(default=False, description="Continue without the unanswered items.")
    round: int | None = Field(default=None, ge=-1, le=1_000_000, description="The round that is open, as you know it.")


@router.get("/settings", tags=["deciding"], summary="Settings of the next round")
def settings(app_state: AppStateDep, me: LeadDep) -> dict[str, Any]:
    """Budget, prices, strategy, weights and limits; the available choices; and the measured annotation times."""
    return app_state.session.settings.to_json()


@router.post("/settings", tags=["deciding"], summary="Change settings")
def change_settings(app_state: AppStateDep, me: LeadDep, sent: SettingsRequest) -> dict[str, Any]:
    """Changes apply from the next round on and are recorded in the ledger. Repeating a request has no effect."""
    app_state.assignments.change(sent.changes, me.name, sent.key, sent.after)
    app_state.changed()
    return app_state.session.settings.to_json()


@router.post("/preview", tags=["deciding"], status_code=202, summary="Preview settings")
def preview(app_state: AppStateDep, me: LeadDep, sent: PreviewRequest) -> Preview:
    """Start a preview of the next round. A `preview` event is sent when it is done."""
    return app_state.previews.start(sent.changes)


@router.get("/preview/{job}", tags=["deciding"], summary="Preview result")
def preview_found(app_state: AppStateDep, me: LeadDep, job: Annotated[str, Path(max_length=100)]) -> Preview:
    """The progress or the result of a preview."""
    return app_state.previews.get(job)


@router.post("/rounds", tags=["deciding"], status_code=202, summary="Train the next round now")
def next_round(app_state: AppStateDep, me: LeadDep, sent: RoundRequest) -> SessionState:
    """Also retries a failed training. With `close`, unanswered items return to the pool."""
    state = app_state.state()
    if sent.round is not None and sent.round != state.round:
        raise HTTPError(409, "other_round", f"round {state.round} is open, not round {sent.round}")
    if state.phase == "ended":
        raise HTTPError(409, "ended", "the campaign has ended", fix="raise the budget or the rounds under Decide")
    if sent.close:
        app_state.assignments.close_round(me.name)
    elif app_state.session.wanted():
        fix = "answer the remaining items, or send close: true"
        raise HTTPError(409, "open_items", "the round is not complete", fix=fix)
    if app_state.trainer.failure is not None:
        app_state.trainer.retry()
    app_state.changed()
    return app_state.state()


# -- reviewing -------------------------------------------------------------------------------------------------------
class OverlapAnswer(BaseModel):
    """One person's answer."""

    person: str
    labels: dict[str, Any]
    at: str


class OverlapItem(BaseModel):
    """An item that several people answered."""

    item: dict[str, Any]
    answers: list[OverlapAnswer]
    disagree: list[str] = Field(description="Tasks with different labels.")
    adjudicated: OverlapAnswer | None


class OverlapList(BaseModel):
    """Items that several people answered, disagreements first."""

    items: list[OverlapItem]
    total: int
    disagree: int
    settings: Overlap


@router.get("/overlap", tags=["reviewing"], summary="Items answered by several people")
def overlap(
    app_state: AppStateDep,
    me: LeadDep,
    limit: Limit = 50,
    offset: Offset = 0,
    which: Annotated[str, Query(pattern="^(all|open)$", description="All items, or only those to adjudicate.")] = "all",
) -> OverlapList:
    """Items with two or more answers; unresolved disagreements first."""
    undecided: list[Shared] = []
    rest: list[Shared] = []
    for item, answers in app_state.assignments.index.shared().items():
        tasks = dict.fromkeys(task for answer in answers.values() for task in answer.labels)
        differ = [task for task in tasks if not alike([answer.labels.get(task) for answer in answers.values()])]
        decided = app_state.assignments.index.adjudicated(item)
        (undecided if differ and decided is None else rest).append((item, answers, differ, decided))
    listed = undecided + (rest if which == "all" else [])
    items = []
    for item, answers, disagree, decided in listed[offset : offset + limit]:
        said = [_answer_out(answer) for answer in answers.values()]
        last = None if decided is None else _answer_out(decided)
        items.append(OverlapItem(item=app_state.session.item(item), answers=said, disagree=disagree, adjudicated=last))
    return OverlapList(items=items, total=len(listed), disagree=len(undecided), settings=app_state.queue.overlap)


@router.get("/overlap/settings", tags=["reviewing"], summary="Overlap settings")
def overlap_settings(app_state: AppStateDep, me: LeadDep) -> Overlap:
    """The share of items that several people answer, and how many people."""
    return app_state.queue.overlap


@router.put("/overlap/settings", tags=["reviewing"], summary="Change overlap settings")
def set_overlap(app_state: AppStateDep, me: LeadDep, sent: Overlap) -> Overlap:
    """Items are chosen by their ids, so the same share always gives the same items."""
    app_state.queue.set_overlap(sent)
    return sent


@router.post("/adjudications", tags=["reviewing"], summary="Adjudicate an item")
def adjudicate(app_state: AppStateDep, me: LeadDep, sent: CorrectionRequest) -> ReceiptOut:
    """Set the final labels where people disagree. All answers stay in the ledger."""
    answer = Answer(sent.item, sent.labels, me.name, role=ADJUDICATION, key=sent.key)
    return receipt_out(app_state, sent.key, app_state.assignments.replace_labels(answer))


class SkipOut(BaseModel):
    """A skipped item."""

    key: str = Field(description="Send it to undo the skip.")
    item: dict[str, Any]
    tasks: list[str] = Field(description="The requested tasks.")
    person: str
    reason: str
    at: str
    round: int
    undone_by: str | None
    undone_at: str | None


class SkipList(BaseModel):
    """Skipped items, newest first."""

    skips: list[SkipOut]
    total: int


class UndoRequest(RequestBody):
    """Undo a skip."""

    skip: str = Field(min_length=1, max_length=1000, description="The skip's `key`.")


class SkipUndone(BaseModel):
    """The skip was undone."""

    asked: bool = Field(description="The item is open again; otherwise it is back in the pool.")


@router.get("/skips", tags=["reviewing"], summary="Skipped items")
def skips(
    app_state: AppStateDep,
    me: LeadDep,
    limit: Limit = 50,
    offset: Offset = 0,
    which: Annotated[str, Query(pattern="^(all|open)$", description="All skips, or only those not undone.")] = "open",
) -> SkipList:
    """Skipped items with their reasons, newest first."""
    found = app_state.session.ledger.skips(undone=which == "all")[::-1]
    shown = []
    for skip in found[offset : offset + limit]:
        want = app_state.session.campaign_state.wanted(skip.round).get(skip.item)
        tasks = [skip.task] if skip.task is not None else list(want.tasks) if want is not None else []
        about = {name: getattr(skip, name) for name in ("key", "reason", "round", "undone_by", "undone_at")}
        item = app_state.session.item(skip.item)
        shown.append(SkipOut(**about, item=item, tasks=tasks, person=skip.annotator, at=skip.created_at))
    return SkipList(skips=shown, total=len(found))


@router.post("/skips/undo", tags=["reviewing"], summary="Undo a skip")
def undo_skip(app_state: AppStateDep, me: LeadDep, sent: UndoRequest) -> SkipUndone:
    """Ask for the item again, for the same tasks. The skip and its reason stay in the ledger.

    If its round has been closed since, the item returns to the pool. Refused while the next round is being trained.
    Undoing the same skip again has no effect.
    """
    with app_state.trainer.paused():
        asked = app_state.assignments.undo_skip(me.name, sent.skip)
    app_state.changed()
    return SkipUndone(asked=asked)


@router.get("/agreement", tags=["reviewing"], summary="Inter-annotator agreement")
def agreement(app_state: AppStateDep, me: LeadDep) -> dict[str, Agreement]:
    """By task: Cohen's kappa, Krippendorff's alpha, and pairwise F1 of spans."""
    return agreement_by_task(app_state.session.corpus, app_state.assignments.index.shared())


def _answer_out(answer: Answer) -> OverlapAnswer:
    return OverlapAnswer(person=answer.annotator, labels=dict(answer.labels), at=answer.created_at)
