"""The ledger: an append-only record of annotations, costs and decisions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa

from bursar.corpus import Corpus, Labels
from bursar.errors import LedgerError
from bursar.ledger import schema as tables
from bursar.ledger.log import SKIP, SUBMISSION, head_of, next_numbers, record, record_decision, running_number
from bursar.ledger.losses import HeadFile, check_for_loss, note_head
from bursar.ledger.places import Ownership, Store, check_server, holds_ledger, open_store
from bursar.ledger.records import (
    ADJUDICATION,
    ANSWER,
    CORRECTION,
    OVERLAP,
    Annotation,
    Answer,
    Decision,
    Receipt,
    Skip,
    SkipUndone,
    SpendingLine,
    Submission,
    Timing,
    check_annotations,
    check_skip,
    check_submission,
    check_text,
    dump,
)
from bursar.ledger.schema import migrate
from bursar.ragged import Ragged, offsets_of

D = TypeVar("D", bound=Decision)


class Ledger:
    """The annotations and costs of one corpus, in an SQLite file or on a PostgreSQL server.

    >>> from bursar.corpus import CorpusBuilder
    >>> from bursar.ledger import Annotation, Charge, Submission
    >>> builder = CorpusBuilder({"intent": {"kind": "classification", "labels": ["alarm", "music"]}})
    >>> builder.add("u1", text="wake me at seven")
    >>> ledger = Ledger.open(":memory:", builder.build())
    >>> bought = Submission("first", (Annotation("u1", "intent", "alarm"),), (Charge("u1", "intent", 3, 3),))
    >>> ledger.submit(bought).repeated, ledger.submit(bought).repeated, ledger.spent()
    (False, True, 3)
    >>> ledger.view()[0].labels
    {'intent': 'alarm'}
    """

    def __init__(self, store: Store, corpus: Corpus, head: HeadFile | None = None) -> None:
        self.corpus = corpus
        self.where = store.where
        self._store = store
        self._ownership: Ownership | None = None
        self._head = head
        self._vocabularies = {name: task.closed_vocabularies() for name, task in corpus.schema.items()}

    @classmethod
    def open(cls, place: str | Path, corpus: Corpus, *, folder: Path | None = None, begun: bool = False) -> Ledger:
        """Open the ledger in this file or at this URL; create or migrate it if necessary.

        A URL is ``postgresql://name@host/database?schema=spring``: one ledger per schema. ``:memory:`` is for
        experiments. A ledger that has lost entries is rejected. ``folder`` holds the head file of a ledger on a
        server; ``begun`` says that there was a ledger even if there is no head file.
        """
        head = HeadFile.of_ledger(place, folder)
        check_for_loss(place, head, begun)
        store = open_store(place)
        try:
            with store.translate_errors(" cannot be opened as a ledger"):
                check_server(store)
                migrate(store)
                note_head(store, head)
        except BaseException:
            store.writer.dispose()
            raise
        return cls(store, corpus, head)

    @staticmethod
    def exists(place: str | Path, folder: Path | None = None) -> bool:
        """Whether there is or was a ledger in this file or at this URL; creates nothing."""
        head = HeadFile.of_ledger(place, folder)
        return (head is not None and head.knows_entries) or holds_ledger(place)

    def close(self) -> None:
        if self._ownership is not None:
            self._ownership.release()
            self._ownership = None
        self._store.writer.dispose()

    def own(self) -> bool:
        """Become the only writer of this ledger until it is closed; true if others may have written before.

        On a server this takes a lock in the database, which is lost with its connection: call this again after a
        storage fault. A ledger in a file is protected by the lock of its folder.
        """
        if self._store.writer.dialect.name != "postgresql":
            return False
        owner = self._ownership or Ownership(self._store)
        taken = owner.take(patience=0.0 if self._ownership else 3.0)  # the previous owner may still be shutting down
        self._ownership = owner
        return taken

    # -- writing ---------------------------------------------------------------------------------------------------
    def submit(self, submission: Submission) -> Receipt:
        """Record a submission in one transaction. It is on disk when this returns; a repeat changes nothing."""
        check_submission(self.corpus, submission)
        self.check(submission.annotations)
        item = submission.annotations[0].item
        head = {name: getattr(submission, name) for name in ("key", "digest", "round", "purpose", "annotator", "role")}
        said = [{"item": a.item, "task": a.task, "label": dump(a.label)} for a in submission.annotations]
        paid = [asdict(charge) for charge in submission.charges]
        took = [{"item": item, "what": what, "seconds": float(seconds)} for what, seconds in submission.timings]
        parts: dict[sa.Table, list[dict[str, Any]]] = {tables.entries: said, tables.charges: paid, tables.timings: took}
        s = tables.submissions.c
        with self._writing() as connection:
            known = connection.execute(sa.select(s.digest).where(s.key == submission.key)).scalar()
            if known == submission.digest:
                return Receipt(submission.key, repeated=True)
            if known is not None:
                raise _used_before(submission.key, "submission")
            number, *firsts = next_numbers(connection, tables.submissions, *parts)
            written = {tables.submissions: [{"id": number, **head, "created_at": tables.now()}]}
            for (table, rows), first in zip(parts.items(), firsts, strict=True):
                written[table] = [{"id": id, "submission": number, **row} for id, row in enumerate(rows, start=first)]
            record(connection, SUBMISSION, written)
        return Receipt(submission.key, repeated=False, cost=sum(c.actual for c in submission.charges))

    def check(self, annotations: Sequence[Annotation]) -> None:
        """Reject unknown items, tasks and labels."""
        check_annotations(self.corpus, self._vocabularies, annotations)

    def skip(self, skip: Skip) -> Receipt:
        """Record that an annotator skipped an item, like a submission: once, and on disk when this returns."""
        check_skip(self.corpus, skip)
        names = ("key", "item", "round", "task", "annotator", "reason")
        row = {name: getattr(skip, name) for name in names}
        columns = [tables.skips.c[name] for name in names]
        with self._writing() as connection:
            known = connection.execute(sa.select(*columns).where(tables.skips.c.key == skip.key)).mappings().first()
            if known is None:
                (number,) = next_numbers(connection, tables.skips)
                record(connection, SKIP, {tables.skips: [{"id": number, **row, "created_at": tables.now()}]})
            elif dict(known) != row:
                raise _used_before(skip.key, "skip")
        return Receipt(skip.key, repeated=known is not None)

    def undo_skip(self, key: str, by: str) -> Skip:
        """Record as a decision that a skip is undone; undoing it again changes nothing."""
        check_text(key, by)
        with self._writing() as connection:
            if connection.execute(sa.select(tables.skips.c.id).where(tables.skips.c.key == key)).first() is None:
                raise LedgerError(f"there is no skip under the key {key!r:.200}", fix="look at what was skipped")
            if key not in _undone(connection):
                record_decision(connection, SkipUndone(round=running_number(connection, SkipUndone), skip=key, by=by))
        return next(skip for skip in self.skips(undone=True) if skip.key == key)

    def decide(self, *decisions: Decision) -> None:
        """Record all decisions or none. A repeat changes nothing; another of the same round and kind is an error."""
        with self._writing() as connection:
            for decision in decisions:
                known = _decision(connection, decision.round, decision.stored_kind)
                if known is None:
                    record_decision(connection, decision)
                elif known != decision.encoded():
                    raise LedgerError(f"{self.where}: round {decision.round} has another {decision.kind} already")

    # -- reading: decisions and money ------------------------------------------------------------------------------
    def decision(self, kind: type[D], round: int, stored_kind: str | None = None) -> D | None:
        """A round's decision of this kind, or ``None``. ``stored_kind`` is for kinds that are stored under several."""
        with self._reading() as connection:
            known = _decision(connection, round, stored_kind or kind.kind)
        return None if known is None else kind.decoded(round, known)

    def decisions(self, kind: type[D]) -> list[D]:
        """All decisions of one kind, by round."""
        d = tables.decisions.c
        query = sa.select(d.round, d.body).where(d.kind == kind.kind).order_by(d.round)
        return [kind.decoded(round, body) for round, body in self._rows(query)]

    def decided(self, kind: type[Decision]) -> list[int]:
        """The rounds that have a decision of this kind."""
        d = tables.decisions.c
        return self._column(sa.select(d.round).where(d.kind == kind.kind).order_by(d.round))

    def keys(self, round: int | None = None) -> set[str]:
        """The keys of all submissions, or of one round's."""
        s = tables.submissions.c
        return set(self._column(sa.select(s.key).where(*([] if round is None else [s.round == round]))))

    def spent(self, round: int | None = None, purpose: str | None = None) -> int:
        """Money spent, in whole units: in all, in one round, or for one purpose."""
        wanted = {"round": round, "purpose": purpose}
        about = [tables.submissions.c[name] == value for name, value in wanted.items() if value is not None]
        query = sa.select(sa.func.coalesce(sa.func.sum(tables.charges.c.actual), 0)).join(tables.submissions)
        return int(self._column(query.where(*about))[0])

    def spent_on(self, items: Iterable[str]) -> int:
        """Money spent on these items."""
        wanted = set(items)
        c = tables.charges.c
        rows = self._rows(sa.select(c.item, sa.func.sum(c.actual)).group_by(c.item))
        return sum(int(amount) for item, amount in rows if item in wanted)

    def charged(self) -> dict[str, dict[str, int]]:
        """Money spent, by submission key and by task (or reading)."""
        s, c = tables.submissions.c, tables.charges.c
        query = sa.select(s.key, c.what, c.actual).join_from(tables.charges, tables.submissions).order_by(c.id)
        found: dict[str, dict[str, int]] = {}
        for key, what, actual in self._rows(query):
            paid = found.setdefault(key, {})
            paid[what] = paid.get(what, 0) + int(actual)
        return found

    def spending(self) -> list[SpendingLine]:
        """Money by round, purpose and task (or reading)."""
        s, c = tables.submissions.c, tables.charges.c
        sums = (sa.func.sum(c.estimate), sa.func.sum(c.actual), sa.func.count(c.item.distinct()), sa.func.count())
        by = (s.round, s.purpose, c.what)
        query = sa.select(*by, *sums).join_from(tables.submissions, tables.charges).group_by(*by)
        rows = sorted(tuple(row) for row in self._rows(query))  # by code point, as databases differ
        return [SpendingLine(*row[:3], *map(int, row[3:])) for row in rows]

    # -- reading: annotations --------------------------------------------------------------------------------------
    def bought(self, round: int | None = None, purposes: Iterable[str] | None = None) -> list[str]:
        """The ids of items bought (with more than overlap answers), in order; of one round or some purposes."""
        s, e = tables.submissions.c, tables.entries.c
        query = sa.select(e.item).join_from(tables.entries, tables.submissions).where(s.role != OVERLAP).order_by(e.id)
        if round is not None:
            query = query.where(s.round == round)
        if purposes is not None:
            query = query.where(s.purpose.in_(list(purposes)))
        return list(dict.fromkeys(self._column(query)))

    def annotators(self) -> list[str]:
        """The names of everyone who has submitted anything, sorted."""
        return sorted(self._column(sa.select(tables.submissions.c.annotator).distinct()))

    def answers(self, item: str | None = None) -> list[Answer]:
        """Every answer ever submitted, for all items or one, in order of recording."""
        s, e, t = tables.submissions.c, tables.entries.c, tables.timings.c
        about = (s.annotator, s.role, s.key, s.round, s.purpose, s.created_at)
        query = sa.select(s.id, e.item, e.task, e.label, *about).join_from(tables.entries, tables.submissions)
        timed = sa.select(t.submission, t.item, t.what, t.seconds).order_by(t.id)
        if item is not None:
            query, timed = query.where(e.item == item), timed.where(t.item == item)
        found: dict[tuple[int, str], Answer] = {}
        labels: dict[tuple[int, str], dict[str, Any]] = {}
        seconds: dict[tuple[int, str], dict[str, float]] = {}
        with self._reading() as connection:
            for number, id, what, took in connection.execute(timed):
                seconds.setdefault((number, id), {})[what] = took
            for number, id, task, label, annotator, *rest in connection.execute(query.order_by(e.id)):
                at = number, id
                said = labels.setdefault(at, {})
                said[task] = None if label is None else json.loads(label)
                if at not in found:
                    found[at] = Answer(id, said, annotator, seconds.get(at, {}), *rest)
        return list(found.values())

    def timings(self) -> list[Timing]:
        """All timings, in order of recording."""
        s, t = tables.submissions.c, tables.timings.c
        query = sa.select(t.item, t.what, t.seconds, s.annotator, s.round).join_from(tables.timings, tables.submissions)
        return [Timing(*row) for row in self._rows(query.order_by(t.id))]

    def skips(self, item: str | None = None, undone: bool = False) -> list[Skip]:
        """All skips, of all items or one, in order of recording; undone ones only if ``undone``."""
        columns = [column for column in tables.skips.c if column.name != "id"]
        query = sa.select(*columns).order_by(tables.skips.c.id)
        if item is not None:
            query = query.where(tables.skips.c.item == item)
        with self._reading() as connection:
            rows = connection.execute(query).mappings().all()
            gone = _undone(connection)
        return [Skip(**row, **gone.get(row["key"], {})) for row in rows if undone or row["key"] not in gone]

    def view(self, ids: Iterable[str] | None = None) -> Corpus:
        """The annotated items, all or with these ids, with the labels that count: see ``current_labels``."""
        s, e = tables.submissions.c, tables.entries.c
        query = sa.select(e.item, e.task, e.label, s.role).join_from(tables.entries, tables.submissions)
        held = current_labels(tuple(row) for row in self._rows(query.order_by(e.id)))
        if ids is not None:
            wanted = set(ids)
            held = {place: label for place, label in held.items() if place[0] in wanted}
        return corpus_with_labels(self.corpus, held)

    def fingerprint(self) -> str:
        """A digest of the contents without times: equal for ledgers with the same contents."""
        digest = hashlib.blake2b(digest_size=16)
        with self._reading() as connection:
            for table, names in tables.CONTENT.items():
                for row in connection.execute(sa.select(*(table.c[name] for name in names)).order_by(table.c.id)):
                    digest.update(repr(tuple(row)).encode())
        return digest.hexdigest()

    # -- transactions ----------------------------------------------------------------------------------------------
    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        again = "do it again when the database can be reached: nothing is recorded twice"
        with self._store.translate_errors(fix=again):
            with self._store.writer.begin() as connection:
                if self._ownership is not None:
                    self._ownership.check()
                yield connection
                head = head_of(connection) if self._head is not None else None
            if self._head is not None and head is not None:  # committed first: a head file is never ahead
                self._head.advance(head)

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with self._store.translate_errors(), self._store.reader.connect() as connection:
            yield connection

    def _rows(self, query: sa.Select[Any]) -> Sequence[Any]:
        with self._reading() as connection:
            return connection.execute(query).all()

    def _column(self, query: sa.Select[Any]) -> list[Any]:
        return [row[0] for row in self._rows(query)]


def _decision(connection: sa.Connection, round: int, kind: str) -> str | None:
    d = tables.decisions.c
    return connection.execute(sa.select(d.body).where(d.round == round, d.kind == kind)).scalar()


def _undone(connection: sa.Connection) -> dict[str, dict[str, Any]]:
    """For the keys of undone skips, who undid them and when."""
    d = tables.decisions.c
    query = sa.select(d.round, d.body, d.created_at).where(d.kind == SkipUndone.kind)
    rows = [(SkipUndone.decoded(number, body), at) for number, body, at in connection.execute(query)]
    return {undone.skip: {"undone_by": undone.by, "undone_at": at} for undone, at in rows}


def _used_before(key: str, what: str) -> LedgerError:
    return LedgerError(f"the key {key!r} was used before for another {what}", fix="send a correction under its own key")


# -- labels ------------------------------------------------------------------------------------------------------------
def current_labels(entries: Iterable[tuple[str, str, str | None, str]]) -> dict[tuple[str, str], str]:
    """The current label of each item and task, given all (item, task, label, role) in order of recording.

    It is the newest adjudication or correction, if there is one, else the newest answer. Overlap answers never count.
    Retracting a label (``None``) retracts all before it, so that the next answer counts.
    """
    held: dict[tuple[str, str], str] = {}
    settled = set()
    for item, task, label, role in entries:
        place = item, task
        if role == OVERLAP or (role == ANSWER and place in settled):
            continue
        settled.discard(place)
        held.pop(place, None)
        if label is not None:
            held[place] = label
            if role in (ADJUDICATION, CORRECTION):
                settled.add(place)
    return held


def corpus_with_labels(corpus: Corpus, held: Mapping[tuple[str, str], str]) -> Corpus:
    """The items that have any of these labels (JSON, by item and task), with these labels only."""
    chosen = corpus.take(np.unique(corpus.positions(dict.fromkeys(item for item, _ in held))))
    return chosen.with_labels({name: _column(chosen, name, held) for name in chosen.schema})


def _column(items: Corpus, name: str, held: Mapping[tuple[str, str], str]) -> Labels:
    task = items.schema[name]
    vocabulary = task.closed_vocabularies()
    texts = [held.get((id, name)) for id in items.ids.tolist()]
    sized = zip(texts, items.words.tolist(), strict=True)
    rows = [[] if text is None else task.rows(json.loads(text), words, vocabulary) for text, words in sized]
    flat = np.array([row for item in rows for row in item], dtype=task.dtype).reshape(-1, task.width)
    present = np.array([text is not None for text in texts], dtype=bool)
    return Labels(present, Ragged(flat, offsets_of([len(item) for item in rows])))
