"""Events: the current state comes first, every reader gets them, and slow readers do not hold up others."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest

from bursar.web import events
from bursar.web.events import BUFFER, Hub, HubEvent, for_annotators
from bursar.web.http_errors import HTTPError


@asynccontextmanager
async def running(hub):
    task = asyncio.create_task(hub.run())
    await asyncio.sleep(0)
    try:
        yield
    finally:
        hub.close()
        await asyncio.wait_for(task, 5)


async def next_of(stream):
    event = await asyncio.wait_for(anext(stream), 5)
    return event.name, event.data


def play(story):
    """In a thread of its own: a browser of other tests may have left a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(story())).result()


def test_whoever_comes_is_first_told_how_things_stand_and_how_far_the_training_is():
    async def story():
        hub = Hub(lambda: {"round": 3})
        async with running(hub):
            hub.publish("stage", {"done": 0.1})
            hub.publish("stage", {"done": 0.2})
            hub.publish("scored", {"round": 2})
            await asyncio.sleep(0.01)
            stream = hub.listen()
            assert await next_of(stream) == ("state", {"round": 3})
            assert await next_of(stream) == ("stage", {"done": 0.2})
            hub.clear_progress()  # the training is over
            late = hub.listen()
            assert await next_of(late) == ("state", {"round": 3})
            hub.publish("scored", {"round": 3})
            assert await next_of(late) in [("state", {"round": 3}), ("scored", {"round": 3})]

    play(story)


def test_everybody_is_told_from_any_thread():
    async def story():
        hub = Hub(dict)
        async with running(hub):
            streams = [hub.listen() for _ in range(3)]
            for stream in streams:
                assert (await next_of(stream))[0] == "state"
            await asyncio.to_thread(hub.publish, "scored", {"round": 1})
            assert [await next_of(stream) for stream in streams] == [("scored", {"round": 1})] * 3

    play(story)


def test_a_state_that_changes_often_is_sent_seldom_and_the_last_one_arrives(monkeypatch):
    monkeypatch.setattr(events, "PAUSE", 0.05)
    state = {"answered": 0}

    async def story():
        hub = Hub(lambda: dict(state))
        async with running(hub):
            stream = hub.listen()
            await next_of(stream)
            for number in range(1, 200):
                state["answered"] = number
                hub.changed()
                await asyncio.sleep(0)
            told = [await next_of(stream)]
            while told[-1][1]["answered"] < 199:
                told.append(await next_of(stream))
            assert len(told) < 20

    play(story)


def test_whoever_reads_slowly_misses_the_oldest_and_nothing_grows():
    async def story():
        hub = Hub(dict)
        async with running(hub):
            slow = hub.listen()
            await next_of(slow)
            for number in range(BUFFER + 100):
                hub.publish("scored", {"round": number})
            await asyncio.sleep(0.01)
            rounds = [(await next_of(slow))[1]["round"] for _ in range(BUFFER)]
            assert rounds == list(range(100, BUFFER + 100))

    play(story)


def test_a_silent_line_gives_a_sign_of_life(monkeypatch):
    monkeypatch.setattr(events, "HEARTBEAT", 0.01)

    async def story():
        hub = Hub(dict)
        async with running(hub):
            sent: asyncio.Queue[dict] = asyncio.Queue()
            response = await events.event_stream(hub, is_lead=True)
            stream = asyncio.create_task(response({"type": "http", "method": "GET"}, asyncio.Event().wait, sent.put))
            assert (await asyncio.wait_for(sent.get(), 5))["status"] == 200
            bodies = [(await asyncio.wait_for(sent.get(), 5))["body"] for _ in range(2)]
            assert bodies == [b"event: state\ndata: {}\n\n", b"event: ping\ndata: {}\n\n"]
            hub.close()
            await asyncio.wait_for(stream, 5)

    play(story)


def test_whoever_leaves_is_forgotten_and_too_many_are_refused(monkeypatch):
    monkeypatch.setattr(events, "MOST_READERS", 2)

    async def story():
        hub = Hub(dict)
        async with running(hub):
            streams = [hub.listen(), hub.listen()]
            for stream in streams:
                await next_of(stream)
            with pytest.raises(HTTPError) as wrong:
                await anext(hub.listen())
            assert wrong.value.status == 429
            await streams[0].aclose()
            await next_of(hub.listen())

    play(story)


def test_closing_hangs_up_on_everybody():
    async def story():
        hub = Hub(dict)
        async with running(hub):
            stream = hub.listen()
            await next_of(stream)
            hub.close()
            with pytest.raises(StopAsyncIteration):
                await asyncio.wait_for(anext(stream), 5)

    play(story)


def test_news_before_the_server_runs_are_nobodys():
    hub = Hub(dict)
    hub.publish("scored", {})
    hub.changed()
    hub.close()


def test_annotators_are_not_told_why_training_failed():
    failed = HubEvent("state", {"phase": "failed", "why": "/srv/project: Permission denied"})
    assert for_annotators(failed).data == {"phase": "failed", "why": None}
