"""Rate-limited logging, for messages that any client can trigger."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

EVERY = 10.0  # seconds


class RateLimitFilter(logging.Filter):
    """Passes one record per kind and interval; the next one says how many were suppressed.

    Records are of the same kind if the first lines of their format strings are equal.
    """

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


def rate_limited(name: str) -> logging.Logger:
    """A logger with a rate limit."""
    logger = logging.getLogger(name)
    if not any(isinstance(known, RateLimitFilter) for known in logger.filters):
        logger.addFilter(RateLimitFilter())
    return logger


STORAGE_LOG = rate_limited("bursar.web.storage")
