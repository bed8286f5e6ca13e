"""The API: who asks, what is refused and how, and the routes of its parts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.security import APIKeyHeader, HTTPBearer
from starlette.exceptions import HTTPException

from bursar.errors import BursarError, DataError, StorageError, is_storage_fault
from bursar.ledger import Receipt
from bursar.web.accounts import Caller, same_text
from bursar.web.api_models import ReceiptShown, Wrong
from bursar.web.app_state import AppState
from bursar.web.http_errors import Problem, storage_unavailable
from bursar.web.logs import STORAGE_LOG
from bursar.web.security import LOG, SAFE

CSRF = "X-CSRF-Token"
RESENT = ("/api/next", "/api/answers", "/api/corrections", "/api/skips")  # the annotate page sends these again
REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Wrong, "description": "What was given is wrong."},
    401: {"model": Wrong, "description": "Nobody is signed in."},
    403: {"model": Wrong, "description": "Not allowed to you, or not from one of our pages."},
    404: {"model": Wrong, "description": "There is no such thing."},
    409: {"model": Wrong, "description": "It does not fit what is there already."},
    422: {"model": Wrong, "description": "The request is not of the form that is described here."},
    429: {"model": Wrong, "description": "Too often; Retry-After says when."},
    503: {"model": Wrong, "description": "Storage is full or unavailable; Retry-After says when to try again."},
}

_token = HTTPBearer(auto_error=False, description="A token from POST /api/tokens.")
_csrf = APIKeyHeader(name=CSRF, auto_error=False, description="With a session cookie: `csrf` of GET /api/me.")


# -- who asks --------------------------------------------------------------------------------------------------------
async def site_of(request: Request) -> AppState:  # what does not block need not go to a thread
    """The project that is served."""
    site: AppState = request.app.state.site
    return site


SiteHere = Annotated[AppState, Depends(site_of)]


def who(request: Request, site: AppState) -> Caller | None:
    """Whoever sends this request, by cookie or token."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    given = token.strip() if scheme.lower() == "bearer" else None
    return site.caller(request.cookies.get(site.cookie), given)


def caller(
    request: Request,
    site: SiteHere,
    token: Annotated[Any, Depends(_token)] = None,
    csrf: Annotated[str | None, Depends(_csrf)] = None,
) -> Caller:
    """Whoever sends this request, if they may; a browser proves that the page it comes from is ours."""
    found = who(request, site)
    if found is None:
        raise Problem(401, "signed_out", "nobody is signed in", fix="sign in, or send a token")
    if request.method not in SAFE and found.csrf is not None and not same_text(found.csrf, csrf or ""):
        raise Problem(403, "csrf", f"the header {CSRF} is missing or wrong", fix="send csrf of GET /api/me")
    return found


async def lead(found: Annotated[Caller, Depends(caller)]) -> Caller:
    """Whoever sends this request, if they lead the project."""
    if not found.leads:
        raise Problem(403, "leads_only", "only a lead may do this", fix="ask one")
    return found


CallerHere = Annotated[Caller, Depends(caller)]
LeadHere = Annotated[Caller, Depends(lead)]


# -- what is refused -------------------------------------------------------------------------------------------------
Shown = Callable[[Request, Problem], Response | None]


def refuse(app: FastAPI, shown: Shown) -> None:
    """Every refusal has one form, whoever refuses; to a person who typed an address it is ``shown`` as a page."""

    def answer(problem: Callable[[Request, Any], Problem]) -> Callable[[Request, Exception], Response]:
        def handle(request: Request, wrong: Exception) -> Response:
            found = problem(request, wrong)
            return shown(request, found) or reply(found)

        return handle

    app.add_exception_handler(BursarError, answer(lambda _, wrong: problem_of(wrong)))
    for fault in (StorageError, OSError):
        app.add_exception_handler(fault, answer(_no_storage))
    app.add_exception_handler(RequestValidationError, answer(_not_of_the_form))
    app.add_exception_handler(HTTPException, answer(_http))
    app.add_exception_handler(Exception, answer(_broken))


def problem_of(wrong: BursarError) -> Problem:
    """An error of any room as a refusal."""
    if isinstance(wrong, Problem):
        return wrong
    if isinstance(wrong, DataError) and wrong.path is None and wrong.item is not None:
        return Problem(404, "no_item", wrong.message, fix=wrong.fix)
    kind = type(wrong).__name__.removesuffix("Error").lower()
    return Problem(400, f"bad_{kind}", wrong.message, fix=wrong.fix)


def reply(problem: Problem) -> JSONResponse:
    """A refusal as it is sent."""
    headers = {"retry-after": str(problem.retry_after)} if problem.retry_after is not None else None
    return JSONResponse(problem.body, problem.status, headers)


def _not_of_the_form(request: Request, wrong: RequestValidationError) -> Problem:
    first = wrong.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body") or "the request"
    return Problem(422, "bad_request", f"{place[:200]}: {first['msg']}", fix="see /api/docs")


def _http(request: Request, wrong: HTTPException) -> Problem:
    kinds = {404: "no_page", 405: "no_method", 413: "too_large"}
    words = {404: "there is nothing at this address", 405: "this address does not take that method"}
    message = words.get(wrong.status_code, str(wrong.detail))
    return Problem(wrong.status_code, kinds.get(wrong.status_code, "bad_request"), message)


def _no_storage(request: Request, wrong: Exception) -> Problem:
    """The disk or the database is at fault. Where it is and what it said is in the log alone."""
    if not is_storage_fault(wrong):
        return _broken(request, wrong)
    STORAGE_LOG.error("storage fault: %s", wrong)
    return storage_unavailable(request.url.path in RESENT)


def _broken(request: Request, wrong: Exception) -> Problem:
    """A mistake of ours. It is in the log under the request's number."""
    number = request.scope.get("state", {}).get("request_id", "")
    LOG.error("%s broke", number, exc_info=wrong)
    return Problem(500, "broken", f"the server made a mistake (request {number}); its log says which")


# -- how things are shown --------------------------------------------------------------------------------------------
def moment(at: float | None) -> str:
    """A time as it is sent: UTC, to the second."""
    return "" if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def receipt_shown(site: AppState, key: str, receipt: Receipt) -> ReceiptShown:
    """A receipt under the sender's key."""
    return ReceiptShown(
        key=key, repeated=receipt.repeated, cost=site.live.costs.show(receipt.cost), cost_units=receipt.cost
    )
