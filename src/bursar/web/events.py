"""News for whoever watches: server-sent events, to many at a time, from any thread.

Nobody who reads slowly holds up the others: everyone has room for so many events, and where that is full the oldest
are left out. Whoever comes later is first told how things stand.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from bursar.errors import StorageError
from bursar.web.http_errors import HTTPError
from bursar.web.logs import STORAGE_LOG

BUFFER = 64  # events that wait for one reader
MOST_READERS = 500
HEARTBEAT = 15.0  # seconds after which a silent line gives a sign of life
PAUSE = 0.3  # seconds between two states at least: fifty annotators change it fifty times a second


class Reader:
    """One who listens."""

    def __init__(self) -> None:
        self.waiting: deque[str] = deque(maxlen=BUFFER)
        self.woken = asyncio.Event()

    def tell(self, text: str) -> None:
        self.waiting.append(text)
        self.woken.set()


class Hub:
    """Passes events on to everybody who listens. ``state`` tells how things stand now."""

    def __init__(self, state: Callable[[], Mapping[str, Any]]) -> None:
        self._state = state
        self._loop: asyncio.AbstractEventLoop | None = None
        self._readers: set[Reader] = set()
        self._changed = asyncio.Event()
        self._closed = False
        self._latest: dict[str, str] = {}  # what newcomers are told after the state

    async def run(self) -> None:
        """Send the state when it has changed, for as long as the server runs."""
        self._loop = asyncio.get_running_loop()
        while not self._closed:
            await self._changed.wait()
            self._changed.clear()
            if self._readers:
                try:
                    self._broadcast(encode("state", await asyncio.to_thread(self._state)))
                except StorageError as fault:  # the next change is told again
                    STORAGE_LOG.error("storage fault: %s", fault)
            await asyncio.sleep(PAUSE)

    def changed(self) -> None:
        """Something about the state may have changed. From any thread."""
        self._call(self._changed.set)

    def publish(self, event: str, data: Mapping[str, Any]) -> None:
        """Tell everybody. From any thread."""
        text = encode(event, data)
        if event == "stage":
            self._latest[event] = text
        elif event == "state":
            self._latest.pop("stage", None)
        self._call(self._broadcast, text)

    def settle(self) -> None:
        """What was under way is over: newcomers need not be told how far it was."""
        self._latest.clear()
        self.changed()

    def close(self) -> None:
        """Hang up on everybody, so that the server can end."""
        self._closed = True
        self._call(self._hang_up)

    async def listen(self) -> AsyncIterator[str]:
        """The events for one reader, beginning with how things stand."""
        if len(self._readers) >= MOST_READERS:
            raise HTTPError(429, "too_many_readers", "too many pages listen already", retry_after=30)
        reader = Reader()
        self._readers.add(reader)
        try:
            yield encode("state", await asyncio.to_thread(self._state))
            for text in list(self._latest.values()):
                yield text
            while not self._closed:
                while reader.waiting:
                    yield reader.waiting.popleft()
                reader.woken.clear()
                try:
                    await asyncio.wait_for(reader.woken.wait(), HEARTBEAT)
                except TimeoutError:
                    yield encode("ping", {})
        finally:
            self._readers.discard(reader)

    def _broadcast(self, text: str) -> None:
        for reader in self._readers:
            reader.tell(text)

    def _hang_up(self) -> None:
        self._changed.set()
        for reader in self._readers:
            reader.woken.set()

    def _call(self, function: Callable[..., object], *arguments: Any) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)


def encode(event: str, data: Mapping[str, Any]) -> str:
    """An event as it goes over the line.

    >>> encode("stage", {"done": 0.5})
    'event: stage\\ndata: {"done":0.5}\\n\\n'
    """
    return f"event: {event}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"


def without_reason(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state as annotators see it: why a training failed may hold paths and addresses, and is for leads.

    >>> without_reason({"phase": "failed", "why": "/srv/project: Permission denied"})
    {'phase': 'failed', 'why': None}
    """
    return {**state, "why": None} if state["phase"] == "failed" else dict(state)


def for_annotators(text: str) -> str:
    """An event as annotators see it."""
    head, _, data = text.partition("data: ")
    return encode("state", without_reason(json.loads(data))) if head == "event: state\n" else text
