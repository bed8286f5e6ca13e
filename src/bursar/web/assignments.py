"""Assigns items to people and records their answers, which are indexed in memory. Independent of HTTP.

An answer is written to the ledger before its lease is settled. If the server dies in between, the lease expires, and
the same answer sent again is recognized as a repeat.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from bursar.annotation.session import AnnotationSession
from bursar.campaign.state import GIVEN
from bursar.ledger import Answer, Receipt
from bursar.ledger.records import ADJUDICATION, ANSWER, CORRECTION, OVERLAP
from bursar.ledger.schema import now
from bursar.web.agreement import alike
from bursar.web.http_errors import HTTPError
from bursar.web.queue import Key, Lease, Overlap, Queue, WorkItem


class AnswerIndex:
    """Everything that people have answered. Labels that came with the corpus are left out."""

    def __init__(self, answers: Iterable[Answer] = ()) -> None:
        self._by_item: dict[str, list[Answer]] = {}  # in order
        self._items: dict[str, dict[str, None]] = {}  # by person: the items they answered, in order
        self._people: dict[int, dict[str, set[str]]] = {}  # by round and item: who answered
        self._lock = threading.Lock()  # of what follows, which different threads read and update
        self._rule: tuple[int, Overlap] = (-1, Overlap())  # the round and its overlap settings
        self._short: dict[str, None] = {}  # items of this round that need more people, by their first answers
        for answer in _with_kept_labels(answers):
            self.add(answer)

    def add(self, answer: Answer) -> None:
        self._by_item.setdefault(answer.item, []).append(answer)
        if answer.role != ADJUDICATION:
            self._items.setdefault(answer.annotator, {})[answer.item] = None
        if answer.role in (ANSWER, OVERLAP):
            people = self._people.setdefault(answer.round, {}).setdefault(answer.item, set())
            people.add(answer.annotator)
            self._note_people(answer.round, answer.item, len(people))

    def replace(self, item: str, answers: Iterable[Answer]) -> None:
        """Replace what is known of an item by all its answers in the ledger."""
        self._by_item.pop(item, None)
        for answer in _with_kept_labels(answers):
            self.add(answer)

    # -- items -------------------------------------------------------------------------------------------------------
    def people(self, round: int, item: str) -> frozenset[str]:
        return frozenset(self._people.get(round, {}).get(item, ()))

    def first_answers(self, item: str) -> list[Answer]:
        """The answers to an item in the latest round that has any, without corrections and adjudications."""
        found = [answer for answer in self._by_item.get(item, ()) if answer.role in (ANSWER, OVERLAP)]
        return [answer for answer in found if answer.round == found[-1].round]

    def adjudicated(self, item: str) -> Answer | None:
        """The adjudicated labels of an item, if any."""
        return next((answer for answer in reversed(self._by_item.get(item, [])) if answer.role == ADJUDICATION), None)

    def shared(self) -> dict[str, dict[str, Answer]]:
        """Answers by item and person, for items answered by two or more people."""
        found: dict[str, dict[str, Answer]] = {}
        for round in sorted(self._people):  # the latest round of an item counts
            for item, people in list(self._people[round].items()):
                found.pop(item, None)
                if len(people) > 1:
                    found[item] = {person: self.latest(person, item) for person in sorted(people)}
        return found

    def short_of_answers(self, round: int, overlap: Overlap) -> list[str]:
        """The answered items of a round that need answers from more people, in the order of their first answers.

        They are searched again only if the round or the overlap has changed, because a search gets slower as answers
        grow in number.
        """
        with self._lock:
            if self._rule != (round, overlap):
                found = list(self._people.get(round, {}).items()) if overlap.share else []
                self._short = {item: None for item, people in found if len(people) < overlap.people_for(item)}
                self._rule = round, overlap
            return list(self._short)

    def _note_people(self, round: int, item: str, people: int) -> None:
        """Update an item that this number of people has answered."""
        with self._lock:
            known, overlap = self._rule
            if round == known and people < overlap.people_for(item):
                self._short[item] = None
            elif round == known:
                self._short.pop(item, None)

    # -- people ------------------------------------------------------------------------------------------------------
    def by_person(self, person: str, item: str) -> list[Answer]:
        """All that a person said about an item."""
        return [answer for answer in self._by_item.get(item, ()) if answer.annotator == person]

    def latest(self, person: str, item: str) -> Answer:
        """A person's latest own answer to an item."""
        return next(answer for answer in reversed(self.by_person(person, item)) if answer.role != ADJUDICATION)

    def newest(self, person: str, limit: int) -> list[Answer]:
        """A person's answers, newest first; corrected answers in their latest version."""
        return [self.latest(person, item) for item in list(self._items.get(person, {}))[::-1][:limit]]

    def count(self, person: str, round: int | None = None) -> int:
        """The number of items that a person has answered, in all or in one round."""
        if round is None:
            return len(self._items.get(person, ()))
        return sum(person in people for people in list(self._people.get(round, {}).values()))


def _with_kept_labels(answers: Iterable[Answer]) -> Iterator[Answer]:
    """Answers in which a correction also holds the labels that it keeps."""
    latest: dict[tuple[str, str], Any] = {}
    for answer in answers:
        if answer.purpose == GIVEN:
            continue
        place = answer.annotator, answer.item
        if answer.role == CORRECTION:
            answer = replace(answer, labels={**latest.get(place, {}), **answer.labels})
        latest[place] = answer.labels
        yield answer


@dataclass(frozen=True)
class Assignment:
    """An item assigned to a person."""

    lease: Lease
    tasks: tuple[str, ...]
    purpose: Literal["answer", "overlap"]  # overlap: beside another person's answer


class Assignments:
    """Assigns the items of the open round and records answers, one write at a time. ``index`` holds the answers."""

    def __init__(self, session: AnnotationSession, queue: Queue) -> None:
        self.session, self.queue = session, queue
        self._lock = threading.Lock()  # serializes writes
        self._faults_seen = session.catch_up()
        self.index = AnswerIndex(session.ledger.answers())

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the lock, and reload if a storage fault made memory and ledger differ."""
        with self._lock:
            if (faults := self.session.catch_up()) != self._faults_seen:
                self.index = AnswerIndex(self.session.ledger.answers())
                self._faults_seen = faults
            yield

    # -- assigning ---------------------------------------------------------------------------------------------------
    def next(self, person: str, known: Collection[str] = ()) -> Assignment | None:
        """The next item for a person; None if every open item is taken or already answered by them."""
        with self._writing():
            pass
        lease = self.queue.next(person, self, known)
        if lease is None:
            return None
        tasks = self.session.campaign_state.wanted(lease.round)[lease.item].tasks
        return Assignment(lease, tasks, "answer" if self._is_wanted(lease.key) else "overlap")

    def work(self) -> Iterator[WorkItem]:
        """Items to assign: first those that need more people's answers, then unanswered ones in order of selection."""
        round = self.session.campaign_state.rounds_opened
        for item in self.index.short_of_answers(round, self.queue.overlap):
            yield WorkItem(round, item, self.index.people(round, item))
        for want in self.session.wanted():
            yield WorkItem(want.round, want.id)

    def is_open(self, key: Key) -> bool:
        """Whether an item of a round can still be assigned."""
        if self._is_wanted(key):
            return True
        newest = key[0] == self.session.campaign_state.rounds_opened
        return newest and 0 < len(self.index.people(*key)) < self.queue.overlap.people_for(key[1])

    def _is_wanted(self, key: Key) -> bool:
        want = self.session.want(key[1])
        return want is not None and want.round == key[0]

    # -- recording ---------------------------------------------------------------------------------------------------
    def answer(self, answer: Answer, lease: str | None = None) -> Receipt:
        """Record an answer; when this returns, it is on disk. The same answer again changes nothing."""
        person, item = answer.annotator, answer.item
        with self._writing():
            round, role = self._round_and_role(answer, lease)
            if role is None:
                receipt = Receipt(self.index.latest(person, item).key, repeated=True)
            else:
                answer = replace(answer, role=role)
                receipt = self.session.recorder.record(answer)
                self.index.add(replace(answer, key=receipt.key, round=round, created_at=now()))
            enough = len(self.index.people(round, item)) >= self.queue.overlap.people_for(item)
        self.queue.settle((round, item), person, over=enough)
        return receipt

    def _round_and_role(self, answer: Answer, lease: str | None) -> tuple[int, str | None]:
        """The round of an answer and its role: first answer, overlap, or None if it is already recorded."""
        person, item = answer.annotator, answer.item
        room = self.queue.overlap.people_for(item)
        want = self.session.want(item)
        if want is not None:
            self._check_lease(person, (want.round, item), lease, room)
            return want.round, ANSWER
        before = self.index.first_answers(item)
        if not before:
            self.session.item(item)  # raises if the item does not exist
            raise HTTPError(409, "not_asked", f"item {item!r} is not open", fix="get an item from POST /api/next")
        round = before[0].round
        mine = next((known for known in before if known.annotator == person), None)
        if mine is not None:
            given = mine.labels
            if given.keys() != answer.labels.keys() or not all(alike([given[t], answer.labels[t]]) for t in given):
                words = f"you have already answered item {item!r} differently"
                raise HTTPError(409, "answered_before", words, fix="send a correction to POST /api/corrections")
            return round, None
        if len(before) >= room:
            words = f"someone else has answered item {item!r} in the meantime"
            raise HTTPError(409, "answered_by_other", words, fix="take the next item")
        self._check_lease(person, (round, item), lease, room)
        return round, OVERLAP

    def _check_lease(self, person: str, key: Key, lease: str | None, room: int) -> None:
        """Refuse a lease that was not issued to this person, and an item that others have taken since.

        An expired lease stays valid while the item is free, so that late work is not lost.
        """
        if lease is not None and not self.queue.was_issued(lease, key[1], person):
            raise HTTPError(409, "no_lease", f"this lease is not for you and item {key[1]!r}", fix="take the next item")
        holders = self.queue.holders(key)
        if person not in holders and len({*holders, *self.index.people(*key)}) >= room:
            words = f"someone else is annotating item {key[1]!r}"
            raise HTTPError(409, "leased_by_other", words, fix="take the next item")

    def replace_labels(self, answer: Answer, is_lead: bool = True) -> Receipt:
        """Record a correction or an adjudication. A lead may replace any labels, others only their own."""
        with self._writing():
            if not is_lead:
                self._check_may_correct(answer.annotator, answer.item)
            receipt = self.session.recorder.record(answer)
            self.index.replace(answer.item, self.session.ledger.answers(answer.item))
        return receipt

    def _check_may_correct(self, person: str, item: str) -> None:
        """Allow corrections only by the person who gave the first answer, and only before adjudication."""
        mine = self.index.by_person(person, item)
        if not mine:
            raise HTTPError(403, "not_yours", f"you have not answered item {item!r}")
        if self.index.adjudicated(item) is not None:
            raise HTTPError(409, "adjudicated", f"item {item!r} has been adjudicated", fix="ask a lead")
        if not any(answer.role == ANSWER for answer in mine):
            words = f"your answer to item {item!r} is used to measure agreement and cannot be changed"
            raise HTTPError(409, "only_compared", words, fix="ask a lead to adjudicate the item")

    def skip(self, person: str, key: str, item: str, reason: str, lease: str | None = None) -> None:
        """Remove an item from the round; its cost returns to the budget. Refused while only others hold the item."""
        with self._writing():
            want = self.session.want(item)
            if want is not None and not self.session.recorder.was_skipped(key, item):
                self._check_lease(person, (want.round, item), lease, room=1)
            receipt = self.session.recorder.skip(key, item, reason, person)
        if want is not None and not receipt.repeated:
            self.queue.settle((want.round, item), person, over=True)

    def undo_skip(self, by: str, key: str) -> bool:
        """Undo a skip. Returns whether the item is open again; otherwise it is back in the pool."""
        with self._writing():
            skip = self.session.undo_skip(key, by)
        return self._is_wanted((skip.round, skip.item))

    # -- decisions of leads ------------------------------------------------------------------------------------------
    def close_round(self, by: str) -> None:
        """Close the round without its unanswered items."""
        with self._lock:
            self.session.close_round(by)

    def change(self, changes: Mapping[str, Any], by: str, key: str, after: int | None = None) -> None:
        """Change settings from the next round on; with ``after``, only if that is the latest change."""
        with self._lock:
            made = self.session.campaign_state.setting_changes()
            if after is not None and after != len(made) and all(one.key != key for one in made):
                latest = f"number {len(made)}, by {made[-1].by}" if made else "number 0"
                error = f"the latest change is {latest}, not number {after}"
                fix = "check the current settings and send your change again"
                raise HTTPError(409, "changed_meanwhile", error, fix=fix)
            self.session.settings.change(dict(changes), by, key)
