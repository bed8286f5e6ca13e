"""What a request can be refused with: a sentence, the way out, a word for machines and the status of HTTP."""

from __future__ import annotations

from bursar.errors import BursarError

RETRY = 5  # seconds after which a request that met a fault of the storage is sent again


class HTTPError(BursarError):
    """A request that is refused.

    >>> HTTPError(409, "answered_by_other", "somebody else has answered this item").body
    {'error': 'somebody else has answered this item', 'fix': None, 'kind': 'answered_by_other'}
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
        """What is sent."""
        return {"error": self.message, "fix": self.fix, "kind": self.kind}


def storage_unavailable(resent: bool) -> HTTPError:
    """The disk or the database cannot be used now; ``resent`` if the page will try again by itself."""
    kept = "your answer is kept in this browser, and the page sends it again by itself"
    fix = f"{kept if resent else f'try again in {RETRY} seconds'}; the server's log says what is wrong"
    return HTTPError(503, "storage_unavailable", "storage is full or unavailable", fix=fix, retry_after=RETRY)
