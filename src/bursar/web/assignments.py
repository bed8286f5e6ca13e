"""Assigns items to people and records their answers. Independent of HTTP.

An answer is written to the ledger before its lease is settled. If the server dies in between, the lease expires, and
the same answer sent again is recognized as a repeat.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bursar.annotation.answers import Answer
from bursar.annotation.session import AnnotationSession, State
from bursar.campaign.state import GIVEN
from bursar.corpus import Corpus
from bursar.ledger import Receipt
from bursar.ledger.records import ADJUDICATION, ANSWER, CORRECTION, OVERLAP
from bursar.ledger.records import Answer as LedgerAnswer
from bursar.ledger.schema import now
from bursar.web import agreement
from bursar.web.http_errors import HTTPError
from bursar.web.queue import Key, Lease, Overlap, Queue, WorkItem


@dataclass(frozen=True)
class Assignment:
    """An item assigned to a person."""

    lease: Lease
    tasks: tuple[str, ...]
    purpose: str  # answer; or overlap, beside another person's answer


@dataclass
class ImportResult:
    """Counts of imported items, by outcome."""

    answered: int = 0
    repeated: int = 0
    not_asked: int = 0
    incomplete: int = 0
    cost_units: int = 0


@dataclass(frozen=True)
class PersonAnswer:
    """One person's labels for one item, all tasks together; the latest version if corrected."""

    item: str
    person: str
    labels: Mapping[str, Any]
    at: str
    round: int
    key: str
    role: str


class Assignments:
    """Assigns the items of the open round and records answers, one write at a time."""

    def __init__(self, session: AnnotationSession, queue: Queue) -> None:
        self.session = session
        self.queue = queue
        self._write_lock = threading.Lock()  # serializes writes
        self._by_item: dict[str, list[PersonAnswer]] = {}  # by item: all answers, in order
        self._items: dict[str, dict[str, None]] = {}  # by person: the items they answered, in order
        self._answered: dict[int, dict[str, set[str]]] = {}  # by round and item: people who answered
        self._underanswered = _Underanswered()
        self._faults_seen = session.catch_up()
        for answer in _person_answers(session.answers()):
            self._record(answer)

    def _catch_up(self) -> None:
        """Reload if a storage fault made memory and ledger differ. The caller holds the write lock."""
        if self.session.catch_up() != self._faults_seen:
            again = Assignments(self.session, self.queue)
            self._by_item, self._items, self._answered = again._by_item, again._items, again._answered
            self._underanswered, self._faults_seen = again._underanswered, again._faults_seen

    # -- assigning ---------------------------------------------------------------------------------------------------
    def next(self, person: str, known: Collection[str] = ()) -> Assignment | None:
        """The next item for a person; None if every open item is taken or already answered by them."""
        with self._write_lock:
            self._catch_up()
        lease = self.queue.next(person, self, known)
        if lease is None:
            return None
        tasks = self.session.books.wanted(lease.round)[lease.item].tasks
        return Assignment(lease, tasks, ANSWER if self._is_wanted(lease.key) else OVERLAP)

    def work(self) -> Iterator[WorkItem]:
        """Items to assign: first those that need more people's answers, then unanswered ones in order of selection."""
        round = self.session.books.rounds_opened
        answered = self._answered.get(round, {})
        for item in self._underanswered.of(round, self.queue.overlap, answered):
            yield WorkItem(round, item, frozenset(answered[item]))
        for want in self.session.wanted():
            yield WorkItem(want.round, want.id)

    def is_open(self, key: Key) -> bool:
        """Whether an item of a round can still be assigned."""
        if self._is_wanted(key):
            return True
        answered = self._answered.get(key[0], {}).get(key[1], ())
        newest = key[0] == self.session.books.rounds_opened
        return newest and 0 < len(answered) < self.queue.overlap.people_for(key[1])

    def _is_wanted(self, key: Key) -> bool:
        want = self.session.want(key[1])
        return want is not None and want.round == key[0]

    # -- recording ---------------------------------------------------------------------------------------------------
    def answer(
        self, person: str, item: str, labels: Mapping[str, Any], seconds: Mapping[str, float], lease: str | None
    ) -> Receipt:
        """Record an answer; when this returns, it is on disk. The same answer again changes nothing."""
        with self._write_lock:
            self._catch_up()
            round, role = self._round_and_role(person, item, labels, lease)
            if role is None:
                receipt = Receipt(self._latest_by(person, item).key, repeated=True)
            else:
                receipt = self.session.answer(Answer(item, dict(labels), person, dict(seconds), role))
                self._record(PersonAnswer(item, person, dict(labels), now(), round, receipt.key, role))
            enough = len(self._answered[round][item]) >= self.queue.overlap.people_for(item)
        self.queue.settle((round, item), person, over=enough)
        return receipt

    def _round_and_role(
        self, person: str, item: str, labels: Mapping[str, Any], lease: str | None
    ) -> tuple[int, str | None]:
        """The round of an answer and its role: first answer, overlap, or None if it is already recorded."""
        want = self.session.want(item)
        if want is not None:
            self._check_lease(person, (want.round, item), lease, self.queue.overlap.people_for(item))
            return want.round, ANSWER
        answers = [e for e in self._by_item.get(item, ()) if e.role in (ANSWER, OVERLAP)]
        if not answers:
            self.session.item(item)  # raises if the item does not exist
            raise HTTPError(409, "not_asked", f"item {item!r} is not open", fix="get an item from POST /api/next")
        round = answers[-1].round
        before = [e for e in answers if e.round == round]
        mine = next((e for e in before if e.person == person), None)
        if mine is not None:
            if mine.labels.keys() != labels.keys() or not all(
                agreement.alike([mine.labels[task], labels[task]]) for task in labels
            ):
                raise HTTPError(
                    409,
                    "answered_before",
                    f"you have already answered item {item!r} differently",
                    fix="send a correction to POST /api/corrections",
                )
            return round, None
        if len(before) >= self.queue.overlap.people_for(item):
            raise HTTPError(
                409,
                "answered_by_other",
                f"someone else has answered item {item!r} in the meantime",
                fix="take the next item",
            )
        people = {entry.person for entry in before}
        self._check_lease(person, (round, item), lease, self.queue.overlap.people_for(item), people)
        return round, OVERLAP

    def _check_lease(
        self, person: str, key: Key, lease: str | None, room: int, answered: Collection[str] = frozenset()
    ) -> None:
        """Refuse a lease that was not issued to this person, and an item that others have taken since.

        An expired lease stays valid while the item is free, so that late work is not lost.
        """
        if lease is not None and not self.queue.was_issued(lease, key[1], person):
            raise HTTPError(409, "no_lease", f"this lease is not for you and item {key[1]!r}", fix="take the next item")
        holders = self.queue.holders(key)
        if person not in holders and len({*holders, *answered}) >= room:
            raise HTTPError(
                409, "leased_by_other", f"someone else is annotating item {key[1]!r}", fix="take the next item"
            )

    def correct(self, person: str, is_lead: bool, key: str, item: str, labels: Mapping[str, Any]) -> Receipt:
        """Replace a person's labels; a lead may correct any answer."""
        with self._write_lock:
            self._catch_up()
            if not is_lead:
                self._check_may_correct(person, item)
            receipt = self.session.correct(key, item, dict(labels), person)
            self._reload(item)
        return receipt

    def _check_may_correct(self, person: str, item: str) -> None:
        """Allow corrections only by the person who gave the first answer, and only before adjudication."""
        mine = [entry for entry in self._by_item.get(item, ()) if entry.person == person]
        if not mine:
            raise HTTPError(403, "not_yours", f"you have not answered item {item!r}")
        if self.adjudicated(item) is not None:
            raise HTTPError(409, "adjudicated", f"item {item!r} has been adjudicated", fix="ask a lead")
        if not any(entry.role == ANSWER for entry in mine):
            raise HTTPError(
                409,
                "only_compared",
                f"your answer to item {item!r} is used to measure agreement and cannot be changed",
                fix="ask a lead to adjudicate the item",
            )

    def adjudicate(self, person: str, key: str, item: str, labels: Mapping[str, Any]) -> Receipt:
        """Set the final labels of an item on which people disagree."""
        with self._write_lock:
            self._catch_up()
            receipt = self.session.adjudicate(key, item, dict(labels), person)
            self._reload(item)
        return receipt

    def skip(self, person: str, key: str, item: str, reason: str, lease: str | None = None) -> None:
        """Remove an item from the round; its cost returns to the budget. Refused while only others hold the item."""
        with self._write_lock:
            self._catch_up()
            want = self.session.want(item)
            if want is not None and not self.session.was_skipped(key, item):
                self._check_lease(person, (want.round, item), lease, room=1)
            receipt = self.session.skip(key, item, reason, person)
        if want is not None and not receipt.repeated:
            self.queue.settle((want.round, item), person, over=True)

    def undo_skip(self, by: str, key: str) -> bool:
        """Undo a skip. Returns whether the item is open again; otherwise it is back in the pool."""
        with self._write_lock:
            self._catch_up()
            skip = self.session.undo_skip(key, by)
        return self._is_wanted((skip.round, skip.item))

    def close_round(self, by: str) -> None:
        """Close the round without its unanswered items."""
        with self._write_lock:
            self.session.close_round(by)

    def change(self, changes: Mapping[str, Any], by: str, key: str, after: int | None = None) -> None:
        """Change settings from the next round on; with ``after``, only if that is the latest change."""
        with self._write_lock:
            made = self.session.books.amendments()
            if after is not None and after != len(made) and all(one.key != key for one in made):
                who = made[-1].by if made else "nobody"
                raise HTTPError(
                    409,
                    "changed_meanwhile",
                    f"the latest change is number {len(made)}, by {who}, not number {after}",
                    fix="check the current settings and send your change again",
                )
            self.session.change(dict(changes), by, key)

    def import_corpus(self, corpus: Corpus, annotator: str) -> ImportResult:
        """Record the labels of a corpus as answers to open items. Everything is checked first."""
        wanted = {want.id: want for want in self.session.wanted()}
        ours, found = self.session.corpus, ImportResult()
        answers: dict[str, dict[str, Any]] = {}
        for at in range(len(corpus)):
            item = corpus[at]
            want = wanted.get(item.id)
            if want is None:
                found.not_asked += 1
            elif not set(want.tasks) <= set(item.labels):
                found.incomplete += 1
            else:
                mine = ours[int(ours.positions([item.id])[0])]
                if (item.text, item.pair) != (mine.text, mine.pair):
                    raise HTTPError(400, "other_item", f"item {item.id!r} has a different text in this file")
                answers[item.id] = {task: item.labels[task] for task in want.tasks}
        self.session.check(answers)
        for id, labels in answers.items():
            receipt = self.answer(annotator, id, labels, {}, None)
            found.answered += not receipt.repeated
            found.repeated += receipt.repeated
            found.cost_units += receipt.cost
        return found

    # -- reading -----------------------------------------------------------------------------------------------------
    def state(self) -> State:
        """The campaign state, from the ledger."""
        return self.session.state()

    def mine(self, person: str, limit: int) -> list[PersonAnswer]:
        """A person's answers, newest first; corrected answers in their latest version."""
        items = list(self._items.get(person, {}))[::-1][:limit]
        return [self._latest_by(person, item) for item in items]

    def count_in_round(self, person: str, round: int) -> int:
        """The number of items of a round that a person has answered."""
        return sum(person in people for people in list(self._answered.get(round, {}).values()))

    def count_answers(self, person: str) -> int:
        """The number of items that a person has answered."""
        return len(self._items.get(person, ()))

    def shared(self) -> dict[str, dict[str, PersonAnswer]]:
        """Answers by item and person, for items answered by two or more people."""
        found: dict[str, dict[str, PersonAnswer]] = {}
        for round in sorted(self._answered):  # the latest round of an item counts
            for item, people in list(self._answered[round].items()):
                found.pop(item, None)
                if len(people) > 1:
                    found[item] = {person: self._latest_by(person, item) for person in sorted(people)}
        return found

    def adjudicated(self, item: str) -> PersonAnswer | None:
        """The adjudicated labels of an item, if any."""
        return next((e for e in reversed(self._by_item.get(item, [])) if e.role == ADJUDICATION), None)

    def agreement(self) -> dict[str, agreement.Agreement]:
        """Agreement by task, on answers before adjudication."""
        shared = self.shared()
        corpus = self.session.corpus
        words = dict(zip(shared, corpus.words[corpus.positions(shared)].tolist(), strict=True))
        return {
            name: agreement.agreement(
                task,
                [
                    agreement.Rating(item, person, answer.labels[name], words[item])
                    for item, answers in shared.items()
                    for person, answer in answers.items()
                    if answer.labels.get(name) is not None
                ],
            )
            for name, task in corpus.schema.items()
        }

    # -- answers in memory -------------------------------------------------------------------------------------------
    def _latest_by(self, person: str, item: str) -> PersonAnswer:
        """A person's latest own answer to an item."""
        return next(e for e in reversed(self._by_item[item]) if e.person == person and e.role != ADJUDICATION)

    def _reload(self, item: str) -> None:
        self._by_item.pop(item, None)
        for entry in _person_answers(self.session.answers(item)):
            self._record(entry)

    def _record(self, entry: PersonAnswer) -> None:
        self._by_item.setdefault(entry.item, []).append(entry)
        if entry.role != ADJUDICATION:
            self._items.setdefault(entry.person, {})[entry.item] = None
        if entry.role in (ANSWER, OVERLAP):
            people = self._answered.setdefault(entry.round, {}).setdefault(entry.item, set())
            people.add(entry.person)
            self._underanswered.note(entry.round, entry.item, len(people))


class _Underanswered:
    """Items of a round that need answers from more people, in the order of their first answers.

    Kept up to date, because searching all answered items would get slower as their number grows.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # read and updated by different threads
        self._rule: tuple[int, Overlap] = (-1, Overlap())  # the round and its overlap settings
        self._items: dict[str, None] = {}

    def of(self, round: int, overlap: Overlap, answered: Mapping[str, Collection[str]]) -> list[str]:
        """The items of a round; searched again only if the round or the overlap has changed."""
        with self._lock:
            if self._rule != (round, overlap):
                found = list(answered.items()) if overlap.share else []
                self._items = {item: None for item, people in found if len(people) < overlap.people_for(item)}
                self._rule = round, overlap
            return list(self._items)

    def note(self, round: int, item: str, people: int) -> None:
        """Update an item that this number of people has answered."""
        with self._lock:
            known, overlap = self._rule
            if round == known and people < overlap.people_for(item):
                self._items[item] = None
            elif round == known:
                self._items.pop(item, None)


def _person_answers(answers: Iterable[LedgerAnswer]) -> list[PersonAnswer]:
    """Ledger answers, which are per task, grouped by submission. A correction keeps the labels it does not change.

    Leaves out labels that came with the corpus.
    """
    found: dict[tuple[str, str], PersonAnswer] = {}
    latest: dict[tuple[str, str], dict[str, Any]] = {}
    for answer in answers:
        if answer.purpose == GIVEN:
            continue
        known = found.get((answer.key, answer.item))
        own = latest.setdefault((answer.annotator, answer.item), {}) if answer.role == CORRECTION else {}
        labels = {**own, **(known.labels if known else {}), answer.task: answer.label}
        found[answer.key, answer.item] = PersonAnswer(
            answer.item, answer.annotator, labels, answer.created_at, answer.round, answer.key, answer.role
        )
        latest[answer.annotator, answer.item] = labels
    return list(found.values())
