"""What the server keeps beside the ledger: people, sessions, tokens, leases, a few settings. In the project's folder.

Nothing of the annotation is in here. Were the file lost, people would have to be added again and no label would be.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Float, Integer, MetaData, Table, Text, UniqueConstraint

from bursar.errors import ConfigError, LedgerError
from bursar.ledger.places import named

DATABASE_FILE = "web.sqlite"
VERSION = 1

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
    Column("digest", Text, primary_key=True),  # of what the cookie holds
    Column("person", Integer, nullable=False, index=True),
    Column("csrf", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
)
tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("digest", Text, nullable=False, unique=True),  # of the token, which is shown once and not kept
    Column("person", Integer, nullable=True, index=True),  # nobody: of whoever sits here while there are no accounts
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
    """The server's own database, safe under threads; a server that is killed finds all of it again.

    >>> import tempfile
    >>> database = WebDatabase.open(Path(tempfile.mkdtemp()) / DATABASE_FILE)
    >>> database.put("overlap", {"share": 0.1}); database.get("overlap"), database.get("missing", 7)
    ({'share': 0.1}, 7)
    >>> database.close()
    """

    def __init__(self, engine: sa.Engine, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._where = str(engine.url.database)
        self.clock = clock

    @classmethod
    def open(cls, path: Path, clock: Callable[[], float] = time.time) -> WebDatabase:
        """The store in this file, made if it is not there."""
        engine = sa.create_engine(sa.URL.create("sqlite", database=str(path)), connect_args={"timeout": 30})
        sa.event.listen(engine, "connect", _prepare)
        sa.event.listen(engine, "begin", _begin)
        database = cls(engine, clock)
        try:
            path.touch(mode=0o600)  # hashes of passwords are nobody else's business
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
        """One transaction, alone: all of it is kept or nothing."""
        with named(self._where), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Look without waiting for those who write."""
        with named(self._where), self._engine.connect() as connection:
            yield connection.execution_options(reading=True)

    # -- settings ----------------------------------------------------------------------------------------------------
    def get(self, name: str, default: Any = None) -> Any:
        """A setting, or the default where it was never set."""
        with self.reading() as connection:
            found = connection.execute(sa.select(settings.c.value).where(settings.c.name == name)).scalar()
        return default if found is None else json.loads(found)

    def put(self, name: str, value: Any) -> None:
        """Set a setting."""
        with self.writing() as connection:
            connection.execute(settings.delete().where(settings.c.name == name))
            connection.execute(settings.insert().values(name=name, value=json.dumps(value)))

    def secret(self, name: str) -> str:
        """A random text that is drawn once and stays."""
        with self.writing() as connection:
            found = connection.execute(sa.select(settings.c.value).where(settings.c.name == name)).scalar()
            if found is not None:
                return str(json.loads(found))
            drawn = secrets.token_urlsafe(32)
            connection.execute(settings.insert().values(name=name, value=json.dumps(drawn)))
        return drawn


def _begin(connection: sa.Connection) -> None:
    """A writer takes its turn at once, so that it never has to give up half-way."""
    connection.exec_driver_sql("BEGIN" if connection.get_execution_options().get("reading") else "BEGIN IMMEDIATE")


def _prepare(connection: Any, _: Any) -> None:
    """Write-ahead log: a killed server loses nothing, and only a power cut may take back the last moments' leases."""
    connection.isolation_level = None  # our own BEGIN, not the driver's
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL"):
        connection.execute(f"PRAGMA {pragma}")
