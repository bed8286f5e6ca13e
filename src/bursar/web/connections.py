"""Limits on connections: how many there are, and how long an idle one lasts.

uvicorn waits for the head of a request for ever, and accepts connections until no descriptors are left. Here the head
and the body of a request have to arrive in time, a response has to be read, and an address has a limit. At the limit,
the connection that has been idle longest is closed in favour of the new one. A connection whose request is being
answered, such as a stream of events, is never closed for that.
"""

from __future__ import annotations

import asyncio
import resource
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from bursar.web.logs import rate_limited

LOG = rate_limited("bursar.web.connections")
HEAD = 15.0  # seconds for the head of a request, from its first byte or from the connection's beginning
BODY = 30.0  # seconds between two pieces of a request's body
UNREAD = 60.0  # seconds that an answer may wait for its reader
PER_ADDRESS = 500
ACCEPTED_AT_ONCE = 16  # connections, so that the surplus is closed before the descriptors run out
RESERVED = 128  # descriptors for databases, files, trainings, and for connections that are being closed
ENOUGH = 8192  # descriptors that are asked of the system
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\ncontent-length: 0\r\n\r\n"


@dataclass(frozen=True)
class Limits:
    """How many connections may be open in all and from one address; those of our own proxy are not counted by address.

    >>> Limits.under(1024, 500), Limits.under(256, 500)
    (Limits(total=896, per_address=500, proxy=False), Limits(total=128, per_address=96, proxy=False))
    """

    total: int
    per_address: int
    proxy: bool = False

    @classmethod
    def under(cls, descriptors: int, per_address: int, proxy: bool = False) -> Limits:
        """The limits that this number of descriptors allows; no address gets all of them."""
        total = max(descriptors // 2, descriptors - RESERVED)
        return cls(total, min(per_address, 3 * total // 4), proxy)

    def of(self, address: str) -> int:
        """How many an address may have."""
        return self.total if self.proxy and address in ("127.0.0.1", "::1") else self.per_address


def descriptors() -> int:
    """How many descriptors this process may have, after asking for enough."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(ENOUGH, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return ENOUGH if soft == resource.RLIM_INFINITY else soft


class Connections:
    """All open connections, by address."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: dict[str, set[Connection]] = {}
        self._count = 0

    def admit(self, new: Connection) -> bool:
        """Count a connection in, if need be in the place of one that waits; false if all are busy."""
        mine = self._open.setdefault(new.address, set())
        if len(mine) >= self._limits.of(new.address):
            crowd = mine
        elif self._count >= self._limits.total:
            crowd = max(self._open.values(), key=len)
        else:
            crowd = None
        if crowd is not None:
            waiting = [one for one in crowd if one.waits]
            LOG.warning("%d connections are open, %d from %s", self._count, len(mine), new.address)
            if not waiting:
                return False
            min(waiting, key=lambda one: one.since).hang_up()
        mine.add(new)
        self._count += 1
        return True

    def remove(self, gone: Connection) -> None:
        """A connection is closed."""
        mine = self._open.get(gone.address, set())
        if gone in mine:
            mine.remove(gone)
            self._count -= 1
        if not mine:
            self._open.pop(gone.address, None)


class Connection(H11Protocol):
    """A connection that is closed when nothing comes over it for too long, or when another needs its place."""

    others: Connections
    address = ""
    since = 0.0  # when it last began to wait for a request
    _overdue: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    @property
    def waits(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def hang_up(self) -> None:
        """Close at once; whoever sends slowly has had their time."""
        self.others.remove(self)
        self.transport.abort()

    # -- what happens to it ------------------------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self.since = self.loop.time()
        if self.others.admit(self):
            self._allow(HEAD)
        else:
            transport.write(BUSY)
            transport.close()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self.conn.their_state is h11.SEND_BODY:
            self._allow(BODY)
        elif not self.waits:
            self._allow(None)  # all of the request is there: the rest is ours
        elif self._overdue is None:
            self._allow(HEAD)  # counted from the first byte, however many follow

    def on_response_complete(self) -> None:
        self.since = self.loop.time()
        if self.conn.their_state is not h11.SEND_BODY:
            self._allow(None)  # the next head is waited for as long as the server keeps connections
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self._unread or self.loop.call_later(UNREAD, self.hang_up)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.others.remove(self)
        self._allow(None)
        super().connection_lost(exc)
        self.resume_writing()

    def _allow(self, seconds: float | None) -> None:
        """So long until something has to come; for ever with ``None``."""
        if self._overdue is not None:
            self._overdue.cancel()
        self._overdue = None if seconds is None else self.loop.call_later(seconds, self.hang_up)


def protocol(limits: Limits) -> type[Any]:
    """The protocol of a server with these limits."""
    return type("LimitedConnection", (Connection,), {"others": Connections(limits)})
