"""The study of ``works``, in a process of its own: started, watched, and started again after it was stopped."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from bursar.compute import ResultStore
from tests.compute.works import runs

ROOT = Path(__file__).parents[2]
ANSWER = repr([{"square": x**2, "third": x / 3} for x in range(8)])


def start(folder, engine):
    command = [sys.executable, "-m", "tests.compute.works", str(folder), engine]
    return subprocess.Popen(command, cwd=ROOT, start_new_session=True, stderr=subprocess.PIPE, text=True)


def await_the_middle(folder, workers, study=None):
    """Four units are finished, and every worker is busy with another."""
    for _ in range(6000):
        finished, begun = len(list((folder / "store").glob("*.json"))), len(runs(folder))
        if finished == 4 and begun == 4 + workers:
            return
        assert study is None or study.poll() is None, study.communicate()[1]
        time.sleep(0.02)
    raise AssertionError(f"the study did not get on: {finished} finished, {begun} begun")


def pids(folder, units=range(8)):
    """Who began one of the units."""
    return {int(path.name.split(".")[2]) for x in units for path in folder.glob(f"run.{x}.*")}


def alive(pid):
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def check_resumed(folder, engine):
    """A second start runs what was not finished, once, and the answer is that of an undisturbed study."""
    assert {unit["x"] for unit, _ in ResultStore(folder / "store")} == {0, 1, 2, 3}
    assert not (folder / "answer").exists()
    (folder / "go").touch()
    before = runs(folder)
    study = start(folder, engine)
    said = study.communicate(timeout=60)[1]
    assert study.returncode == 0, said
    again = {x: count - before.get(x, 0) for x, count in runs(folder).items()}
    assert again == {x: int(x >= 4) for x in range(8)}
    assert (folder / "answer").read_text() == ANSWER
