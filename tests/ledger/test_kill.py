"""A process that writes to the ledger is killed: what it had acknowledged is there, once, and the rest is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from bursar.ledger import Ledger
from tests.ledger.test_ledger import corpus

WRITER = """
import sys
from bursar.ledger import Ledger
from tests.ledger.test_ledger import bought, corpus
ledger = Ledger.open(sys.argv[1], corpus())
for number in range(int(sys.argv[2]), 100_000):
    receipt = ledger.submit(bought(f"k{number}", item=f"u{number % 6}"))
    print(number, flush=True)  # acknowledged
"""


def write_and_kill(path, first, seconds):
    """The number of the last submission that was acknowledged before the writer was killed."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(first)], stdout=subprocess.PIPE, text=True, cwd=os.getcwd()
    )
    acknowledged = [int(writer.stdout.readline())]
    time.sleep(seconds)
    writer.send_signal(signal.SIGKILL)
    acknowledged += [int(line) for line in writer.stdout.read().splitlines() if line]
    writer.wait()
    return acknowledged[-1]


def kill_often(path, times, seed):
    rng = np.random.default_rng(seed)
    last = -1
    for _ in range(times):
        # The writer sends again what it is not sure of, as a browser does after a lost connection.
        last = write_and_kill(path, max(last, 0), rng.uniform(0.0, 0.3))
        ledger = Ledger.open(path, corpus())
        keys = ledger.keys()
        assert {f"k{number}" for number in range(last + 1)} <= keys
        assert len(keys) <= last + 2  # at most the one that was on disk before it could be acknowledged
        assert ledger.spent() == 3 * len(keys)
        ledger.close()


def test_nothing_acknowledged_is_lost_or_charged_twice(tmp_path):
    kill_often(tmp_path / "ledger.sqlite", times=3, seed=0)


@pytest.mark.soak
def test_nothing_is_lost_over_a_hundred_kills(tmp_path):
    kill_often(tmp_path / "ledger.sqlite", times=100, seed=1)
