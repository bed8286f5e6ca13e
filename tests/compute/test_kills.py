"""Studies that are killed: what was finished is never run again, and nobody works on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bursar.compute import Store
from tests.compute.works import runs

ROOT = Path(__file__).parents[2]
ANSWER = repr([{"square": x**2, "third": x / 3} for x in range(8)])


def start(folder, engine):
    command = [sys.executable, "-m", "tests.compute.works", str(folder), engine]
    return subprocess.Popen(command, cwd=ROOT, start_new_session=True, stderr=subprocess.PIPE, text=True)


def await_the_middle(folder, workers):
    """Four units are finished, and every worker is busy with another."""
    for _ in range(3000):
        if len(list((folder / "store").glob("*.json"))) == 4 and len(runs(folder)) == 4 + workers:
            return
        time.sleep(0.02)
    raise AssertionError("the study did not get on")


def pids(folder):
    return {int(path.name.split(".")[2]) for path in folder.glob("run.*")}


def alive(pid):
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def check_resumed(folder, engine):
    """A second start runs what was not finished, once, and the answer is that of an undisturbed study."""
    assert {unit["x"] for unit, _ in Store(folder / "store")} == {0, 1, 2, 3}
    assert not (folder / "answer").exists()
    (folder / "go").touch()
    before = runs(folder)
    study = start(folder, engine)
    assert study.wait(60) == 0, study.stderr.read()
    again = {x: count - before.get(x, 0) for x, count in runs(folder).items()}
    assert again == {x: int(x >= 4) for x in range(8)}
    assert (folder / "answer").read_text() == ANSWER


@pytest.mark.parametrize(("engine", "workers"), [("here", 1), ("processes:2", 2)])
def test_after_everything_was_killed_only_the_unfinished_units_are_run(tmp_path, engine, workers):
    study = start(tmp_path, engine)
    await_the_middle(tmp_path, workers)
    os.killpg(study.pid, signal.SIGKILL)
    study.wait()
    check_resumed(tmp_path, engine)


def test_ctrl_c_ends_the_workers_quietly_and_keeps_what_is_finished(tmp_path):
    study = start(tmp_path, "processes:2")
    await_the_middle(tmp_path, 2)
    os.killpg(study.pid, signal.SIGINT)  # as a terminal does: to the parent and all its workers
    said = study.communicate(timeout=30)[1]
    assert study.returncode == -signal.SIGINT
    assert said.count("Traceback") == 1, said
    assert len(pids(tmp_path)) == 2
    assert not [pid for pid in pids(tmp_path) if alive(pid)]
    check_resumed(tmp_path, "processes:2")
