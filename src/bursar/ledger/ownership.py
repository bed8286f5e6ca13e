"""Ownership of a ledger on a PostgreSQL server: only one process on any machine may write to it.

It is an advisory lock in a session of its own. The lock is lost with the session: when the process ends, however it
ends, and when the database restarts. So it is checked before every write.
"""

from __future__ import annotations

import os
import socket
import threading
import time

import sqlalchemy as sa

from bursar.errors import StorageError
from bursar.ledger.places import Store

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
    """A lock held from ``take`` to ``release``, unless its session breaks."""

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
                self._take(time.monotonic() + patience)
            except StorageError as fault:
                self._failed = time.monotonic(), fault
                raise
            self._failed = None
            return True

    def _take(self, until: float) -> None:
        while not self._try():
            if time.monotonic() > until:
                raise StorageError(
                    f"{self._store.where}: another process works with this ledger{self._holder()}",
                    fix="stop it first, or name another schema in ledger.url",
                )
            time.sleep(0.1)

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

    def _holder(self) -> str:
        with self._store.translate_errors(), self._store.reader.connect() as connection:
            found = connection.exec_driver_sql(HOLDER).scalar()
        return f": {found}" if found else ""

    def _drop(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
