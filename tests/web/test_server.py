"""The server as a process: a round from its first answer to the next, events, locking, and shutdown."""

from __future__ import annotations

import http.client
import io
import json
import socket
import sys
import threading
import time

import pytest

from bursar.annotation.session import AnnotationSession
from bursar.cli import main
from bursar.errors import BursarError, ConfigError
from bursar.web.accounts import Accounts
from bursar.web.database import DATABASE_FILE, WebDatabase
from bursar.web.server import find_port, serve
from tests.web.processes import Server
from tests.web.small import make_project, right


@pytest.fixture
def bursar(capsys, monkeypatch):
    """Types a command; gives its exit code, what it printed, and what it printed as an error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["bursar", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return run


class Listener:
    """Somebody who reads the news until the line is cut."""

    def __init__(self, port):
        self.events, self.over = [], threading.Event()
        self.changed = threading.Condition()
        threading.Thread(target=self._listen, args=(port,), daemon=True).start()

    def _listen(self, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        connection.request("GET", "/api/events")
        name = None
        for raw in connection.getresponse():
            line = raw.decode().strip()
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                with self.changed:
                    self.events.append((name, json.loads(line[6:])))
                    self.changed.notify_all()
        self.over.set()

    def wait(self, holds, seconds=300):
        with self.changed:
            assert self.changed.wait_for(lambda: any(holds(*event) for event in self.events), seconds), self.events[-5:]


def test_a_round_from_its_first_answer_to_the_next_and_a_clean_end(tmp_path):
    folder = make_project(tmp_path / "project")
    server = Server(folder).start()
    try:
        listener = Listener(server.port)
        listener.wait(lambda name, data: name == "state" and data["phase"] == "annotating")
        token = csrf_free_token(server)
        for number in range(8):
            _, given = server.call("POST", "/api/next", token, {})
            item = given["item"]["id"]
            body = {"key": f"answer-{number}", "lease": given["lease"]["id"], "item": item, "labels": right(item)}
            assert server.call("POST", "/api/answers", token, body)[0] == 200
        assert server.call("POST", "/api/next", token, {})[1]["reason"] == "training"
        listener.wait(lambda name, data: name == "state" and data["phase"] == "training")
        listener.wait(lambda name, data: name == "stage")
        listener.wait(lambda name, data: name == "state" and data["round"] == 1 and data["phase"] == "annotating")
        assert any(name == "scored" and data["round"] == 0 for name, data in listener.events)
        _, given = server.call("POST", "/api/next", token, {})
        assert (given["round"], given["purpose"]) == (1, "answer")
        assert set(given["suggestions"]) <= {"intent", "slots"}
        assert all(0 <= said["confidence"] <= 1 for said in given["suggestions"].values())
        assert server.call("GET", "/api/dashboard", token)[1]["result"]["arms"]

        with pytest.raises(BursarError, match="another process is at work"):
            serve(folder, port=0)

        began = time.monotonic()
        code, out, err = server.stop()  # while somebody listens
        assert (code, time.monotonic() - began < 60) == (0, True)
        assert f"at http://127.0.0.1:{server.port}" in out
        assert "Traceback" not in err
        assert listener.over.wait(10)
    finally:
        server.process.kill()
    session = AnnotationSession.open(folder)  # nobody holds it any more
    assert session.state().round == 1
    session.close()


def csrf_free_token(server):
    """A token of whoever sits at the machine."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", "/api/me")
    csrf = json.loads(connection.getresponse().read())["csrf"]
    headers = {"Content-Type": "application/json", "X-CSRF-Token": csrf}
    connection.request("POST", "/api/tokens", "{}", headers)
    return json.loads(connection.getresponse().read())["token"]


# -- what is refused before anybody can come ---------------------------------------------------------------------------
def test_a_folder_that_is_no_project_is_refused_in_a_sentence(bursar, tmp_path):
    for place in (tmp_path, tmp_path / "nothing"):
        code, _, err = bursar("serve", place)
        assert (code, err.count("\n")) == (2, 1)
        assert "is not a project" in err
    assert not (tmp_path / DATABASE_FILE).exists()


def test_a_project_without_accounts_is_not_opened_to_others(bursar, project):
    code, _, err = bursar("serve", project, "--host", "0.0.0.0")
    assert code == 2
    assert "no accounts" in err
    assert f"bursar people add {project} NAME --role lead" in err
    AnnotationSession.open(project).close()  # and is let go


def test_a_port_that_is_taken_is_refused_by_number_and_otherwise_passed_over(project):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port}"):
            serve(project, port=port)
        AnnotationSession.open(project).close()
        with find_port("127.0.0.1", None, first=port) as free:
            assert free.getsockname()[1] > port


def test_an_address_that_is_none_is_refused(bursar, project):
    assert bursar("serve", project, "--public", "label.example.org")[0] == 2


# -- people from the command line ------------------------------------------------------------------------------------
def test_people_are_added_listed_given_passwords_and_removed(bursar, project, monkeypatch):
    monkeypatch.setenv("BURSAR_PASSWORD", "correct horse")
    assert "no accounts" in bursar("people", "list", project)[1]
    code, out, _ = bursar("people", "add", project, "Anna")
    assert (code, "as lead" in out) == (0, True)  # the first has to be one
    code, out, _ = bursar("people", "add", project, "Bob")
    assert (code, "as annotator" in out) == (0, True)
    assert json.loads(bursar("people", "list", project, "--json")[1]) == [
        {"name": "Anna", "role": "lead"},
        {"name": "Bob", "role": "annotator"},
    ]
    assert bursar("people", "password", project, "bob")[0] == 0
    assert bursar("people", "remove", project, "Bob")[0] == 0
    assert "Bob" not in bursar("people", "list", project)[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add", "Anna"), "the name 'Anna' is taken"),
        (("add", "a/b"), "is not a valid name"),
        (("add", "Max", "--role", "king"), "--role king: unknown value"),
        (("remove", "Anna"), "only lead"),
        (("remove", "Nobody"), "no account"),
        (("password", "Nobody"), "no account"),
    ],
)
def test_what_cannot_be_done_to_people_is_said_and_nothing_is_done(bursar, project, monkeypatch, arguments, words):
    monkeypatch.setenv("BURSAR_PASSWORD", "correct horse")
    bursar("people", "add", project, "Anna")
    command, *rest = arguments
    code, _, err = bursar("people", command, project, *rest)
    assert code == 2
    assert words in err
    assert [p["name"] for p in json.loads(bursar("people", "list", project, "--json")[1])] == ["Anna"]


def test_a_password_comes_from_standard_input_where_nobody_can_be_asked(bursar, project, monkeypatch):
    monkeypatch.delenv("BURSAR_PASSWORD", raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO("correct horse\n"))
    assert bursar("people", "add", project, "Anna")[0] == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO("short\n"))
    code, _, err = bursar("people", "add", project, "Bob")
    assert (code, "8 to 256 characters" in err) == (2, True)


def test_people_of_a_folder_that_is_no_project_are_refused(bursar, tmp_path):
    code, _, err = bursar("people", "list", tmp_path)
    assert (code, "is not a project" in err) == (2, True)
    assert not (tmp_path / DATABASE_FILE).exists()


def test_accounts_made_while_the_project_is_served_count_at_once(local_user, project, app_state):
    database = WebDatabase.open(project / DATABASE_FILE)
    Accounts(database).add("Anna", "lead", "correct horse")
    database.close()
    assert local_user.get("/api/state").status_code == 401
