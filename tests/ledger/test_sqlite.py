"""Ledgers in files."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from bursar.errors import LedgerError
from bursar.ledger import Ledger, migrations, places
from bursar.ledger.places import _keep_log
from tests.ledger.ledgers import SQLitePlace, bought, corpus

# The tables of version 1, as they came from the first Bursar that had a ledger, with what it wrote into them.
VERSION_1 = """
CREATE TABLE versions (version INTEGER NOT NULL, applied_at TEXT NOT NULL, PRIMARY KEY (version));
CREATE TABLE submissions (
    id INTEGER NOT NULL, "key" TEXT NOT NULL, digest TEXT NOT NULL, round INTEGER NOT NULL, purpose TEXT NOT NULL,
    annotator TEXT NOT NULL, created_at TEXT NOT NULL, PRIMARY KEY (id), UNIQUE ("key")
);
CREATE TABLE decisions (
    id INTEGER NOT NULL, round INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, created_at TEXT NOT NULL,
    PRIMARY KEY (id), UNIQUE (round, kind)
);
CREATE TABLE charges (
    id INTEGER NOT NULL, submission INTEGER NOT NULL, item TEXT NOT NULL, what TEXT NOT NULL, estimate BIGINT NOT NULL,
    actual BIGINT NOT NULL, PRIMARY KEY (id), FOREIGN KEY(submission) REFERENCES submissions (id)
);
CREATE TABLE entries (
    id INTEGER NOT NULL, submission INTEGER NOT NULL, item TEXT NOT NULL, task TEXT NOT NULL, label TEXT,
    PRIMARY KEY (id), FOREIGN KEY(submission) REFERENCES submissions (id)
);
CREATE INDEX ix_charges_submission ON charges (submission);
CREATE INDEX ix_entries_item ON entries (item);
CREATE INDEX ix_entries_submission ON entries (submission);
INSERT INTO versions VALUES (1, '2024-01-01T00:00:00.000+00:00');
INSERT INTO submissions
    VALUES (1, 'k', '2a1b4d4f0595525ae219d34959f3e4be', 0, 'strategy', 'somebody', '2024-01-01T00:00:00.000+00:00');
INSERT INTO submissions
    VALUES (2, 'k2', '750959d9e465749bc4c9372d6e2c3125', 0, 'strategy', 'somebody', '2024-01-01T00:00:01.000+00:00');
INSERT INTO entries VALUES (1, 1, 'u1', 'intent', '"alarm"');
INSERT INTO entries VALUES (2, 2, 'u2', 'intent', NULL);
INSERT INTO charges VALUES (1, 1, 'u1', 'intent', 3, 3);
INSERT INTO charges VALUES (2, 2, 'u2', 'intent', 3, 3);
INSERT INTO decisions VALUES (1, 0, 'x', '{"a": 1}', '2024-01-01T00:00:02.000+00:00');
"""
VERSION_1 += "".join(
    f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;"
    for table in ("submissions", "entries", "charges", "decisions")
    for verb in ("UPDATE", "DELETE")
)
FINGERPRINT = "35da532be44a02b2d2aff879b6c9ccf5"  # of those rows, by that Bursar


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "l.sqlite"
    with closing(sqlite3.connect(path)) as raw:
        raw.executescript(VERSION_1)
    return SQLitePlace(path)


def columns(place):
    """Every column of every table: its name, its type, whether it may be missing, its place in the primary key."""
    return {t: [(c[1], c[2], c[3], c[5]) for c in place.raw(f"PRAGMA table_info({t})")] for t in place.tables()}


def test_a_ledger_of_version_1_opens_with_all_that_it_held(old):
    ledger = old.open()
    assert ledger.fingerprint() == FINGERPRINT
    assert ledger.view()[0].labels == {"intent": "alarm"}
    assert ledger.spent() == 6
    assert ledger.decision(0, "x") == {"a": 1}
    assert [(a.key, a.label, a.role, a.seconds) for a in ledger.answers()] == [
        ("k", "alarm", "answer", None),
        ("k2", None, "answer", None),
    ]
    assert ledger.submit(bought()).repeated  # by the digest of then
    assert not ledger.submit(bought("k3", item="u3", timings=(("intent", 2.0),), role="overlap")).repeated
    ledger.close()


def test_a_ledger_that_grew_up_has_the_tables_of_one_that_is_new(old, tmp_path):
    new = SQLitePlace(tmp_path / "new.sqlite")
    for place in (old, new):
        place.open().close()
    assert columns(old) == columns(new)
    names = "SELECT name, tbl_name FROM sqlite_master WHERE type IN ('index', 'trigger') ORDER BY name"
    assert old.raw(names) == new.raw(names)


def test_the_first_migration_still_makes_the_tables_of_version_1(old, tmp_path):
    first = SQLitePlace(tmp_path / "first.sqlite")
    for statement in migrations.SQLITE[0]:
        first.raw(statement)
    assert columns(first) == columns(old)


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
