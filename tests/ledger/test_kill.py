"""A process that writes to a ledger is killed, or the server that keeps it: what was acknowledged is there, once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

from tests.ledger.ledgers import PostgresPlace

WRITER = """
import sys, time
from pathlib import Path
from bursar.errors import LedgerError
from tests.ledger.ledgers import Ledger, bought, corpus
print("opening", flush=True)
ledger = Ledger.open(sys.argv[1], corpus(), folder=Path(sys.argv[3]))
number = int(sys.argv[2])
while True:
    try:
        ledger.submit(bought(f"k{number}", item=f"u{number % 6}"))
    except LedgerError as wrong:  # sent again until it is taken, as a browser does after a lost connection
        print("refused", wrong, flush=True)
        time.sleep(0.05)
        continue
    print(number, flush=True)  # acknowledged
    number += 1
"""


@contextmanager
def writer(place, first):
    """A process that submits one after the other and says what was acknowledged; it is killed in the end."""
    command = [sys.executable, "-c", WRITER, str(place.place), str(first), str(place.folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=os.getcwd())
    try:
        assert process.stdout.readline() == "opening\n"
        yield process
    finally:
        process.kill()
        process.wait()


def write_and_kill(place, first, seconds, opening=False):
    """Kill a writer some time after it was first acknowledged something, or after it began to open the ledger.

    The number of the last submission that was acknowledged; if there was none, the one before the first.
    """
    with writer(place, first) as process:
        acknowledged = [first - 1 if opening else int(process.stdout.readline())]
        time.sleep(seconds)
        process.kill()
        acknowledged += [int(line) for line in process.stdout.read().splitlines()]
    return acknowledged[-1]


def kill_often(place, times, seed):
    rng = np.random.default_rng(seed)
    last = -1
    for number in range(times):
        last = max(last, write_and_kill(place, max(last, 0), rng.uniform(0.0, 0.3), opening=number % 2 == 1))
        ledger = place.open()
        keys = ledger.keys()
        assert {f"k{number}" for number in range(last + 1)} <= keys
        assert len(keys) <= last + 2  # at most the one that was on disk before it could be acknowledged
        assert ledger.spent() == 3 * len(keys)
        assert len(ledger.answers()) == len(keys)
        ledger.close()


def test_nothing_acknowledged_is_lost_or_charged_twice(ledger_place):
    kill_often(ledger_place, times=4, seed=0)


def strike_server(place, times, seed):
    """The server dies again and again under a writer, who goes on as soon as it is back."""
    rng = np.random.default_rng(seed)
    server, last = place.server, -1
    with writer(place, 0) as process:
        for _ in range(times):
            for _ in range(int(rng.integers(1, 30))):
                last = int(process.stdout.readline())
            server.kill()
            try:
                while not (line := process.stdout.readline()).startswith("refused"):
                    last = int(line)
                assert "nothing is recorded twice" in line
            finally:
                server.start()
            ledger = place.open()
            assert {f"k{number}" for number in range(last + 1)} <= ledger.keys()
            ledger.close()
            while (line := process.stdout.readline()).startswith("refused"):
                pass
            assert int(line) == last + 1
            last += 1
    ledger = place.open()
    assert len(ledger.keys()) >= last + 1
    assert ledger.spent() == 3 * len(ledger.keys())
    ledger.close()


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(postgres, tmp_path):
    assert postgres.raw("SHOW fsync") == [("on",)]
    strike_server(PostgresPlace(postgres, "struck", tmp_path), times=2, seed=0)


@pytest.mark.soak
def test_nothing_is_lost_over_thirty_kills_of_the_server(postgres, tmp_path):
    strike_server(PostgresPlace(postgres, "struck often", tmp_path), times=30, seed=1)
