"""The answers of a project in memory: by item, by person and by round."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from bursar.campaign.state import GIVEN
from bursar.ledger import Answer
from bursar.ledger.records import ADJUDICATION, ANSWER, CORRECTION, OVERLAP
from bursar.web.queue import Overlap


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
        """Add a recorded answer."""
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
        """The people who answered an item in a round."""
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
