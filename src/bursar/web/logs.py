"""Rate-limited logging, for messages that any client can trigger."""

from __future__ import annotations

import logging
import time
from asyncio import CancelledError
from collections.abc import Callable

EVERY = 10.0  # seconds


class RateLimitFilter(logging.Filter):
    """Passes one record per kind and interval; the next one says how many were suppressed.

    Records are of the same kind if the first lines of their format strings are equal.

    >>> clock = iter([0.0, 1.0, 2.0, 11.0])
    >>> filter = RateLimitFilter(10, lambda: next(clock))
    >>> records = [logging.makeLogRecord({"msg": "no room"}) for _ in range(4)]
    >>> [record.msg for record in records if filter.filter(record)]
    ['no room', 'no room (2 similar messages suppressed)']
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
