"""Tables of the ledger, and how older ones become newer ones."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy import BigInteger, Column, ForeignKey, Integer, MetaData, Table, Text, UniqueConstraint

from bursar.errors import LedgerError

metadata = MetaData()

versions = Table(
    "versions",
    metadata,
    Column("version", Integer, primary_key=True),
    Column("applied_at", Text, nullable=False),
)
submissions = Table(
    "submissions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    Column("digest", Text, nullable=False),
    Column("round", Integer, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("annotator", Text, nullable=False),
    Column("created_at", Text, nullable=False),
)
entries = Table(
    "entries",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("submission", Integer, ForeignKey("submissions.id"), nullable=False, index=True),
    Column("item", Text, nullable=False, index=True),
    Column("task", Text, nullable=False),
    Column("label", Text),  # JSON; NULL takes back what was said before
)
charges = Table(
    "charges",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("submission", Integer, ForeignKey("submissions.id"), nullable=False, index=True),
    Column("item", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("estimate", BigInteger, nullable=False),
    Column("actual", BigInteger, nullable=False),
)
decisions = Table(
    "decisions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("round", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),  # JSON
    Column("created_at", Text, nullable=False),
    UniqueConstraint("round", "kind"),
)
APPEND_ONLY = (submissions, entries, charges, decisions)


def now() -> str:
    """The time, as the ledger writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _create_everything(connection: sa.Connection) -> None:
    metadata.create_all(connection)
    if connection.dialect.name == "sqlite":
        for table in APPEND_ONLY:
            for verb in ("UPDATE", "DELETE"):
                connection.exec_driver_sql(
                    f"CREATE TRIGGER {table.name}_no_{verb.lower()} BEFORE {verb} ON {table.name} "
                    f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
                )


# Version n is reached by running migration n on version n - 1. Add to the end; never edit what has been released.
MIGRATIONS: list[Callable[[sa.Connection], None]] = [_create_everything]


def migrate(engine: sa.Engine, where: str) -> None:
    """Bring a ledger to the newest version, each step whole or not at all; refuse one from a newer Bursar."""
    with engine.begin() as connection:
        version = 0
        if sa.inspect(connection).has_table(versions.name):
            version = connection.execute(sa.select(sa.func.max(versions.c.version))).scalar() or 0
        if version > len(MIGRATIONS):
            raise LedgerError(
                f"{where}: this ledger has version {version}, newer than this Bursar's {len(MIGRATIONS)}",
                fix="upgrade Bursar",
            )
        for step, migration in enumerate(MIGRATIONS[version:], start=version + 1):
            migration(connection)
            connection.execute(versions.insert().values(version=step, applied_at=now()))
