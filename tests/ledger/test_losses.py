"""Ledgers that were deleted, cut, replaced or changed: none of them opens as a shorter one without a word."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress

import numpy as np
import pytest

from bursar.errors import LedgerError
from bursar.ledger import Ledger
from bursar.ledger.log import Head
from bursar.ledger.losses import SLOT, HeadFile, accept_loss, audit_entries, file_problems, find_loss
from bursar.ledger.records import LossAccepted
from tests.ledger.ledgers import SQLitePlace, bought, corpus

ENTRIES = 30


def write(place, first=0, last=ENTRIES):
    ledger = place.open()
    for number in range(first, last):
        ledger.submit(bought(f"k{number}", item=f"u{number % 6}", timings=(("intent", 0.5 * number),)))
    return ledger


@pytest.fixture
def place(tmp_path):
    """A ledger of thirty entries, closed, in a folder of its own."""
    place = SQLitePlace(tmp_path / "run" / "ledger.sqlite")
    write(place).close()
    return place


@pytest.fixture
def crashed(tmp_path):
    """A ledger whose process was killed: entries are in the write-ahead log alone."""
    place = SQLitePlace(tmp_path / "alive" / "ledger.sqlite")
    write(place, last=10).close()
    ledger = write(place, first=10)
    shutil.copytree(place.folder, tmp_path / "run")
    ledger.close()
    return SQLitePlace(tmp_path / "run" / "ledger.sqlite")


def past_triggers(place, statement):
    """Run a statement that the ledger's triggers would refuse."""
    with closing(sqlite3.connect(place.place)) as raw, raw:
        for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            raw.execute(f"DROP TRIGGER {name}")
        raw.execute(statement)


def contents(folder):
    """The files that a ledger is made of; SQLite's index of the log is no part of it."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith("-shm")} | {
        f"{file.name}": b"" for file in folder.glob("*-wal") if not file.stat().st_size
    }


# -- damages -----------------------------------------------------------------------------------------------------------
def delete(place):
    place.place.unlink()


def empty(place):
    place.place.write_bytes(b"")


def put_back_older(place):
    older = SQLitePlace(place.folder.parent / "older" / "ledger.sqlite")
    shutil.copytree(place.folder, older.folder)
    write(place, first=ENTRIES, last=ENTRIES + 13).close()
    shutil.copy(older.place, place.place)


def put_another(place):
    other = SQLitePlace(place.folder.parent / "other" / "ledger.sqlite")
    write(other, last=ENTRIES + 5).close()
    shutil.copy(other.place, place.place)


def put_empty_database(place):
    delete(place)
    with closing(sqlite3.connect(place.place)) as raw:
        raw.execute("CREATE TABLE other (id INTEGER)")


def change_row(place):
    past_triggers(place, """UPDATE entries SET label = '"music"' WHERE id = 12""")


def change_money(place):
    past_triggers(place, "UPDATE charges SET actual = 4 WHERE id = 12")


def remove_row(place):
    past_triggers(place, "DELETE FROM submissions WHERE id = 12")


def remove_entry(place):
    past_triggers(place, "DELETE FROM log WHERE id = 12")


def remove_head(place):
    place.place.with_suffix(".head").unlink()


def damage_head(place):
    place.place.with_suffix(".head").write_bytes(b"{" * 2 * SLOT)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (delete, r"ledger\.sqlite is missing: this project had 30 entries"),
        (empty, r"ledger\.sqlite is empty: this project had 30 entries"),
        (put_back_older, r"ledger\.sqlite ends at entry 30: this project had 43 entries"),
        (put_another, r"ledger\.sqlite is another ledger than this project's: this project had 30 entries"),
        (put_empty_database, "holds no ledger: this project had 30 entries"),
        (change_row, r"ledger\.sqlite is damaged \(entry 12: submission 12 is not what was recorded\)"),
        (change_money, r"damaged \(entry 12: submission 12 is not what was recorded\)"),
        (remove_row, r"damaged \(entry 12: submission 12 is missing\)"),
        (remove_entry, r"damaged \(entry 12 is missing\)"),
        (remove_head, r"ledger\.head is missing"),
        (damage_head, r"ledger\.head is damaged"),
    ],
)
def test_a_damaged_ledger_is_refused_left_alone_and_opens_when_the_loss_is_accepted(place, damage, said):
    damage(place)
    before = contents(place.folder)
    for _ in range(2):
        with pytest.raises(LedgerError, match=said) as refused:
            place.open()
    assert "put a backup of ledger.sqlite back" in refused.value.fix
    assert f"bursar check {place.folder} --accept-loss" in refused.value.fix
    after = contents(place.folder)
    assert {name: after[name] for name in before} == before
    assert not any(after[name] for name in after.keys() - before.keys())  # at most an empty write-ahead log

    head = HeadFile(place.place.with_suffix(".head"))
    entry = accept_loss(place.place, head, find_loss(place.place, head))
    ledger = place.open()
    (accepted,) = ledger.decisions(LossAccepted)
    assert accepted.round == 1
    assert said.replace("\\", "").split(":")[0].split("(")[0] in accepted.lost
    assert not ledger.submit(bought("new")).repeated
    ledger.close()
    assert head.read().entry == entry + 1
    assert audit_entries(place.place) == (entry + 1, [])


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.99])
def test_a_lost_or_half_write_ahead_log_is_refused(crashed, share):
    log = crashed.place.with_name("ledger.sqlite-wal")
    text = log.read_bytes()
    assert len(text) > 4096 * 20
    log.unlink()
    if share:
        log.write_bytes(text[: int(share * len(text))])
    with pytest.raises(LedgerError, match=r"ends at entry (1|2)\d: this project had 30 entries"):
        crashed.open()
    log.write_bytes(text)  # as the message says: put it back
    ledger = crashed.open()
    assert len(ledger.keys()) == ENTRIES
    ledger.close()


def test_a_ledger_that_was_only_ever_in_its_write_ahead_log_is_refused_without_it(tmp_path):
    alive = SQLitePlace(tmp_path / "alive" / "ledger.sqlite")
    ledger = write(alive)
    shutil.copytree(alive.folder, tmp_path / "run", ignore=shutil.ignore_patterns("*-wal", "*-shm"))
    ledger.close()
    with pytest.raises(LedgerError, match="holds no ledger: this project had 30 entries"):
        Ledger.open(tmp_path / "run" / "ledger.sqlite", corpus())


@pytest.mark.parametrize("seed", range(16))
def test_wherever_a_file_is_cut_it_never_opens_as_a_shorter_ledger(crashed, seed):
    rng = np.random.default_rng(seed)
    for file in sorted(crashed.folder.glob("ledger.sqlite*")):
        if not file.name.endswith("-shm") and rng.random() < 0.7:
            text = file.read_bytes()
            file.write_bytes(text[: int(rng.integers(len(text) + 1))])
    found = None
    with suppress(LedgerError):
        ledger = crashed.open()
        try:
            found = len(ledger.keys()), len(ledger.answers()), ledger.spent()
        finally:
            ledger.close()
    assert found in (None, (ENTRIES, ENTRIES, 3 * ENTRIES))


def test_a_change_that_lies_far_back_is_found_on_demand(tmp_path, monkeypatch):
    monkeypatch.setattr("bursar.ledger.losses.TAIL", 5)
    place = SQLitePlace(tmp_path / "ledger.sqlite")
    write(place).close()
    change_row(place)
    place.open().close()
    assert audit_entries(place.place) == (30, ["entry 12: submission 12 is not what was recorded"])


def test_rows_that_came_past_the_ledger_are_found(place):
    place.raw("INSERT INTO decisions VALUES (7, 3, 'selection', '{}', 'today')")
    assert audit_entries(place.place)[1] == ["decision 7 is in no entry"]
    place.raw("PRAGMA foreign_keys = OFF")
    place.raw("INSERT INTO timings VALUES (99, 4711, 'u1', 'intent', 1.0)")
    assert file_problems(place.place) == [f"{place.place}: row 99 of timings is of no known submissions"]


# -- what is no loss ---------------------------------------------------------------------------------------------------
def test_a_process_killed_between_commit_and_head_file_loses_nothing(place, monkeypatch):
    ledger = place.open()
    with monkeypatch.context() as patched:
        patched.setattr(HeadFile, "advance", lambda self, head: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ledger.submit(bought("last"))
    ledger.close()
    again = place.open()
    assert again.submit(bought("last")).repeated
    again.close()
    assert HeadFile(place.place.with_suffix(".head")).read().entry == ENTRIES + 1


@pytest.mark.parametrize("slot", [0, 1])
def test_one_spoilt_line_of_the_head_file_is_made_up_for(place, slot):
    file = place.place.with_suffix(".head")
    with open(file, "r+b") as raw:
        raw.seek(slot * SLOT + 20)
        raw.write(b"#" * 30)
    place.open().close()
    assert HeadFile(file).read().entry == ENTRIES


def test_a_head_file_never_goes_back(tmp_path):
    file = HeadFile(tmp_path / "ledger.head")
    for entry in (7, 6):
        file.advance(Head("a" * 32, entry, "b" * 32))
    assert file.read().entry == 7


def test_a_head_file_that_was_made_and_never_written_is_no_loss(tmp_path):
    place = SQLitePlace(tmp_path / "ledger.sqlite")
    place.open().close()
    (tmp_path / "ledger.head").write_bytes(b"")
    write(place).close()


def test_a_ledger_in_which_nothing_was_recorded_may_be_made_anew(place, tmp_path):
    place = SQLitePlace(tmp_path / "ledger.sqlite")
    place.open().close()
    delete(place)
    assert not Ledger.exists(place.place)
    write(place).close()
    assert HeadFile(tmp_path / "ledger.head").read().entry == ENTRIES


def test_a_copied_a_moved_and_a_removed_folder_open_as_before(place):
    copy = place.folder.with_name("copy")
    shutil.copytree(place.folder, copy)
    place.folder.rename(place.folder.with_name("moved"))
    for folder in (copy, place.folder.with_name("moved")):
        write(SQLitePlace(folder / "ledger.sqlite"), last=ENTRIES + 3).close()
    write(place, last=2).close()


def test_a_ledger_that_was_killed_while_it_was_made_opens_again(tmp_path, monkeypatch):
    place = SQLitePlace(tmp_path / "ledger.sqlite")
    with monkeypatch.context() as patched:  # killed after the tables were made, before there was a head file
        patched.setattr("bursar.ledger.ledger.note_head", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            place.open()
    place.open().close()
    assert place.raw("SELECT kind, record FROM log ORDER BY id") == [("ledger", 0)]
    assert audit_entries(place.place) == (0, [])


# -- on a server -------------------------------------------------------------------------------------------------------
def test_a_server_that_was_restored_from_an_old_backup_is_refused(place_for_ledger):
    place = place_for_ledger("postgresql")
    write(place).close()
    for table, column in {
        "log": "id",
        "timings": "submission",
        "charges": "submission",
        "entries": "submission",
    }.items():
        place.raw(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        place.raw(f"DELETE FROM {table} WHERE {column} > 20")
    place.raw("ALTER TABLE submissions DISABLE TRIGGER USER")
    place.raw("DELETE FROM submissions WHERE id > 20")
    with pytest.raises(LedgerError, match="ends at entry 20: this project had 30 entries") as refused:
        place.open()
    assert "restore the database from a newer backup" in refused.value.fix
    Ledger.open(place.place, corpus(), folder=place.folder / "another machine's").close()
    head = HeadFile(place.folder / "ledger.head")
    assert accept_loss(place.place, head, find_loss(place.place, head)) == 21
    write(place).close()


def test_a_schema_that_was_dropped_is_refused(place_for_ledger):
    place = place_for_ledger("postgresql")
    write(place).close()
    place.raw(f'DROP SCHEMA "{place.schema}" CASCADE')
    assert Ledger.exists(place.place, place.folder)
    with pytest.raises(LedgerError, match="holds no ledger: this project had 30 entries"):
        place.open()
    (place.folder / "ledger.head").unlink()
    with pytest.raises(LedgerError, match="holds no ledger: this project was begun"):
        Ledger.open(place.place, corpus(), folder=place.folder, begun=True)
