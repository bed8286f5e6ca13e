"""What goes wrong: the error that a request is answered with, and rate-limited logs of what any client can trigger."""

from __future__ import annotations

import logging
import time
from asyncio import CancelledError
from collections.abc import Callable

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


EVERY = 10.0  # seconds


class RateLimitFilter(logging.Filter):
    """Passes one record per interval and first line of the message; the next one says how many were suppressed."""

    MOST_KINDS = 100

    def __init__(self, seconds: float = EVERY, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._seconds, self._clock = seconds, clock
        self._passed: dict[str, tuple[float, int]] = {}  # by kind: last time, and how many were suppressed since

    def filter(self, record: logging.LogRecord) -> bool:
        kind, now = str(record.msg).split("\n", 1)[0][:200], self._clock()
        passed, left_out = self._passed.get(kind, (float("-inf"), 0))
        if now - passed < self._seconds:
            self._passed[kind] = passed, left_out + 1
            return False
        if len(self._passed) >= self.MOST_KINDS:
            self._passed.clear()
        self._passed[kind] = now, 0
        if left_out:
            record.msg = f"{record.msg} ({left_out} similar messages suppressed)"
        return True


def not_cancelled(record: logging.LogRecord) -> bool:
    """Whether a record is about anything but a request that the end of the server cancelled."""
    return not (record.exc_info and isinstance(record.exc_info[1], CancelledError))


def rate_limited(name: str) -> logging.Logger:
    """A logger with a rate limit."""
    logger = logging.getLogger(name)
    if not any(isinstance(known, RateLimitFilter) for known in logger.filters):
        logger.addFilter(RateLimitFilter())
    return logger


STORAGE_LOG = rate_limited("bursar.web.storage")
