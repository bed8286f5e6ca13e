"""One ledger on a PostgreSQL server and two servers: the second is refused, whatever its folder."""

from __future__ import annotations

import os
import socket
import time

import pytest

from bursar.annotation.session import AnnotationSession
from bursar.campaign.campaign import Campaign
from bursar.campaign.runs import Run
from bursar.errors import LedgerError, StorageError
from bursar.ledger import Answer
from bursar.web.queue import Overlap
from tests.decisions import Note
from tests.postgres import PostgresServer
from tests.web.processes import Server, people_with_tokens
from tests.web.small import make_project, right


@pytest.fixture(scope="module")
def database():
    """A PostgreSQL server that these tests may restart."""
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture
def folders(database, tmp_path, request):
    """Two projects in folders of their own, with one ledger."""
    url = database.url(schema=request.node.name[:40])
    return [make_project(tmp_path / name, ledger={"url": url}) for name in ("first", "second")]


def restart(database):
    database.kill()
    database.start()


# -- two processes -----------------------------------------------------------------------------------------------------
def test_a_second_server_on_the_same_ledger_is_refused_until_the_first_is_gone(folders):
    first, second = (Server(folder) for folder in folders)
    try:
        first.start()
        with pytest.raises(AssertionError) as refused:
            second.start()
        assert second.process.returncode == 2
        who = f"bursar on {socket.gethostname()}, process {first.process.pid}"
        assert f"another process works with this ledger: {who}. Fix: stop it first" in str(refused.value)
        first.kill()  # no goodbye
        second.start()
        assert second.call("GET", "/api/state", None)[1]["phase"] == "annotating"
    finally:
        for server in (first, second):
            if server.process is not None and server.process.poll() is None:
                server.kill()


def test_a_server_that_lost_the_ledger_to_another_hands_nothing_out_and_goes_on_when_it_has_it_again(folders, database):
    tokens = people_with_tokens(folders[0], ["Anna"], Overlap())
    first = Server(folders[0]).start()
    try:
        _, taken = first.call("POST", "/api/next", tokens["Anna"], {})
        restart(database)  # the right to the ledger goes with the connection
        other = AnnotationSession.open(folders[1])
        item = taken["item"]["id"]
        body = {"key": "first-answer", "lease": taken["lease"]["id"], "item": item, "labels": right(item)}
        for path, sent in (("/api/answers", body), ("/api/next", {"known": [taken["lease"]["id"]]})):
            status, said = first.call("POST", path, tokens["Anna"], sent)
            assert (status, said["kind"]) == (503, "storage_unavailable")
        others = [want.id for want in other.wanted() if want.id != item][:2]
        for one in others:
            other.recorder.record(Answer(one, right(one), "Bob"))
        other.close()
        while (reply := first.call("POST", "/api/answers", tokens["Anna"], body))[0] == 503:
            time.sleep(0.2)  # as the page does
        assert (reply[0], reply[1]["repeated"]) == (200, False)
        state = first.call("GET", "/api/state", tokens["Anna"])[1]
        assert (state["answered"], state["open"]) == (3, 5)  # with what the other server wrote
        _, following = first.call("POST", "/api/next", tokens["Anna"], {})
        assert following["item"]["id"] not in (item, *others)
    finally:
        first.kill()


# -- whoever else works with a ledger ----------------------------------------------------------------------------------
def test_a_campaign_that_runs_by_itself_is_refused_beside_a_server_and_the_other_way_round(folders):
    session = AnnotationSession.open(folders[0])
    run = Run.open(folders[1])
    campaign = Campaign(run.config, folders[1], parts=run.parts)
    try:
        with pytest.raises(LedgerError, match=f"another process works with this ledger: .*process {os.getpid()}"):
            campaign.begin()
        session.close()
        campaign.begin()
        with pytest.raises(LedgerError, match="another process works with this ledger"):
            AnnotationSession.open(folders[0])
    finally:
        campaign.close()
    AnnotationSession.open(folders[0]).close()


def test_reading_needs_no_right_to_a_ledger(folders):
    session = AnnotationSession.open(folders[0])
    assert Run.open(folders[1]).result().name == "Small project"
    session.close()


def test_ledgers_in_other_schemas_are_held_apart(database, tmp_path):
    urls = [database.url(schema=name) for name in ("one of two", "two of two")]
    lives = [
        AnnotationSession.open(make_project(tmp_path / str(at), ledger={"url": url})) for at, url in enumerate(urls)
    ]
    for session in lives:
        session.close()


def test_after_a_restart_of_the_database_nothing_is_written_before_the_ledger_is_held_again(folders, database):
    session = AnnotationSession.open(folders[0])
    restart(database)
    with pytest.raises(StorageError, match="the connection that holds this ledger broke") as lost:
        session.ledger.decide(Note(round=7, text="nothing"))
    assert lost.value.in_doubt
    assert session.ledger.decision(Note, 7) is None
    session.catch_up()
    session.ledger.decide(Note(round=7, text="something"))
    with pytest.raises(LedgerError, match="another process works with this ledger"):
        AnnotationSession.open(folders[1])
    session.close()
