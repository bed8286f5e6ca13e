"""Studies that are killed: what was finished is never run again, and no worker goes on."""

from __future__ import annotations

import os
import signal

import pytest

from tests.compute.study import alive, await_the_middle, check_resumed, pids, start


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
