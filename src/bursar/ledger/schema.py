"""Tables of the ledger: how they are created, and how older ledgers are migrated.

Keys and items may have any length, so PostgreSQL indexes their hashes; ``EXCLUDE … WITH =`` makes a key unique there.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ExcludeConstraint

from bursar.errors import LedgerError

if TYPE_CHECKING:
    from bursar.ledger.places import Store

metadata = sa.MetaData()


def _table(name: str, *parts: sa.schema.SchemaItem) -> sa.Table:
    """A table of numbered rows."""
    return sa.Table(name, metadata, sa.Column("id", sa.Integer, primary_key=True, autoincrement=False), *parts)


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def _integer(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False)


def _submission() -> sa.Column[int]:
    return sa.Column("submission", sa.Integer, sa.ForeignKey("submissions.id"), nullable=False)


def _unique_key() -> list[sa.Constraint]:
    excluded = ExcludeConstraint(("key", "="), using="hash")
    return [sa.UniqueConstraint("key").ddl_if(dialect="sqlite"), excluded.ddl_if(dialect="postgresql")]


versions = sa.Table("versions", metadata, sa.Column("version", sa.Integer, primary_key=True), *_texts("applied_at"))
submissions = _table(
    "submissions",
    *_texts("key", "digest"),
    _integer("round"),
    *_texts("purpose", "annotator", "created_at"),
    sa.Column("role", sa.Text, nullable=False, server_default="answer"),
    sa.CheckConstraint("role IN ('answer', 'overlap', 'adjudication', 'correction')"),
    *_unique_key(),
)
entries = _table(
    "entries",
    _submission(),
    *_texts("item", "task"),
    sa.Column("label", sa.Text),  # JSON; NULL retracts earlier labels
    sa.Index("ix_entries_submission", "submission"),
    sa.Index("ix_entries_item", "item", postgresql_using="hash"),
)
charges = _table(
    "charges",
    _submission(),
    *_texts("item", "what"),
    *(sa.Column(name, sa.BigInteger, nullable=False) for name in ("estimate", "actual")),
    sa.Index("ix_charges_submission", "submission"),
)
decisions = _table(  # one of each kind per round; the body is JSON
    "decisions", _integer("round"), *_texts("kind", "body", "created_at"), sa.UniqueConstraint("round", "kind")
)
timings = _table(
    "timings",
    _submission(),
    *_texts("item", "what"),
    sa.Column("seconds", sa.Double, nullable=False),
    sa.UniqueConstraint("submission", "what"),
)
skips = _table(
    "skips",
    *_texts("key", "item"),
    _integer("round"),
    sa.Column("task", sa.Text),  # NULL: all tasks
    *_texts("annotator", "reason", "created_at"),
    sa.Index("ix_skips_item", "item", postgresql_using="hash"),
    *_unique_key(),
)
# Every submission, skip and decision in the order of recording; entry 0 is the ledger itself. ``record`` is the number
# of the record among its kind (0 for the ledger). The digest is of the record and the digest before; that of the ledger
# is its random id.
log = _table("log", *_texts("kind"), _integer("record"), *_texts("digest"))
# The columns that make up a ledger's contents: no times or seconds. Roles are in the digests.
CONTENT = {
    submissions: ("id", "key", "digest", "round", "purpose", "annotator"),
    entries: ("id", "submission", "item", "task", "label"),
    charges: ("id", "submission", "item", "what", "estimate", "actual"),
    decisions: ("id", "round", "kind", "body"),
    skips: ("id", "key", "item", "round", "task", "annotator", "reason"),
}


def now() -> str:
    """The current time in the ledger's format."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


# -- creating and migrating --------------------------------------------------------------------------------------------
APPEND_ONLY = [table for table in metadata.tables.values() if table is not versions]
SAME = {  # conditions, besides equal ids, under which rows count as the same row
    submissions: "key = NEW.key",
    decisions: "(round = NEW.round AND kind = NEW.kind)",
    timings: "(submission = NEW.submission AND what = NEW.what)",
    skips: "key = NEW.key",
}


def begin_log(connection: sa.Connection) -> None:
    """Write entry 0 of the log, which holds the ledger's id."""
    connection.execute(log.insert(), {"id": 0, "kind": "ledger", "record": 0, "digest": uuid.uuid4().hex})


def create(connection: sa.Connection) -> None:
    """Create the tables, with triggers that reject changes and deletions."""
    metadata.create_all(connection, checkfirst=False)
    begin_log(connection)
    for statement in TRIGGERS[connection.dialect.name]():
        connection.exec_driver_sql(statement)


def _sqlite_triggers() -> list[str]:
    """INSERT OR REPLACE deletes rows without firing the other triggers, so it has a trigger of its own."""
    refuse = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    found = []
    for table in APPEND_ONLY:
        name, same = table.name, f" OR {SAME[table]}" if table in SAME else ""
        found += [f"CREATE TRIGGER {name}_no_{verb} BEFORE {verb} ON {name} {refuse}" for verb in ("update", "delete")]
        exists = f"EXISTS (SELECT 1 FROM {name} WHERE id = NEW.id{same})"
        found.append(f"CREATE TRIGGER {name}_no_replace BEFORE INSERT ON {name} WHEN {exists} {refuse}")
    return found


def _postgresql_triggers() -> list[str]:
    refuse = "BEGIN RAISE EXCEPTION 'the ledger is append-only'; END"
    return [
        f"CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ {refuse} $$",
        *(
            f"CREATE TRIGGER {table.name}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table.name} "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
            for table in APPEND_ONLY
        ),
    ]


TRIGGERS = {"sqlite": _sqlite_triggers, "postgresql": _postgresql_triggers}
# Step n takes version n - 1 to version n. Once a version is released, append steps and never edit existing ones.
STEPS: list[Callable[[sa.Connection], None]] = [create]


def migrate(store: Store) -> None:
    """Migrate a ledger to the newest version in one transaction; reject one from a newer Bursar."""
    with store.reader.connect() as connection:
        if version_of(connection, store.where) == len(STEPS):
            return
    with store.writer.begin() as connection:
        if store.schema is not None and not sa.inspect(connection).has_schema(store.schema):
            connection.execute(sa.schema.CreateSchema(store.schema))
        version = version_of(connection, store.where)  # read again: another process may have migrated it
        for number, step in enumerate(STEPS[version:], start=version + 1):
            step(connection)
            connection.execute(versions.insert().values(version=number, applied_at=now()))


def version_of(connection: sa.Connection, where: str = "the ledger") -> int:
    """The version of a ledger's tables; 0 if there are none."""
    if not sa.inspect(connection).has_table(versions.name):
        return 0
    version = connection.execute(sa.select(sa.func.max(versions.c.version))).scalar() or 0
    if version > len(STEPS):
        message = f"{where}: this ledger has version {version}, newer than this Bursar's {len(STEPS)}"
        raise LedgerError(message, fix="upgrade Bursar")
    return int(version)
