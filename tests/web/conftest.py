"""Shared fixtures of the web tests: a small project, and a server for it in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import argon2
import pytest
from starlette.testclient import TestClient

from bursar.web.app_state import AppState
from bursar.web.security import HostPolicy
from bursar.web.server import make_app
from tests.web.small import make_project, right

QUICK = argon2.PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
PASSWORD = "correct horse"
HOME = "http://127.0.0.1:8000"


class Browser(TestClient):
    """A person's browser: it keeps cookies and sends the token that pages send."""

    csrf = ""

    def meet(self) -> dict:
        found = self.get("/api/me").json()
        self.csrf = found.get("csrf") or ""
        self.headers["X-CSRF-Token"] = self.csrf
        return found

    def sign_in(self, name: str, password: str = PASSWORD) -> Browser:
        assert self.post("/api/login", json={"name": name, "password": password}).status_code == 204
        self.meet()
        return self

    def take(self, **body: Any) -> dict:
        reply = self.post("/api/next", json=body)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def answer(self, taken: dict, **changes: Any) -> Any:
        item = taken["item"]["id"]
        body = {"key": str(uuid4()), "lease": taken["lease"]["id"], "item": item, "labels": right(item)}
        return self.post("/api/answers", json=body | {"seconds": {"reading": 1.5, "intent": 0.5}} | changes)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture
def open_app_state() -> Iterator[Callable[..., AppState]]:
    """Opens projects and closes them after the test."""
    opened: list[AppState] = []

    def open_project(folder: Path, **options: Any) -> AppState:
        opened.append(AppState(folder, options.pop("host_policy", HostPolicy()), hasher=QUICK, **options))
        return opened[-1]

    yield open_project
    for app_state in opened:
        app_state.close()


@pytest.fixture
def app_state(project: Path, open_app_state: Callable[..., AppState]) -> AppState:
    return open_app_state(project)


@pytest.fixture
def browser_of(app_state: AppState) -> Iterator[Callable[[], Browser]]:
    """Separate browsers of one server."""
    with ExitStack() as stack:
        app = make_app(app_state)
        stack.enter_context(TestClient(app, base_url=HOME))  # starts and stops the server
        yield lambda: Browser(app, base_url=HOME, headers={"Origin": HOME})


@pytest.fixture
def local_user(browser_of: Callable[[], Browser]) -> Browser:
    """The local user of a project without accounts."""
    browser = browser_of()
    browser.meet()
    return browser


@pytest.fixture
def crew(app_state: AppState, browser_of: Callable[[], Browser]) -> Callable[[str], Browser]:
    """Anna, a lead, and Bob and Eve, annotators: each signed in with a separate browser."""
    for name, role in (("Anna", "lead"), ("Bob", "annotator"), ("Eve", "annotator")):
        app_state.accounts.add(name, "lead" if role == "lead" else "annotator", PASSWORD)
    known: dict[str, Browser] = {}

    def of(name: str) -> Browser:
        if name not in known:
            known[name] = browser_of().sign_in(name)
        return known[name]

    return of


def refused(reply, status, kind):
    assert (reply.status_code, reply.json()["kind"]) == (status, kind), reply.text
    assert set(reply.json()) == {"error", "fix", "kind"}
    return reply
