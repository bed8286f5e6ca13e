"""What a request can be refused with: a sentence, the way out, a word for machines and the status of HTTP."""

from __future__ import annotations

from bursar.errors import BursarError


class Problem(BursarError):
    """A request that is refused.

    >>> Problem(409, "answered_by_other", "somebody else has answered this item").body
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
