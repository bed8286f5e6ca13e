"""Detect lost entries when a ledger is opened, and continue without them if the user accepts the loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bursar.errors import LedgerError
from bursar.ledger.decisions import LossAccepted
from bursar.ledger.head import HeadFile
from bursar.ledger.log import Head, audit_log, digest_at, head_of, last_loss, record_decision, relog, running_number
from bursar.ledger.migrations import migrate, version_of
from bursar.ledger.places import Store, holds_ledger, is_url, open_store, public_url, read_only, read_url

TAIL = 500  # entries checked against their digests at every opening; ``bursar check`` checks all


# -- at opening --------------------------------------------------------------------------------------------------------
def check_for_loss(place: str | Path, file: HeadFile | None, begun: bool = False) -> None:
    """Reject a ledger that has fewer or other entries than the head file says. Writes nothing."""
    if file is not None and (lost := find_loss(place, file, begun)):
        raise LedgerError(lost, fix=how_to_restore(place, file))


def find_loss(place: str | Path, file: HeadFile, begun: bool = False) -> str | None:
    """Describe what a ledger has lost; ``None`` if a quick check finds nothing."""
    try:
        known = file.read()
    except LedgerError as damaged:
        return damaged.message
    if known is None:
        return _without_head(place, file, begun)
    if not known.entry:
        return None
    found = _gone(place)
    if found is None:
        with read_only(place) as connection:
            found = _compare(connection, known)
    entries = f"{known.entry:,} entr{'y' if known.entry == 1 else 'ies'}"
    return None if found is None else f"{_shown(place)} {found}: this project had {entries}"


def _without_head(place: str | Path, file: HeadFile, begun: bool) -> str | None:
    """What a ledger without a head file has lost. A ledger on a server may be new to this folder."""
    gone = _gone(place)
    if is_url(place):
        gone = "holds no ledger" if begun and not holds_ledger(place) else None
    elif gone is None:
        with read_only(place) as connection:
            written = version_of(connection) > 0 and head_of(connection).entry > 0
        if written and file.read() is None:  # read again: another process may just have created both
            return f"{file.path} is missing: it says how many entries this project had"
    return f"{_shown(place)} {gone}: this project was begun" if gone and begun else None


def _compare(connection: sa.Connection, known: Head) -> str | None:
    """How a ledger contradicts its head file; ``None`` if it only has newer entries."""
    if not version_of(connection):
        return "holds no ledger"
    own = head_of(connection)
    if own.ledger != known.ledger:
        return "is another ledger than this project's"
    if own.entry < known.entry:
        return f"ends at entry {own.entry}"
    if digest_at(connection, known.entry) != known.digest:
        return f"has another entry {known.entry} than this project recorded"
    problems = audit_log(connection, max(1, own.entry - TAIL + 1, last_loss(connection))).problems
    return f"is damaged ({problems[0]})" if problems else None


def audit_entries(place: str | Path) -> tuple[int, list[str]]:
    """The number of a ledger's entries, and the problems found in all of them."""
    with read_only(place) as connection:
        if not version_of(connection):
            return 0, []
        return head_of(connection).entry, audit_log(connection).problems


def file_problems(place: str | Path) -> list[str]:
    """Problems in the file of an SQLite database; none for a server."""
    if is_url(place):
        return []
    try:
        with read_only(place) as connection:
            said = list(connection.exec_driver_sql("PRAGMA integrity_check").scalars())
            strays = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    except LedgerError as wrong:
        return [str(wrong)]
    problems = [] if said == ["ok"] else [f"{place}: {line}" for line in said]
    return problems + [f"{place}: row {row} of {table} is of no known {parent}" for table, row, parent, _ in strays]


def note_head(store: Store, file: HeadFile | None) -> None:
    """Update the head file."""
    if file is None:
        return
    with store.reader.connect() as connection:
        head = head_of(connection)
    file.path.parent.mkdir(parents=True, exist_ok=True)  # needed if the ledger is on a server
    file.advance(head)


def how_to_restore(place: str | Path, file: HeadFile) -> str:
    """A fix for the user: restore the ledger, or continue without the lost entries."""
    name = Path(place).name
    restore = f"put a backup of {name} back, with {name}-wal if there is one"
    if is_url(place):
        restore = "restore the database from a newer backup"
    return f"{restore}; to go on without what is lost: bursar check {file.path.parent} --accept-loss"


# -- accepting a loss --------------------------------------------------------------------------------------------------
def accept_loss(place: str | Path, file: HeadFile, lost: str) -> int:
    """Continue with what is left, record that as an entry, and return its number."""
    try:
        had: Any = vars(file.read() or Head("", 0, ""))
    except LedgerError:
        had = None
    if not is_url(place) and Path(place).exists() and not Path(place).stat().st_size:
        Path(place).unlink()
    store = open_store(place)
    try:
        with store.translate_errors(" cannot be opened as a ledger"):
            migrate(store)
            with store.writer.begin() as connection:
                kept = head_of(connection).entry
                relog(connection, audit_log(connection).unlogged)
                number, content = running_number(connection, LossAccepted), audit_log(connection).content
                record_decision(connection, LossAccepted(round=number, lost=lost, had=had, kept=kept, content=content))
                head = head_of(connection)
            file.replace(head)
    finally:
        store.writer.dispose()
    return head.entry


# -- messages ----------------------------------------------------------------------------------------------------------
def _gone(place: str | Path) -> str | None:
    if is_url(place):
        return None
    if not Path(place).exists():
        return "is missing"
    return None if Path(place).stat().st_size else "is empty"


def _shown(place: str | Path) -> str:
    return public_url(read_url(str(place))) if is_url(place) else str(place)
