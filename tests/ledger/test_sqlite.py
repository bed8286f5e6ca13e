"""Ledgers in files."""

from __future__ import annotations

import sqlite3

import pytest

from bursar.errors import LedgerError
from bursar.ledger import Ledger, places
from bursar.ledger.places import _keep_log
from tests.ledger.ledgers import SQLitePlace, bought, corpus


def test_a_file_that_is_no_ledger_is_refused(tmp_path):
    path = tmp_path / "l.sqlite"
    path.write_bytes(b"certainly not a database, but long enough to look at" * 20)
    with pytest.raises(LedgerError, match=r"l\.sqlite"):
        Ledger.open(path, corpus())
    with pytest.raises(LedgerError, match=r"l\.sqlite"):
        Ledger.open(path / "below", corpus())


def test_a_commit_is_synchronous_and_logged_ahead(tmp_path):
    ledger = Ledger.open(tmp_path / "l.sqlite", corpus())
    with ledger._reading() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
    ledger.close()


def test_what_the_file_system_refuses_is_said_with_the_file(tmp_path):
    place = SQLitePlace(tmp_path / "l.sqlite")
    ledger = place.open()
    place.raw("CREATE TRIGGER full BEFORE INSERT ON submissions BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
    with pytest.raises(LedgerError, match=r"l\.sqlite: disk is full\. Fix: do it again"):
        ledger.submit(bought())
    ledger.close()


# -- the write-ahead log of a new file ---------------------------------------------------------------------------------
class Contested:
    """A connection whose first statements are refused with some code, as where several make the same file at once."""

    def __init__(self, code: int, times: int) -> None:
        self.code, self.left, self.ran = code, times, []

    def execute(self, statement: str) -> None:
        if self.left:
            self.left -= 1
            wrong = sqlite3.OperationalError("refused")
            wrong.sqlite_errorcode = self.code
            raise wrong
        self.ran.append(statement)


@pytest.mark.parametrize("code", [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_RECOVERY])
def test_who_is_refused_because_others_make_the_same_file_tries_again(code):
    connection = Contested(code, times=3)
    _keep_log(connection)
    assert connection.ran == ["PRAGMA journal_mode = WAL"]


def test_any_other_refusal_is_told_at_once():
    connection = Contested(sqlite3.SQLITE_CANTOPEN, times=1)
    with pytest.raises(sqlite3.OperationalError):
        _keep_log(connection)
    assert connection.left == 0


def test_patience_has_an_end(monkeypatch):
    monkeypatch.setattr(places, "PATIENCE", 0.02)
    with pytest.raises(sqlite3.OperationalError):
        _keep_log(Contested(sqlite3.SQLITE_BUSY, times=10**6))
