"""The client with misbehaving servers; tests/web/test_label_studio.py uses a real Label Studio."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bursar.errors import ConfigError, StudioError
from bursar.web.labelstudio.client import TRIES, Studio

WHOAMI = {"id": 1, "email": "a@example.com", "first_name": "", "last_name": "", "username": "a"}


class Answers:
    """A server that answers what it is told to, in order, and writes down what it was asked."""

    def __init__(self):
        self.script, self.asked = [], []
        script, asked = self.script, self.asked

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                length = int(self.headers.get("Content-Length") or 0)
                asked.append((self.command, self.path, self.rfile.read(length), self.headers.get("Authorization")))
                status, body = script.pop(0) if len(script) > 1 else script[0]
                if status == "hang up":
                    self.close_connection = True
                    self.connection.close()
                    return
                if status == "wait":
                    body.wait(20)
                    self.close_connection = True
                    return
                sent = body.encode() if isinstance(body, str) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/html" if isinstance(body, str) else "application/json")
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            do_GET = do_POST = answer

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def answers():
    server = Answers()
    yield server
    server.close()


@pytest.fixture
def studio_of(answers):
    def make(*script, **options):
        answers.script[:] = script
        return Studio(answers.url, "a" * 40, pause=lambda seconds: None, **options)

    return make


def test_who_one_is_is_asked_with_the_token(studio_of, answers):
    assert studio_of((200, WHOAMI)).whoami() == "a@example.com"
    assert answers.asked[0][3] == f"Token {'a' * 40}"


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, {"detail": "Invalid token."}, "Invalid token.*Fix: use a valid token"),
        (403, {"detail": "No."}, "No.*Fix: use a valid token"),
        (404, {"detail": "Not found."}, "Not found.*Fix: check that the address"),
        (404, "<html>another site</html>", "404.*Fix: check that the address"),
        (500, {"detail": "broken"}, "broken"),
        (502, "<html>bad gateway</html>", "502"),
    ],
)
def test_a_refusal_says_why_and_what_to_do(studio_of, answers, status, body, words):
    with pytest.raises(StudioError, match=words) as caught:
        studio_of((status, body)).whoami()
    assert caught.value.status == status
    assert answers.url in str(caught.value)
    assert len(answers.asked) == 1


@pytest.mark.parametrize("body", ["<html>a site</html>", [], {}, {"email": None}, "null"])
def test_a_server_that_is_no_label_studio_is_told_from_one(studio_of, body):
    with pytest.raises(StudioError, match="does not respond like Label Studio"):
        studio_of((200, body)).whoami()


def test_what_only_asks_is_tried_again_when_the_line_is_cut(studio_of, answers):
    studio = studio_of(("hang up", None), ("hang up", None), (200, WHOAMI))
    assert studio.whoami() == "a@example.com"
    assert len(answers.asked) == 3


def test_after_some_tries_it_is_given_up(studio_of, answers):
    with pytest.raises(StudioError, match="cannot be reached"):
        studio_of(("hang up", None)).whoami()
    assert len(answers.asked) == TRIES


def test_an_import_is_never_sent_twice(studio_of, answers):
    with pytest.raises(StudioError, match="nothing is done twice"):
        studio_of(("hang up", None)).import_tasks(1, [{"data": {"text": "x"}}])
    assert len(answers.asked) == 1
    answers.asked.clear()
    with pytest.raises(StudioError, match="broken"):
        studio_of((503, {"detail": "broken"})).import_tasks(1, [{"data": {"text": "x"}}])
    assert len(answers.asked) == 1


def test_a_server_that_never_answers_is_not_waited_for_for_ever(studio_of, answers):
    stuck = threading.Event()
    try:
        with pytest.raises(StudioError, match="does not answer in time"):
            studio_of(("wait", stuck), timeout=0.2).import_tasks(1, [{"data": {"text": "x"}}])
    finally:
        stuck.set()
    assert len(answers.asked) == 1


def test_nobody_at_the_address_is_said_to_be_so(answers):
    answers.close()
    pauses = []
    with pytest.raises(StudioError, match="cannot be reached"):
        Studio(answers.url, "a" * 40, pause=pauses.append).import_tasks(1, [])
    assert pauses == [0.5, 1.0, 2.0]  # nothing was sent, so it could be tried again


def test_all_pages_are_read_and_no_more(studio_of, answers):
    def page(*ids):
        return {
            "total": 3,
            "total_annotations": 0,
            "total_predictions": 0,
            "tasks": [{"id": id, "data": {"id": str(id)}} for id in ids],
        }

    found = [*studio_of((200, page(1, 2)), (200, page(3))).pages(9)]
    assert [[task["id"] for task in tasks] for tasks in found] == [[1, 2], [3]]
    assert [path.split("page=")[1][0] for _, path, *_ in answers.asked] == ["1", "2"]
    assert [*studio_of((200, {"total": 0, "tasks": []})).pages(9)] == [[]]


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://x", "http://"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(ConfigError, match="not a server address"):
        Studio(url, "a" * 40, pause=lambda seconds: None).whoami()


@pytest.mark.parametrize("token", ["", "  "])
def test_a_token_that_is_none_is_refused(token):
    with pytest.raises(ConfigError, match="no token"):
        Studio("http://127.0.0.1:1", token)
