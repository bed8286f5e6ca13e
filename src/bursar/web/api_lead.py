"""The API for leads: watching, deciding and reviewing."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from sse_starlette import EventSourceResponse

from bursar.ledger import Answer
from bursar.ledger.records import ADJUDICATION, Skip
from bursar.web.agreement import agreement_by_task, alike
from bursar.web.api import ERROR_RESPONSES, AppStateDep, CallerDep, LeadDep, receipt_out
from bursar.web.api_models import (
    AdviceOut,
    AdviceRequest,
    AgreementOut,
    CorrectionRequest,
    Job,
    NewestAdvice,
    OverlapAnswer,
    OverlapItem,
    OverlapList,
    OverlapSettings,
    PreviewRequest,
    ReceiptOut,
    RoundRequest,
    SettingsRequest,
    SkipList,
    SkipOut,
    SkipUndone,
    StateOut,
    UndoRequest,
)
from bursar.web.app_state import AppState
from bursar.web.dashboard import dashboard as dashboard_of
from bursar.web.events import event_stream
from bursar.web.http_errors import HTTPError
from bursar.web.queue import Overlap

router = APIRouter(prefix="/api", responses=ERROR_RESPONSES)


# -- watching --------------------------------------------------------------------------------------------------------
@router.get("/events", tags=["watching"], summary="Live events", response_class=EventSourceResponse)
async def events(app_state: AppStateDep, me: CallerDep) -> EventSourceResponse:
    """Server-sent events: `state` (first, and whenever it changes), `stage`, `scored`, `preview`, `advice`, `ping`."""
    return await event_stream(app_state.hub, me.is_lead)


@router.get("/dashboard", tags=["watching"], summary="Everything about the run")
def dashboard(
    app_state: AppStateDep,
    me: LeadDep,
    whole: Annotated[bool, Query(description="Include `result`, the data of the full report.")] = True,
) -> dict[str, Any]:
    """The campaign state, the contents of the watch page (`shown`) and the data of the report (`result`)."""
    state, result = app_state.state(), app_state.result()
    in_force = result.model_copy(update={"config": app_state.session.settings.in_force})  # it has the initial settings
    shown = dashboard_of(in_force, state, str(app_state.session.folder))
    return {"state": state, "shown": shown} | ({"result": result.to_json()} if whole else {})


@router.post("/advice", tags=["watching"], status_code=202, summary="Ask for advice on splitting the budget")
def ask_advice(app_state: AppStateDep, me: LeadDep, sent: AdviceRequest) -> AdviceOut:
    """Start working out how to split the budget between tasks. Progress comes as `advice` events. One at a time."""
    return AdviceOut(**vars(app_state.advising.start(f"{Decimal(str(sent.amount)):f}")))


@router.get("/advice", tags=["watching"], summary="The latest budget split advice")
def advice(app_state: AppStateDep, me: LeadDep) -> NewestAdvice:
    """Its progress or result, and the campaign state when it was requested."""
    newest = app_state.advising.newest
    return NewestAdvice(advice=None if newest is None else AdviceOut(**vars(newest)))


# -- deciding --------------------------------------------------------------------------------------------------------
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
def preview(app_state: AppStateDep, me: LeadDep, sent: PreviewRequest) -> Job:
    """Start a preview of the next round. A `preview` event is sent when it is done."""
    return Job(**vars(app_state.previews.start(sent.changes)))


@router.get("/preview/{job}", tags=["deciding"], summary="Preview result")
def preview_found(app_state: AppStateDep, me: LeadDep, job: Annotated[str, Path(max_length=100)]) -> Job:
    """The progress or the result of a preview."""
    return Job(**vars(app_state.previews.get(job)))


@router.post("/rounds", tags=["deciding"], status_code=202, summary="Train the next round now")
def next_round(app_state: AppStateDep, me: LeadDep, sent: RoundRequest) -> StateOut:
    """Also retries a failed training. With `close`, unanswered items return to the pool."""
    state = app_state.state()
    if sent.round is not None and sent.round != state["round"]:
        raise HTTPError(409, "other_round", f"round {state['round']} is open, not round {sent.round}")
    if state["phase"] == "ended":
        raise HTTPError(409, "ended", "the campaign has ended", fix="raise the budget or the rounds under Decide")
    if sent.close:
        app_state.assignments.close_round(me.name)
    elif app_state.session.wanted():
        raise HTTPError(
            409, "open_items", "the round is not complete", fix="answer the remaining items, or send close: true"
        )
    if app_state.trainer.failure is not None:
        app_state.trainer.retry()
    app_state.changed()
    return StateOut(**app_state.state())


# -- reviewing -------------------------------------------------------------------------------------------------------
@router.get("/overlap", tags=["reviewing"], summary="Items answered by several people")
def overlap(
    app_state: AppStateDep,
    me: LeadDep,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    which: Annotated[str, Query(pattern="^(all|open)$", description="All items, or only those to adjudicate.")] = "all",
) -> OverlapList:
    """Items with two or more answers; unresolved disagreements first."""
    found = []
    for item, answers in app_state.assignments.index.shared().items():
        tasks = dict.fromkeys(task for answer in answers.values() for task in answer.labels)
        differ = [task for task in tasks if not alike([answer.labels.get(task) for answer in answers.values()])]
        decided = app_state.assignments.index.adjudicated(item)
        found.append((item, answers, differ, decided))
    undecided = [entry for entry in found if entry[2] and entry[3] is None]
    rest = [entry for entry in found if not (entry[2] and entry[3] is None)] if which == "all" else []
    return OverlapList(
        items=[
            OverlapItem(
                item=app_state.session.item(item),
                answers=[_answer_out(answer) for answer in answers.values()],
                disagree=differ,
                adjudicated=None if decided is None else _answer_out(decided),
            )
            for item, answers, differ, decided in [*undecided, *rest][offset : offset + limit]
        ],
        total=len(undecided) + len(rest),
        disagree=len(undecided),
        settings=_overlap(app_state),
    )


@router.get("/overlap/settings", tags=["reviewing"], summary="Overlap settings")
def overlap_settings(app_state: AppStateDep, me: LeadDep) -> OverlapSettings:
    """The share of items that several people answer, and how many people."""
    return _overlap(app_state)


@router.put("/overlap/settings", tags=["reviewing"], summary="Change overlap settings")
def set_overlap(app_state: AppStateDep, me: LeadDep, sent: OverlapSettings) -> OverlapSettings:
    """Items are chosen by their ids, so the same share always gives the same items."""
    app_state.queue.set_overlap(Overlap(sent.share, sent.people))
    return _overlap(app_state)


@router.post("/adjudications", tags=["reviewing"], summary="Adjudicate an item")
def adjudicate(app_state: AppStateDep, me: LeadDep, sent: CorrectionRequest) -> ReceiptOut:
    """Set the final labels where people disagree. All answers stay in the ledger."""
    answer = Answer(sent.item, sent.labels, me.name, role=ADJUDICATION, key=sent.key)
    receipt = app_state.assignments.replace_labels(answer)
    app_state.changed()
    return receipt_out(app_state, sent.key, receipt)


@router.get("/skips", tags=["reviewing"], summary="Skipped items")
def skips(
    app_state: AppStateDep,
    me: LeadDep,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    which: Annotated[str, Query(pattern="^(all|open)$", description="All skips, or only those not undone.")] = "open",
) -> SkipList:
    """Skipped items with their reasons, newest first."""
    found = app_state.session.ledger.skips(undone=which == "all")[::-1]
    return SkipList(skips=[_skip_out(app_state, skip) for skip in found[offset : offset + limit]], total=len(found))


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


def _skip_out(app_state: AppState, skip: Skip) -> SkipOut:
    want = app_state.session.campaign_state.wanted(skip.round).get(skip.item)
    tasks = [skip.task] if skip.task is not None else list(want.tasks) if want is not None else []
    return SkipOut(
        key=skip.key,
        item=app_state.session.item(skip.item),
        tasks=tasks,
        person=skip.annotator,
        reason=skip.reason,
        at=skip.created_at,
        round=skip.round,
        undone_by=skip.undone_by,
        undone_at=skip.undone_at,
    )


@router.get("/agreement", tags=["reviewing"], summary="Inter-annotator agreement")
def agreement(app_state: AppStateDep, me: LeadDep) -> dict[str, AgreementOut]:
    """By task: Cohen's kappa, Krippendorff's alpha, and pairwise F1 of spans."""
    found = agreement_by_task(app_state.session.corpus, app_state.assignments.index.shared())
    return {task: AgreementOut(**asdict(value)) for task, value in found.items()}


def _answer_out(answer: Answer) -> OverlapAnswer:
    return OverlapAnswer(person=answer.annotator, labels=dict(answer.labels), at=answer.created_at)


def _overlap(app_state: AppState) -> OverlapSettings:
    return OverlapSettings(**asdict(app_state.queue.overlap))
