"""Limits the number of connections and closes slow or idle ones.

Unlike in plain uvicorn, requests must arrive and responses must be read in time, and each address has a limit. At the
limit, the connection that has been idle longest is closed in favour of the new one. A connection whose request is being
answered, such as a stream of events, is never closed for that reason.
"""

from __future__ import annotations

import asyncio
import resource
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from bursar.web.http_errors import rate_limited

LOG = rate_limited("bursar.web.connections")
HEAD_SECONDS = 15.0  # for the head of a request, from its first byte or from the start of the connection
BODY_SECONDS = 30.0  # between two pieces of a request body
UNREAD_SECONDS = 60.0  # that a response may wait to be read
PER_ADDRESS = 500
ACCEPTED_AT_ONCE = 16  # so that surplus connections are closed before descriptors run out
RESERVED = 128  # descriptors for databases, files, training, and connections being closed
WANTED_DESCRIPTORS = 8192  # requested from the system
TOO_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\ncontent-length: 0\r\n\r\n"


@dataclass(frozen=True)
class Limits:
    """How many connections may be open in total and per address. A local proxy is exempt from the address limit."""

    total: int
    per_address: int
    proxy: bool = False

    @classmethod
    def under(cls, descriptors: int, per_address: int, proxy: bool = False) -> Limits:
        """The limits for this number of descriptors; no single address gets all of them."""
        total = max(descriptors // 2, descriptors - RESERVED)
        return cls(total, min(per_address, 3 * total // 4), proxy)

    def of(self, address: str) -> int:
        return self.total if self.proxy and address in ("127.0.0.1", "::1") else self.per_address


def descriptors() -> int:
    """The number of file descriptors of this process, after raising the soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(WANTED_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return WANTED_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


class Connections:
    """All open connections, by address."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: dict[str, set[Connection]] = {}

    def admit(self, new: Connection) -> bool:
        """Add a connection, closing an idle one if necessary. False if all are busy."""
        same_address = self._open.setdefault(new.address, set())
        total, candidates = sum(map(len, self._open.values())), None
        if len(same_address) >= self._limits.of(new.address):
            candidates = same_address
        elif total >= self._limits.total:
            candidates = max(self._open.values(), key=len)
        if candidates is not None:
            idle = [connection for connection in candidates if connection.idle]
            LOG.warning("%d connections are open, %d from %s", total, len(same_address), new.address)
            if not idle:
                return False
            min(idle, key=lambda connection: connection.since).abort()
        same_address.add(new)
        return True

    def remove(self, connection: Connection) -> None:
        same_address = self._open.get(connection.address, set())
        same_address.discard(connection)
        if not same_address:
            self._open.pop(connection.address, None)


class Connection(H11Protocol):
    """A connection that is closed on timeout, or to make room for another."""

    others: Connections
    address = ""
    since = 0.0  # when it became idle
    _timeout: asyncio.TimerHandle | None = None
    _write_timeout: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether it has no request in progress."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def abort(self) -> None:
        self.others.remove(self)
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self.since = self.loop.time()
        if self.others.admit(self):
            self._set_timeout(HEAD_SECONDS)
        else:
            transport.write(TOO_BUSY)
            transport.close()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self.conn.their_state is h11.SEND_BODY:
            self._set_timeout(BODY_SECONDS)
        elif not self.idle:
            self._set_timeout(None)  # the request is complete
        elif self._timeout is None:
            self._set_timeout(HEAD_SECONDS)  # from the first byte

    def on_response_complete(self) -> None:
        self.since = self.loop.time()
        if self.conn.their_state is not h11.SEND_BODY:
            self._set_timeout(None)  # uvicorn's keep-alive timeout applies from here
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timeout = self._write_timeout or self.loop.call_later(UNREAD_SECONDS, self.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_timeout is not None:
            self._write_timeout.cancel()
            self._write_timeout = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.others.remove(self)
        self._set_timeout(None)
        super().connection_lost(exc)
        self.resume_writing()

    def _set_timeout(self, seconds: float | None) -> None:
        """Close the connection after this time; never with ``None``."""
        if self._timeout is not None:
            self._timeout.cancel()
        self._timeout = None if seconds is None else self.loop.call_later(seconds, self.abort)


def protocol(limits: Limits) -> type[Any]:
    """A protocol class for a server with these limits."""
    return type("LimitedConnection", (Connection,), {"others": Connections(limits)})
