"""The server's database in the project folder: people, sessions, tokens, leases and a few settings.

Annotations are in the ledger, not here. If this file is lost, accounts have to be added again; no label is lost.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import PlainSerializer
from sqlalchemy import Column, Float, Integer, MetaData, Table, Text, UniqueConstraint
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from bursar.errors import ConfigError, LedgerError
from bursar.ledger.places import sqlite_engine, translate_errors

DATABASE_FILE = "web.sqlite"
VERSION = 1


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


Timestamp = Annotated[float, PlainSerializer(_iso, return_type=str)]  # here in seconds, in the API in ISO 8601, UTC

metadata = MetaData()

people = Table(
    "people",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("folded", Text, nullable=False, unique=True),  # Anna and ANNA are one person
    Column("role", Text, nullable=False),
    Column("password", Text, nullable=False),  # its argon2 hash
    Column("created_at", Float, nullable=False),
)
sessions = Table(
    "sessions",
    metadata,
    Column("digest", Text, primary_key=True),  # of the cookie
    Column("person", Integer, nullable=False, index=True),
    Column("csrf", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
)
tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("digest", Text, nullable=False, unique=True),  # of the token, which is not stored
    Column("person", Integer, nullable=True, index=True),  # null: of the local user of a project without accounts
    Column("label", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("used_at", Float),
)
leases = Table(
    "leases",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("round", Integer, nullable=False),
    Column("item", Text, nullable=False),
    Column("person", Text, nullable=False, index=True),
    Column("expires_at", Float, nullable=False),
    UniqueConstraint("round", "item", "person"),
)
settings = Table(
    "settings",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),  # JSON
)


class WebDatabase:
    """The server's own SQLite database. Thread-safe, and durable if the server is killed."""

    def __init__(self, engine: sa.Engine, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._where = str(engine.url.database)
        self.clock = clock

    @classmethod
    def open(cls, path: Path, clock: Callable[[], float] = time.time) -> WebDatabase:
        """The store in this file, created if it does not exist."""
        # Nothing is lost if the server is killed; a power cut may lose the last leases.
        database = cls(sqlite_engine(str(path), "NORMAL"), clock)
        try:
            path.touch(mode=0o600)  # it holds password hashes
            database._create(path)
        except (LedgerError, OSError) as error:
            raise ConfigError(f"{path} cannot be opened: {str(error).removeprefix(f'{path}: ')}") from None
        return database

    def _create(self, path: Path) -> None:
        with self.writing() as connection:
            version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
            if version > VERSION:
                raise ConfigError(f"{path} was written by a newer Bursar", fix="upgrade Bursar")
            metadata.create_all(connection)
            connection.exec_driver_sql(f"PRAGMA user_version = {VERSION}")

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """An exclusive write transaction."""
        with translate_errors(self._where), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A read transaction, which does not wait for writers."""
        with translate_errors(self._where), self._engine.connect() as connection:
            yield connection.execution_options(reading=True)

    def rows(self, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        with self.reading() as connection:
            return connection.execute(query).all()

    def first(self, query: sa.Select[Any]) -> sa.Row[Any] | None:
        """The first row of a query, if there is one."""
        with self.reading() as connection:
            return connection.execute(query).first()

    def write(self, change: sa.Insert | sa.Update | sa.Delete) -> int:
        """Make one change; returns the number of rows."""
        with self.writing() as connection:
            return connection.execute(change).rowcount

    def get(self, name: str, default: Any = None) -> Any:
        """A setting, or the default if it is not set."""
        found = self.first(sa.select(settings.c.value).where(settings.c.name == name))
        return default if found is None else json.loads(found.value)

    def put(self, name: str, value: Any) -> None:
        with self.writing() as connection:
            connection.execute(settings.delete().where(settings.c.name == name))
            connection.execute(settings.insert().values(name=name, value=json.dumps(value)))

    def secret(self, name: str) -> str:
        """A random string, created once and then kept."""
        drawn = sqlite_insert(settings).values(name=name, value=json.dumps(secrets.token_urlsafe(32)))
        self.write(drawn.on_conflict_do_nothing())
        return str(self.get(name))
