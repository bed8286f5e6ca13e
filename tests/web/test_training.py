"""The training process: one at a time, restarted after a crash, failures shown, ends with the server."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from bursar.web.http_errors import HTTPError
from bursar.web.training import Trainer
from tests.web.annotating import until

TELLS = """
import json, sys
print(json.dumps({"event": "stage", "round": 2, "what": "training", "done": 0.5}), flush=True)
print("a library says something")
print(json.dumps({"event": "scored", "round": 2, "record": {"dev": 0.5}}), flush=True)
"""
CRASHES = "import os, sys; print('out of memory', file=sys.stderr); os.kill(os.getpid(), 9)"
REFUSES = "import sys; print('bursar: there is nothing to train on', file=sys.stderr); sys.exit(2)"
STAYS = 'import sys, time; print(\'{"event": "stage", "done": 0}\', flush=True); time.sleep(600)'


class Round:
    """A round that is complete until it has been trained so many times."""

    def __init__(self, script, times=1, pauses=(0.01, 0.01)):
        self.left, self.told, self.ends = times, [], 0
        self.changed = threading.Condition()
        self.trainer = Trainer([sys.executable, "-c", script], lambda: self.left > 0, self.tell, self.end)
        self.trainer.pauses = pauses
        self.trainer.start()

    def tell(self, event, data):
        with self.changed:
            self.told.append((event, dict(data)))
            self.changed.notify_all()

    def end(self):
        with self.changed:
            self.ends += 1
            if self.trainer.failure is None and self.told and self.told[-1][0] == "scored":
                self.left -= 1
            self.changed.notify_all()

    def wait(self, holds):
        with self.changed:
            assert self.changed.wait_for(holds, timeout=30), self.told


@pytest.fixture
def begin():
    begun = []

    def make(*arguments, **options):
        begun.append(Round(*arguments, **options))
        return begun[-1]

    yield make
    for round in begun:
        round.trainer.stop()


def test_what_a_child_tells_is_passed_on_and_what_a_library_prints_is_not(begin):
    round = begin(TELLS)
    round.wait(lambda: round.left == 0)
    assert round.told == [
        ("stage", {"round": 2, "what": "training", "done": 0.5}),
        ("scored", {"round": 2, "record": {"dev": 0.5}}),
    ]
    assert (round.trainer.phase, round.trainer.failure) == ("idle", None)


def test_rounds_that_are_complete_at_once_are_trained_one_after_the_other(begin):
    round = begin(TELLS, times=3)
    round.wait(lambda: round.left == 0)
    assert round.ends == 3


def test_nothing_starts_before_the_round_is_complete(begin):
    round = begin(TELLS, times=0)
    time.sleep(0.2)
    assert round.told == []
    round.left = 1
    round.trainer.wake()
    round.wait(lambda: round.left == 0)


def test_a_child_that_crashes_is_started_again_and_then_given_up_with_its_last_words(begin):
    round = begin(CRASHES, pauses=(0.01, 0.01))
    round.wait(lambda: round.trainer.failure is not None)
    assert (round.trainer.phase, round.trainer.failure) == ("failed", "out of memory")
    round.wait(lambda: round.ends == 3)  # the first and two more


def test_a_child_that_crashed_once_may_still_succeed(begin, tmp_path):
    marker = tmp_path / "crashed"
    script = f"import os\nif not os.path.exists({str(marker)!r}):\n open({str(marker)!r}, 'w'); os._exit(1)\n{TELLS}"
    round = begin(script)
    round.wait(lambda: round.left == 0)
    assert round.trainer.failure is None


def test_what_a_child_says_is_wrong_is_what_people_are_told(begin):
    event = '{"event": "failed", "error": "no labels", "fix": "annotate"}'
    round = begin(f"import sys; print({event!r}); print('Traceback', file=sys.stderr); sys.exit(2)")
    round.wait(lambda: round.ends == 1)
    assert round.trainer.failure == "no labels. Fix: annotate"
    assert round.told == [("failed", {"message": "no labels. Fix: annotate"})]


def test_what_will_not_get_better_is_not_tried_again_until_somebody_asks(begin):
    round = begin(REFUSES)
    round.wait(lambda: round.ends == 1)
    assert round.trainer.failure == "bursar: there is nothing to train on"
    time.sleep(0.2)
    assert round.ends == 1
    round.trainer.retry()
    round.wait(lambda: round.ends == 2)
    assert round.trainer.phase == "failed"


def test_a_round_that_cannot_be_asked_about_is_a_failure_and_not_silence():
    def broken():
        raise OSError("disk is gone")

    told = threading.Event()
    trainer = Trainer(["true"], broken, lambda *_: None, told.set)
    trainer.start()
    assert told.wait(10)
    assert trainer.failure == "OSError: disk is gone"
    trainer.stop()


def test_stopping_ends_the_child_at_once(begin):
    round = begin(STAYS)
    round.wait(lambda: round.told)
    child = round.trainer._process
    assert round.trainer.phase == "training"
    began = time.monotonic()
    round.trainer.stop()
    assert time.monotonic() - began < 8
    assert child._process.poll() is not None
    assert round.ends == 0


def test_the_command_line_of_a_child_is_one_that_exists():
    from bursar.annotation.subprocess_events import training_command

    found = subprocess.run(
        [*training_command("no such folder")],
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert found.returncode == 2
    assert "no such folder" in found.stderr


def test_no_training_begins_while_it_is_held_and_none_is_held_while_it_runs():
    asked = []

    def ready():
        asked.append(time.monotonic())
        return len(asked) == 1

    trainer = Trainer([sys.executable, "-c", "import time; time.sleep(60)"], ready, lambda *told: None, lambda: None)
    with trainer.paused():
        trainer.start()
        time.sleep(0.2)
        assert (asked, trainer.phase) == ([], "idle")
    until(lambda: trainer.phase == "training")
    with pytest.raises(HTTPError, match="being trained"), trainer.paused():
        pass
    trainer.stop()
