"""Shared parts of the API: types of requests and responses, dependencies that identify the caller, error handling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.security import APIKeyHeader, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from bursar.errors import BursarError, DataError, StorageError, is_storage_fault
from bursar.ledger import Receipt
from bursar.web.accounts import Caller, same_secret
from bursar.web.app_state import AppState
from bursar.web.http_errors import STORAGE_LOG, ErrorBody, HTTPError, error_response
from bursar.web.security import LOG, SAFE_METHODS

CSRF = "X-CSRF-Token"
RETRY = 5  # seconds before a request that failed on storage is sent again
# The annotate page retries these on its own.
RETRIED_BY_PAGE = ("/api/next", "/api/answers", "/api/corrections", "/api/skips")
ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody, "description": description}
    for status, description in {
        400: "The input is invalid.",
        401: "Not signed in.",
        403: "Not allowed for you, or not sent by one of our pages.",
        404: "Not found.",
        409: "Conflicts with the current state.",
        422: "The request does not match the schema.",
        429: "Too many requests; see Retry-After.",
        503: "Storage is full or unavailable; see Retry-After.",
    }.items()
}

_token = HTTPBearer(auto_error=False, description="A token from POST /api/tokens.")
_csrf = APIKeyHeader(
    name=CSRF, auto_error=False, description="Required with a session cookie: `csrf` from GET /api/me."
)


# -- types -----------------------------------------------------------------------------------------------------------
Key = Annotated[
    str,
    Field(
        min_length=8,
        max_length=100,
        pattern=r"^[A-Za-z0-9_.:-]+$",
        description="Idempotency key chosen by the sender, such as a UUID. Repeating a key has no effect.",
    ),
]


class RequestBody(BaseModel):
    """Base of request bodies: unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")


class ReceiptOut(BaseModel):
    """Confirms that the request is on disk."""

    key: str
    repeated: bool = Field(description="Already recorded: nothing was written or charged again.")
    cost: str
    cost_units: int


# -- dependencies ----------------------------------------------------------------------------------------------------
async def get_app_state(request: Request) -> AppState:  # async: it does not block, so it needs no thread
    """The state of the project that is served."""
    app_state: AppState = request.app.state.bursar
    return app_state


AppStateDep = Annotated[AppState, Depends(get_app_state)]


def find_caller(request: Request, app_state: AppState) -> Caller | None:
    """The sender of a request, by cookie or token; None if unknown."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    given = token.strip() if scheme.lower() == "bearer" else None
    return app_state.caller(request.cookies.get(app_state.cookie), given)


def require_caller(
    request: Request,
    app_state: AppStateDep,
    token: Annotated[Any, Depends(_token)] = None,
    csrf: Annotated[str | None, Depends(_csrf)] = None,
) -> Caller:
    """The signed-in sender of a request. A browser must also send the CSRF token."""
    found = find_caller(request, app_state)
    if found is None:
        raise HTTPError(401, "signed_out", "you are not signed in", fix="sign in, or send a token")
    if request.method not in SAFE_METHODS and found.csrf is not None and not same_secret(found.csrf, csrf or ""):
        raise HTTPError(403, "csrf", f"the header {CSRF} is missing or wrong", fix="send csrf from GET /api/me")
    return found


async def require_lead(found: Annotated[Caller, Depends(require_caller)]) -> Caller:
    """The sender of a request, who must be a lead."""
    if not found.is_lead:
        raise HTTPError(403, "leads_only", "only a lead may do this", fix="ask a lead")
    return found


CallerDep = Annotated[Caller, Depends(require_caller)]
LeadDep = Annotated[Caller, Depends(require_lead)]


# -- errors ----------------------------------------------------------------------------------------------------------
ErrorPage = Callable[[Request, HTTPError], Response | None]


def add_error_handlers(app: FastAPI, error_page: ErrorPage) -> None:
    """Answer every exception in one form: as a page for a browser that opens an address, else as JSON."""

    def handler(convert: Callable[[Request, Any], HTTPError]) -> Callable[[Request, Exception], Response]:
        def handle(request: Request, error: Exception) -> Response:
            converted = convert(request, error)
            return error_page(request, converted) or error_response(converted)

        return handle

    app.add_exception_handler(BursarError, handler(lambda _, error: to_http_error(error)))
    for fault in (StorageError, OSError):
        app.add_exception_handler(fault, handler(_storage_error))
    app.add_exception_handler(RequestValidationError, handler(_validation_error))
    app.add_exception_handler(HTTPException, handler(_http_exception))
    app.add_exception_handler(Exception, handler(_internal_error))


def to_http_error(error: BursarError) -> HTTPError:
    """Any Bursar error as an HTTP error."""
    if isinstance(error, HTTPError):
        return error
    if isinstance(error, DataError) and error.path is None and error.item is not None:
        return HTTPError(404, "no_item", error.message, fix=error.fix)
    kind = type(error).__name__.removesuffix("Error").lower()
    return HTTPError(400, f"bad_{kind}", error.message, fix=error.fix)


def _validation_error(request: Request, error: RequestValidationError) -> HTTPError:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body") or "the request"
    return HTTPError(422, "bad_request", f"{place[:200]}: {first['msg']}", fix="see /api/docs")


def _http_exception(request: Request, error: HTTPException) -> HTTPError:
    kinds = {404: "no_page", 405: "no_method", 413: "too_large"}
    messages = {404: "page not found", 405: "method not allowed here"}
    message = messages.get(error.status_code, str(error.detail))
    return HTTPError(error.status_code, kinds.get(error.status_code, "bad_request"), message)


def _storage_error(request: Request, error: Exception) -> HTTPError:
    """A disk or database failure. Paths and details go to the log only."""
    if not is_storage_fault(error):
        return _internal_error(request, error)
    STORAGE_LOG.error("storage fault: %s", error)
    what = f"try again in {RETRY} seconds"
    if request.url.path in RETRIED_BY_PAGE:
        what = "your answer is kept in this browser and will be sent again automatically"
    fix = f"{what}; see the server log for the cause"
    return HTTPError(503, "storage_unavailable", "storage is full or unavailable", fix=fix, retry_after=RETRY)


def _internal_error(request: Request, error: Exception) -> HTTPError:
    """A bug. The traceback is logged under the request id."""
    number = request.scope.get("state", {}).get("request_id", "")
    LOG.error("request %s failed", number, exc_info=error)
    return HTTPError(500, "broken", f"internal server error (request {number})", fix="see the server log")


def receipt_out(app_state: AppState, key: str, receipt: Receipt) -> ReceiptOut:
    """Confirm a write under the sender's key, and tell everybody about it."""
    app_state.changed()
    cost = app_state.session.settings.costs.show(receipt.cost)
    return ReceiptOut(key=key, repeated=receipt.repeated, cost=cost, cost_units=receipt.cost)
