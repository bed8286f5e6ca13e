"""Progress of units of work: the observer protocol, and estimates of speed and remaining time."""

from __future__ import annotations

import json
from typing import Any, Protocol

from bursar.compute.engine import Unit


class UnitObserver(Protocol):
    """Receives the progress of units of work."""

    def begun(self, total: int, stored: int) -> None:
        """The run starts with ``total`` distinct units, of which ``stored`` have results already."""

    def reported(self, unit: Unit, what: Any) -> None:
        """A unit reported progress."""

    def finished(self, unit: Unit, result: Any, seconds: float) -> None:
        """A unit is finished and its result stored; ``seconds`` is its running time."""

    def retried(self, unit: Unit, why: str) -> None:
        """A unit will be tried again."""


class UnitProgress:
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


def duration(seconds: float) -> str:
    """Format a duration for reading.

    >>> duration(0.25), duration(31), duration(558), duration(9000), duration(400_000)
    ('0.2 s', '31 s', '9 min', '2 h 30 min', '4 d 15 h')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = round(seconds / 3600)
    return f"{hours // 24} d {hours % 24} h"


def _key(unit: Unit) -> str:
    return json.dumps(unit, sort_keys=True)
