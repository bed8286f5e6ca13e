"""Create a ledger's tables, and migrate older ledgers to the newest version.

Step n takes version n - 1 to version n. Once a version is released, append steps and never edit existing ones.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from bursar.errors import LedgerError
from bursar.ledger import schema
from bursar.ledger.log import begin_log
from bursar.ledger.places import Store

APPEND_ONLY = [table for table in schema.metadata.tables.values() if table is not schema.versions]
SAME = {  # conditions, besides equal ids, under which rows count as the same row
    schema.submissions: "key = NEW.key",
    schema.decisions: "(round = NEW.round AND kind = NEW.kind)",
    schema.timings: "(submission = NEW.submission AND what = NEW.what)",
    schema.skips: "key = NEW.key",
}


def create(connection: sa.Connection) -> None:
    """Create the tables, with triggers that reject changes and deletions."""
    schema.metadata.create_all(connection, checkfirst=False)
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
            connection.execute(schema.versions.insert().values(version=number, applied_at=schema.now()))


def version_of(connection: sa.Connection, where: str = "the ledger") -> int:
    """The version of a ledger's tables; 0 if there are none."""
    if not sa.inspect(connection).has_table(schema.versions.name):
        return 0
    version = connection.execute(sa.select(sa.func.max(schema.versions.c.version))).scalar() or 0
    if version > len(STEPS):
        message = f"{where}: this ledger has version {version}, newer than this Bursar's {len(STEPS)}"
        raise LedgerError(message, fix="upgrade Bursar")
    return int(version)
