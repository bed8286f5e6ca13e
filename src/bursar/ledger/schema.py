"""Tables of the ledger, as queries see them; how they come about is told by ``migrations``."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import BigInteger, Column, Double, ForeignKey, Integer, MetaData, Table, Text

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
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False),  # no two alike
    Column("digest", Text, nullable=False),
    Column("round", Integer, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("annotator", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("role", Text, nullable=False),
)
entries = Table(
    "entries",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("submission", Integer, ForeignKey("submissions.id"), nullable=False),
    Column("item", Text, nullable=False),
    Column("task", Text, nullable=False),
    Column("label", Text),  # JSON; NULL takes back what was said before
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
)
decisions = Table(
    "decisions",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("round", Integer, nullable=False),
    Column("kind", Text, nullable=False),  # one a round
    Column("body", Text, nullable=False),  # JSON
    Column("created_at", Text, nullable=False),
)
timings = Table(
    "timings",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("submission", Integer, ForeignKey("submissions.id"), nullable=False),
    Column("item", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("seconds", Double, nullable=False),
)
skips = Table(
    "skips",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False),  # no two alike
    Column("item", Text, nullable=False),
    Column("round", Integer, nullable=False),
    Column("task", Text),  # NULL: for all of them
    Column("annotator", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_at", Text, nullable=False),
)
log = Table(  # every submission, skip and decision in the order of recording; entry 0 is the ledger itself
    "log",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),  # ledger, submission, skip or decision
    Column("record", Integer, nullable=False),  # its number there; of the ledger: how many entries it began with
    Column("digest", Text, nullable=False),  # of the record and the digest before; of the ledger: its random id
)
# What two ledgers must have in common to say the same: neither a clock nor seconds. Roles are in the digests.
CONTENT = {
    submissions: ("id", "key", "digest", "round", "purpose", "annotator"),
    entries: ("id", "submission", "item", "task", "label"),
    charges: ("id", "submission", "item", "what", "estimate", "actual"),
    decisions: ("id", "round", "kind", "body"),
    skips: ("id", "key", "item", "round", "task", "annotator", "reason"),
}


def now() -> str:
    """The time, as the ledger writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
