"""Tables of the ledger.

Keys and items may have any length, so PostgreSQL indexes their hashes; ``EXCLUDE … WITH =`` makes a key unique there.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import ExcludeConstraint
from sqlalchemy.schema import Constraint

metadata = MetaData()


def _unique_key() -> list[Constraint]:
    """No two rows have the same key."""
    return [
        UniqueConstraint("key").ddl_if(dialect="sqlite"),
        ExcludeConstraint(("key", "="), using="hash").ddl_if(dialect="postgresql"),
    ]


versions = Table(
    "versions",
    metadata,
    Column("version", Integer, primary_key=True),
    Column("applied_at", Text, nullable=False),
)
submissions = Table(
    "submissions",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("round", Integer, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("annotator", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("role", Text, nullable=False, server_default="answer"),
    CheckConstraint("role IN ('answer', 'overlap', 'adjudication', 'correction')"),
    *_unique_key(),
)
entries = Table(
    "entries",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("submission", Integer, ForeignKey("submissions.id"), nullable=False),
    Column("item", Text, nullable=False),
    Column("task", Text, nullable=False),
    Column("label", Text),  # JSON; NULL retracts earlier labels
    Index("ix_entries_submission", "submission"),
    Index("ix_entries_item", "item", postgresql_using="hash"),
)
charges = Table(
    "charges",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("submission", Integer, ForeignKey("submissions.id"), nullable=False),
    Column("item", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("estimate", BigInteger, nullable=False),
    Column("actual", BigInteger, nullable=False),
    Index("ix_charges_submission", "submission"),
)
decisions = Table(
    "decisions",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("round", Integer, nullable=False),
    Column("kind", Text, nullable=False),  # one of each kind per round
    Column("body", Text, nullable=False),  # JSON
    Column("created_at", Text, nullable=False),
    UniqueConstraint("round", "kind"),
)
timings = Table(
    "timings",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("submission", Integer, ForeignKey("submissions.id"), nullable=False),
    Column("item", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("seconds", Double, nullable=False),
    UniqueConstraint("submission", "what"),
)
skips = Table(
    "skips",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False),
    Column("item", Text, nullable=False),
    Column("round", Integer, nullable=False),
    Column("task", Text),  # NULL: all tasks
    Column("annotator", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Index("ix_skips_item", "item", postgresql_using="hash"),
    *_unique_key(),
)
log = Table(  # every submission, skip and decision in the order of recording; entry 0 is the ledger itself
    "log",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),  # ledger, submission, skip or decision
    Column("record", Integer, nullable=False),  # its number there; 0 for the ledger
    Column("digest", Text, nullable=False),  # of the record and the digest before; of the ledger: its random id
)
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
