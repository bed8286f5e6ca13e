"""Tables of the ledger.

Keys and items may have any length, so PostgreSQL indexes their hashes; ``EXCLUDE … WITH =`` makes a key unique there.
"""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ExcludeConstraint

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
