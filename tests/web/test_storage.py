"""Full or unavailable storage: nothing is lost, users are informed, and work continues when storage is back."""

from __future__ import annotations

import logging
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from uuid import uuid4

import pytest
from starlette.testclient import TestClient

from bursar.errors import StorageError
from bursar.ledger import Answer
from bursar.web.accounts import Caller
from bursar.web.api import RETRIED_BY_PAGE, RETRY
from bursar.web.http_errors import STORAGE_LOG, RateLimitFilter
from bursar.web.server import make_app
from tests.postgres import PostgresServer
from tests.small_disk import small_disk
from tests.web.annotate.samples import KINDS
from tests.web.annotating import Hand, Served, until, write_project
from tests.web.conftest import HOME, PASSWORD, Browser, refused
from tests.web.small import make_project, right


class FullDisk:
    """A project on a file system that can be filled."""

    def __init__(self, stack, folder):
        self.disk = stack.enter_context(small_disk(folder / "disk"))
        self.folder, self.settings = self.disk.folder / "project", {}
        self.secrets = [str(folder)]
        self.cut, self.mend = self.disk.fill, self.disk.free


class LostDatabase:
    """A project whose ledger is on a PostgreSQL server that can be stopped."""

    def __init__(self, stack, folder):
        self.server = PostgresServer()
        self.folder, self.settings = folder / "project", {"ledger": {"url": self.server.url(schema="team")}}
        self.secrets = [str(folder), str(self.server.folder), "postgres"]
        self.running = True
        stack.callback(lambda: (self.running or self.server.start(), self.server.stop()))

    def cut(self):
        self.server.kill()
        self.running = False

    def mend(self):
        self.server.start()
        self.running = True


@pytest.fixture(autouse=True)
def _every_line():
    """Lines of an earlier test do not count."""
    for known in STORAGE_LOG.filters:
        if isinstance(known, RateLimitFilter):
            known._passed.clear()


@pytest.fixture(params=[FullDisk, LostDatabase])
def storage(request, tmp_path):
    with ExitStack() as stack:
        yield request.param(stack, tmp_path)


@pytest.fixture
def lead(storage, open_app_state):
    """Anna, who leads a project with one answer of hers, before a server in this process."""
    app_state = open_app_state(make_project(storage.folder, **storage.settings))
    app_state.trainer.start = lambda: None
    app_state.accounts.add("Anna", "lead", PASSWORD)
    app = make_app(app_state)
    with TestClient(app, base_url=HOME):
        yield Browser(app, base_url=HOME, headers={"Origin": HOME}).sign_in("Anna")


def writes(taken, answered):
    """Everything that people write while they annotate and lead."""
    key, item = str(uuid4()), taken["item"]["id"]
    lease = taken["lease"]["id"]
    return [
        ("/api/answers", {"key": key, "lease": lease, "item": item, "labels": right(item)}),
        ("/api/skips", {"key": key, "lease": lease, "item": item, "reason": "unclear"}),
        ("/api/corrections", {"key": key, "item": answered, "labels": {"intent": "alarm"}}),
        ("/api/adjudications", {"key": key, "item": answered, "labels": {"intent": "alarm"}}),
        ("/api/settings", {"key": key, "changes": {"budget": {"per_round": 1.6}}}),
        ("/api/rounds", {"key": key, "close": True}),
    ]


def test_a_storage_fault_is_answered_503_with_when_to_try_again_and_without_its_place(storage, lead, caplog):
    first = lead.take()
    lead.answer(first)
    taken = lead.take()
    storage.cut()
    with caplog.at_level(logging.ERROR, logger="bursar.web.storage"):
        for path, body in [*writes(taken, first["item"]["id"]), ("/api/next", {"known": [taken["lease"]["id"]]})]:
            reply = refused(lead.post(path, json=body), 503, "storage_unavailable")
            assert reply.headers["retry-after"] == str(RETRY)
            assert "storage is full or unavailable" in reply.text
            assert not any(secret in reply.text for secret in storage.secrets)
            assert ("kept in this browser" in reply.text) == (path in RETRIED_BY_PAGE)
    assert len(caplog.records) == 1  # one line for all of them
    assert any(secret in caplog.text for secret in storage.secrets)
    for path in ("/api/state", "/api/me", "/api/mine", "/api/export", "/api/people", "/annotate", "/watch"):
        reply = lead.get(path, headers={"Accept": "text/html,*/*"})
        assert reply.status_code in (200, 503), (path, reply.text)
        assert reply.status_code == 200 or "retry-after" in reply.headers
        assert not any(secret in reply.text for secret in storage.secrets)
    storage.mend()
    path, body = writes(taken, first["item"]["id"])[0]
    until(lambda: lead.post(path, json=body).status_code == 200)
    assert lead.post(path, json=body).json()["repeated"] is True
    state = lead.get("/api/state").json()
    assert (state["answered"], state["skipped"]) == (2, 0)


@pytest.mark.parametrize("storage", [LostDatabase], indirect=True)  # a file says at once whether it was written
def test_an_answer_that_the_ledger_has_though_its_commit_broke_is_found_and_counted_once(storage, lead):
    """The database commits, and goes before it can say so."""
    app_state = lead.app.app.state.bursar
    taken = lead.take()
    ledger, commit = app_state.session.ledger, app_state.session.ledger._store.writer.dialect.do_commit

    def broken(connection):
        commit(connection)
        if not connection.autocommit:
            storage.cut()
            connection.execute("SELECT 1")

    ledger._store.writer.dialect.do_commit = broken
    refused(lead.answer(taken), 503, "storage_unavailable")
    ledger._store.writer.dialect.do_commit = commit
    storage.mend()
    until(lambda: (again := lead.answer(taken)).status_code == 200 and again.json()["repeated"])
    state = lead.get("/api/state").json()
    assert (state["answered"], state["spent"] > 0, state["spent"]) == (1, True, ledger.spent())
    assert lead.take()["item"]["id"] != taken["item"]["id"]


def test_a_database_that_takes_connections_and_says_nothing_holds_nobody_up_for_long(tmp_path, open_app_state):
    """As behind a network that swallows everything."""
    with ExitStack() as stack:
        lost = LostDatabase(stack, tmp_path)
        url = lost.server.url(schema="team", connect_timeout="2")
        app_state = open_app_state(make_project(lost.folder, ledger={"url": url}))
        lost.cut()
        mute = stack.enter_context(socket.socket(socket.AF_UNIX))
        place = lost.server.folder / ".s.PGSQL.5432"
        place.unlink(missing_ok=True)
        mute.bind(str(place))
        place.chmod(0o777)
        mute.listen(64)

        def ask(number):
            with pytest.raises(StorageError):
                app_state.assignments.next(f"person {number}")

        began = time.monotonic()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(8)))
        assert time.monotonic() - began < 8  # one of them waits for two seconds, not each after the other
        place.unlink()
        lost.mend()
        until(lambda: outcome(lambda: app_state.assignments.next("Ann")) is not None)


def outcome(act):
    try:
        return act()
    except StorageError:
        return None


def test_a_session_is_known_though_its_last_use_cannot_be_written_down(storage, lead):
    app_state = lead.app.app.state.bursar
    _, secret = app_state.accounts.make_token(Caller("Anna", "lead", None, 1), "program")
    clock = app_state.database.clock
    app_state.database.clock = lambda: clock() + 24 * 3600
    storage.cut()
    assert lead.get("/api/me").json()["name"] == "Anna"
    assert app_state.accounts.by_token(secret).name == "Anna"


def test_training_waits_for_the_storage_and_then_goes_on(storage, open_app_state, caplog):
    app_state = open_app_state(make_project(storage.folder, **storage.settings))
    app_state.trainer._later = 0.2
    for want in app_state.session.wanted():
        app_state.assignments.answer(Answer(want.id, right(want.id), "Ann"))
    storage.cut()
    app_state.trainer.start()
    until(lambda: "training is waiting for storage" in caplog.text)
    storage.mend()
    until(lambda: app_state.session.state().round == 1)
    assert app_state.trainer.failure is None


# -- with the page open ------------------------------------------------------------------------------------------------
@pytest.fixture
def page(storage, browser):
    items = [{"text": f"item {number}"} for number in range(30)]
    served = Served(write_project(storage.folder, {"intent": KINDS["intent"]}, items, **storage.settings))
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    hand = Hand(context.new_page())
    yield served, hand.opens(served.url).ready()
    context.close()
    served.stop()


@pytest.mark.browser
def test_the_page_keeps_an_answer_while_storage_is_out_says_so_and_sends_it_once_by_itself(storage, page):
    served, hand = page
    hand.until(lambda: sum(path == "/next" for path, _ in hand.sent) == 2)  # one is fetched ahead
    hand.press("1").send()
    hand.until(lambda: sum(path == "/next" for path, _ in hand.sent) == 3)
    hand.tab.wait_for_timeout(100)
    storage.cut()
    hand.press("2", "Enter").sees("#unsent", "Saving failed: storage is full or unavailable.")
    assert hand.text("#unsent").endswith(f"Your answer is kept in this browser. Trying again in {RETRY} s.")
    hand.sees("#workspace").press("3", "Enter")  # the item that was fetched ahead; no other is given out
    hand.sees("#waiting h1", "Storage is full or unavailable").sees("#waiting", "2 unsent answers")
    assert "Your 2 answers are kept" in hand.text("#unsent")
    assert (hand.kept("/outbox/"), hand.kept("/kept/")) == (2, 0)
    storage.mend()
    hand.ready().until(lambda: hand.kept("/outbox/") == 0)
    hand.until(lambda: hand.count("#unsent:visible") == 0)
    said = [answer["labels"]["intent"] for answer in served.answers()]
    assert said == ["table", "music", "alarm"]
    assert served.get("/api/state")["answered"] == 3
    assert hand.kept("/kept/") == 0
    hand.press("1").send()
    assert len(served.answers()) == 4


def test_why_a_training_failed_is_told_to_leads_alone(crew, app_state):
    app_state.trainer._command = [sys.executable, "-c", "raise SystemExit('cannot read /srv/secret')"]
    app_state.trainer._pauses = ()
    anna, bob = crew("Anna"), crew("Bob")
    while (taken := bob.take())["lease"]:
        bob.answer(taken)
    until(lambda: app_state.trainer.failure is not None)
    assert "/srv/secret" in anna.take()["message"]
    assert "/srv/secret" in anna.get("/api/state").json()["why"]
    assert "could not be prepared. A lead can try again." in bob.take()["message"]
    assert bob.get("/api/state").json() == anna.get("/api/state").json() | {"why": None}


def test_a_message_that_comes_again_and_again_is_logged_seldom_and_counted():
    clock = iter([0.0, 1.0, 2.0, 11.0])
    seldom = RateLimitFilter(10, lambda: next(clock))
    records = [logging.makeLogRecord({"msg": "no room"}) for _ in range(4)]
    passed = [record.msg for record in records if seldom.filter(record)]
    assert passed == ["no room", "no room (2 similar messages suppressed)"]
