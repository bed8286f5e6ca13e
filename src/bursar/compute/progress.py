"""How far work has come: what a watcher is told, and what follows from it."""

from __future__ import annotations

import json
from typing import Any, Protocol

from bursar.compute.engine import Unit


class Watcher(Protocol):
    """Whoever wants to know how units of work get on."""

    def begun(self, total: int, stored: int) -> None:
        """There are so many different units, and the results of so many of them are known from before."""

    def told(self, unit: Unit, what: Any) -> None:
        """A unit told something."""

    def finished(self, unit: Unit, result: Any, seconds: float) -> None:
        """A unit is finished, and its result stored; it took so long where it ran."""

    def retried(self, unit: Unit, why: str) -> None:
        """A unit is tried again."""


class Progress:
    """A watcher that works out what is done, how fast, and how long the rest takes with so many workers.

    Results from before count as done, not as speed.

    >>> progress = Progress(workers=2)
    >>> progress.begun(total=48, stored=3)
    >>> for seed in range(9):
    ...     progress.finished({"seed": seed}, result=None, seconds=31.0)
    >>> progress.line()
    '12 of 48 done (3 from before) · 2 running · 31 s a unit · 9 min left'
    """

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers
        self.total = 0
        self.stored = 0
        self.ran = 0
        self.retries = 0
        self.seconds = 0.0
        self.last_words: dict[str, Any] = {}
        """What each unfinished unit told last, by the unit as JSON."""

    def begun(self, total: int, stored: int) -> None:
        self.total, self.stored = total, stored
        self.ran = self.retries = 0
        self.seconds = 0.0
        self.last_words.clear()

    def told(self, unit: Unit, what: Any) -> None:
        self.last_words[_key(unit)] = what

    def finished(self, unit: Unit, result: Any, seconds: float) -> None:
        self.last_words.pop(_key(unit), None)
        self.ran += 1
        self.seconds += seconds

    def retried(self, unit: Unit, why: str) -> None:
        self.last_words.pop(_key(unit), None)
        self.retries += 1

    @property
    def done(self) -> int:
        """How many are finished, now or before."""
        return self.stored + self.ran

    @property
    def left(self) -> int:
        """How many are not."""
        return self.total - self.done

    @property
    def running(self) -> int:
        """How many run now: no worker rests while there is something to do."""
        return min(self.workers, self.left)

    @property
    def seconds_a_unit(self) -> float | None:
        """The mean of those that ran; none before the first is finished."""
        return self.seconds / self.ran if self.ran else None

    @property
    def units_an_hour(self) -> float | None:
        """By all workers together."""
        mean = self.seconds_a_unit
        return self.workers * 3600 / mean if mean else None

    @property
    def seconds_left(self) -> float | None:
        """Until all are finished, if the rest is as the first were."""
        mean = self.seconds_a_unit
        return None if mean is None else self.left * mean / self.workers

    def line(self) -> str:
        """All of it in a line."""
        before = f" ({self.stored} from before)" if self.stored else ""
        parts = [f"{self.done} of {self.total} done{before}"]
        if self.running:
            parts.append(f"{self.running} running")
        if self.retries:
            parts.append(f"{self.retries} tried again")
        if self.seconds_a_unit is not None:
            parts.append(f"{duration(self.seconds_a_unit)} a unit")
        if self.left and self.seconds_left is not None:
            parts.append(f"{duration(self.seconds_left)} left")
        return " · ".join(parts)


def duration(seconds: float) -> str:
    """A time as people say it.

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
