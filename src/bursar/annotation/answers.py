"""What a session knows of its ledger, kept in memory; and what people say about items, checked and recorded."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bursar.annotation.suggestions import left_for
from bursar.campaign.campaign import Campaign
from bursar.campaign.state import SEEDS, CampaignState, ItemRequest
from bursar.corpus.corpus import Labels
from bursar.errors import LabelError, LedgerError, StorageError
from bursar.ledger import Answer, Receipt, Submission
from bursar.ledger.records import ANSWER, OVERLAP, Skip


class LedgerMirror:
    """What a session knows without a search in the ledger: an answer then takes one transaction.

    After a broken connection it is unknown whether the last write was kept, and whether another process has written
    since. ``faults`` counts these cases, for callers that keep more of the ledger in memory. Hold ``lock`` to read
    several values that belong together.
    """

    def __init__(self, state: CampaignState, suggestions: Path) -> None:
        self.lock = threading.RLock()
        self.campaign_state, self._suggestions = state, suggestions
        self.writes = self.faults = 0
        self._stale = True

    def reload(self) -> None:
        """Read everything again. If that fails, the next write tries again."""
        with self.lock:
            self._stale = True
            self._read()
            self._stale = False

    def catch_up(self) -> int:
        """Own the ledger, and reload after a fault; raises while there is no storage. Returns the number of faults."""
        with self.lock:
            if self.campaign_state.ledger.own():
                self._doubt()
            if self._stale:
                self.reload()
            return self.faults

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Wrap a write: memory is current before it, and marked as stale if the connection breaks."""
        with self.lock:
            self.catch_up()
            try:
                yield
            except StorageError as fault:
                if fault.in_doubt:
                    self._doubt()
                raise

    def settle(self, want: ItemRequest, cost: int | None) -> None:
        """Close an item that was answered at this cost, or skipped."""
        del self.open[want.id]
        latest = want.round == self.campaign_state.rounds_opened
        self.answered += latest and cost is not None
        self.skipped += latest and cost is None
        paid = int(cost is not None) if self.by_item else cost or 0
        if want.purpose in SEEDS and self.terms.config.budget.total is None:
            self.budget += paid - self.campaign_state.price(want)
        self.note(paid)

    def note(self, cost: int = 0) -> None:
        """Count a write, and what it cost."""
        self.spent += cost
        self.writes += 1

    @property
    def by_item(self) -> bool:
        return self.terms.config.budget.counts == "items"

    def _doubt(self) -> None:
        self._stale = True
        self.faults += 1

    def _read(self) -> None:
        state, ledger = self.campaign_state, self.campaign_state.ledger
        state.look_again()
        self.open = {want.id: want for want in state.open()}  # an item is open in at most one round
        self.terms = state.terms()  # of the next round
        self.ended = state.ended
        round, recorded = state.rounds_opened, ledger.keys()
        self.answered = sum(want.key in recorded for want in state.wanted(round).values())
        self.skipped = sum(skip.round == round for skip in ledger.skips())
        self._count_money()
        self.suggestions: dict[str, Mapping[str, Any]] = {}
        for number in sorted({round, *(want.round for want in self.open.values())}):
            self.suggestions |= left_for(self._suggestions, number).items
        self.writes += 1

    def _count_money(self) -> None:
        state = self.campaign_state
        self.spent, self.budget = state.spent(), state.whole_budget(self.terms)
        if self.terms.config.budget.total is None:  # seed items come on top of the rounds' budgets
            self.budget += state.spent(SEEDS)
            self.budget += sum(state.price(want) for want in self.open.values() if want.purpose in SEEDS)


class AnswerRecorder:
    """The one place where an answer is checked, encoded and written. Thread-safe."""

    def __init__(self, campaign: Campaign, mirror: LedgerMirror) -> None:
        self._campaign, self._mirror = campaign, mirror
        self._ledger, self._state = campaign.ledger, campaign.state

    def record(self, answer: Answer) -> Receipt:
        """Record an answer; when this returns, it is on disk. The same answer again changes nothing.

        The first answer to an item counts; an ``overlap`` is another person's answer to the same item. A correction or
        an adjudication replaces labels at no cost; the next model is trained on the new ones.
        """
        with self._mirror.writing():
            if answer.role == ANSWER:
                return self._first(answer)
            if answer.role == OVERLAP:
                return self._overlap(answer)
            receipt = self._ledger.submit(self._replacing(answer))
            self._mirror.note()
            return receipt

    def check(self, answers: Iterable[Answer]) -> None:
        """Raise if any of these answers is invalid. Writes nothing."""
        for answer in answers:
            self._requested(self._state.asked(answer.item, answer.labels), answer)

    def _first(self, answer: Answer) -> Receipt:
        want = self._mirror.open.get(answer.item)
        if want is None or set(want.tasks) != set(answer.labels):
            return self._again(answer)
        receipt = self._ledger.submit(self._requested(want, answer))
        self._mirror.settle(want, receipt.cost)
        return receipt

    def _overlap(self, answer: Answer) -> Receipt:
        want = self._state.asked(answer.item, answer.labels)
        if any(e.key == want.key and e.annotator == answer.annotator for e in self._ledger.answers(want.id)):
            return self._again(answer)  # a person cannot overlap with themselves
        receipt = self._ledger.submit(self._requested(want, answer))
        self._mirror.note(0 if self._mirror.by_item else receipt.cost)
        return receipt

    def _again(self, answer: Answer) -> Receipt:
        """Handle an answer to an item that is not open: a repeated or a late answer."""
        item, want = answer.item, self._state.asked(answer.item, answer.labels)
        known = next((entry for entry in self._ledger.answers(item) if entry.key == want.key), None)
        if known is None:
            declined = any(skip.round == want.round for skip in self._ledger.skips(item))
            what = "was skipped" if declined else f"is closed: round {want.round} went on without it"
            raise LedgerError(f"item {item!r} {what}", fix="take the next item")
        if known.annotator != answer.annotator:
            raise LedgerError(f"someone else has answered item {item!r} in the meantime", fix="take the next item")
        if dict(known.labels) != dict(answer.labels):
            raise LedgerError(f"item {item!r} has already been answered differently", fix="send a correction")
        return Receipt(want.key, repeated=True)

    def _requested(self, want: ItemRequest, answer: Answer) -> Submission:
        """The submission of a first answer or an overlap, with its charges."""
        self._check_given(answer)
        submission = self._state.submission(want, answer)
        self._check_trainable(answer)
        return submission

    def _replacing(self, answer: Answer) -> Submission:
        """The submission of a correction or an adjudication, which replaces earlier labels at no cost."""
        self._check_given(answer)
        annotations, role = answer.annotations(), answer.role
        self._ledger.check(annotations)
        self._check_trainable(answer)
        rounds = {task: entry.round for entry in self._ledger.answers(answer.item) for task in entry.labels}
        if unanswered := [task for task in answer.labels if task not in rounds]:
            raise LedgerError(
                f"item {answer.item!r} has no answer for task {unanswered[0]!r} to replace",
                fix=f"it was answered for {', '.join(rounds)}" if rounds else "answer it first",
            )
        round = max(rounds[task] for task in answer.labels)
        return Submission(answer.key, annotations, round=round, purpose=role, annotator=answer.annotator, role=role)

    def _check_given(self, answer: Answer) -> None:
        """Raise if there are no labels or a label is None, which would delete earlier labels."""
        if not answer.labels:
            raise LabelError(f"item {answer.item!r}: no labels given", fix="give one for every task, or skip the item")
        for task, label in answer.labels.items():
            if label is None:
                raise LabelError(f"item {answer.item!r}: no label for task {task!r}", fix="give one, or skip the item")

    def _check_trainable(self, answer: Answer) -> None:
        """Raise if the learner cannot be trained on these labels."""
        corpus = self._campaign.corpus
        one = corpus.take(corpus.positions([answer.item]))
        columns = {task: Labels.of(one, task, label) for task, label in answer.labels.items()}
        self._campaign.models.check_label(one.with_labels(columns))

    def skip(self, key: str, item: str, reason: str, annotator: str) -> Receipt:
        """Remove an item from its round; it is not requested again for these tasks, and its cost is freed."""
        with self._mirror.writing():
            self._campaign.corpus.positions([item])  # raises if there is no such item
            if self.was_skipped(key, item):
                return Receipt(key, repeated=True)
            want = self._mirror.open.get(item)
            if want is None:
                raise LedgerError(f"item {item!r} is not open", fix="take the next item")
            skip = Skip(key, item, reason.strip() or "no reason given", None, want.round, annotator)
            receipt = self._ledger.skip(skip)
            self._mirror.settle(want, None)
            return receipt

    def was_skipped(self, key: str, item: str) -> bool:
        """Whether this skip is recorded, even if it was undone since."""
        return any(skip.key == key for skip in self._ledger.skips(item, undone=True))

    def undo_skip(self, key: str, by: str) -> Skip:
        """Undo a skip: the item is open again for the same tasks, or back in the pool if its round is closed."""
        with self._mirror.writing():
            self._mirror.reload()  # another process may have opened a round
            self._state.check_undo(key, self._mirror.terms)
            undone = self._ledger.undo_skip(key, by)
            self._mirror.reload()
            return undone
