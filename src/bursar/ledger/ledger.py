"""The ledger: what was annotated, by whom, for how much, and what was decided. Nothing in it is ever changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from bursar.corpus import Corpus, Labels
from bursar.errors import LabelError, LedgerError
from bursar.ledger import schema as tables
from bursar.ledger.records import READING, Annotation, Receipt, Submission
from bursar.ragged import Ragged, offsets_of


class Ledger:
    """Annotations and money of one corpus, in SQLite.

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

    def __init__(self, engine: sa.Engine, corpus: Corpus, where: str) -> None:
        self.corpus = corpus
        self.where = where
        self._engine = engine
        self._vocabularies = {name: task.closed_vocabularies() for name, task in corpus.schema.items()}

    @classmethod
    def open(cls, place: str | Path, corpus: Corpus) -> Ledger:
        """The ledger in this file, made or brought up to date if need be. ``:memory:`` is for trying things."""
        where = str(place)
        url = sa.URL.create("sqlite", database=where)
        if where != ":memory:":
            Path(where).parent.mkdir(parents=True, exist_ok=True)
        # A ledger in memory is its one connection; on disk every thread has its own.
        pool = sa.pool.StaticPool if where == ":memory:" else sa.pool.QueuePool
        engine = sa.create_engine(url, poolclass=pool, connect_args={"timeout": 30})
        sa.event.listen(engine, "connect", _prepare_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
        try:
            tables.migrate(engine, where)
        except sa.exc.DatabaseError as wrong:
            raise LedgerError(f"{where} cannot be opened as a ledger: {wrong.orig}") from None
        return cls(engine, corpus, where)

    def close(self) -> None:
        self._engine.dispose()

    # -- writing ---------------------------------------------------------------------------------------------------
    def submit(self, submission: Submission) -> Receipt:
        """Record a submission in one transaction. When this returns, it is on disk; a repeat changes nothing."""
        if not submission.key or not submission.annotations:
            raise LedgerError("a submission needs a key and at least one annotation")
        self.check(submission.annotations)
        self._check_money(submission)
        with self._engine.begin() as connection:
            known = connection.execute(
                sa.select(tables.submissions.c.digest).where(tables.submissions.c.key == submission.key)
            ).scalar()
            if known is not None:
                if known != submission.digest:
                    raise LedgerError(
                        f"the key {submission.key!r} was used before for another submission",
                        fix="send a correction under a key of its own",
                    )
                return Receipt(submission.key, repeated=True)
            inserted = connection.execute(
                tables.submissions.insert().values(
                    key=submission.key,
                    digest=submission.digest,
                    round=submission.round,
                    purpose=submission.purpose,
                    annotator=submission.annotator,
                    created_at=tables.now(),
                )
            ).inserted_primary_key
            number = inserted[0] if inserted is not None else None
            said = [
                {"submission": number, "item": a.item, "task": a.task, "label": _dump(a.label)}
                for a in submission.annotations
            ]
            paid = [
                {"submission": number, "item": c.item, "what": c.what, "estimate": c.estimate, "actual": c.actual}
                for c in submission.charges
            ]
            connection.execute(tables.entries.insert(), said)
            if paid:
                connection.execute(tables.charges.insert(), paid)
        return Receipt(submission.key, repeated=False, cost=sum(c.actual for c in submission.charges))

    def check(self, annotations: Sequence[Annotation]) -> None:
        """Refuse what could not be read back: unknown items, tasks and labels."""
        positions = self.corpus.positions([a.item for a in annotations])
        for annotation, at in zip(annotations, positions.tolist(), strict=True):
            task = self.corpus.schema.get(annotation.task)
            if task is None:
                raise LedgerError(
                    f"item {annotation.item!r}: there is no task {annotation.task!r}",
                    fix=f"this corpus has {', '.join(self.corpus.schema)}",
                )
            if annotation.label is not None:
                try:
                    task.rows(annotation.label, int(self.corpus.words[at]), self._vocabularies[task.name])
                except LabelError as wrong:
                    place = f"item {annotation.item!r}, task {annotation.task!r}"
                    raise LedgerError(f"{place}: {wrong.message}", fix=wrong.fix) from None

    def _check_money(self, submission: Submission) -> None:
        for charge in submission.charges:
            if charge.what != READING and charge.what not in self.corpus.schema:
                raise LedgerError(f"item {charge.item!r}: nothing called {charge.what!r} can be charged")
            for amount in (charge.estimate, charge.actual):
                if not isinstance(amount, int) or amount < 0:
                    raise LedgerError(f"item {charge.item!r}: {amount!r} is not a whole, non-negative amount")

    def decide(self, *decisions: tuple[int, str, Any]) -> None:
        """Record what was decided, as (round, kind, body), all of it or nothing.

        Deciding the same again changes nothing; deciding otherwise is an error.
        """
        with self._engine.begin() as connection:
            for round, kind, body in decisions:
                text = _dump(body)
                known = _decision(connection, round, kind)
                if known is None:
                    row = {"round": round, "kind": kind, "body": text, "created_at": tables.now()}
                    connection.execute(tables.decisions.insert().values(row))
                elif known != text:
                    raise LedgerError(f"{self.where}: round {round} has another {kind} already")

    # -- reading ---------------------------------------------------------------------------------------------------
    def decision(self, round: int, kind: str) -> Any | None:
        """What was decided, or ``None``."""
        with self._reading() as connection:
            known = _decision(connection, round, kind)
        return None if known is None else json.loads(known)

    def decisions(self, kind: str) -> list[tuple[int, Any]]:
        """All decisions of one kind, by round."""
        query = sa.select(tables.decisions.c.round, tables.decisions.c.body).where(tables.decisions.c.kind == kind)
        with self._reading() as connection:
            rows = connection.execute(query.order_by(tables.decisions.c.round)).all()
        return [(row.round, json.loads(row.body)) for row in rows]

    def decided(self, kind: str) -> list[int]:
        """The rounds that have a decision of this kind."""
        d = tables.decisions.c
        with self._reading() as connection:
            return list(connection.execute(sa.select(d.round).where(d.kind == kind).order_by(d.round)).scalars())

    def keys(self) -> set[str]:
        """The keys of all submissions."""
        with self._reading() as connection:
            return set(connection.execute(sa.select(tables.submissions.c.key)).scalars())

    def spent(self, round: int | None = None, purpose: str | None = None) -> int:
        """Money spent, in whole units: in all, in one round, or for one purpose."""
        s = tables.submissions.c
        query = sa.select(sa.func.coalesce(sa.func.sum(tables.charges.c.actual), 0)).join(tables.submissions)
        if round is not None:
            query = query.where(s.round == round)
        if purpose is not None:
            query = query.where(s.purpose == purpose)
        with self._reading() as connection:
            return int(connection.execute(query).scalar_one())

    def spent_on(self, items: Iterable[str]) -> int:
        """Money spent on these items."""
        wanted = set(items)
        c = tables.charges.c
        with self._reading() as connection:
            rows = connection.execute(sa.select(c.item, sa.func.sum(c.actual)).group_by(c.item)).all()
        return sum(int(amount) for item, amount in rows if item in wanted)

    def spending(self) -> list[dict[str, Any]]:
        """Money by round, purpose and thing: estimate, actual, and how many items it was paid for."""
        s, c = tables.submissions.c, tables.charges.c
        query = (
            sa.select(
                s.round,
                s.purpose,
                c.what,
                sa.func.sum(c.estimate).label("estimate"),
                sa.func.sum(c.actual).label("actual"),
                sa.func.count().label("items"),
            )
            .join_from(tables.submissions, tables.charges)
            .group_by(s.round, s.purpose, c.what)
            .order_by(s.round, s.purpose, c.what)
        )
        with self._reading() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def bought(self, round: int | None = None, purposes: Iterable[str] | None = None) -> list[str]:
        """The ids of items bought, in the order of purchase, in all rounds or one, for some purposes or all."""
        s, e = tables.submissions.c, tables.entries.c
        query = sa.select(e.item).join_from(tables.entries, tables.submissions).order_by(e.id)
        if round is not None:
            query = query.where(s.round == round)
        if purposes is not None:
            query = query.where(s.purpose.in_(list(purposes)))
        with self._reading() as connection:
            return list(dict.fromkeys(connection.execute(query).scalars()))

    def annotators(self) -> list[str]:
        """Everybody who has submitted anything, by name."""
        annotator = tables.submissions.c.annotator
        with self._reading() as connection:
            return list(connection.execute(sa.select(annotator).distinct().order_by(annotator)).scalars())

    def view(self, ids: Iterable[str] | None = None) -> Corpus:
        """The annotated items, all or just some ids, as a corpus that holds what the ledger knows and nothing else."""
        query = sa.select(tables.entries.c.item, tables.entries.c.task, tables.entries.c.label)
        with self._reading() as connection:
            rows = connection.execute(query.order_by(tables.entries.c.id)).all()
        latest = {(row.item, row.task): row.label for row in rows}  # a correction stands after what it corrects
        wanted = None if ids is None else set(ids)
        held = {k: v for k, v in latest.items() if v is not None and (wanted is None or k[0] in wanted)}
        items = np.unique(self.corpus.positions(dict.fromkeys(item for item, _ in held)))
        chosen = self.corpus.take(items)
        return chosen.with_labels({name: self._labels(chosen, name, held) for name in chosen.schema})

    def _labels(self, items: Corpus, name: str, held: dict[tuple[str, str], str]) -> Labels:
        task, vocabulary = items.schema[name], self._vocabularies[name]
        texts = [held.get((id, name)) for id in items.ids.tolist()]
        rows = [
            [] if text is None else task.rows(json.loads(text), words, vocabulary)
            for text, words in zip(texts, items.words.tolist(), strict=True)
        ]
        flat = np.array([row for item in rows for row in item], dtype=task.dtype).reshape(-1, task.width)
        present = np.array([text is not None for text in texts], dtype=bool)
        return Labels(present, Ragged(flat, offsets_of([len(item) for item in rows])))

    def fingerprint(self) -> str:
        """A digest of everything but the clock: two ledgers with one fingerprint say the same."""
        digest = hashlib.blake2b(digest_size=16)
        with self._reading() as connection:
            for table in tables.APPEND_ONLY:
                columns = [c for c in table.c if c.name != "created_at"]
                for row in connection.execute(sa.select(*columns).order_by(table.c.id)):
                    digest.update(repr(tuple(row)).encode())
        return digest.hexdigest()

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with self._engine.connect() as connection:
            yield connection.execution_options(reading=True)


def _decision(connection: sa.Connection, round: int, kind: str) -> str | None:
    d = tables.decisions.c
    found: str | None = connection.execute(sa.select(d.body).where(d.round == round, d.kind == kind)).scalar()
    return found


def _dump(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)


def _begin_sqlite(connection: sa.Connection) -> None:
    """A writer takes its turn at once, so that it never has to give up half-way; a reader waits for nobody."""
    reading = connection.get_execution_options().get("reading")
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


def _prepare_sqlite(connection: Any, _: Any) -> None:
    """Write-ahead log, and every commit on disk before it is acknowledged."""
    connection.isolation_level = None  # our own BEGIN, not the driver's
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")
