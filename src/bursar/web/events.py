"""Server-sent events for many readers, published from any thread.

Each reader has a buffer; when it is full, the oldest events are dropped, so a slow reader does not hold up the others.
A new reader first receives the current state.
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

BUFFER = 64  # events per reader
MOST_READERS = 500
HEARTBEAT = 15.0  # seconds without events before a ping is sent
PAUSE = 0.3  # minimum seconds between two state events: many annotators change it many times a second


class Reader:
    """One listener and its buffer."""

    def __init__(self) -> None:
        self.waiting: deque[str] = deque(maxlen=BUFFER)
        self.woken = asyncio.Event()

    def send(self, text: str) -> None:
        self.waiting.append(text)
        self.woken.set()


class Hub:
    """Sends events to all readers. ``state`` returns the current campaign state."""

    def __init__(self, state: Callable[[], Mapping[str, Any]]) -> None:
        self._state = state
        self._loop: asyncio.AbstractEventLoop | None = None
        self._readers: set[Reader] = set()
        self._changed = asyncio.Event()
        self._closed = False
        self._latest: dict[str, str] = {}  # sent to new readers after the state

    async def run(self) -> None:
        """Send the state whenever it has changed, until closed."""
        self._loop = asyncio.get_running_loop()
        while not self._closed:
            await self._changed.wait()
            self._changed.clear()
            if self._readers:
                try:
                    self._broadcast(encode("state", await asyncio.to_thread(self._state)))
                except StorageError as fault:  # the next change triggers another try
                    STORAGE_LOG.error("storage fault: %s", fault)
            await asyncio.sleep(PAUSE)

    def changed(self) -> None:
        """Signal that the state may have changed. Thread-safe."""
        self._call_in_loop(self._changed.set)

    def publish(self, event: str, data: Mapping[str, Any]) -> None:
        """Send an event to all readers. Thread-safe."""
        text = encode(event, data)
        if event == "stage":
            self._latest[event] = text
        elif event == "state":
            self._latest.pop("stage", None)
        self._call_in_loop(self._broadcast, text)

    def clear_progress(self) -> None:
        """Forget the last progress event, since the work is done."""
        self._latest.clear()
        self.changed()

    def close(self) -> None:
        """End all streams, so that the server can shut down."""
        self._closed = True
        self._call_in_loop(self._wake_readers)

    async def listen(self) -> AsyncIterator[str]:
        """The events for one reader, starting with the current state."""
        if len(self._readers) >= MOST_READERS:
            raise HTTPError(429, "too_many_readers", "too many open pages", retry_after=30)
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
            reader.send(text)

    def _wake_readers(self) -> None:
        self._changed.set()
        for reader in self._readers:
            reader.woken.set()

    def _call_in_loop(self, function: Callable[..., object], *arguments: Any) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)


def encode(event: str, data: Mapping[str, Any]) -> str:
    """An event in the server-sent events format.

    >>> encode("stage", {"done": 0.5})
    'event: stage\\ndata: {"done":0.5}\\n\\n'
    """
    return f"event: {event}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"


def without_reason(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state for annotators: without the reason of a failure, which may hold paths and addresses.

    >>> without_reason({"phase": "failed", "why": "/srv/project: Permission denied"})
    {'phase': 'failed', 'why': None}
    """
    return {**state, "why": None} if state["phase"] == "failed" else dict(state)


def for_annotators(text: str) -> str:
    """An event for annotators."""
    head, _, data = text.partition("data: ")
    return encode("state", without_reason(json.loads(data))) if head == "event: state\n" else text
