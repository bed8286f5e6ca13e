"""The desk where people are given items and hand in answers. It knows leases and the campaign, and no HTTP.

What is acknowledged is on disk: an answer goes to the ledger first, and only then is its lease settled. If the server
dies in between, the lease runs out and the same answer, sent again, is found to be there.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bursar.annotation.session import AnnotationSession, Answer, State
from bursar.campaign.state import GIVEN
from bursar.corpus import Corpus
from bursar.ledger import Receipt
from bursar.ledger.records import ADJUDICATION, ANSWER, CORRECTION, OVERLAP
from bursar.ledger.records import Answer as Said
from bursar.ledger.schema import now
from bursar.web import agreement
from bursar.web.http_errors import HTTPError
from bursar.web.queue import Key, Lease, Overlap, Queue, WorkItem


@dataclass(frozen=True)
class Assignment:
    """An item that a person was given, and why."""

    lease: Lease
    tasks: tuple[str, ...]
    purpose: str  # answer, or overlap where somebody else answers as well


@dataclass
class ImportResult:
    """What became of a corpus that was labelled elsewhere, item by item."""

    answered: int = 0
    repeated: int = 0
    not_asked: int = 0
    incomplete: int = 0
    cost_units: int = 0


@dataclass(frozen=True)
class PersonAnswer:
    """What one person said of one item, all tasks together; the newest where it was corrected."""

    item: str
    person: str
    labels: Mapping[str, Any]
    at: str
    round: int
    key: str
    role: str


class Assignments:
    """Hands out items of the open round and takes in what people say of them, one at a time."""

    def __init__(self, session: AnnotationSession, queue: Queue) -> None:
        self.session = session
        self.queue = queue
        self._turn = threading.Lock()  # whoever writes: who comes first is then a fact
        self._said: dict[str, list[PersonAnswer]] = {}  # by item: all that was said of it, in order
        self._items: dict[str, dict[str, None]] = {}  # by person: the items they said something of, in order
        self._answered: dict[int, dict[str, set[str]]] = {}  # by round and item: who answered
        self._underanswered = _Underanswered()
        self._doubts = session.catch_up()
        for said in _entries(session.answers()):
            self._note(said)

    def _catch_up(self) -> None:
        """Where a fault of the storage left open what the ledger says, read it again. The caller has the turn."""
        if self.session.catch_up() != self._doubts:
            again = Assignments(self.session, self.queue)
            self._said, self._items, self._answered = again._said, again._items, again._answered
            self._underanswered, self._doubts = again._underanswered, again._doubts

    # -- handing out -------------------------------------------------------------------------------------------------
    def next(self, person: str, known: Collection[str] = ()) -> Assignment | None:
        """What a person does next; nothing where all that is open is somebody's, or theirs already."""
        with self._turn:
            self._catch_up()
        lease = self.queue.next(person, self, known)
        if lease is None:
            return None
        tasks = self.session.books.wanted(lease.round)[lease.item].tasks
        return Assignment(lease, tasks, ANSWER if self._is_wanted(lease.key) else OVERLAP)

    def work(self) -> Iterator[WorkItem]:
        """What can be given out: what others have answered and more should, then what nobody has, as it was chosen."""
        round = self.session.books.rounds_opened
        answered = self._answered.get(round, {})
        for item in self._underanswered.of(round, self.queue.overlap, answered):
            yield WorkItem(round, item, frozenset(answered[item]))
        for want in self.session.wanted():
            yield WorkItem(want.round, want.id)

    def is_open(self, key: Key) -> bool:
        """Whether an item of a round can still be given out to somebody."""
        if self._is_wanted(key):
            return True
        answered = self._answered.get(key[0], {}).get(key[1], ())
        newest = key[0] == self.session.books.rounds_opened
        return newest and 0 < len(answered) < self.queue.overlap.people_for(key[1])

    def _is_wanted(self, key: Key) -> bool:
        want = self.session.want(key[1])
        return want is not None and want.round == key[0]

    # -- taking in ---------------------------------------------------------------------------------------------------
    def answer(
        self, person: str, item: str, labels: Mapping[str, Any], seconds: Mapping[str, float], lease: str | None
    ) -> Receipt:
        """Record an answer; when this returns, it is on disk. The same answer again changes nothing."""
        with self._turn:
            self._catch_up()
            round, role = self._place_of(person, item, labels, lease)
            if role is None:
                receipt = Receipt(self._own(person, item).key, repeated=True)
            else:
                receipt = self.session.answer(Answer(item, dict(labels), person, dict(seconds), role))
                self._note(PersonAnswer(item, person, dict(labels), now(), round, receipt.key, role))
            enough = len(self._answered[round][item]) >= self.queue.overlap.people_for(item)
        self.queue.settle((round, item), person, over=enough)
        return receipt

    def _place_of(self, person: str, item: str, labels: Mapping[str, Any], lease: str | None) -> tuple[int, str | None]:
        """The round that an answer belongs to, and whether it is the first, one beside it, or there already."""
        want = self.session.want(item)
        if want is not None:
            self._check_lease(person, (want.round, item), lease, self.queue.overlap.people_for(item))
            return want.round, ANSWER
        answers = [e for e in self._said.get(item, ()) if e.role in (ANSWER, OVERLAP)]
        if not answers:
            self.session.item(item)  # an item that does not exist is another mistake
            raise HTTPError(
                409, "not_asked", f"nobody is asked about item {item!r} now", fix="take what POST /api/next gives"
            )
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
                    f"you have answered item {item!r} before, and otherwise",
                    fix="send a correction to POST /api/corrections",
                )
            return round, None
        if len(before) >= self.queue.overlap.people_for(item):
            raise HTTPError(
                409,
                "answered_by_other",
                f"somebody else has answered item {item!r} meanwhile",
                fix="take the next item",
            )
        people = {entry.person for entry in before}
        self._check_lease(person, (round, item), lease, self.queue.overlap.people_for(item), people)
        return round, OVERLAP

    def _check_lease(
        self, person: str, key: Key, lease: str | None, room: int, answered: Collection[str] = frozenset()
    ) -> None:
        """Refuse a lease that this person was not given, and an item that others have taken meanwhile.

        A lease that ran out still counts while the item is free, so that late work is not lost.
        """
        if lease is not None and not self.queue.was_issued(lease, key[1], person):
            raise HTTPError(
                409, "no_lease", f"you were not given item {key[1]!r} under this lease", fix="take the next item"
            )
        holders = self.queue.holders(key)
        if person not in holders and len({*holders, *answered}) >= room:
            raise HTTPError(
                409, "leased_by_other", f"somebody else is annotating item {key[1]!r} now", fix="take the next item"
            )

    def correct(self, person: str, is_lead: bool, key: str, item: str, labels: Mapping[str, Any]) -> Receipt:
        """Put something else in the place of what the person said before; a lead may correct everybody."""
        with self._turn:
            self._catch_up()
            if not is_lead:
                self._check_correctable(person, item)
            receipt = self.session.correct(key, item, dict(labels), person)
            self._refresh(item)
        return receipt

    def _check_correctable(self, person: str, item: str) -> None:
        """What a correction says stands: so it is for whoever gave the answer, and before a lead has decided."""
        mine = [entry for entry in self._said.get(item, ()) if entry.person == person]
        if not mine:
            raise HTTPError(403, "not_yours", f"item {item!r} was not answered by you")
        if self.adjudicated(item) is not None:
            raise HTTPError(409, "adjudicated", f"a lead has decided what stands for item {item!r}", fix="ask them")
        if not any(entry.role == ANSWER for entry in mine):
            raise HTTPError(
                409,
                "only_compared",
                f"your answer to item {item!r} is compared with somebody else's and stays as it was",
                fix="tell a lead, who decides what stands",
            )

    def adjudicate(self, person: str, key: str, item: str, labels: Mapping[str, Any]) -> Receipt:
        """Say what stands where people disagreed."""
        with self._turn:
            self._catch_up()
            receipt = self.session.adjudicate(key, item, dict(labels), person)
            self._refresh(item)
        return receipt

    def skip(self, person: str, key: str, item: str, reason: str, lease: str | None = None) -> None:
        """Take an item out of the round; its money returns to the budget. Refused while only others hold the item."""
        with self._turn:
            self._catch_up()
            want = self.session.want(item)
            if want is not None and not self.session.was_skipped(key, item):
                self._check_lease(person, (want.round, item), lease, room=1)
            receipt = self.session.skip(key, item, reason, person)
        if want is not None and not receipt.repeated:
            self.queue.settle((want.round, item), person, over=True)

    def undo_skip(self, by: str, key: str) -> bool:
        """Ask again about what was skipped; whether it is asked about now, or back in the pool."""
        with self._turn:
            self._catch_up()
            skip = self.session.undo_skip(key, by)
        return self._is_wanted((skip.round, skip.item))

    def close_round(self, by: str) -> None:
        """Go on without what is not answered."""
        with self._turn:
            self.session.close_round(by)

    def change(self, changes: Mapping[str, Any], by: str, key: str, after: int | None = None) -> None:
        """Change what the next round is decided by; with ``after``, only if nobody changed it after that change."""
        with self._turn:
            made = self.session.books.amendments()
            if after is not None and after != len(made) and all(one.key != key for one in made):
                who = made[-1].by if made else "nobody"
                raise HTTPError(
                    409,
                    "changed_meanwhile",
                    f"change {len(made)}, by {who}, is the newest, not change {after}",
                    fix="look at what is in force now, and send it again",
                )
            self.session.change(dict(changes), by, key)

    def import_corpus(self, corpus: Corpus, annotator: str) -> ImportResult:
        """Answers from a corpus that was labelled elsewhere, to what is asked now. All is checked first."""
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
                    raise HTTPError(400, "other_item", f"item {item.id!r} has another text in this file than here")
                answers[item.id] = {task: item.labels[task] for task in want.tasks}
        self.session.check(answers)
        for id, labels in answers.items():
            receipt = self.answer(annotator, id, labels, {}, None)
            found.answered += not receipt.repeated
            found.repeated += receipt.repeated
            found.cost_units += receipt.cost
        return found

    # -- looking -----------------------------------------------------------------------------------------------------
    def state(self) -> State:
        """Where the campaign stands, as the ledger has it."""
        return self.session.state()

    def mine(self, person: str, limit: int) -> list[PersonAnswer]:
        """What a person said, the newest first; a correction has taken the place of what it corrects."""
        items = list(self._items.get(person, {}))[::-1][:limit]
        return [self._own(person, item) for item in items]

    def answered_by(self, person: str, round: int) -> int:
        """How many items of a round a person has answered."""
        return sum(person in people for people in list(self._answered.get(round, {}).values()))

    def answers_of(self, person: str) -> int:
        """How many items a person has said something of."""
        return len(self._items.get(person, ()))

    def shared(self) -> dict[str, dict[str, PersonAnswer]]:
        """By item and person, the answers to items that two people or more have answered."""
        found: dict[str, dict[str, PersonAnswer]] = {}
        for round in sorted(self._answered):  # the newest round that an item was asked about in is what counts
            for item, people in list(self._answered[round].items()):
                found.pop(item, None)
                if len(people) > 1:
                    found[item] = {person: self._own(person, item) for person in sorted(people)}
        return found

    def adjudicated(self, item: str) -> PersonAnswer | None:
        """What was decided about an item on which people disagreed."""
        return next((e for e in reversed(self._said.get(item, [])) if e.role == ADJUDICATION), None)

    def agreement(self) -> dict[str, agreement.Agreement]:
        """How far people agree, task by task, on what they said before anybody adjudicated."""
        shared = self.shared()
        corpus = self.session.corpus
        words = dict(zip(shared, corpus.words[corpus.positions(shared)].tolist(), strict=True))
        return {
            name: agreement.agreement(
                task,
                [
                    agreement.Answer(item, person, entry.labels[name], words[item])
                    for item, said in shared.items()
                    for person, entry in said.items()
                    if entry.labels.get(name) is not None
                ],
            )
            for name, task in corpus.schema.items()
        }

    # -- what was said, in memory --------------------------------------------------------------------------------------
    def _own(self, person: str, item: str) -> PersonAnswer:
        """The newest that a person said of an item for themselves."""
        return next(e for e in reversed(self._said[item]) if e.person == person and e.role != ADJUDICATION)

    def _refresh(self, item: str) -> None:
        self._said.pop(item, None)
        for entry in _entries(self.session.answers(item)):
            self._note(entry)

    def _note(self, entry: PersonAnswer) -> None:
        self._said.setdefault(entry.item, []).append(entry)
        if entry.role != ADJUDICATION:
            self._items.setdefault(entry.person, {})[entry.item] = None
        if entry.role in (ANSWER, OVERLAP):
            people = self._answered.setdefault(entry.round, {}).setdefault(entry.item, set())
            people.add(entry.person)
            self._underanswered.note(entry.round, entry.item, len(people))


class _Underanswered:
    """Items of a round that fewer people have answered than should, in the order of their first answers.

    To look for them among all that were answered would take the longer, the more there are; so they are kept.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # whoever asks and whoever notes are different threads
        self._rule: tuple[int, Overlap] = (-1, Overlap())  # the round, and how many people an item needs there
        self._items: dict[str, None] = {}

    def of(self, round: int, overlap: Overlap, answered: Mapping[str, Collection[str]]) -> list[str]:
        """Those of a round, looked for anew only when the round or the overlap is another than before."""
        with self._lock:
            if self._rule != (round, overlap):
                found = list(answered.items()) if overlap.share else []
                self._items = {item: None for item, people in found if len(people) < overlap.people_for(item)}
                self._rule = round, overlap
            return list(self._items)

    def note(self, round: int, item: str, people: int) -> None:
        """So many people have answered an item."""
        with self._lock:
            known, overlap = self._rule
            if round == known and people < overlap.people_for(item):
                self._items[item] = None
            elif round == known:
                self._items.pop(item, None)


def _entries(answers: Iterable[Said]) -> list[PersonAnswer]:
    """What people said task by task, put together by submission; a correction takes over what it does not say.

    Labels that came with the corpus are nobody's answer.
    """
    found: dict[tuple[str, str], PersonAnswer] = {}
    latest: dict[tuple[str, str], dict[str, Any]] = {}
    for said in answers:
        if said.purpose == GIVEN:
            continue
        known = found.get((said.key, said.item))
        own = latest.setdefault((said.annotator, said.item), {}) if said.role == CORRECTION else {}
        labels = {**own, **(known.labels if known else {}), said.task: said.label}
        found[said.key, said.item] = PersonAnswer(
            said.item, said.annotator, labels, said.created_at, said.round, said.key, said.role
        )
        latest[said.annotator, said.item] = labels
    return list(found.values())
