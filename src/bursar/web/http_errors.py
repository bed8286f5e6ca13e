"""The error that a request is answered with: HTTP status, machine-readable kind, message and fix."""

from __future__ import annotations

from bursar.errors import BursarError

RETRY = 5  # seconds before a request that failed on storage is sent again


class HTTPError(BursarError):
    """An error response: every failed request has this form.

    >>> HTTPError(409, "answered_by_other", "someone else has answered this item").body
    {'error': 'someone else has answered this item', 'fix': None, 'kind': 'answered_by_other'}
    """

    def __init__(
        self, status: int, kind: str, message: str, *, fix: str | None = None, retry_after: int | None = None
    ) -> None:
        self.status = status
        self.kind = kind
        self.retry_after = retry_after  # seconds
        super().__init__(message, fix=fix)

    @property
    def body(self) -> dict[str, str | None]:
        """The JSON body."""
        return {"error": self.message, "fix": self.fix, "kind": self.kind}


def storage_unavailable(resent: bool) -> HTTPError:
    """The error for an unusable disk or database; ``resent`` if the page retries the request on its own."""
    kept = "your answer is kept in this browser and will be sent again automatically"
    fix = f"{kept if resent else f'try again in {RETRY} seconds'}; see the server log for the cause"
    return HTTPError(503, "storage_unavailable", "storage is full or unavailable", fix=fix, retry_after=RETRY)
