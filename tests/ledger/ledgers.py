"""A small corpus to annotate, and places that its ledger can be kept in."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from bursar.corpus import CorpusBuilder
from bursar.ledger import Annotation, Charge, Ledger, Submission
from tests.postgres import PostgresServer


def corpus():
    builder = CorpusBuilder(
        {
            "intent": {"kind": "classification", "labels": ["alarm", "music"]},
            "slots": {"kind": "tagging", "labels": ["time"]},
            "urgency": {"kind": "regression"},
        }
    )
    for number in range(6):
        builder.add(f"u{number}", text=f"wake me at seven number {number}")
    return builder.build()


def bought(key="k", item="u1", label="alarm", cost=3, **more):
    return Submission(key, (Annotation(item, "intent", label),), (Charge(item, "intent", cost, cost),), **more)


class SQLitePlace:
    """A file."""

    engine = "sqlite"

    def __init__(self, path: Path) -> None:
        self.place = path
        self.folder = path.parent

    def open(self, items: Any = None) -> Ledger:
        return Ledger.open(self.place, items or corpus())

    def raw(self, statement: str) -> list[tuple[Any, ...]]:
        """What the database answers to a statement, past the ledger."""
        with closing(sqlite3.connect(self.place)) as connection, connection:
            return connection.execute(statement).fetchall()

    def tables(self) -> set[str]:
        return {row[0] for row in self.raw("SELECT name FROM sqlite_master WHERE type = 'table'")}


class PostgresPlace:
    """A schema of a server, and the folder of the run whose ledger is there."""

    engine = "postgresql"

    def __init__(self, server: PostgresServer, schema: str, folder: Path) -> None:
        self.server, self.schema, self.folder = server, schema, folder
        self.place = server.url(schema=schema)

    def open(self, items: Any = None) -> Ledger:
        return Ledger.open(self.place, items or corpus(), folder=self.folder)

    def raw(self, statement: str) -> list[tuple[Any, ...]]:
        """What the database answers to a statement, past the ledger."""
        return self.server.raw(statement, self.schema)

    def tables(self) -> set[str]:
        return {row[0] for row in self.raw("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")}
