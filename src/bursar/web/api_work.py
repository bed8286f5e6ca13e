"""The API for annotating: get an item, send an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response
from pydantic import BaseModel, Field

from bursar.annotation.session import SessionState
from bursar.ledger import Answer
from bursar.ledger.records import CORRECTION
from bursar.web.accounts import Caller
from bursar.web.api import ERROR_RESPONSES, AppStateDep, CallerDep, Key, ReceiptOut, RequestBody, receipt_out
from bursar.web.app_state import AppState
from bursar.web.database import Timestamp
from bursar.web.http_errors import HTTPError
from bursar.web.images import png
from bursar.web.queue import Lease

router = APIRouter(prefix="/api", tags=["annotating"], responses=ERROR_RESPONSES)
LEASE = Path(min_length=1, max_length=100)
ITEM = Path(min_length=1, max_length=1000)
Reason = Literal["training", "ended", "failed", "all_leased", "none"]
BEGINNING = 120  # characters of a text that are shown to identify an item
MOST_TASKS = 100
ItemId = Annotated[str, Field(min_length=1, max_length=1000, description="The item's id.")]
Labels = Annotated[
    dict[str, Any],
    Field(min_length=1, max_length=MOST_TASKS, description="A label for every task, in the JSON form of its kind."),
]
Seconds = Annotated[
    dict[str, Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]],
    Field(default_factory=dict, max_length=MOST_TASKS + 1, description="Seconds spent on reading and on each task."),
]
LeaseId = Annotated[str, Field(min_length=1, max_length=100)]


# -- getting an item -------------------------------------------------------------------------------------------------
class NextRequest(RequestBody):
    """Ask for an item to annotate."""

    known: list[LeaseId] = Field(
        [], max_length=20, description="Leases you hold and know of. Any other lease you hold is returned first."
    )


class LeaseOut(BaseModel):
    """A time-limited reservation of an item."""

    id: str
    expires_at: Timestamp
    seconds: float


class Progress(BaseModel):
    """Progress of the latest round; `asked` includes skipped items."""

    round: int
    answered: int
    asked: int
    skipped: int
    mine: int = Field(description="Items of the round answered by you.")


class NextReply(BaseModel):
    """An item to annotate; or no lease, and the reason."""

    lease: LeaseOut | None
    item: dict[str, Any] | None = None
    tasks: list[str] | None = None
    suggestions: dict[str, Any] | None = Field(
        default=None,
        description="By task, where the model is better than chance: `label`, `confidence` from chance (0) to "
        "certainty (1), and `sure`, the confidence in words.",
    )
    round: int | None = None
    purpose: Literal["answer", "overlap"] | None = None
    progress: Progress | None = None
    reason: Reason | None = None
    message: str | None = None
    retry_after: int | None = Field(default=None, description="Seconds to wait before asking again.")


@router.post("/next", summary="Get the next item")
def take_next(app_state: AppStateDep, me: CallerDep, asked: NextRequest) -> NextReply:
    """An item for you to annotate, reserved for you by a lease; or the reason why there is none.

    An item that you hold and do not list in `known` is returned first, so a reloaded page continues where it was. While
    your lease lasts, the item goes to no one else, unless the project wants several answers to it.
    """
    given = app_state.assignments.next(me.name, asked.known)
    state = state_for(app_state, me)
    progress = _progress(app_state, me, state)
    if given is None:
        return _no_item(state, bool(app_state.session.wanted()), progress)
    lease, session = given.lease, app_state.session
    return NextReply(
        lease=_lease_out(app_state, lease),
        item=session.item(lease.item),
        tasks=list(given.tasks),
        suggestions=session.suggestions(lease.item),
        round=lease.round,
        purpose=given.purpose,
        progress=progress,
    )


@router.get("/progress", summary="Progress of the round")
def progress(app_state: AppStateDep, me: CallerDep) -> Progress:
    """The same as in POST /api/next, for a page that continues with an item it already has."""
    return _progress(app_state, me, app_state.state())


def _progress(app_state: AppState, me: Caller, state: SessionState) -> Progress:
    mine = app_state.assignments.index.count(me.name, state.round)
    return Progress(round=state.round, answered=state.answered, asked=state.asked, skipped=state.skipped, mine=mine)


def _no_item(state: SessionState, wanted: bool, progress: Progress) -> NextReply:
    """Why there is no item to annotate, and when to ask again."""
    why = state.why or ""
    reason: Reason = "none"
    message, seconds = "There is nothing to annotate right now.", 10
    if state.phase == "ended":
        reason, seconds = "ended", 60
        message = f"The campaign has ended: {why}. A lead can raise the budget or the rounds under Decide."
    elif state.phase == "failed":
        reason, seconds = "failed", 15
        message = f"The next round could not be prepared{f': {why}' if why else '.'} A lead can try again."
    elif wanted:
        reason, message = "all_leased", "Other people are working on the remaining items of this round."
    elif state.phase == "training" or state.answered + state.skipped >= state.asked:
        reason, seconds = "training", 3
        message = "This round is complete. The next one is being prepared."
    return NextReply(lease=None, reason=reason, message=message, retry_after=seconds, progress=progress)


@router.post("/leases/{id}/renew", summary="Renew a lease")
def renew(app_state: AppStateDep, me: CallerDep, id: Annotated[str, LEASE]) -> LeaseOut:
    """Extend a lease to its full length from now."""
    return _lease_out(app_state, app_state.queue.renew(id, me.name))


@router.delete("/leases/{id}", status_code=204, summary="Release a lease")
def release(app_state: AppStateDep, me: CallerDep, id: Annotated[str, LEASE]) -> None:
    """Return the item so that others can get it."""
    app_state.queue.release(id, me.name)


# -- answering -------------------------------------------------------------------------------------------------------
class AnswerRequest(RequestBody):
    """An answer to an item: labels for all requested tasks."""

    key: Key
    lease: LeaseId | None = None
    item: ItemId
    labels: Labels
    seconds: Seconds


class CorrectionRequest(RequestBody):
    """New labels that replace earlier ones."""

    key: Key
    item: ItemId
    labels: Labels


class SkipRequest(RequestBody):
    """Skip an item: it leaves the round, and its cost returns to the budget."""

    key: Key
    lease: LeaseId | None = None
    item: ItemId
    reason: str = Field(default="", max_length=2000)


class MyAnswer(BaseModel):
    """An item annotated by you."""

    item: str
    labels: dict[str, Any]
    at: str
    round: int
    key: str
    text: str | None = Field(description="The beginning of the item's text.")


@router.post("/answers", summary="Send an answer")
def answer(app_state: AppStateDep, me: CallerDep, sent: AnswerRequest) -> ReceiptOut:
    """Labels for all requested tasks. The answer is on disk when the response is sent.

    Sending the same answer again is harmless: `repeated` is true. The lease must be one that you were given for this
    item. After a lease expires, the answer is still accepted unless the item has gone to someone else.
    """
    for what in sent.seconds.keys() - {"reading", *app_state.session.corpus.schema}:
        error, fix = f"seconds.{what[:100]}: unknown task", "use reading or the name of a task"
        raise HTTPError(422, "bad_request", error, fix=fix)
    receipt = app_state.assignments.answer(Answer(sent.item, sent.labels, me.name, sent.seconds), sent.lease)
    return receipt_out(app_state, sent.key, receipt)


@router.post("/corrections", summary="Correct an answer")
def correct(app_state: AppStateDep, me: CallerDep, sent: CorrectionRequest) -> ReceiptOut:
    """Replace your labels; the ledger keeps both versions. A lead may correct any answer."""
    answer = Answer(sent.item, sent.labels, me.name, role=CORRECTION, key=sent.key)
    return receipt_out(app_state, sent.key, app_state.assignments.replace_labels(answer, me.is_lead))


@router.post("/skips", summary="Skip an item")
def skip(app_state: AppStateDep, me: CallerDep, sent: SkipRequest) -> dict[str, Any]:
    """The item leaves the round, and its cost returns to the budget. Refused if only others hold the item."""
    app_state.assignments.skip(me.name, sent.key, sent.item, sent.reason, sent.lease)
    app_state.changed()
    return {}


@router.get("/mine", summary="Your answers")
def mine(
    app_state: AppStateDep, me: CallerDep, limit: Annotated[int, Query(ge=1, le=1000)] = 50
) -> dict[str, list[MyAnswer]]:
    """Newest first; a corrected answer appears with its correction."""
    found = []
    for answer in app_state.assignments.index.newest(me.name, limit):
        text = app_state.session.item(answer.item).get("text")
        text = text[:BEGINNING] + "…" if text is not None and len(text) > BEGINNING else text
        about: Any = {"item": answer.item, "at": answer.created_at, "round": answer.round, "key": answer.key}
        found.append(MyAnswer(**about, labels=dict(answer.labels), text=text))
    return {"answers": found}


# -- reading ---------------------------------------------------------------------------------------------------------
@router.get("/items/{id:path}/image", summary="The image of an item", response_class=Response)
def image(app_state: AppStateDep, me: CallerDep, id: Annotated[str, ITEM]) -> Response:
    """The image as PNG."""
    corpus = app_state.session.corpus
    at = int(corpus.positions([id])[0])
    if corpus.images is None:
        raise HTTPError(404, "no_image", f"item {id!r} is not an image")
    return Response(png(corpus.images[at]), media_type="image/png", headers={"cache-control": "private, max-age=3600"})


@router.get("/items/{id:path}", summary="Get an item")
def item(app_state: AppStateDep, me: CallerDep, id: Annotated[str, ITEM]) -> dict[str, Any]:
    """The text with its word offsets and second text, or the address of the image."""
    return app_state.session.item(id)


@router.get("/state", summary="Campaign state")
def state(app_state: AppStateDep, me: CallerDep) -> SessionState:
    """Round, phase, progress of the round, and spending."""
    return state_for(app_state, me)


def state_for(app_state: AppState, me: Caller) -> SessionState:
    """The campaign state, as this person may see it."""
    state = app_state.state()
    return state if me.is_lead or state.phase != "failed" else replace(state, why=None)


def _lease_out(app_state: AppState, lease: Lease) -> LeaseOut:
    return LeaseOut(id=lease.id, expires_at=lease.expires_at, seconds=app_state.queue.seconds)
