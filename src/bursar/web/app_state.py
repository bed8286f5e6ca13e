"""A project that is open to people: the campaign, the desk, the accounts, the news and the training, together."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import argon2

from bursar.annotation.session import AnnotationSession, State
from bursar.annotation.subprocess_events import training_command
from bursar.campaign.config import CONFIG_FILE
from bursar.compute import make_engine
from bursar.errors import ConfigError
from bursar.web.accounts import Accounts, Caller
from bursar.web.advising import Advising
from bursar.web.assignments import Assignments
from bursar.web.database import DATABASE_FILE, WebDatabase
from bursar.web.events import Hub
from bursar.web.http_errors import HTTPError
from bursar.web.previews import Previews
from bursar.web.queue import SECONDS, Queue
from bursar.web.security import HostPolicy
from bursar.web.training import Trainer


def check_project(folder: Path) -> None:
    """Refuse a folder that holds no project, in the words of somebody who wants to serve one."""
    if not (folder / CONFIG_FILE).is_file():
        raise ConfigError(f"{folder} is no project", fix="make one with: bursar new PROJECT --from DATA")


class AppState:
    """What the pages and the API of one project stand on. It holds the project's folder until it is closed."""

    def __init__(
        self,
        folder: Path,
        host_policy: HostPolicy | None = None,
        *,
        seconds: float = SECONDS,
        hasher: argon2.PasswordHasher | None = None,
        trust: bool = False,
        engine: str = "here",
    ) -> None:
        check_project(folder)
        make_engine(engine)  # refused now, not when the first round is trained
        self.host_policy = host_policy or HostPolicy()
        self.session = AnnotationSession.open(folder, trust=trust)
        try:
            self.database = WebDatabase.open(folder / DATABASE_FILE)
            self.accounts = Accounts(self.database, hasher)
            self._check_host_policy()
            self.queue = Queue(self.database, seconds)
            self.assignments = Assignments(self.session, self.queue)
        except BaseException:
            self.session.close()
            raise
        self.hub = Hub(self.state)
        command = training_command(folder, trust, engine=engine)
        self.trainer = Trainer(command, self.session.ready, self._told, self._trained)
        self.previews = Previews(self.session, self.hub)
        self.advising = Advising(folder, self.hub, self.state)
        self._reporting = threading.Lock()
        self._result: tuple[State, dict[str, Any]] | None = None
        self.cookie = f"bursar_{self.database.secret('cookie')[:8]}"  # two projects on one machine do not share it

    def close(self) -> None:
        """Stop what runs and let go of the folder."""
        self.hub.close()
        self.previews.close()
        self.advising.close()
        self.trainer.stop()
        self.database.close()
        self.session.close()

    def _check_host_policy(self) -> None:
        """A project without accounts is for whoever sits at this machine, and for nobody else."""
        if not self.host_policy.loopback and not self.accounts.exist():
            raise HTTPError(
                403,
                "no_accounts",
                f"{self.host_policy.host} can be reached by others, and this project has no accounts",
                fix=f"add a lead first: bursar people add {self.session.folder} NAME --role lead",
            )

    # -- where things stand ------------------------------------------------------------------------------------------
    def state(self) -> dict[str, Any]:
        """Where the campaign stands, with what the training process does."""
        state = asdict(self.session.state())
        if self.trainer.failure is not None and state["phase"] != "ended":
            state |= {"phase": "failed", "why": self.trainer.failure}
        elif self.trainer.phase == "training":
            state["phase"] = "training"
        return state

    def result(self) -> dict[str, Any]:
        """Everything that a report shows; made anew when something has changed."""
        with self._reporting:
            known = self.session.state()
            if self._result is None or self._result[0] != known:
                self._result = known, self.session.result()
            return self._result[1]

    def changed(self) -> None:
        """Somebody has written something: tell those who watch, and see whether the round is complete."""
        self.hub.changed()
        self.trainer.wake()

    def _told(self, event: str, data: Mapping[str, Any]) -> None:
        if event in ("stage", "scored"):
            self.hub.publish(event, data)
        self.hub.changed()

    def _trained(self) -> None:
        self.session.refresh()
        self.hub.settle()

    # -- who asks ----------------------------------------------------------------------------------------------------
    def caller(self, cookie: str | None, token: str | None) -> Caller | None:
        """Who sends a request with this cookie or this token."""
        if token is not None:
            return self.accounts.by_token(token)
        if not self.accounts.exist():
            return self.accounts.local_user
        return self.accounts.by_cookie(cookie) if cookie else None
