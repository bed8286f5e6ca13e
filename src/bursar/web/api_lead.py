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
from bursar.web.api import REFUSALS, CallerHere, LeadHere, SiteHere, receipt_shown
from bursar.web.api_models import (
    AdviceRequest,
    AdviceShown,
    AgreementShown,
    CorrectionRequest,
    Job,
    NewestAdvice,
    OverlapAnswer,
    OverlapItem,
    OverlapList,
    OverlapSettings,
    PreviewRequest,
    ReceiptShown,
    RoundRequest,
    SettingsRequest,
    SkipList,
    SkipShown,
    StateShown,
    Undone,
    UndoRequest,
)
from bursar.web.app_state import AppState
from bursar.web.assignments import Entry
from bursar.web.dashboard import dashboard as dashboard_of
from bursar.web.events import for_annotators
from bursar.web.http_errors import Problem
from bursar.web.queue import Overlap

router = APIRouter(prefix="/api", responses=REFUSALS)


# -- watching --------------------------------------------------------------------------------------------------------
@router.get("/events", tags=["watching"], summary="News as it comes", response_class=StreamingResponse)
async def events(site: SiteHere, me: CallerHere, request: Request) -> StreamingResponse:
    """Server-sent events: `state` (first, and whenever it changes), `stage`, `scored`, `preview`, `advice`, `ping`."""
    stream = site.hub.listen()
    first = await anext(stream)  # whoever is one too many is refused before anything is sent

    async def all_of_it() -> AsyncIterator[str]:
        yield first if me.leads else for_annotators(first)
        async for text in stream:
            yield text if me.leads else for_annotators(text)

    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(all_of_it(), media_type="text/event-stream", headers=headers)


@router.get("/dashboard", tags=["watching"], summary="Everything about the run")
def dashboard(
    site: SiteHere,
    me: LeadHere,
    whole: Annotated[bool, Query(description="With `result`, all that a report is made of.")] = True,
) -> dict[str, Any]:
    """What the report shows, as JSON; where the campaign stands; and, `shown`, what the watch page makes of both."""
    state, result = site.state(), site.result()
    in_force = site.live.in_force.model_dump(mode="json")  # a result has those of the beginning
    shown = dashboard_of(result | {"config": in_force}, state, str(site.live.folder))
    return {"state": state, "shown": shown} | ({"result": result} if whole else {})


@router.post("/advice", tags=["watching"], status_code=202, summary="How should money be split between the tasks?")
def ask_advice(site: SiteHere, me: LeadHere, sent: AdviceRequest) -> AdviceShown:
    """Begins to measure that; events `advice` tell how far it is. One at a time."""
    return AdviceShown(**vars(site.advising.start(f"{Decimal(str(sent.amount)):f}")))


@router.get("/advice", tags=["watching"], summary="The newest advice on a split")
def advice(site: SiteHere, me: LeadHere) -> NewestAdvice:
    """How far it is, what it found, and at which state it was asked for."""
    newest = site.advising.newest
    return NewestAdvice(advice=None if newest is None else AdviceShown(**vars(newest)))


# -- deciding --------------------------------------------------------------------------------------------------------
@router.get("/settings", tags=["deciding"], summary="What the next round is run with")
def settings(site: SiteHere, me: LeadHere) -> dict[str, Any]:
    """Budget, prices, strategy, weights, limits; what else could be chosen; and what the measured seconds say."""
    return dict(site.live.settings())


@router.post("/settings", tags=["deciding"], summary="Change the next round")
def change_settings(site: SiteHere, me: LeadHere, sent: SettingsRequest) -> dict[str, Any]:
    """Changes count from the next round on, and stand in the ledger. The same changes again change nothing."""
    site.desk.change(sent.changes, me.name, sent.key, sent.after)
    site.changed()
    return dict(site.live.settings())


@router.post("/preview", tags=["deciding"], status_code=202, summary="What would these settings choose?")
def preview(site: SiteHere, me: LeadHere, sent: PreviewRequest) -> Job:
    """Begins a preview; an event `preview` tells when it is done."""
    return Job(**vars(site.previews.start(sent.changes)))


@router.get("/preview/{job}", tags=["deciding"], summary="What a preview found")
def preview_found(site: SiteHere, me: LeadHere, job: Annotated[str, Path(max_length=100)]) -> Job:
    """How far it is, or what it found."""
    return Job(**vars(site.previews.get(job)))


@router.post("/rounds", tags=["deciding"], status_code=202, summary="Train the next round now")
def next_round(site: SiteHere, me: LeadHere, sent: RoundRequest) -> StateShown:
    """Also the way to try again after a training has failed. With `close`, what is not answered returns to the pool."""
    state = site.state()
    if sent.round is not None and sent.round != state["round"]:
        raise Problem(409, "other_round", f"round {state['round']} is open, not round {sent.round}")
    if state["phase"] == "ended":
        raise Problem(409, "ended", "the campaign is over", fix="give it more money under Decide")
    if sent.close:
        site.desk.close_round(me.name)
    elif site.live.wanted():
        raise Problem(409, "open_items", "the round is not complete", fix="answer the rest, or send close: true")
    if site.trainer.failure is not None:
        site.trainer.retry()
    site.changed()
    return StateShown(**site.state())


# -- reviewing -------------------------------------------------------------------------------------------------------
@router.get("/overlap", tags=["reviewing"], summary="What several people answered")
def overlap(
    site: SiteHere,
    me: LeadHere,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    which: Annotated[str, Query(pattern="^(all|open)$", description="All of them, or those to adjudicate.")] = "all",
) -> OverlapList:
    """Items with two answers or more: first those on which people differ and nobody has decided."""
    found = []
    for item, said in site.desk.shared().items():
        tasks = dict.fromkeys(task for entry in said.values() for task in entry.labels)
        differ = [task for task in tasks if not alike([entry.labels.get(task) for entry in said.values()])]
        decided = site.desk.adjudicated(item)
        found.append((item, said, differ, decided))
    undecided = [entry for entry in found if entry[2] and entry[3] is None]
    rest = [entry for entry in found if not (entry[2] and entry[3] is None)] if which == "all" else []
    return OverlapList(
        items=[
            OverlapItem(
                item=site.live.item(item),
                answers=[_said(entry) for entry in said.values()],
                disagree=differ,
                adjudicated=None if decided is None else _said(decided),
            )
            for item, said, differ, decided in [*undecided, *rest][offset : offset + limit]
        ],
        total=len(undecided) + len(rest),
        disagree=len(undecided),
        settings=_overlap(site),
    )


@router.get("/overlap/settings", tags=["reviewing"], summary="How much several people answer")
def overlap_settings(site: SiteHere, me: LeadHere) -> OverlapSettings:
    """The share of items that several people answer."""
    return _overlap(site)


@router.put("/overlap/settings", tags=["reviewing"], summary="Let several people answer")
def set_overlap(site: SiteHere, me: LeadHere, sent: OverlapSettings) -> OverlapSettings:
    """Which items those are follows from their ids, so the same share gives the same items."""
    site.queue.set_overlap(Overlap(sent.share, sent.people))
    return _overlap(site)


@router.post("/adjudications", tags=["reviewing"], summary="Decide what stands")
def adjudicate(site: SiteHere, me: LeadHere, sent: CorrectionRequest) -> ReceiptShown:
    """What stands where people differ. All that they said stays in the ledger."""
    receipt = site.desk.adjudicate(me.name, sent.key, sent.item, sent.labels)
    site.changed()
    return receipt_shown(site, sent.key, receipt)


@router.get("/skips", tags=["reviewing"], summary="What people skipped, and why")
def skips(
    site: SiteHere,
    me: LeadHere,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    which: Annotated[str, Query(pattern="^(all|open)$", description="All, or those that were not undone.")] = "open",
) -> SkipList:
    """The newest first."""
    found = site.live.ledger.skips(undone=which == "all")[::-1]
    return SkipList(skips=[_skip_shown(site, skip) for skip in found[offset : offset + limit]], total=len(found))


@router.post("/skips/undo", tags=["reviewing"], summary="Ask again about what was skipped")
def undo_skip(site: SiteHere, me: LeadHere, sent: UndoRequest) -> Undone:
    """The item is asked about again for the same tasks; what was said with the skip stays in the ledger.

    Where its round has been closed since, it goes back to the pool. Refused while the next round is being trained. To
    undo the same skip again changes nothing.
    """
    with site.trainer.held():
        asked = site.desk.undo_skip(me.name, sent.skip)
    site.changed()
    return Undone(asked=asked)


def _skip_shown(site: AppState, skip: Skip) -> SkipShown:
    want = site.live.books.wanted(skip.round).get(skip.item)
    tasks = [skip.task] if skip.task is not None else list(want.tasks) if want is not None else []
    return SkipShown(
        key=skip.key,
        item=site.live.item(skip.item),
        tasks=tasks,
        person=skip.annotator,
        reason=skip.reason,
        at=skip.created_at,
        round=skip.round,
        undone_by=skip.undone_by,
        undone_at=skip.undone_at,
    )


@router.get("/agreement", tags=["reviewing"], summary="How far people agree")
def agreement(site: SiteHere, me: LeadHere) -> dict[str, AgreementShown]:
    """Task by task: Cohen's kappa, Krippendorff's alpha, F1 of spans between people."""
    return {task: AgreementShown(**asdict(found)) for task, found in site.desk.agreement().items()}


def _said(entry: Entry) -> OverlapAnswer:
    return OverlapAnswer(person=entry.person, labels=dict(entry.labels), at=entry.at)


def _overlap(site: AppState) -> OverlapSettings:
    return OverlapSettings(**asdict(site.queue.overlap))
