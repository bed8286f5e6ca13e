"""A server in a separate process, and simulated annotators who use it over real connections."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from uuid import uuid4

from bursar.web.accounts import Accounts, Caller
from bursar.web.database import DATABASE_FILE, WebDatabase
from bursar.web.queue import Overlap
from tests.web.conftest import QUICK
from tests.web.small import right

PATIENCE = 300.0  # seconds that a server has to begin: a machine may be busy


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def people_with_tokens(folder: Path, names: list[str], overlap: Overlap) -> dict[str, str]:
    """Accounts of a project before it is served, a token each; the first of them leads."""
    database = WebDatabase.open(folder / DATABASE_FILE)
    accounts = Accounts(database, QUICK)
    database.put("overlap", vars(overlap))
    tokens = {}
    for number, name in enumerate(names):
        role = "annotator" if number else "lead"
        accounts.add(name, role, "correct horse")
        cookie = accounts.sign_in(name, "correct horse", "here")
        found = accounts.by_cookie(cookie)
        tokens[name] = accounts.make_token(Caller(name, role, None, found.number), "test")[1]
    database.close()
    return tokens


class Server:
    """``bursar serve`` as a person starts it."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder, self.port = folder, port or free_port()
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> Server:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bursar", "serve", str(self.folder), "--port", str(self.port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise AssertionError(self.process.communicate()[1])
            try:
                self.call("GET", "/api/state", None)
                return self
            except OSError:
                time.sleep(0.1)
        raise AssertionError("the server does not answer")

    def call(self, method: str, path: str, token: str | None, body: dict | None = None) -> tuple[int, dict]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            return call(connection, method, path, token, body)
        finally:
            connection.close()

    def kill(self) -> None:
        """As a machine does that has no memory left."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def stop(self) -> tuple[int, str, str]:
        """As a person does, with Ctrl-C; how it ended and what it said."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=180)
        return self.process.returncode, out, err


def call(connection, method, path, token, body=None):
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    reply = connection.getresponse()
    text = reply.read()
    return reply.status, json.loads(text) if text else {}


class Crew:
    """People who annotate at once, and what each of them was told. Whoever loses the line sends the same again."""

    def __init__(self, port: int, tokens: dict[str, str], overlap: Overlap, think: float, seed: int = 0) -> None:
        self.port, self.tokens, self.overlap, self.think, self.seed = port, tokens, overlap, think, seed
        self.acknowledged: dict[str, list[str]] = defaultdict(list)  # by item: who was told that it is on disk
        self.seconds: list[float] = []  # that saving took
        self.trouble: list[str] = []
        self.holding: dict[str, set[str]] = defaultdict(set)
        self.lost = 0  # lines that broke
        self.faults = 0  # requests that met a storage that is out, and were sent again
        self._lock = threading.Lock()
        self._over = threading.Event()

    def run(self, seconds: float, meanwhile=lambda: None) -> None:
        threads = [threading.Thread(target=self._annotate, args=entry, daemon=True) for entry in self.tokens.items()]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        meanwhile()
        time.sleep(max(0.0, seconds - (time.monotonic() - began)))
        self._over.set()
        for thread in threads:
            thread.join(timeout=300)
        assert not any(thread.is_alive() for thread in threads)

    def _annotate(self, name: str, token: str) -> None:
        rng = random.Random(f"{self.seed} {name}")
        connection = None
        unsent: dict | None = None
        while unsent is not None or not self._over.is_set():
            connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            try:
                if unsent is None:
                    status, given = call(connection, "POST", "/api/next", token, {})
                    if not self._is_fault(status):
                        unsent = self._taken(name, status, given)
                    time.sleep(rng.uniform(0.5, 1.5) * self.think)
                    continue
                began = time.perf_counter()
                status, said = call(connection, "POST", "/api/answers", token, unsent)
                if not self._is_fault(status):
                    self._saved(name, unsent, status, said, time.perf_counter() - began)
                    unsent = None
            except (OSError, http.client.HTTPException):
                self.lost += 1
                connection = None
                time.sleep(0.1)

    def _is_fault(self, status: int) -> bool:
        self.faults += status == 503
        time.sleep(0.5 if status == 503 else 0)
        return status == 503

    def _taken(self, name: str, status: int, given: dict) -> dict | None:
        if status != 200:
            self.trouble.append(f"{name} asked for an item: {status} {given}")
            return None
        if given["lease"] is None:
            return None
        item = given["item"]["id"]
        with self._lock:
            self.holding[item].add(name)
            if len(self.holding[item]) > self.overlap.people_for(item):
                self.trouble.append(f"{item} is before {self.holding[item]} at once")
            if name in self.acknowledged[item]:
                self.trouble.append(f"{name} was given {item} again")
        body = {"key": str(uuid4()), "lease": given["lease"]["id"], "item": item, "labels": right(item)}
        return body | {"seconds": {"reading": 1.0}}

    def _saved(self, name: str, sent: dict, status: int, said: dict, seconds: float) -> None:
        with self._lock:
            self.holding[sent["item"]].discard(name)
            self.seconds.append(seconds)
            if status == 200:
                self.acknowledged[sent["item"]].append(name)
            else:
                self.trouble.append(f"{name} answered {sent['item']}: {status} {said}")

    @property
    def p95(self) -> float:
        """Seconds that saving took, in all but one of twenty cases."""
        return sorted(self.seconds)[int(0.95 * len(self.seconds))]
