"""The arithmetic of a study's progress."""

from __future__ import annotations

from experiments.progress import UnitProgress


def test_results_from_before_are_done_but_are_no_speed():
    progress = UnitProgress(workers=2)
    progress.begun(total=10, stored=4)
    assert progress.line() == "4 of 10 done (4 from before) · 2 running"
    assert (progress.seconds_per_unit, progress.seconds_left) == (None, None)
    progress.finished({"seed": 0}, None, seconds=30.0)
    progress.finished({"seed": 1}, None, seconds=50.0)
    assert (progress.done, progress.left, progress.running) == (6, 4, 2)
    assert progress.seconds_per_unit == 40.0
    assert progress.seconds_left == 4 * 40.0 / 2
    assert progress.line() == "6 of 10 done (4 from before) · 2 running · 40 s per unit · 80 s left"


def test_fewer_units_than_workers_leave_some_idle_and_none_run_at_the_end():
    progress = UnitProgress(workers=4)
    progress.begun(total=2, stored=0)
    assert progress.running == 2
    for seed in range(2):
        progress.finished({"seed": seed}, None, seconds=0.5)
    assert progress.line() == "2 of 2 done · 0.5 s per unit"


def test_the_last_word_of_a_unit_is_kept_until_it_is_finished():
    progress = UnitProgress()
    progress.begun(total=2, stored=0)
    progress.reported({"seed": 0}, "half")
    progress.reported({"seed": 0}, "nearly")
    assert list(progress.last_reports.values()) == ["nearly"]
    progress.retried({"seed": 0}, "it died")
    assert progress.last_reports == {}
    assert progress.line() == "0 of 2 done · 1 running · 1 tried again"
