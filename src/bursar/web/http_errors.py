"""The error that a request is answered with: HTTP status, machine-readable kind, message and fix."""

from __future__ import annotations

from pydantic import BaseModel, Field
from starlette.responses import JSONResponse

from bursar.errors import BursarError


class ErrorBody(BaseModel):
    """The body of every error response."""

    error: str = Field(description="What went wrong, in a sentence.")
    fix: str | None = Field(description="What to do about it.")
    kind: str = Field(description="Machine-readable kind of the error.")


class HTTPError(BursarError):
    """An error response: every failed request has this form."""

    def __init__(
        self, status: int, kind: str, message: str, *, fix: str | None = None, retry_after: int | None = None
    ) -> None:
        self.status, self.kind = status, kind
        self.retry_after = retry_after  # seconds
        super().__init__(message, fix=fix)

    @property
    def body(self) -> ErrorBody:
        return ErrorBody(error=self.message, fix=self.fix, kind=self.kind)


def error_response(error: HTTPError) -> JSONResponse:
    """An HTTP error as a JSON response."""
    headers = {"retry-after": str(error.retry_after)} if error.retry_after is not None else None
    return JSONResponse(error.body.model_dump(), error.status, headers)


def failed_in_background(error: Exception, kind: str) -> ErrorBody:
    """What the page shows if work in the background fails. ``kind`` is used if Bursar itself raised the error."""
    if isinstance(error, BursarError):
        return ErrorBody(error=error.message, fix=error.fix, kind=kind)
    return ErrorBody(error=f"{type(error).__name__}: {error}", fix=None, kind="broken")
