"""Progress of the units of a study: what is done, how fast, and how long the rest will take."""

from __future__ import annotations

import json
from typing import Any

from bursar.compute import Unit, UnitObserver, duration


class UnitProgress(UnitObserver):
    """An observer that computes what is done, how fast, and how long the rest will take.

    Stored results count as done, not towards the speed.

    >>> progress = UnitProgress(workers=2)
    >>> progress.begun(total=48, stored=3)
    >>> for seed in range(9):
    ...     progress.finished({"seed": seed}, result=None, seconds=31.0)
    >>> progress.line()
    '12 of 48 done (3 from before) · 2 running · 31 s per unit · 9 min left'
    """

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers
        self.total = 0
        self.stored = 0
        self.ran = 0
        self.retries = 0
        self.seconds = 0.0
        self.last_reports: dict[str, Any] = {}
        """The last report of each unfinished unit, by the unit as JSON."""

    def begun(self, total: int, stored: int) -> None:
        self.total, self.stored = total, stored
        self.ran = self.retries = 0
        self.seconds = 0.0
        self.last_reports.clear()

    def reported(self, unit: Unit, what: Any) -> None:
        self.last_reports[_key(unit)] = what

    def finished(self, unit: Unit, result: Any, seconds: float) -> None:
        self.last_reports.pop(_key(unit), None)
        self.ran += 1
        self.seconds += seconds

    def retried(self, unit: Unit, why: str) -> None:
        self.last_reports.pop(_key(unit), None)
        self.retries += 1

    @property
    def done(self) -> int:
        """Units finished, now or before."""
        return self.stored + self.ran

    @property
    def left(self) -> int:
        """Units not finished."""
        return self.total - self.done

    @property
    def running(self) -> int:
        """Units running now, assuming that no worker is idle while units are left."""
        return min(self.workers, self.left)

    @property
    def seconds_per_unit(self) -> float | None:
        """The mean running time; ``None`` before the first unit is finished."""
        return self.seconds / self.ran if self.ran else None

    @property
    def seconds_left(self) -> float | None:
        """The expected time until all are finished, by the mean so far."""
        mean = self.seconds_per_unit
        return None if mean is None else self.left * mean / self.workers

    def line(self) -> str:
        """The progress as one line of text."""
        before = f" ({self.stored} from before)" if self.stored else ""
        parts = [f"{self.done} of {self.total} done{before}"]
        if self.running:
            parts.append(f"{self.running} running")
        if self.retries:
            parts.append(f"{self.retries} tried again")
        if self.seconds_per_unit is not None:
            parts.append(f"{duration(self.seconds_per_unit)} per unit")
        if self.left and self.seconds_left is not None:
            parts.append(f"{duration(self.seconds_left)} left")
        return " · ".join(parts)


def _key(unit: Unit) -> str:
    return json.dumps(unit, sort_keys=True)
