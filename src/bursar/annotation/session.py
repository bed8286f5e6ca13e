"""A campaign with human annotators: a thread-safe interface for pages and other front ends.

Open items are kept in memory, so an answer takes one transaction and no search. Training runs in another process
(``round_worker``) that shares the ledger; call ``refresh`` when it is done.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bursar.annotation.answers import Answer, AnswerEncoder
from bursar.annotation.certainty import Certainty
from bursar.annotation.choices import choices
from bursar.annotation.round_worker import SUGGESTIONS
from bursar.annotation.subprocess_events import run_child
from bursar.annotation.suggestions import left_for, offered
from bursar.campaign.annotation_speed import usual_rates
from bursar.campaign.annotators import GoldAnnotator
from bursar.campaign.campaign import Campaign
from bursar.campaign.config import CampaignConfig
from bursar.campaign.lock import Lock
from bursar.campaign.pricing import measured_rates
from bursar.campaign.runs import Run
from bursar.campaign.serializers import shown_item, shown_prices, shown_tasks
from bursar.campaign.setting_changes import FIXED, Amendment, amended, check_amended
from bursar.campaign.setting_changes import KIND as SETTINGS
from bursar.campaign.state import CLOSED, SEEDS, ItemRequest, RoundSettings
from bursar.corpus import Corpus
from bursar.errors import LedgerError
from bursar.learners.learner import Progress, no_progress
from bursar.ledger import Receipt
from bursar.ledger.records import ADJUDICATION, CORRECTION, OVERLAP, Skip
from bursar.ledger.records import Answer as Said
from bursar.ledger.schema import now
from bursar.tasks import CostModel

Phase = Literal["annotating", "training", "ended", "failed"]
PREVIEWS = 16  # kept in memory


@dataclass(frozen=True)
class State:
    """The state of a campaign. Amounts are in whole units of money, or in items if the budget counts items."""

    round: int
    phase: Phase
    asked: int  # items of the latest round, then those answered and skipped
    answered: int
    skipped: int
    spent: int
    budget: int
    why: str | None = None  # the reason why it has ended or failed
    open: int = 0  # unanswered items of all rounds
    written: int = 0  # number of writes since the session was opened


class AnnotationSession:
    """The campaign of a run, open for annotation. Locks the folder until closed."""

    def __init__(self, run: Run, lock: Lock) -> None:
        self.run, self.folder, self.config, self.parts = run, run.folder, run.config, run.parts
        self.corpus = run.parts.corpus
        self._folder_lock = lock
        self._turn = threading.RLock()
        self._campaign = Campaign(run.config, run.folder, parts=run.parts, trust=run.trust)
        self.ledger, self.books = self._campaign.ledger, self._campaign.books
        self._encoder = AnswerEncoder(self._campaign)
        self._written = 0
        self._certainty = Certainty(self.ledger, self._read)
        self._failure: str | None = None
        self._training = threading.Lock()  # one training process at a time
        self._pace: tuple[int, dict[str, Any]] | None = None
        self._previews: dict[str, dict[str, Any]] = {}

    @classmethod
    def open(cls, folder: str | Path, *, trust: bool = False) -> AnnotationSession:
        """Open the campaign of a run's folder; selects the seed items of a new one.

        ``trust`` allows training to load saved models that could run code.
        """
        folder = Path(folder)
        run = Run.open(folder, trust=trust)
        lock = Lock(folder / "run.lock", patience=0.5)
        try:
            live = cls(run, lock)
        except BaseException:
            lock.release()
            raise
        try:
            live._campaign.begin()
            live.refresh()
        except BaseException:
            live.close()
            raise
        return live

    def close(self) -> None:
        """Release the ledger and the folder."""
        self._campaign.close()
        self._folder_lock.release()

    def refresh(self) -> None:
        """Reload from the ledger, after a round was opened or the campaign ended."""
        with self._turn:
            self._certainty.read()

    def catch_up(self) -> int:
        """Own the ledger and reload after a fault; call it before assigning or writing.

        Returns how often a fault made a reload necessary.
        """
        with self._turn:
            self._certainty.catch_up()
            return self._certainty.doubts

    def _read(self) -> None:
        self.books.look_again()
        self._open = {want.id: want for want in self.books.open()}  # an item is open in at most one round
        self._terms = self.books.terms()
        self._ended = self.books.ended
        round = self.books.rounds_opened
        recorded = self.ledger.keys()
        self._answered = sum(want.key in recorded for want in self.books.wanted(round).values())
        self._skipped = sum(skip.round == round for skip in self.ledger.skips())
        self._count_money()
        self._suggestions: dict[str, Mapping[str, Any]] = {}
        for number in sorted({round, *(want.round for want in self._open.values())}):
            self._suggestions |= left_for(self.folder / SUGGESTIONS, number).items
        self._written += 1

    def _count_money(self) -> None:
        by_item = self._by_item
        self._spent = self.books.items_bought() if by_item else self.ledger.spent()
        seeds = self.books.items_bought(SEEDS) if by_item else sum(self.ledger.spent(purpose=p) for p in SEEDS)
        for want in self._open.values():
            if want.purpose in SEEDS:
                seeds += 1 if by_item else sum(want.estimate.values())
        total = self._terms.config.budget.total
        self._budget = self.books.purse(self._terms) + (seeds if total is None else 0)

    # -- state -------------------------------------------------------------------------------------------------------
    def state(self) -> State:
        """The current state."""
        with self._turn:
            round = self.books.rounds_opened
            phase: Phase = "annotating"
            why = None
            if not self._open:
                phase, why = ("training", None) if self._ended is None else ("ended", self._ended)
            if self._training.locked():
                phase = "training"
            elif self._failure is not None and phase != "ended":
                phase, why = "failed", self._failure
            numbers = len(self.books.wanted(round)), self._answered, self._skipped, self._spent, self._budget
            return State(round, phase, *numbers, why, len(self._open), self._written)

    def wanted(self) -> list[ItemRequest]:
        """The open items, in order of selection."""
        with self._turn:
            return list(self._open.values())

    def want(self, id: str) -> ItemRequest | None:
        """The request for an item, if it is open."""
        with self._turn:
            return self._open.get(id)

    def ready(self) -> bool:
        """Whether the next round can be trained: all items are answered or skipped, or enough for ``budget.ahead``."""
        with self._turn:
            self.catch_up()
            return self._ended is None and self.books.complete(len(self._open), self._terms)

    @property
    def in_force(self) -> CampaignConfig:
        """The settings of the next round."""
        return self._terms.config

    @property
    def costs(self) -> CostModel:
        """The prices of the latest round."""
        return self.books.terms_of(self.books.rounds_opened).costs

    def tasks(self) -> list[dict[str, Any]]:
        """The tasks as JSON."""
        return shown_tasks(self.corpus.schema, self._campaign.models.may_nest)

    def item(self, id: str) -> dict[str, Any]:
        """An item as JSON."""
        return shown_item(self.corpus, id)

    def suggestions(self, id: str) -> dict[str, Any]:
        """The latest model's suggestions for an open item: label and confidence by task, if above chance.

        Items that evaluate the model have none.
        """
        return offered(self._suggestions.get(id, {}))

    # -- answers -----------------------------------------------------------------------------------------------------
    def answer(self, answer: Answer) -> Receipt:
        """Record an answer; when this returns, it is on disk. The same answer again changes nothing.

        The first answer to an item counts; an ``overlap`` is another person's answer to the same item.
        """
        with self._turn, self._certainty.deciding():
            if answer.role == OVERLAP:
                return self._overlap(answer)
            want = self._open.get(answer.item)
            if want is None or set(want.tasks) != set(answer.labels):
                return self._again(answer)
            receipt = self.ledger.submit(self._encoder.requested(want, answer))
            self._settle(want, receipt.cost)
            self._answered += want.round == self.books.rounds_opened
            return receipt

    def check(self, answers: Mapping[str, Mapping[str, Any]]) -> None:
        """Raise if any of these answers, by item and task, is invalid. Writes nothing."""
        for item, labels in answers.items():
            self._encoder.requested(self.books.asked(item, labels), Answer(item, labels, "somebody"))

    def _again(self, answer: Answer) -> Receipt:
        """Handle an answer to an item that is not open: a repeated or a late answer."""
        want = self.books.asked(answer.item, answer.labels)
        said = [entry for entry in self.ledger.answers(answer.item) if entry.key == want.key]
        if not said:
            declined = any(skip.round == want.round for skip in self.ledger.skips(answer.item))
            what = "was skipped" if declined else f"is closed: round {want.round} went on without it"
            raise LedgerError(f"item {answer.item!r} {what}", fix="take the next item")
        if said[0].annotator != answer.annotator:
            raise LedgerError(
                f"someone else has answered item {answer.item!r} in the meantime", fix="take the next item"
            )
        if {entry.task: entry.label for entry in said} != dict(answer.labels):
            raise LedgerError(f"item {answer.item!r} has already been answered differently", fix="send a correction")
        return Receipt(want.key, repeated=True)

    def _overlap(self, answer: Answer) -> Receipt:
        want = self.books.asked(answer.item, answer.labels)
        if any(said.key == want.key and said.annotator == answer.annotator for said in self.answers(want.id)):
            return self._again(answer)  # a person cannot overlap with themselves
        receipt = self.ledger.submit(self._encoder.requested(want, answer))
        self._note(0 if self._by_item else receipt.cost)
        return receipt

    def correct(self, key: str, item: str, labels: Mapping[str, Any], annotator: str) -> Receipt:
        """Replace labels at no cost; the next model is trained on the new ones."""
        return self._replace(key, Answer(item, labels, annotator, role=CORRECTION))

    def adjudicate(self, key: str, item: str, labels: Mapping[str, Any], annotator: str) -> Receipt:
        """Set the final labels of an item on which people disagree."""
        return self._replace(key, Answer(item, labels, annotator, role=ADJUDICATION))

    def _replace(self, key: str, answer: Answer) -> Receipt:
        with self._turn, self._certainty.deciding():
            receipt = self.ledger.submit(self._encoder.replacing(key, answer))
            self._note()
            return receipt

    def skip(self, key: str, item: str, reason: str, annotator: str) -> Receipt:
        """Remove an item from its round; it is not requested again for these tasks, and its cost is freed."""
        with self._turn, self._certainty.deciding():
            self.corpus.positions([item])
            if self.was_skipped(key, item):
                return Receipt(key, repeated=True)
            want = self._open.get(item)
            if want is None:
                raise LedgerError(f"item {item!r} is not open", fix="take the next item")
            skip = Skip(key, item, reason.strip() or "no reason given", None, want.round, annotator)
            receipt = self.ledger.skip(skip)
            self._settle(want, None)
            self._skipped += want.round == self.books.rounds_opened
            return receipt

    def was_skipped(self, key: str, item: str) -> bool:
        """Whether this skip is recorded, even if it was undone since."""
        return any(skip.key == key for skip in self.ledger.skips(item, undone=True))

    def undo_skip(self, key: str, by: str) -> Skip:
        """Undo a skip: the item is open again for the same tasks, or back in the pool if its round is closed."""
        with self._turn, self._certainty.deciding():
            if self._training.locked():
                raise LedgerError("the next round is being trained", fix="try again when training is done")
            self.refresh()  # another process may have opened a round
            self.books.check_undo(key, self._terms)
            undone = self.ledger.undo_skip(key, by)
            self.refresh()
            return undone

    def _settle(self, want: ItemRequest, cost: int | None) -> None:
        """Close an item that was answered at this cost, or skipped."""
        del self._open[want.id]
        paid = int(cost is not None) if self._by_item else cost or 0
        if want.purpose in SEEDS and self._terms.config.budget.total is None:
            self._budget += paid - (1 if self._by_item else sum(want.estimate.values()))
        self._note(paid)

    @property
    def _by_item(self) -> bool:
        return self._terms.config.budget.counts == "items"

    def _note(self, cost: int = 0) -> None:
        self._spent += cost
        self._written += 1

    def answers(self, item: str | None = None) -> list[Said]:
        """All recorded answers, or those to one item."""
        return self.ledger.answers(item)

    def view(self) -> Corpus:
        """The annotated items with their current labels."""
        return self.ledger.view()

    def result(self) -> dict[str, Any]:
        """The result of the run, as used by the report."""
        return self.run.result()

    # -- decisions of leads ------------------------------------------------------------------------------------------
    def close_round(self, by: str = "somebody") -> None:
        """Close the round; unanswered items return to the pool."""
        with self._turn, self._certainty.deciding():
            returned: dict[int, list[str]] = {}
            for want in self._open.values():
                returned.setdefault(want.round, []).append(want.id)
            decisions = [(round, CLOSED, {"by": by, "returned": items}) for round, items in returned.items()]
            if decisions:
                self.ledger.decide(*decisions)
                self.refresh()

    def change(self, changes: Mapping[str, Any], by: str, key: str | None = None) -> None:
        """Change the budget, prices, strategy or limits from the next round on. The same key again changes nothing."""
        with self._turn, self._certainty.deciding():
            earlier = self.books.amendments()
            if key is not None and any(amendment.key == key for amendment in earlier):
                return
            self._checked(changes)
            made = Amendment(len(earlier) + 1, dict(changes), by, now(), key)
            self.ledger.decide((made.number, SETTINGS, made.body))
            self._failure = None
            self.refresh()

    def _checked(self, changes: Mapping[str, Any]) -> str:
        """Raise if the changes are invalid; returns a digest of the resulting settings."""
        earlier = [amendment.changes for amendment in self.books.amendments()]
        after = amended(self.config, [*earlier, changes])
        check_amended(self._terms.config, after, self.corpus)
        return after.digest

    def settings(self) -> dict[str, Any]:
        """The settings of the next round, the history of changes, prices, measured times and choices."""
        with self._turn:
            in_force = self._terms.config.model_dump(mode="json", include=set(FIXED))
            history = self.books.history()
            config = self._terms.config
        fixed = {section: sorted(keys) for section, keys in FIXED.items()}
        return {
            "settings": in_force,
            "fixed": fixed,
            "history": history,
            "prices": self.prices(),
            "pace": self.measured_pace(),
            "choices": choices(config, self.corpus.schema, self.corpus.groups is not None),
            "simulated": self._simulated(),
        }

    def _simulated(self) -> bool:
        """Whether the first round was answered with the labels of the corpus, as in a simulation."""
        first = next(iter(self.books.wanted(0)), None)
        return first is not None and any(said.annotator == GoldAnnotator.name for said in self.answers(first))

    # -- prices and pace ---------------------------------------------------------------------------------------------
    def prices(self) -> dict[str, Any]:
        """Prices of reading and of each task: in the latest round, in the next round, and as configured.

        The configured prices do not apply if prices follow the measured times.
        """
        with self._turn:
            stated = self._terms.config.costs.model(self.corpus.schema.values())
        prices = {"now": self.costs, "next": self._terms_now().costs, "stated": stated}
        return {when: shown_prices(costs) for when, costs in prices.items()}

    def _terms_now(self) -> RoundSettings:
        with self._turn:
            config, changes = self._terms.config, self._terms.changes
        return self.books.measured(config, changes) if config.costs.measured else self._terms

    def measured_pace(self) -> dict[str, Any]:
        """Measured seconds of reading and of each task, with standard errors and counts."""
        with self._turn:
            written, costs = self._written, self._terms.config.costs
        if self._pace is None or self._pace[0] != written:
            tasks = list(self.corpus.schema.values())
            usual = usual_rates(costs.model(tasks), tasks, costs.hourly) if costs.hourly is not None else None
            rates = measured_rates(self.ledger, usual)
            self._pace = written, {what: rate.as_json() for what, rate in rates.items()}
        return self._pace[1]

    # -- training ----------------------------------------------------------------------------------------------------
    def next_round(self, progress: Progress = no_progress) -> None:
        """Train, score and select in a separate process, and wait for it. Can be interrupted and repeated."""
        with self._turn:  # not while a skip is being undone
            if not self._training.acquire(blocking=False):
                raise LedgerError(
                    f"{self.folder}: the next round is already being trained", fix="wait until it is done"
                )
        try:
            self._failure = None
            run_child(self.folder, None, progress, trust=self.run.trust)
        except Exception as wrong:
            self._failure = str(wrong)
            raise
        finally:
            self._training.release()
            self.refresh()

    def preview(self, changes: Mapping[str, Any], progress: Progress = no_progress) -> dict[str, Any]:
        """Preview the next round with and without these changes. Writes nothing."""
        with self._turn:
            key = f"{self._written} {self._checked(changes) if changes else 'as it is'}"
        if key not in self._previews:
            found = run_child(self.folder, changes, progress, trust=self.run.trust)
            with self._turn:
                self._previews[key] = found
                for old in list(self._previews)[:-PREVIEWS]:
                    del self._previews[old]
        return self._previews[key]
