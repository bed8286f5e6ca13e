"""Everything the server holds for one open project: session, assignments, accounts, events and training."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import argon2

from bursar.annotation.session import AnnotationSession, SessionState
from bursar.annotation.subprocess_events import training_command
from bursar.campaign.config import CONFIG_FILE
from bursar.campaign.results import RunResult
from bursar.compute import make_engine
from bursar.errors import ConfigError
from bursar.web.accounts import Accounts, Caller
from bursar.web.assignments import Assignments
from bursar.web.database import DATABASE_FILE, WebDatabase
from bursar.web.events import Hub
from bursar.web.http_errors import HTTPError
from bursar.web.jobs import Advising, LabelledData, Previews
from bursar.web.queue import Queue
from bursar.web.security import HostPolicy
from bursar.web.training import Trainer


def check_project(folder: Path) -> None:
    """Raise ``ConfigError`` unless the folder holds a project."""
    if not (folder / CONFIG_FILE).is_file():
        raise ConfigError(f"{folder} is not a project", fix="create one with: bursar new PROJECT --from DATA")


class AppState:
    """Shared state of the pages and the API of one project. Locks the project folder until closed."""

    def __init__(
        self,
        folder: Path,
        host_policy: HostPolicy | None = None,
        *,
        hasher: argon2.PasswordHasher | None = None,
        trust: bool = False,
        engine: str = "here",
    ) -> None:
        check_project(folder)
        make_engine(engine)  # fail now, not when the first round is trained
        self.host_policy = host_policy or HostPolicy()
        self.session = AnnotationSession.open(folder, trust=trust)
        try:
            self.database = WebDatabase.open(folder / DATABASE_FILE)
            self.accounts = Accounts(self.database, hasher)
            if not self.host_policy.loopback and not self.accounts.exist():
                host = self.host_policy.host
                error = f"{host} is reachable from other machines, but this project has no accounts"
                fix = f"add a lead first: bursar people add {folder} NAME --role lead"
                raise HTTPError(403, "no_accounts", error, fix=fix)
            self.queue = Queue(self.database)
            self.assignments = Assignments(self.session, self.queue)
        except BaseException:
            self.session.close()
            raise
        self.hub = Hub(lambda: asdict(self.state()))
        command = training_command(folder, trust, engine=engine)
        self.trainer = Trainer(command, self.session.ready, self._on_training_event, self._refresh)
        self.previews = Previews(self.session, self.hub)
        self.advising = Advising(folder, self.hub, self.state)
        self.labelled_data = LabelledData(folder, self.hub, self.session.config.name, trust)
        self._reporting = threading.Lock()
        self._result: tuple[SessionState, RunResult] | None = None
        self.cookie = f"bursar_{self.database.secret('cookie')[:8]}"  # differs between projects on one machine

    def close(self) -> None:
        """Stop background work and release the folder."""
        self.hub.close()
        self.previews.close()
        self.advising.close()
        self.labelled_data.close()
        self.trainer.stop()
        self.database.close()
        self.session.close()

    def state(self) -> SessionState:
        """The campaign's state, including the training process."""
        state = self.session.state()
        if self.trainer.failure is not None and state.phase != "ended":
            return replace(state, phase="failed", why=self.trainer.failure)
        return replace(state, phase="training") if self.trainer.phase == "training" else state

    def result(self) -> RunResult:
        """The full result, as in a report; cached until the state changes."""
        with self._reporting:
            known = self.session.state()
            if self._result is None or self._result[0] != known:
                self._result = known, self.session.run.result()
            return self._result[1]

    def changed(self) -> None:
        """Call after a write: notifies listeners and checks whether the round is complete."""
        self.hub.changed()
        self.trainer.wake()

    def _on_training_event(self, event: str, data: Mapping[str, Any]) -> None:
        if event in ("stage", "scored"):
            self.hub.publish(event, data)
        self.hub.changed()

    def _refresh(self) -> None:
        self.session.refresh()
        self.hub.clear_progress()

    def caller(self, cookie: str | None, token: str | None) -> Caller | None:
        """The sender of a request with this cookie or token, if known."""
        if token is not None:
            return self.accounts.by_token(token)
        if not self.accounts.exist():
            return self.accounts.local_user
        return self.accounts.by_cookie(cookie) if cookie else None
