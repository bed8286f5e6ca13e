"""The log: a hash chain with one entry for every submission, skip and decision.

The digest of an entry covers its record and all entries before it. The chain starts from the ledger's random id, so
that no two ledgers share a digest. The input of a digest must never change, so that old digests stay valid.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from bursar.ledger import schema as tables
from bursar.ledger.records import Decision, LossAccepted

SUBMISSION, SKIP, DECISION = "submission", "skip", "decision"
# The parts of a record: rows of tables, selected by a column. Times are included. A column that is added to a table
# later is not part of these digests.
PARTS: dict[str, dict[sa.Table, tuple[str, tuple[str, ...]]]] = {
    SUBMISSION: {
        tables.submissions: ("id", (*tables.CONTENT[tables.submissions], "created_at", "role")),
        tables.entries: ("submission", tables.CONTENT[tables.entries]),
        tables.charges: ("submission", tables.CONTENT[tables.charges]),
        tables.timings: ("submission", ("id", "submission", "item", "what", "seconds")),
    },
    SKIP: {tables.skips: ("id", (*tables.CONTENT[tables.skips], "created_at"))},
    DECISION: {tables.decisions: ("id", (*tables.CONTENT[tables.decisions], "created_at"))},
}
BATCH = 1000  # entries read at once
_FIRST = sa.select(tables.log.c.digest).where(tables.log.c.id == 0).scalar_subquery()
_HEAD = sa.select(_FIRST, tables.log.c.id, tables.log.c.digest).order_by(tables.log.c.id.desc()).limit(1)

Rows = Mapping[sa.Table, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Head:
    """The newest entry of a ledger, and the id of the ledger that it belongs to."""

    ledger: str
    entry: int
    digest: str


# -- writing -----------------------------------------------------------------------------------------------------------
def next_numbers(connection: sa.Connection, *numbered: sa.Table) -> list[int]:
    """The id of the next row of each table; ids have no gaps."""
    return [number + 1 for number in connection.execute(_newest(*numbered)).one()]


@cache
def _newest(*numbered: sa.Table) -> sa.Select[Any]:
    return sa.select(*(sa.select(sa.func.coalesce(sa.func.max(t.c.id), 0)).scalar_subquery() for t in numbered))


def record(connection: sa.Connection, kind: str, written: Rows) -> None:
    """Write the rows of one record, the main row first, and its entry in the log."""
    for table, rows in written.items():
        if rows:
            connection.execute(table.insert(), rows)
    parts = PARTS[kind].items()
    content = {table.name: [_plain(table, names, row) for row in written.get(table, ())] for table, (_, names) in parts}
    _append(connection, kind, next(iter(written.values()))[0]["id"], content)


def record_decision(connection: sa.Connection, decision: Decision) -> None:
    """Write a decision and its entry in the log."""
    (number,) = next_numbers(connection, tables.decisions)
    row = {"id": number, "round": decision.round, "kind": decision.stored_kind, "body": decision.encoded()}
    record(connection, DECISION, {tables.decisions: [row | {"created_at": tables.now()}]})


def running_number(connection: sa.Connection, kind: type[Decision]) -> int:
    """The next number of a kind of decision that does not belong to a round."""
    count = sa.select(sa.func.count()).where(tables.decisions.c.kind == kind.kind)
    return int(connection.execute(count).scalar_one()) + 1


def _append(connection: sa.Connection, kind: str, record: int, content: Mapping[str, Any]) -> None:
    newest = head_of(connection)
    digest = _link(newest.digest, kind, content)
    connection.execute(tables.log.insert(), {"id": newest.entry + 1, "kind": kind, "record": record, "digest": digest})


def relog(connection: sa.Connection, records: Sequence[tuple[str, int]]) -> None:
    """Append entries for records that have none."""
    for kind, number in records:
        (found,) = _records(connection, kind, [number]).values()
        _append(connection, kind, number, found)


def _link(before: str, kind: str, content: Mapping[str, Any] | None) -> str:
    text = json.dumps([before, kind, content], ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _plain(table: sa.Table, names: Sequence[str], row: Mapping[str, Any]) -> list[Any]:
    """A row in the form that every database returns: integers, text, and no negative zero."""
    types = _types(table)
    return [None if row[name] is None else types[name](row[name]) for name in names]


@cache
def _types(table: sa.Table) -> dict[str, Callable[[Any], Any]]:
    makers: dict[type, Callable[[Any], Any]] = {int: int, str: str, float: lambda value: float(value) + 0.0}
    return {column.name: makers[column.type.python_type] for column in table.c}


# -- reading -----------------------------------------------------------------------------------------------------------
def head_of(connection: sa.Connection) -> Head:
    """The newest entry."""
    return Head(*connection.execute(_HEAD).one())


def digest_at(connection: sa.Connection, entry: int) -> str | None:
    """The digest of an entry; ``None`` if it is missing."""
    return connection.execute(sa.select(tables.log.c.digest).where(tables.log.c.id == entry)).scalar()


def last_loss(connection: sa.Connection) -> int:
    """The newest entry that accepts a loss; 0 if none does."""
    d, g = tables.decisions.c, tables.log.c
    numbers = connection.execute(sa.select(d.id).where(d.kind == LossAccepted.kind)).scalars().all()
    query = sa.select(sa.func.max(g.id)).where(g.kind == DECISION, g.record.in_(numbers))
    return int(connection.execute(query).scalar() or 0) if numbers else 0


@dataclass(frozen=True)
class Audit:
    """The result of checking the log."""

    problems: list[str]
    content: str  # digest of all records as they are now, independent of the log's digests
    unlogged: list[tuple[str, int]]  # records without an entry


def audit_log(connection: sa.Connection, first: int = 1) -> Audit:
    """Check entries against their records and the hash chain, starting at one entry.

    Problems before an accepted loss that covers them are dropped. Records without an entry are searched for only if
    the check starts at the first entry.
    """
    problems: list[str] = []
    number, before, content = first - 1, digest_at(connection, first - 1), ""
    logged: dict[str, set[int]] = {kind: set() for kind in PARTS}
    for entry, found in _walk(connection, first):
        if entry["id"] != number + 1:
            one, last = entry["id"] == number + 2, entry["id"] - 1
            problems.append(f"entry {last} is missing" if one else f"entries {number + 1} to {last} are missing")
            before = None
        number, kind, record = entry["id"], entry["kind"], entry["record"]
        if kind == DECISION and first == 1 and _accepts(found, content):
            problems.clear()
        if found is None:
            problems.append(f"entry {number}: {kind} {record} is missing")
        elif before is not None and entry["digest"] != _link(before, kind, found):
            problems.append(f"entry {number}: {kind} {record} is not what was recorded")
        before, content = entry["digest"], _link(content, kind, found)
        logged.setdefault(kind, set()).add(record)
    unlogged = _unlogged(connection, logged) if first == 1 else []
    problems += [f"{kind} {record} is in no entry" for kind, record in unlogged]
    return Audit(problems, content, unlogged)


def _walk(connection: sa.Connection, first: int) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Every entry from one on, with the content of its record; ``None`` if the record is missing."""
    g = tables.log.c
    while True:
        query = sa.select(tables.log).where(g.id >= first).order_by(g.id).limit(BATCH)
        entries = [dict(row) for row in connection.execute(query).mappings()]
        held = {kind: _records(connection, kind, [e["record"] for e in entries if e["kind"] == kind]) for kind in PARTS}
        for entry in entries:
            yield entry, held.get(entry["kind"], {}).get(entry["record"])
        if len(entries) < BATCH:
            return
        first = entries[-1]["id"] + 1


def _records(connection: sa.Connection, kind: str, numbers: Sequence[int]) -> dict[int, dict[str, Any]]:
    if not numbers:
        return {}
    main = next(iter(PARTS[kind]))
    found: dict[int, dict[str, Any]] = {}
    for table, (by, names) in PARTS[kind].items():
        key = table.c[by]
        query = sa.select(*(table.c[name] for name in names)).where(key.between(min(numbers), max(numbers)))
        rows = connection.execute(query.order_by(key, table.c.id)).mappings()
        for number, group in groupby(rows, key=lambda row: int(row[by])):
            if table is main:
                found[number] = {part.name: [] for part in PARTS[kind]}
            if number in found:
                found[number][table.name] = [_plain(table, names, dict(row)) for row in group]
    return found


def _accepts(found: Mapping[str, Any] | None, content: str) -> bool:
    """Whether this decision accepts a loss with exactly the present content."""
    if found is None or not found["decisions"]:
        return False
    _, number, kind, body, _ = found["decisions"][0]
    return bool(kind == LossAccepted.kind and LossAccepted.decoded(number, body).content == content)


def _unlogged(connection: sa.Connection, logged: Mapping[str, set[int]]) -> list[tuple[str, int]]:
    return [
        (kind, number)
        for kind, parts in PARTS.items()
        for number in connection.execute(sa.select(next(iter(parts)).c.id).order_by(sa.text("id"))).scalars()
        if number not in logged[kind]
    ]
