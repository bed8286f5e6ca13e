"""Annotating a project with its ledger on a PostgreSQL server."""

from __future__ import annotations

import json

import pytest
from starlette.testclient import TestClient

from bursar.annotation.session import AnnotationSession
from bursar.web.server import make_app
from tests.web.conftest import HOME, Browser
from tests.web.small import make_project, right

LABELS = "SELECT task, label FROM entries ORDER BY id"


@pytest.fixture(params=["sqlite", "postgresql"])
def kept(request, place_for_ledger, tmp_path):
    """A project, and what its database answers to a statement."""
    if request.param == "postgresql":
        place = place_for_ledger("postgresql")
        return make_project(tmp_path / "project", ledger={"url": place.place}), place.raw
    from tests.ledger.ledgers import SQLitePlace

    return make_project(tmp_path / "project"), SQLitePlace(tmp_path / "project" / "ledger.sqlite").raw


def test_an_answer_is_in_the_database_when_it_is_acknowledged_and_there_for_the_next_server(kept, open_app_state):
    folder, raw = kept
    app_state = open_app_state(folder)
    with TestClient(make_app(app_state), base_url=HOME):
        browser = Browser(make_app(app_state), base_url=HOME, headers={"Origin": HOME})
        browser.meet()
        taken = browser.take()
        item = taken["item"]["id"]
        sent = [browser.answer(taken, key="the-same-answer").json()["repeated"] for _ in range(2)]
        assert sent == [False, True]
        assert {task: json.loads(label) for task, label in raw(LABELS)} == right(item)
        seven = [browser.answer(browser.take()).status_code for _ in range(6)]
        assert seven == [200] * 6
    session = AnnotationSession.open(folder)  # as another server would
    assert (session.state().answered, len(session.wanted())) == (7, 1)
    assert [answer.labels for answer in session.ledger.answers(item)] == [right(item)]
    session.close()
