"""A campaign with human annotators: a thread-safe interface for pages and other front ends.

Training runs in another process (``round_worker``) that shares the ledger; call ``refresh`` when it is done.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import Field

from bursar.annotation.answers import AnswerRecorder, LedgerMirror
from bursar.annotation.round_worker import SUGGESTIONS
from bursar.annotation.settings import SessionSettings
from bursar.annotation.subprocess_events import WorkerProcess, listen, training_command
from bursar.annotation.suggestions import offered
from bursar.campaign.campaign import Campaign
from bursar.campaign.decisions import RoundClosed
from bursar.campaign.folder import Lock
from bursar.campaign.runs import Run
from bursar.campaign.state import ItemRequest
from bursar.errors import LedgerError
from bursar.learners.learner import Progress, no_progress
from bursar.ledger.records import Skip

Phase = Literal["annotating", "training", "ended", "failed"]
PREVIEWS = 16  # kept in memory


@dataclass(frozen=True)
class SessionState:
    """The state of a campaign. Amounts are in whole units of money, or in items if the budget counts items."""

    round: int
    phase: Phase
    asked: int  # items of the latest round, then those answered and skipped
    answered: int
    skipped: int
    spent: int
    budget: int
    why: Annotated[str | None, Field(description="Why it has ended or failed.")] = None
    open: Annotated[int, Field(description="Unanswered items of all rounds.")] = 0
    written: Annotated[int, Field(description="Increases with every write; compare it to detect changes.")] = 0


class AnnotationSession:
    """The campaign of a run, open for annotation. Locks the folder until closed.

    ``recorder`` writes answers and skips, ``settings`` holds the settings of the next round.
    """

    def __init__(self, run: Run, lock: Lock) -> None:
        self.run, self.folder, self.config, self.parts = run, run.folder, run.config, run.parts
        self.corpus = run.parts.corpus
        self._folder_lock = lock
        self._campaign = Campaign(run.config, run.folder, parts=run.parts, trust=run.trust)
        self.ledger, self.campaign_state = self._campaign.ledger, self._campaign.state
        self._mirror = LedgerMirror(self.campaign_state, self.folder / SUGGESTIONS)
        self.recorder = AnswerRecorder(self._campaign, self._mirror)
        self.settings = SessionSettings(self._campaign, self._mirror)
        self._training = threading.Lock()  # one training process at a time
        self._failure: tuple[str, int] | None = None  # of training, and the number of changes before it
        self._previews: dict[str, dict[str, Any]] = {}

    @classmethod
    def open(cls, folder: str | Path, *, trust: bool = False) -> AnnotationSession:
        """Open the campaign of a run's folder; selects the seed items of a new one.

        ``trust`` allows training to load saved models that could run code.
        """
        folder = Path(folder)
        run = Run.open(folder, trust=trust)
        with ExitStack() as on_failure:
            lock = Lock(folder / "run.lock", patience=0.5)
            on_failure.callback(lock.release)
            session = cls(run, lock)
            on_failure.callback(session._campaign.close)
            session._campaign.begin()
            session.refresh()
            on_failure.pop_all()
        return session

    def close(self) -> None:
        """Release the ledger and the folder."""
        self._campaign.close()
        self._folder_lock.release()

    def refresh(self) -> None:
        """Reload from the ledger, after a round was opened or the campaign ended."""
        self._mirror.reload()

    def catch_up(self) -> int:
        """Reload after a storage fault; call it before assigning items. Returns the number of faults so far."""
        return self._mirror.catch_up()

    # -- state -------------------------------------------------------------------------------------------------------
    def state(self) -> SessionState:
        mirror = self._mirror
        with mirror.lock:
            round = self.campaign_state.rounds_opened
            phase: Phase = "annotating"
            why = None
            if not mirror.open:
                phase, why = ("training", None) if mirror.ended is None else ("ended", mirror.ended)
            if self._training.locked():
                phase = "training"
            elif self._failure is not None and phase != "ended" and self._failure[1] == mirror.terms.changes:
                phase, why = "failed", self._failure[0]
            asked, money = len(self.campaign_state.wanted(round)), (mirror.spent, mirror.budget)
            counts = mirror.answered, mirror.skipped, *money
            return SessionState(round, phase, asked, *counts, why, len(mirror.open), mirror.writes)

    def wanted(self) -> list[ItemRequest]:
        """The open items, in order of selection."""
        with self._mirror.lock:
            return list(self._mirror.open.values())

    def want(self, id: str) -> ItemRequest | None:
        """The request for an item, if it is open."""
        with self._mirror.lock:
            return self._mirror.open.get(id)

    def ready(self) -> bool:
        """Whether the next round can be trained: all items are answered or skipped, or enough for ``budget.ahead``."""
        mirror = self._mirror
        with mirror.lock:
            mirror.catch_up()
            return mirror.ended is None and self.campaign_state.complete(len(mirror.open), mirror.terms)

    def tasks(self) -> list[dict[str, Any]]:
        """The tasks as JSON, and for tagging whether spans may overlap."""
        nested = self._campaign.models.may_nest
        return [
            {"name": name, "form": task.form, **task.describe()}
            | ({"nested": name in nested} if task.kind == "tagging" else {})
            for name, task in self.corpus.schema.items()
        ]

    def item(self, id: str) -> dict[str, Any]:
        """An item as JSON. Offsets of words count characters, as Python does; metadata are a table's other columns."""
        corpus, at = self.corpus, int(self.corpus.positions([id])[0])
        item = corpus[at]
        beside = [] if corpus.metadata is None else corpus.metadata.shown(at)
        more: dict[str, Any] = {"group": item.group} | ({"metadata": beside} if beside else {})
        if item.image is not None:
            height, width = item.image.shape[:2]
            image = f"/api/items/{quote(id, safe='')}/image"
            return {"id": id, "kind": "image", "image": image, "width": width, "height": height} | more
        words = corpus.texts.spans[at].tolist() if corpus.texts is not None else []
        found = {"id": id, "kind": "text", "text": item.text, "words": words} | more
        if item.pair is not None and corpus.pairs is not None:
            found |= {"kind": "pair", "second": {"text": item.pair, "words": corpus.pairs.spans[at].tolist()}}
        return found

    def suggestions(self, id: str) -> dict[str, Any]:
        """The newest model's suggestions for an open item, by task, above chance; none if it evaluates models."""
        return offered(self._mirror.suggestions.get(id, {}))

    # -- between rounds ----------------------------------------------------------------------------------------------
    def undo_skip(self, key: str, by: str) -> Skip:
        """Undo a skip, unless the next round is being trained."""
        with self._mirror.lock:
            if self._training.locked():
                raise LedgerError("the next round is being trained", fix="try again when training is done")
            return self.recorder.undo_skip(key, by)

    def close_round(self, by: str = "somebody") -> None:
        """Close the round; unanswered items return to the pool."""
        with self._mirror.writing():
            returned: dict[int, list[str]] = {}
            for want in self._mirror.open.values():
                returned.setdefault(want.round, []).append(want.id)
            if returned:
                closed = [RoundClosed(round=r, by=by, returned=tuple(items)) for r, items in returned.items()]
                self.ledger.decide(*closed)
                self.refresh()

    def next_round(self, progress: Progress = no_progress) -> None:
        """Train, score and select in a separate process, and wait for it. Can be interrupted and repeated."""
        with self._mirror.lock:  # not while a skip is being undone
            if not self._training.acquire(blocking=False):
                training = f"{self.folder}: the next round is already being trained"
                raise LedgerError(training, fix="wait until it is done")
        try:
            self._failure = None
            listen(WorkerProcess(training_command(self.folder, self.run.trust)), progress)
        except Exception as wrong:
            self._failure = str(wrong), self._mirror.terms.changes
            raise
        finally:
            self._training.release()
            self.refresh()

    def preview(self, changes: Mapping[str, Any], progress: Progress = no_progress) -> dict[str, Any]:
        """Preview the next round with and without these changes. Writes nothing."""
        with self._mirror.lock:
            key = f"{self._mirror.writes} {self.settings.check(changes) if changes else 'as it is'}"
        if key not in self._previews:
            found = listen(WorkerProcess(training_command(self.folder, self.run.trust, changes)), progress)
            with self._mirror.lock:
                self._previews[key] = found
                for old in list(self._previews)[:-PREVIEWS]:
                    del self._previews[old]
        return self._previews[key]
