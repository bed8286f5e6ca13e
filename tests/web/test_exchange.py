"""Exports in every tool's format, imported again as the same answers."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest
from starlette.testclient import TestClient

from bursar.web.api_files import LOSSES
from bursar.web.pages import LOSS_NAMES
from bursar.web.server import make_app
from tests.web.annotating import write_project
from tests.web.conftest import HOME, Browser
from tests.web.small import INTENTS, SLOTS, right, text_of

TOOLS = ("jsonl", "label-studio", "argilla", "doccano", "prodigy")
KINDS = {
    "intent": {"kind": "classification", "labels": list(INTENTS)},
    "slots": {"kind": "tagging", "labels": list(SLOTS)},
    "tone": {"kind": "classification", "labels": ["calm", "urgent"]},
}
TEXTS = [{"text": text_of(number)} for number in range(8)]


@pytest.fixture
def twins(tmp_path, open_app_state):
    """Makes two projects of the same items: one to annotate here, one for what was annotated elsewhere."""
    with ExitStack() as stack:

        def make(name, tasks):
            app = make_app(open_app_state(write_project(tmp_path / name, {task: KINDS[task] for task in tasks}, TEXTS)))
            stack.enter_context(TestClient(app, base_url=HOME))
            browser = Browser(app, base_url=HOME, headers={"Origin": HOME})
            browser.meet()
            return browser

        yield lambda tasks: (make("here", tasks), make("there", tasks))


@pytest.mark.parametrize("format", TOOLS)
def test_answers_go_out_in_a_tools_files_and_come_in_from_them(twins, format):
    tasks = ["intent", "slots"]
    here, there = twins(tasks)
    answered = {}
    for _ in range(7):  # of eight: a round that is complete would be trained
        taken = here.take()
        item = taken["item"]["id"]
        answered[item] = {task: right(item)[task] for task in tasks}
        assert here.answer(taken, labels=answered[item], seconds={}).status_code == 200
    query = {"format": format, "lose": ["groups"]}
    file = here.get("/api/export", params=query)
    assert file.status_code == 200, file.text
    name = file.headers["content-disposition"].split('"')[1]
    headers = {"Content-Type": "application/octet-stream"}
    for repeated in (False, True):
        sent = there.post("/api/import", params={"name": name}, content=file.content, headers=headers)
        assert sent.status_code == 200, sent.text
        found = sent.json()
        assert (found["incomplete"], found["repeated"] + found["not_asked"]) == (0, 7 if repeated else 0)
        assert found["answered"] == (0 if repeated else 7)
    said = {answer["item"]: answer["labels"] for answer in there.get("/api/mine").json()["answers"]}
    assert said == answered


def test_tasks_that_a_format_cannot_tell_apart_are_refused_until_one_is_left_out(twins):
    here, _ = twins(["intent", "tone"])
    item = here.take()
    assert here.answer(item, labels={"intent": "alarm", "tone": "calm"}, seconds={}).status_code == 200
    refused = here.get("/api/export", params={"format": "doccano"})
    assert (refused.status_code, refused.json()["fix"]) == (400, "export fewer tasks, with `tasks`")
    alone = here.get("/api/export", params={"format": "doccano", "tasks": "tone"})
    assert json.loads(alone.text.splitlines()[0])["label"] == ["calm"]


def test_the_page_names_everything_that_a_format_may_lose():
    assert tuple(LOSS_NAMES) == LOSSES
