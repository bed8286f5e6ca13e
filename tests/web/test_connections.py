"""Idle connections: they make room for active ones, are closed in time, and do not fill the log."""

from __future__ import annotations

import http.client
import os
import resource
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress

import pytest

from bursar.web import connections
from bursar.web.connections import Connections, Limits
from tests.web.annotating import until
from tests.web.processes import free_port
from tests.web.small import make_project

DESCRIPTORS = 256
HALF = b"GET /api/state HTTP/1.1\r\nHost: 127.0.0.1\r\n"  # and then nothing


class Server:
    """``bursar serve`` with few descriptors and short time-outs; what it writes is in a file."""

    def __init__(self, folder, *options, head=15.0, body=30.0, descriptors=DESCRIPTORS):
        self.port, self.log = free_port(), folder / "log"
        serve = f"sys.argv = ['bursar', 'serve', {str(folder)!r}, '--port', '{self.port}', *{options!r}]"
        script = "import sys; from bursar.web import connections; "
        script += f"connections.HEAD_SECONDS, connections.BODY_SECONDS = {head}, {body}; {serve}; "
        script += "from bursar.cli import main; main()"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", script],
                stdout=log,
                stderr=log,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors)),
            )
        until(self.answers)

    def answers(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.get()[0] == 200
        except OSError:
            return False

    def get(self, path="/api/state", timeout=30):
        """Status, and seconds that it took, of a request over a connection of its own."""
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request("GET", path)
            reply = connection.getresponse()
            reply.read()
            return reply.status, time.monotonic() - began
        finally:
            connection.close()

    def open(self, stack, sent=HALF):
        """A connection over which so much is sent."""
        line = stack.enter_context(socket.create_connection(("127.0.0.1", self.port), timeout=30))
        line.sendall(sent)
        return line

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


@pytest.fixture
def serving(tmp_path):
    started = []

    def start(*options, **times):
        started.append(Server(make_project(tmp_path / f"project-{len(started)}"), *options, **times))
        return started[-1]

    yield start
    for server in started:
        server.process.kill()
        server.process.wait()


def closed(line, seconds):
    """Whether the other side hangs up within this number of seconds."""
    line.settimeout(seconds)
    try:
        while line.recv(4096):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


# -- a real server -----------------------------------------------------------------------------------------------------
def test_half_open_connections_beyond_the_descriptors_neither_stop_the_server_nor_fill_its_log(serving):
    server = serving()
    before = server.descriptors()
    with ExitStack() as stack:
        for number in range(300):
            server.open(stack, HALF if number % 2 else b"")
        for _ in range(5):
            status, seconds = server.get()
            assert (status, seconds < 5) == (200, True)
        assert server.descriptors() < DESCRIPTORS - 32
        assert server.log.stat().st_size < 4096, server.log.read_text()
    until(lambda: server.descriptors() <= before + 4)
    assert server.get()[0] == 200
    assert "connections are open" in server.log.read_text()


def test_news_are_heard_while_half_open_connections_take_every_place_and_longer_than_any_time_out(serving):
    server = serving(head=1.0, body=1.0)
    with ExitStack() as stack:
        news = server.open(stack, HALF.replace(b"/api/state", b"/api/events") + b"\r\n")
        assert news.recv(65536).startswith(b"HTTP/1.1 200")
        for _ in range(300):
            server.open(stack)
        time.sleep(2.5)  # every other connection is overdue
        assert not closed(news, 0.2)


def test_a_request_that_does_not_come_to_its_end_is_given_up_in_time(serving):
    server = serving(head=1.0, body=1.5)
    with ExitStack() as stack:
        nothing, half = server.open(stack, b""), server.open(stack)
        drip = server.open(stack)
        began = time.monotonic()
        body = server.open(stack, b"POST /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")
        with suppress(OSError):
            while time.monotonic() - began < 10:  # a byte now and then wins no time
                drip.sendall(b"X")
                time.sleep(0.1)
        assert 0.5 < time.monotonic() - began < 8
        assert all(closed(line, 10) for line in (nothing, half, body))
        kept = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        for _ in range(2):  # between two requests there is more time
            kept.request("GET", "/api/state")
            assert kept.getresponse().read()
            time.sleep(1.5)
        kept.close()


def test_an_address_has_its_limit_and_another_has_its_own(serving):
    server = serving("--connections-per-address", "5", descriptors=1024)
    with ExitStack() as stack:
        listeners = [server.open(stack, HALF.replace(b"/api/state", b"/api/events") + b"\r\n") for _ in range(5)]
        assert all(line.recv(65536).startswith(b"HTTP/1.1 200") for line in listeners)
        assert server.get()[0] == 503  # all five are busy
        other = stack.enter_context(
            socket.create_connection(("127.0.0.1", server.port), timeout=30, source_address=("127.0.0.2", 0))
        )
        other.sendall(HALF + b"\r\n")
        assert other.recv(4096).startswith(b"HTTP/1.1 200")
        listeners[0].close()
        until(lambda: server.get()[0] == 200)


# -- the rule ----------------------------------------------------------------------------------------------------------
class One:
    """A connection, as far as the rule looks at it."""

    def __init__(self, others, address, since, idle=True):
        self.address, self.since, self.idle, self.others = address, since, idle, others
        self.gone = False

    def abort(self):
        self.gone = True
        self.others.remove(self)


def test_the_one_that_waited_longest_makes_room_and_nobody_who_is_busy():
    others = Connections(Limits(total=4, per_address=3))
    a = [One(others, "a", since) for since in (3, 1, 2)]
    a[1].idle = False
    assert all(others.admit(one) for one in a)
    assert others.admit(One(others, "a", 4))
    assert [one.gone for one in a] == [False, False, True]
    assert others.admit(One(others, "b", 5))
    assert others.admit(One(others, "c", 6))  # all places are taken: the largest crowd gives one up
    assert a[0].gone
    busy = Connections(Limits(total=4, per_address=1))
    assert busy.admit(One(busy, "a", 1, idle=False))
    assert not busy.admit(One(busy, "a", 2))


def test_a_proxy_on_this_machine_may_have_what_there_is():
    limits = Limits.under(1024, 10, proxy=True)
    assert (limits.of("127.0.0.1"), limits.of("10.0.0.7")) == (limits.total, 10)
    assert Limits.under(1024, 10).of("127.0.0.1") == 10


def test_more_descriptors_are_asked_for_where_the_system_gives_them():
    script = "import resource; from bursar.web.connections import descriptors; "
    script += "print(descriptors(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 700)),
    )
    assert done.stdout.split() == ["700", "700"]
    assert connections.descriptors() >= 256


def test_no_address_gets_all_connections_and_some_descriptors_are_kept():
    assert Limits.under(1024, 500) == Limits(total=896, per_address=500)
    assert Limits.under(256, 500) == Limits(total=128, per_address=96)
