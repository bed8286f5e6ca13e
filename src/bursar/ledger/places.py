"""Storage of a ledger: an SQLite file, or a schema of a PostgreSQL database.

In both, writers take turns, readers see a consistent snapshot without waiting, and a commit is on disk before it is
acknowledged. Messages about a storage place never contain a password. On a server, only one process on any machine may
own a ledger.
"""

from __future__ import annotations

import os
import re
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from bursar.errors import LedgerError, StorageError
from bursar.ledger.schema import versions

PATIENCE = 30  # seconds that a writer waits for its turn
CUT_OFF = 10  # seconds until a server that does not respond counts as gone
EXAMPLE = "postgresql://name@host/database?schema=spring"
RESTORE = (
    "put a backup of the file back, with its -wal file if there is one; to begin anew, move the file away, "
    "and then: bursar check PROJECT --accept-loss"
)
LONGEST_SCHEMA = 63  # bytes; the server would truncate longer names silently


@dataclass(frozen=True, eq=False)
class Store:
    """Engines for writing and reading a ledger, and its name for messages."""

    writer: sa.Engine
    reader: sa.Engine
    where: str
    schema: str | None = None

    @contextmanager
    def translate_errors(self, doing: str = "", fix: str | None = None) -> Iterator[None]:
        """Turn database errors into ours, with the place but without statements and passwords."""
        with translate_errors(f"{self.where}{doing}", fix, _secrets(self.writer.url)):
            yield


@contextmanager
def translate_errors(where: str, fix: str | None = None, secrets: Sequence[str] = ()) -> Iterator[None]:
    """Turn database errors into ours: ``LedgerError`` for bad data or damage, else ``StorageError``."""
    try:
        yield
    except (sa.exc.DBAPIError, sa.exc.TimeoutError) as wrong:
        said = " ".join(str(getattr(wrong, "orig", None) or wrong).split()).rstrip(".")
        if any(secret in said for secret in secrets):
            said = "the server's message is not shown, because it contains a password"
        if "no password supplied" in said:
            fix = "give it in PGPASSWORD or in the file ~/.pgpass"
        code = getattr(getattr(wrong, "orig", None), "sqlite_errorcode", 0)
        if code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):  # damaged, or no database
            raise LedgerError(f"{where}: {said}", fix=RESTORE) from None
        if isinstance(wrong, (sa.exc.IntegrityError, sa.exc.DataError)):
            raise LedgerError(f"{where}: {said}", fix=fix) from None
        broke = isinstance(wrong, sa.exc.DBAPIError) and wrong.connection_invalidated
        raise StorageError(f"{where}: {said}", fix=fix, in_doubt=broke) from None


def open_store(place: str | Path) -> Store:
    """The store of a file or URL; does not connect yet."""
    return _postgresql(read_url(str(place))) if is_url(place) else _sqlite(str(place))


@contextmanager
def opened(place: str | Path) -> Iterator[Store]:
    """The store of a file or URL, which is closed afterwards."""
    store = open_store(place)
    try:
        yield store
    finally:
        store.writer.dispose()


@contextmanager
def read_only(place: str | Path) -> Iterator[sa.Connection]:
    """A read-only connection with a consistent snapshot; leaves even a write-ahead log from a crash unchanged."""
    if is_url(place):
        store = open_store(place)
    else:
        file = f"file:{quote(str(Path(place).absolute()))}?mode=ro"
        connect = partial(sqlite3.connect, file, uri=True, timeout=PATIENCE, isolation_level=None)
        engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.pool.NullPool)
        sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
        store = Store(engine, engine, str(place))
    try:
        with store.translate_errors(" cannot be opened as a ledger"), store.reader.connect() as connection:
            yield connection
    finally:
        store.writer.dispose()


def holds_ledger(place: str | Path) -> bool:
    """Whether there is a ledger; creates nothing."""
    if not is_url(place):
        return Path(place).exists()
    with opened(place) as store, store.translate_errors(), store.reader.connect() as connection:
        return sa.inspect(connection).has_table(versions.name)


def check_server(store: Store) -> None:
    """Reject a server with the wrong encoding, or without durable writes."""
    if store.reader.dialect.name != "postgresql":
        return
    with store.reader.connect() as connection:
        asked = "SELECT current_setting('server_encoding'), current_setting('fsync')"
        encoding, fsync = connection.exec_driver_sql(asked).one()
    if encoding != "UTF8":
        raise LedgerError(
            f"{store.where}: the database has the encoding {encoding}, and a ledger needs UTF8",
            fix="create one with: createdb --encoding=UTF8 --template=template0 NAME",
        )
    if fsync != "on":
        message = f"{store.where}: the server runs with fsync = {fsync}, so a power failure could lose committed data"
        raise LedgerError(message, fix="turn fsync on")


# -- URLs --------------------------------------------------------------------------------------------------------------
def is_url(place: str | Path) -> bool:
    """Whether this is a URL rather than a file."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(place)) is not None


def read_url(text: str) -> sa.URL:
    """Parse and check a ledger's URL. Errors do not quote the text, which may contain a password."""
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        raise LedgerError("the ledger's URL cannot be read", fix=f"write it as {EXAMPLE}") from None
    if url.drivername not in ("postgresql", "postgresql+psycopg", "postgres"):
        fix = f"give a file, or a URL such as {EXAMPLE}"
        raise LedgerError(f"a ledger cannot be kept at {url.drivername}://", fix=fix)
    if "@" in (url.host or ""):
        raise LedgerError("the ledger's URL has an @ too many", fix="write the @ of a password as %40")
    left_empty = re.search(r"[?&]schema=?(&|$)", text)  # the URL parser drops it
    schema = "" if left_empty else url.query.get("schema", "any")
    fits = isinstance(schema, str) and re.fullmatch("(?!pg_)[^\0\ud800-\udfff]+", schema, re.IGNORECASE)
    if not fits or len(str(schema).encode()) > LONGEST_SCHEMA:
        fix = f"give one name of 1 to {LONGEST_SCHEMA} bytes that does not begin with pg_"
        raise LedgerError(f"the ledger's URL names the schema {schema!r}", fix=fix)
    return url.set(drivername="postgresql")


def holds_password(url: sa.URL) -> bool:
    """Whether a URL contains a password."""
    return bool(_secrets(url))


def _secrets(url: sa.URL) -> list[str]:
    found = [url.password, *(url.query.get(key) for key in ("password", "sslpassword"))]
    return [text for text in found if isinstance(text, str) and text]


def sibling_url(url: str, name: str) -> str:
    """The URL of a ledger that belongs to another one, in a schema of its own."""
    parts = read_url(url)
    schema = parts.query.get("schema")
    named = parts.update_query_dict({"schema": f"{schema}/{name}" if schema else name})
    return read_url(named.render_as_string(hide_password=False)).render_as_string(hide_password=False)


def public_url(url: sa.URL) -> str:
    """A URL for messages: user, host, database and schema only."""
    kept = {key: value for key, value in url.query.items() if key in ("host", "port", "schema")}
    plain = sa.URL.create("postgresql", url.username, None, url.host, url.port, url.database, kept)
    return plain.render_as_string(hide_password=False)


# -- SQLite ------------------------------------------------------------------------------------------------------------
def _sqlite(where: str) -> Store:
    if where != ":memory:":
        try:
            Path(where).parent.mkdir(parents=True, exist_ok=True)
        except OSError as wrong:
            raise LedgerError(f"{where} cannot be opened as a ledger: {wrong}") from None
    engine = sqlite_engine(where)
    return Store(engine, engine.execution_options(reading=True), where)


def sqlite_engine(where: str, synchronous: str = "FULL") -> sa.Engine:
    """An engine with a connection per thread and a write-ahead log; ``:memory:`` has one connection.

    Writers lock at once, so that none fails half-way; those that are ``reading`` do not wait. With ``FULL``, every
    commit is on disk before it is acknowledged.
    """

    def prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # our own BEGIN, not the driver's
        _keep_log(connection)
        for pragma in (f"synchronous = {synchronous}", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")

    def begin(connection: sa.Connection) -> None:
        reading = connection.get_execution_options().get("reading")
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    pool = sa.pool.StaticPool if where == ":memory:" else sa.pool.QueuePool
    url = sa.URL.create("sqlite", database=where)
    engine = sa.create_engine(url, poolclass=pool, connect_args={"timeout": PATIENCE})
    sa.event.listen(engine, "connect", prepare)
    sa.event.listen(engine, "begin", begin)
    return engine


def _keep_log(connection: Any) -> None:
    """Switch to a write-ahead log. Retry, because concurrent switches of a new file fail whatever the timeout."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as wrong:
            if wrong.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(0.005)


# -- PostgreSQL --------------------------------------------------------------------------------------------------------
def _postgresql(url: sa.URL) -> Store:
    """A schema of a database: the one in the URL, or the default of the connection."""
    found = url.query.get("schema")
    schema = found if isinstance(found, str) else None
    server = url.set(drivername="postgresql+psycopg").difference_update_query(["schema"])
    options: dict[str, Any] = {"connect_timeout": CUT_OFF, "application_name": "bursar", "client_encoding": "utf8"}
    options |= {"keepalives_idle": CUT_OFF, "keepalives_interval": 5, "keepalives_count": 3}
    options |= {"tcp_user_timeout": 1000 * CUT_OFF}  # milliseconds
    try:
        engine = sa.create_engine(
            server,
            isolation_level="READ COMMITTED",  # a writer that waited sees what was committed before it
            pool_pre_ping=True,  # the server may have restarted
            connect_args={key: value for key, value in options.items() if key not in url.query},
        )
    except ModuleNotFoundError:
        raise LedgerError("PostgreSQL needs psycopg", fix="pip install 'bursar[postgres]'") from None

    def prepare(connection: Any, _: Any) -> None:
        """Use one schema only, durable commits, and timeouts for locks and idle writers."""
        connection.autocommit = True
        connection.execute(
            "SELECT set_config('search_path', quote_ident(coalesce(%s, current_schema())), false)", [schema]
        )
        connection.execute(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
        connection.execute(f"SET lock_timeout = '{PATIENCE}s'")
        connection.execute(f"SET idle_in_transaction_session_timeout = '{2 * PATIENCE}s'")
        connection.autocommit = False

    def begin(connection: sa.Connection) -> None:
        """Serialise writers, so that ids follow the order of commits without gaps."""
        if not connection.get_execution_options().get("reading"):
            turn = "SELECT pg_advisory_xact_lock(hashtextextended('bursar ' || coalesce(current_schema(), %s), 0))"
            connection.exec_driver_sql(turn, (schema or "",))

    sa.event.listen(engine, "connect", prepare)
    sa.event.listen(engine, "begin", begin)
    reader = engine.execution_options(reading=True, isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return Store(engine, reader, public_url(url), schema)


# -- ownership of a ledger on a server ---------------------------------------------------------------------------------
KEY = "hashtextextended('bursar owner ' || current_schema(), 0)"
TAKE = f"SELECT pg_try_advisory_lock({KEY})"
HOLDER = f"""
SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND (classid::bigint << 32 | objid::bigint) = {KEY}
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
PAUSE = 2.0  # seconds without a new attempt after a failure, so that only one of many requests waits
# With these settings the database notices a dead machine within a minute.
SETTINGS = """
SELECT set_config('application_name', %s, false), set_config('tcp_keepalives_idle', '30', false),
       set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false)
"""


class Ownership:
    """Only one process on any machine may write to a ledger on a server.

    It is an advisory lock in a session of its own, held from ``take`` to ``release``. The lock is lost with the
    session: when the process ends, however it ends, and when the database restarts. So it is checked before every
    write.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._session: sa.Connection | None = None
        self._turn = threading.Lock()
        self._failed: tuple[float, StorageError] | None = None  # when, and why

    def take(self, patience: float = 0.0) -> bool:
        """Take the lock, or raise an error that names its owner; false if this process held it already.

        It is taken between two writes, so any write of the previous owner has finished.
        """
        with self._turn:
            if self._is_held():
                return False
            if self._failed is not None and time.monotonic() - self._failed[0] < PAUSE:
                raise StorageError(self._failed[1].message, fix=self._failed[1].fix)
            try:
                until = time.monotonic() + patience
                while not self._try():
                    if time.monotonic() > until:
                        raise self._taken()
                    time.sleep(0.1)
            except StorageError as fault:
                self._failed = time.monotonic(), fault
                raise
            self._failed = None
            return True

    def _taken(self) -> StorageError:
        with self._store.translate_errors(), self._store.reader.connect() as connection:
            found = connection.exec_driver_sql(HOLDER).scalar()
        message = f"{self._store.where}: another process works with this ledger{f': {found}' if found else ''}"
        return StorageError(message, fix="stop it first, or name another schema in ledger.url")

    def check(self) -> None:
        """Raise an error if the lock was lost, because another process may have written since."""
        with self._turn:
            if not self._is_held():
                raise StorageError(f"{self._store.where}: the connection that holds this ledger broke", in_doubt=True)

    def release(self) -> None:
        with self._turn:
            self._drop()

    def _is_held(self) -> bool:
        """Whether the session, and with it the lock, is alive."""
        if self._session is None:
            return False
        try:
            self._session.exec_driver_sql("SELECT 1")
            self._session.commit()
        except sa.exc.SQLAlchemyError:
            self._drop()
            return False
        return True

    def _try(self) -> bool:
        taken = False
        try:
            with self._store.translate_errors(), self._store.writer.begin():
                session = self._store.writer.connect().execution_options(reading=True, isolation_level="AUTOCOMMIT")
                self._session = session
                session.detach()  # take it out of the connection pool
                session.exec_driver_sql(SETTINGS, (f"bursar on {socket.gethostname()}, process {os.getpid()}",))
                taken = bool(session.exec_driver_sql(TAKE).scalar_one())
                session.commit()
        finally:
            if not taken:
                self._drop()
        return taken

    def _drop(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
