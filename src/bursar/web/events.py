"""Server-sent events for many readers, published from any thread.

Each reader has a buffer; when it is full, the oldest events are dropped, so a slow reader does not hold up the others.
A new reader first receives the current state. ``sse-starlette`` writes the stream and keeps it alive.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent

from bursar.errors import StorageError
from bursar.web.http_errors import STORAGE_LOG, HTTPError

BUFFER = 64  # events per reader
MOST_READERS = 500
HEARTBEAT = 15.0  # seconds between two pings
PAUSE = 0.3  # minimum seconds between two state events: many annotators change it many times a second


@dataclass(frozen=True)
class HubEvent:
    """A named event with its data."""

    name: str
    data: Mapping[str, Any]

    def to_sse(self) -> ServerSentEvent:
        return ServerSentEvent(json.dumps(self.data, separators=(",", ":")), event=self.name, sep="\n")


class Hub:
    """Sends events to all readers. ``state`` returns the current campaign state."""

    def __init__(self, state: Callable[[], Mapping[str, Any]]) -> None:
        self._state = state
        self._loop: asyncio.AbstractEventLoop | None = None
        self._readers: set[asyncio.Queue[HubEvent | None]] = set()  # None is the end
        self._changed = asyncio.Event()
        self._closed = False
        self._stage: HubEvent | None = None  # the progress of training, sent to new readers after the state

    async def run(self) -> None:
        """Send the state whenever it has changed, until closed."""
        self._loop = asyncio.get_running_loop()
        while not self._closed:
            await self._changed.wait()
            self._changed.clear()
            if self._readers:
                try:
                    self._broadcast(HubEvent("state", await asyncio.to_thread(self._state)))
                except StorageError as fault:  # the next change triggers another try
                    STORAGE_LOG.error("storage fault: %s", fault)
            await asyncio.sleep(PAUSE)

    def changed(self) -> None:
        """Signal that the state may have changed. Thread-safe."""
        self._call_in_loop(self._changed.set)

    def publish(self, name: str, data: Mapping[str, Any]) -> None:
        """Send an event to all readers. Thread-safe."""
        event = HubEvent(name, data)
        if name == "stage":
            self._stage = event
        self._call_in_loop(self._broadcast, event)

    def clear_progress(self) -> None:
        """Forget the last progress event, since the work is done."""
        self._stage = None
        self.changed()

    def close(self) -> None:
        """End all streams, so that the server can shut down."""
        self._closed = True
        self._call_in_loop(self._changed.set)
        self._call_in_loop(self._broadcast, None)

    async def listen(self) -> AsyncIterator[HubEvent]:
        """The events for one reader, starting with the current state."""
        if len(self._readers) >= MOST_READERS:
            raise HTTPError(429, "too_many_readers", "too many open pages", retry_after=30)
        reader: asyncio.Queue[HubEvent | None] = asyncio.Queue(BUFFER)
        self._readers.add(reader)
        try:
            yield HubEvent("state", await asyncio.to_thread(self._state))
            if self._stage is not None:
                yield self._stage
            while not (self._closed and reader.empty()) and (event := await reader.get()) is not None:
                yield event
        finally:
            self._readers.discard(reader)

    def _broadcast(self, event: HubEvent | None) -> None:
        for reader in self._readers:
            if reader.full():
                reader.get_nowait()
            reader.put_nowait(event)

    def _call_in_loop(self, function: Callable[..., object], *arguments: Any) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)


async def event_stream(hub: Hub, is_lead: bool) -> EventSourceResponse:
    """The response that sends the events of a hub to one person."""
    events = hub.listen()
    first = await anext(events)  # raises before anything is sent if there are too many readers

    async def sent() -> AsyncIterator[ServerSentEvent]:
        yield (first if is_lead else for_annotators(first)).to_sse()
        async for event in events:
            yield (event if is_lead else for_annotators(event)).to_sse()

    ping = HubEvent("ping", {}).to_sse
    return EventSourceResponse(sent(), ping=HEARTBEAT, ping_message_factory=ping, sep="\n")


def for_annotators(event: HubEvent) -> HubEvent:
    """An event for annotators: without the reason of a failure, which may hold paths and addresses."""
    if event.name == "state" and event.data["phase"] == "failed":
        return HubEvent("state", {**event.data, "why": None})
    return event
