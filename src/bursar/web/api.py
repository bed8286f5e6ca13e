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
from bursar.web.accounts import Caller, same_secret
from bursar.web.api_models import ErrorBody, ReceiptOut
from bursar.web.app_state import AppState
from bursar.web.http_errors import HTTPError, storage_unavailable
from bursar.web.logs import STORAGE_LOG
from bursar.web.security import LOG, SAFE

CSRF = "X-CSRF-Token"
RETRIED_BY_PAGE = ("/api/next", "/api/answers", "/api/corrections", "/api/skips")  # the annotate page sends these again
ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "What was given is wrong."},
    401: {"model": ErrorBody, "description": "Nobody is signed in."},
    403: {"model": ErrorBody, "description": "Not allowed to you, or not from one of our pages."},
    404: {"model": ErrorBody, "description": "There is no such thing."},
    409: {"model": ErrorBody, "description": "It does not fit what is there already."},
    422: {"model": ErrorBody, "description": "The request is not of the form that is described here."},
    429: {"model": ErrorBody, "description": "Too often; Retry-After says when."},
    503: {"model": ErrorBody, "description": "Storage is full or unavailable; Retry-After says when to try again."},
}

_token = HTTPBearer(auto_error=False, description="A token from POST /api/tokens.")
_csrf = APIKeyHeader(name=CSRF, auto_error=False, description="With a session cookie: `csrf` of GET /api/me.")


# -- who asks --------------------------------------------------------------------------------------------------------
async def get_app_state(request: Request) -> AppState:  # what does not block need not go to a thread
    """The project that is served."""
    app_state: AppState = request.app.state.bursar
    return app_state


AppStateDep = Annotated[AppState, Depends(get_app_state)]


def who(request: Request, app_state: AppState) -> Caller | None:
    """Whoever sends this request, by cookie or token."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    given = token.strip() if scheme.lower() == "bearer" else None
    return app_state.caller(request.cookies.get(app_state.cookie), given)


def caller(
    request: Request,
    app_state: AppStateDep,
    token: Annotated[Any, Depends(_token)] = None,
    csrf: Annotated[str | None, Depends(_csrf)] = None,
) -> Caller:
    """Whoever sends this request, if they may; a browser proves that the page it comes from is ours."""
    found = who(request, app_state)
    if found is None:
        raise HTTPError(401, "signed_out", "nobody is signed in", fix="sign in, or send a token")
    if request.method not in SAFE and found.csrf is not None and not same_secret(found.csrf, csrf or ""):
        raise HTTPError(403, "csrf", f"the header {CSRF} is missing or wrong", fix="send csrf of GET /api/me")
    return found


async def lead(found: Annotated[Caller, Depends(caller)]) -> Caller:
    """Whoever sends this request, if they lead the project."""
    if not found.is_lead:
        raise HTTPError(403, "leads_only", "only a lead may do this", fix="ask one")
    return found


CallerDep = Annotated[Caller, Depends(caller)]
LeadDep = Annotated[Caller, Depends(lead)]


# -- what is refused -------------------------------------------------------------------------------------------------
Shown = Callable[[Request, HTTPError], Response | None]


def refuse(app: FastAPI, shown: Shown) -> None:
    """Every refusal has one form, whoever refuses; to a person who typed an address it is ``shown`` as a page."""

    def answer(problem: Callable[[Request, Any], HTTPError]) -> Callable[[Request, Exception], Response]:
        def handle(request: Request, error: Exception) -> Response:
            found = problem(request, error)
            return shown(request, found) or reply(found)

        return handle

    app.add_exception_handler(BursarError, answer(lambda _, error: to_http_error(error)))
    for fault in (StorageError, OSError):
        app.add_exception_handler(fault, answer(_no_storage))
    app.add_exception_handler(RequestValidationError, answer(_not_of_the_form))
    app.add_exception_handler(HTTPException, answer(_http))
    app.add_exception_handler(Exception, answer(_broken))


def to_http_error(error: BursarError) -> HTTPError:
    """An error of any room as a refusal."""
    if isinstance(error, HTTPError):
        return error
    if isinstance(error, DataError) and error.path is None and error.item is not None:
        return HTTPError(404, "no_item", error.message, fix=error.fix)
    kind = type(error).__name__.removesuffix("Error").lower()
    return HTTPError(400, f"bad_{kind}", error.message, fix=error.fix)


def reply(problem: HTTPError) -> JSONResponse:
    """A refusal as it is sent."""
    headers = {"retry-after": str(problem.retry_after)} if problem.retry_after is not None else None
    return JSONResponse(problem.body, problem.status, headers)


def _not_of_the_form(request: Request, error: RequestValidationError) -> HTTPError:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body") or "the request"
    return HTTPError(422, "bad_request", f"{place[:200]}: {first['msg']}", fix="see /api/docs")


def _http(request: Request, error: HTTPException) -> HTTPError:
    kinds = {404: "no_page", 405: "no_method", 413: "too_large"}
    words = {404: "there is nothing at this address", 405: "this address does not take that method"}
    message = words.get(error.status_code, str(error.detail))
    return HTTPError(error.status_code, kinds.get(error.status_code, "bad_request"), message)


def _no_storage(request: Request, error: Exception) -> HTTPError:
    """The disk or the database is at fault. Where it is and what it said is in the log alone."""
    if not is_storage_fault(error):
        return _broken(request, error)
    STORAGE_LOG.error("storage fault: %s", error)
    return storage_unavailable(request.url.path in RETRIED_BY_PAGE)


def _broken(request: Request, error: Exception) -> HTTPError:
    """A mistake of ours. It is in the log under the request's number."""
    number = request.scope.get("state", {}).get("request_id", "")
    LOG.error("%s broke", number, exc_info=error)
    return HTTPError(500, "broken", f"the server made a mistake (request {number}); its log says which")


# -- how things are shown --------------------------------------------------------------------------------------------
def timestamp(at: float | None) -> str:
    """A time as it is sent: UTC, to the second."""
    return "" if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def receipt_out(app_state: AppState, key: str, receipt: Receipt) -> ReceiptOut:
    """A receipt under the sender's key."""
    return ReceiptOut(
        key=key, repeated=receipt.repeated, cost=app_state.session.costs.show(receipt.cost), cost_units=receipt.cost
    )
