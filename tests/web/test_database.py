"""The server's database: survives kills, refuses unreadable files, and keeps its secrets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from bursar.errors import ConfigError
from bursar.web.database import DATABASE_FILE, WebDatabase

WRITER = """
import sys
from pathlib import Path
from bursar.web.database import WebDatabase
database = WebDatabase.open(Path(sys.argv[1]))
for number in range(100_000):
    database.put("number", number)
    print(number, flush=True)  # acknowledged
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / DATABASE_FILE


def test_what_was_written_before_a_kill_is_there(path):
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True, cwd=os.getcwd()
    )
    acknowledged = [int(writer.stdout.readline()) for _ in range(50)]
    writer.send_signal(signal.SIGKILL)
    acknowledged += [int(line) for line in writer.stdout.read().splitlines() if line]
    writer.wait()
    database = WebDatabase.open(path)
    assert database.get("number") in (acknowledged[-1], acknowledged[-1] + 1)
    database.close()


def test_a_secret_is_drawn_once_and_stays(path):
    drawn = set()
    for _ in range(2):
        database = WebDatabase.open(path)
        drawn.add(database.secret("csrf"))
        other = database.secret("cookie")
        database.close()
    assert len(drawn) == 1
    assert other not in drawn
    assert len(other) >= 32


def test_nobody_else_on_the_machine_reads_it(path):
    WebDatabase.open(path).close()
    assert path.stat().st_mode & 0o077 == 0


def test_a_transaction_that_breaks_leaves_nothing(path):
    database = WebDatabase.open(path)

    def half():
        with database.writing() as connection:
            connection.exec_driver_sql("INSERT INTO settings VALUES ('a', '1')")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert database.get("a") is None
    database.close()


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"\x00" * 5000])
def test_a_damaged_file_is_refused_by_name(path, content):
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=DATABASE_FILE):
        WebDatabase.open(path)


def test_a_newer_file_is_refused(path):
    database = WebDatabase.open(path)
    with database.writing() as connection:
        connection.exec_driver_sql("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(ConfigError, match="newer"):
        WebDatabase.open(path)
