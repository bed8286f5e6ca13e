"""How a ledger's tables come about, and how older ones become newer ones.

Version n is reached by running migration n on version n - 1. Migrations are written out for both engines, so that each
stays what it was when it was released. Add to the end; never edit what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sqlalchemy as sa

from bursar.errors import LedgerError
from bursar.ledger.log import begin_log
from bursar.ledger.places import Store
from bursar.ledger.schema import now, versions

Step = str | Callable[[sa.Connection], None]


# -- SQLite ------------------------------------------------------------------------------------------------------------
def _unchanged_sqlite(table: str) -> list[str]:
    """Triggers that refuse to change or remove a row."""
    return [
        f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        for verb in ("UPDATE", "DELETE")
    ]


def _not_replaced_sqlite(table: str, same: str) -> str:
    """A trigger that refuses INSERT OR REPLACE: it removes rows without asking the other triggers."""
    return (
        f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} "
        f"WHEN EXISTS (SELECT 1 FROM {table} WHERE id = NEW.id{same}) "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    )


SQLITE: list[Sequence[Step]] = [
    [
        """CREATE TABLE versions (
            version INTEGER NOT NULL PRIMARY KEY,
            applied_at TEXT NOT NULL
        )""",
        """CREATE TABLE submissions (
            id INTEGER NOT NULL PRIMARY KEY,
            key TEXT NOT NULL UNIQUE,
            digest TEXT NOT NULL,
            round INTEGER NOT NULL,
            purpose TEXT NOT NULL,
            annotator TEXT NOT NULL,
            created_at TEXT NOT NULL
        )""",
        """CREATE TABLE entries (
            id INTEGER NOT NULL PRIMARY KEY,
            submission INTEGER NOT NULL REFERENCES submissions (id),
            item TEXT NOT NULL,
            task TEXT NOT NULL,
            label TEXT
        )""",
        "CREATE INDEX ix_entries_submission ON entries (submission)",
        "CREATE INDEX ix_entries_item ON entries (item)",
        """CREATE TABLE charges (
            id INTEGER NOT NULL PRIMARY KEY,
            submission INTEGER NOT NULL REFERENCES submissions (id),
            item TEXT NOT NULL,
            what TEXT NOT NULL,
            estimate BIGINT NOT NULL,
            actual BIGINT NOT NULL
        )""",
        "CREATE INDEX ix_charges_submission ON charges (submission)",
        """CREATE TABLE decisions (
            id INTEGER NOT NULL PRIMARY KEY,
            round INTEGER NOT NULL,
            kind TEXT NOT NULL,
            body TEXT NOT NULL,
            created_at TEXT NOT NULL,
            UNIQUE (round, kind)
        )""",
        *_unchanged_sqlite("submissions"),
        *_unchanged_sqlite("entries"),
        *_unchanged_sqlite("charges"),
        *_unchanged_sqlite("decisions"),
    ],
    [
        """ALTER TABLE submissions ADD COLUMN role TEXT NOT NULL DEFAULT 'answer'
            CHECK (role IN ('answer', 'overlap', 'adjudication', 'correction'))""",
        """CREATE TABLE timings (
            id INTEGER NOT NULL PRIMARY KEY,
            submission INTEGER NOT NULL REFERENCES submissions (id),
            item TEXT NOT NULL,
            what TEXT NOT NULL,
            seconds DOUBLE NOT NULL,
            UNIQUE (submission, what)
        )""",
        """CREATE TABLE skips (
            id INTEGER NOT NULL PRIMARY KEY,
            key TEXT NOT NULL UNIQUE,
            item TEXT NOT NULL,
            round INTEGER NOT NULL,
            task TEXT,
            annotator TEXT NOT NULL,
            reason TEXT NOT NULL,
            created_at TEXT NOT NULL
        )""",
        "CREATE INDEX ix_skips_item ON skips (item)",
        *_unchanged_sqlite("timings"),
        *_unchanged_sqlite("skips"),
        _not_replaced_sqlite("submissions", " OR key = NEW.key"),
        _not_replaced_sqlite("entries", ""),
        _not_replaced_sqlite("charges", ""),
        _not_replaced_sqlite("decisions", " OR (round = NEW.round AND kind = NEW.kind)"),
        _not_replaced_sqlite("timings", " OR (submission = NEW.submission AND what = NEW.what)"),
        _not_replaced_sqlite("skips", " OR key = NEW.key"),
    ],
    [
        """CREATE TABLE log (
            id INTEGER NOT NULL PRIMARY KEY,
            kind TEXT NOT NULL,
            record INTEGER NOT NULL,
            digest TEXT NOT NULL
        )""",
        begin_log,
        *_unchanged_sqlite("log"),
        _not_replaced_sqlite("log", ""),
    ],
]


# -- PostgreSQL --------------------------------------------------------------------------------------------------------
def _unchanged_postgresql(table: str) -> str:
    """A trigger that refuses to change or remove a row."""
    return (
        f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
    )


# Keys and items may be of any length, so their indexes are of hashes; EXCLUDE … WITH = says that no two are alike.
POSTGRESQL: list[Sequence[Step]] = [
    [
        """CREATE TABLE versions (
            version INTEGER NOT NULL PRIMARY KEY,
            applied_at TEXT NOT NULL
        )""",
        """CREATE TABLE submissions (
            id INTEGER NOT NULL PRIMARY KEY,
            key TEXT NOT NULL,
            digest TEXT NOT NULL,
            round INTEGER NOT NULL,
            purpose TEXT NOT NULL,
            annotator TEXT NOT NULL,
            created_at TEXT NOT NULL,
            EXCLUDE USING hash (key WITH =)
        )""",
        """CREATE TABLE entries (
            id INTEGER NOT NULL PRIMARY KEY,
            submission INTEGER NOT NULL REFERENCES submissions (id),
            item TEXT NOT NULL,
            task TEXT NOT NULL,
            label TEXT
        )""",
        "CREATE INDEX ix_entries_submission ON entries (submission)",
        "CREATE INDEX ix_entries_item ON entries USING hash (item)",
        """CREATE TABLE charges (
            id INTEGER NOT NULL PRIMARY KEY,
            submission INTEGER NOT NULL REFERENCES submissions (id),
            item TEXT NOT NULL,
            what TEXT NOT NULL,
            estimate BIGINT NOT NULL,
            actual BIGINT NOT NULL
        )""",
        "CREATE INDEX ix_charges_submission ON charges (submission)",
        """CREATE TABLE decisions (
            id INTEGER NOT NULL PRIMARY KEY,
            round INTEGER NOT NULL,
            kind TEXT NOT NULL,
            body TEXT NOT NULL,
            created_at TEXT NOT NULL,
            UNIQUE (round, kind)
        )""",
        """CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN RAISE EXCEPTION 'the ledger is append-only'; END
        $$""",
        _unchanged_postgresql("submissions"),
        _unchanged_postgresql("entries"),
        _unchanged_postgresql("charges"),
        _unchanged_postgresql("decisions"),
    ],
    [
        """ALTER TABLE submissions ADD COLUMN role TEXT NOT NULL DEFAULT 'answer'
            CHECK (role IN ('answer', 'overlap', 'adjudication', 'correction'))""",
        """CREATE TABLE timings (
            id INTEGER NOT NULL PRIMARY KEY,
            submission INTEGER NOT NULL REFERENCES submissions (id),
            item TEXT NOT NULL,
            what TEXT NOT NULL,
            seconds DOUBLE PRECISION NOT NULL,
            UNIQUE (submission, what)
        )""",
        """CREATE TABLE skips (
            id INTEGER NOT NULL PRIMARY KEY,
            key TEXT NOT NULL,
            item TEXT NOT NULL,
            round INTEGER NOT NULL,
            task TEXT,
            annotator TEXT NOT NULL,
            reason TEXT NOT NULL,
            created_at TEXT NOT NULL,
            EXCLUDE USING hash (key WITH =)
        )""",
        "CREATE INDEX ix_skips_item ON skips USING hash (item)",
        _unchanged_postgresql("timings"),
        _unchanged_postgresql("skips"),
    ],
    [
        """CREATE TABLE log (
            id INTEGER NOT NULL PRIMARY KEY,
            kind TEXT NOT NULL,
            record INTEGER NOT NULL,
            digest TEXT NOT NULL
        )""",
        begin_log,
        _unchanged_postgresql("log"),
    ],
]

MIGRATIONS = {"sqlite": SQLITE, "postgresql": POSTGRESQL}
NUMBERED = next(version for version, steps in enumerate(SQLITE, start=1) if begin_log in steps)  # first with a log


def migrate(store: Store) -> None:
    """Bring a ledger to the newest version, all of it or nothing; refuse one from a newer Bursar."""
    steps = MIGRATIONS[store.writer.dialect.name]
    with store.reader.connect() as connection:
        if version_of(connection, store.where) == len(steps):
            return
    with store.writer.begin() as connection:
        if store.schema is not None and not sa.inspect(connection).has_schema(store.schema):
            connection.execute(sa.schema.CreateSchema(store.schema))
        version = version_of(connection, store.where)  # again: somebody else may have been faster
        for number, statements in enumerate(steps[version:], start=version + 1):
            for statement in statements:
                if callable(statement):
                    statement(connection)
                else:
                    connection.exec_driver_sql(statement)
            connection.execute(versions.insert().values(version=number, applied_at=now()))


def version_of(connection: sa.Connection, where: str = "the ledger") -> int:
    """The version of a ledger's tables, 0 where there are none."""
    newest = len(MIGRATIONS[connection.dialect.name])
    if not sa.inspect(connection).has_table(versions.name):
        return 0
    version = connection.execute(sa.select(sa.func.max(versions.c.version))).scalar() or 0
    if version > newest:
        raise LedgerError(
            f"{where}: this ledger has version {version}, newer than this Bursar's {newest}", fix="upgrade Bursar"
        )
    return int(version)
