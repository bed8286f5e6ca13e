"""Work in processes: all results, in order, with reports; failures and dead workers are reported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest

from bursar.compute import ComputeError, cores, run_all
from bursar.errors import ConfigError


@dataclass
class Unit:
    number: int
    fails: str = ""

    def __call__(self, tell):
        tell(("begun", self.number))
        if self.fails == "error":
            raise ConfigError(f"unit {self.number} is wrong", fix="correct it")
        if self.fails == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        return self.number * 10, os.getpid()


@pytest.mark.parametrize("workers", [1, 2])
def test_every_unit_is_run_and_results_come_in_order(workers):
    reports = []
    results = run_all([Unit(n) for n in range(3)], workers, reports.append)
    assert [result for result, _ in results] == [0, 10, 20]
    assert sorted(reports) == [("begun", n) for n in range(3)]
    assert all((pid == os.getpid()) == (workers == 1) for _, pid in results)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_error_of_a_unit_is_raised_with_its_words(workers):
    with pytest.raises(ConfigError, match="unit 1 is wrong"):
        run_all([Unit(0), Unit(1, "error")], workers, lambda what: None)


def test_a_worker_that_dies_without_a_word_is_an_error():
    with pytest.raises(ComputeError, match="ended with code -9"):
        run_all([Unit(0), Unit(1, "killed")], 2, lambda what: None)


def test_workers_end_when_their_parent_is_killed(tmp_path):
    code = f"""
import sys, time
sys.path.insert(0, {str(os.getcwd())!r})
from bursar.compute import run_all
from tests.compute.sleeper import Sleeper
if __name__ == "__main__":
    run_all([Sleeper({str(tmp_path)!r}), Sleeper({str(tmp_path)!r})], 2, lambda what: None)
"""
    script = tmp_path / "parent.py"
    script.write_text(code)
    parent = subprocess.Popen([sys.executable, str(script)])
    for _ in range(200):
        pids = [int(path.suffix[1:]) for path in tmp_path.glob("pid.*")]
        if len(pids) == 2:
            break
        time.sleep(0.1)
    assert len(pids) == 2
    parent.kill()
    parent.wait()
    for _ in range(50):
        alive = [pid for pid in pids if _alive(pid)]
        if not alive:
            break
        time.sleep(0.1)
    assert not alive


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_there_is_at_least_one_core():
    assert cores() >= 1
