"""The API for watching, deciding and reviewing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import StreamingResponse

from bursar.ledger.records import Skip
from bursar.web.agreement import alike
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
from bursar.web.assignments import PersonAnswer
from bursar.web.dashboard import dashboard as dashboard_of
from bursar.web.events import for_annotators
from bursar.web.http_errors import HTTPError
from bursar.web.queue import Overlap

router = APIRouter(prefix="/api", responses=ERROR_RESPONSES)


# -- watching --------------------------------------------------------------------------------------------------------
@router.get("/events", tags=["watching"], summary="News as it comes", response_class=StreamingResponse)
async def events(app_state: AppStateDep, me: CallerDep, request: Request) -> StreamingResponse:
    """Server-sent events: `state` (first, and whenever it changes), `stage`, `scored`, `preview`, `advice`, `ping`."""
    stream = app_state.hub.listen()
    first = await anext(stream)  # whoever is one too many is refused before anything is sent

    async def all_of_it() -> AsyncIterator[str]:
        yield first if me.is_lead else for_annotators(first)
        async for text in stream:
            yield text if me.is_lead else for_annotators(text)

    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(all_of_it(), media_type="text/event-stream", headers=headers)


@router.get("/dashboard", tags=["watching"], summary="Everything about the run")
def dashboard(
    app_state: AppStateDep,
    me: LeadDep,
    whole: Annotated[bool, Query(description="With `result`, all that a report is made of.")] = True,
) -> dict[str, Any]:
    """What the report shows, as JSON; where the campaign stands; and, `shown`, what the watch page makes of both."""
    state, result = app_state.state(), app_state.result()
    in_force = app_state.session.in_force.model_dump(mode="json")  # a result has those of the beginning
    shown = dashboard_of(result | {"config": in_force}, state, str(app_state.session.folder))
    return {"state": state, "shown": shown} | ({"result": result} if whole else {})


@router.post("/advice", tags=["watching"], status_code=202, summary="How should money be split between the tasks?")
def ask_advice(app_state: AppStateDep, me: LeadDep, sent: AdviceRequest) -> AdviceOut:
    """Begins to measure that; events `advice` tell how far it is. One at a time."""
    return AdviceOut(**vars(app_state.advising.start(f"{Decimal(str(sent.amount)):f}")))


@router.get("/advice", tags=["watching"], summary="The newest advice on a split")
def advice(app_state: AppStateDep, me: LeadDep) -> NewestAdvice:
    """How far it is, what it found, and at which state it was asked for."""
    newest = app_state.advising.newest
    return NewestAdvice(advice=None if newest is None else AdviceOut(**vars(newest)))


# -- deciding --------------------------------------------------------------------------------------------------------
@router.get("/settings", tags=["deciding"], summary="What the next round is run with")
def settings(app_state: AppStateDep, me: LeadDep) -> dict[str, Any]:
    """Budget, prices, strategy, weights, limits; what else could be chosen; and what the measured seconds say."""
    return dict(app_state.session.settings())


@router.post("/settings", tags=["deciding"], summary="Change the next round")
def change_settings(app_state: AppStateDep, me: LeadDep, sent: SettingsRequest) -> dict[str, Any]:
    """Changes count from the next round on, and stand in the ledger. The same changes again change nothing."""
    app_state.assignments.change(sent.changes, me.name, sent.key, sent.after)
    app_state.changed()
    return dict(app_state.session.settings())


@router.post("/preview", tags=["deciding"], status_code=202, summary="What would these settings choose?")
def preview(app_state: AppStateDep, me: LeadDep, sent: PreviewRequest) -> Job:
    """Begins a preview; an event `preview` tells when it is done."""
    return Job(**vars(app_state.previews.start(sent.changes)))


@router.get("/preview/{job}", tags=["deciding"], summary="What a preview found")
def preview_found(app_state: AppStateDep, me: LeadDep, job: Annotated[str, Path(max_length=100)]) -> Job:
    """How far it is, or what it found."""
    return Job(**vars(app_state.previews.get(job)))


@router.post("/rounds", tags=["deciding"], status_code=202, summary="Train the next round now")
def next_round(app_state: AppStateDep, me: LeadDep, sent: RoundRequest) -> StateOut:
    """Also the way to try again after a training has failed. With `close`, what is not answered returns to the pool."""
    state = app_state.state()
    if sent.round is not None and sent.round != state["round"]:
        raise HTTPError(409, "other_round", f"round {state['round']} is open, not round {sent.round}")
    if state["phase"] == "ended":
        raise HTTPError(409, "ended", "the campaign is over", fix="give it more money under Decide")
    if sent.close:
        app_state.assignments.close_round(me.name)
    elif app_state.session.wanted():
        raise HTTPError(409, "open_items", "the round is not complete", fix="answer the rest, or send close: true")
    if app_state.trainer.failure is not None:
        app_state.trainer.retry()
    app_state.changed()
    return StateOut(**app_state.state())


# -- reviewing -------------------------------------------------------------------------------------------------------
@router.get("/overlap", tags=["reviewing"], summary="What several people answered")
def overlap(
    app_state: AppStateDep,
    me: LeadDep,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    which: Annotated[str, Query(pattern="^(all|open)$", description="All of them, or those to adjudicate.")] = "all",
) -> OverlapList:
    """Items with two answers or more: first those on which people differ and nobody has decided."""
    found = []
    for item, said in app_state.assignments.shared().items():
        tasks = dict.fromkeys(task for entry in said.values() for task in entry.labels)
        differ = [task for task in tasks if not alike([entry.labels.get(task) for entry in said.values()])]
        decided = app_state.assignments.adjudicated(item)
        found.append((item, said, differ, decided))
    undecided = [entry for entry in found if entry[2] and entry[3] is None]
    rest = [entry for entry in found if not (entry[2] and entry[3] is None)] if which == "all" else []
    return OverlapList(
        items=[
            OverlapItem(
                item=app_state.session.item(item),
                answers=[_said(entry) for entry in said.values()],
                disagree=differ,
                adjudicated=None if decided is None else _said(decided),
            )
            for item, said, differ, decided in [*undecided, *rest][offset : offset + limit]
        ],
        total=len(undecided) + len(rest),
        disagree=len(undecided),
        settings=_overlap(app_state),
    )


@router.get("/overlap/settings", tags=["reviewing"], summary="How much several people answer")
def overlap_settings(app_state: AppStateDep, me: LeadDep) -> OverlapSettings:
    """The share of items that several people answer."""
    return _overlap(app_state)


@router.put("/overlap/settings", tags=["reviewing"], summary="Let several people answer")
def set_overlap(app_state: AppStateDep, me: LeadDep, sent: OverlapSettings) -> OverlapSettings:
    """Which items those are follows from their ids, so the same share gives the same items."""
    app_state.queue.set_overlap(Overlap(sent.share, sent.people))
    return _overlap(app_state)


@router.post("/adjudications", tags=["reviewing"], summary="Decide what stands")
def adjudicate(app_state: AppStateDep, me: LeadDep, sent: CorrectionRequest) -> ReceiptOut:
    """What stands where people differ. All that they said stays in the ledger."""
    receipt = app_state.assignments.adjudicate(me.name, sent.key, sent.item, sent.labels)
    app_state.changed()
    return receipt_out(app_state, sent.key, receipt)


@router.get("/skips", tags=["reviewing"], summary="What people skipped, and why")
def skips(
    app_state: AppStateDep,
    me: LeadDep,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    which: Annotated[str, Query(pattern="^(all|open)$", description="All, or those that were not undone.")] = "open",
) -> SkipList:
    """The newest first."""
    found = app_state.session.ledger.skips(undone=which == "all")[::-1]
    return SkipList(skips=[_skip_out(app_state, skip) for skip in found[offset : offset + limit]], total=len(found))


@router.post("/skips/undo", tags=["reviewing"], summary="Ask again about what was skipped")
def undo_skip(app_state: AppStateDep, me: LeadDep, sent: UndoRequest) -> SkipUndone:
    """The item is asked about again for the same tasks; what was said with the skip stays in the ledger.

    Where its round has been closed since, it goes back to the pool. Refused while the next round is being trained. To
    undo the same skip again changes nothing.
    """
    with app_state.trainer.held():
        asked = app_state.assignments.undo_skip(me.name, sent.skip)
    app_state.changed()
    return SkipUndone(asked=asked)


def _skip_out(app_state: AppState, skip: Skip) -> SkipOut:
    want = app_state.session.books.wanted(skip.round).get(skip.item)
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


@router.get("/agreement", tags=["reviewing"], summary="How far people agree")
def agreement(app_state: AppStateDep, me: LeadDep) -> dict[str, AgreementOut]:
    """Task by task: Cohen's kappa, Krippendorff's alpha, F1 of spans between people."""
    return {task: AgreementOut(**asdict(found)) for task, found in app_state.assignments.agreement().items()}


def _said(entry: PersonAnswer) -> OverlapAnswer:
    return OverlapAnswer(person=entry.person, labels=dict(entry.labels), at=entry.at)


def _overlap(app_state: AppState) -> OverlapSettings:
    return OverlapSettings(**asdict(app_state.queue.overlap))
