"""Progress of units of work."""

from __future__ import annotations

from typing import Any

from bursar.compute.engine import Unit


class UnitObserver:
    """Receives the progress of units of work. This one ignores it."""

    def begun(self, total: int, stored: int) -> None:
        """The run starts with ``total`` distinct units, of which ``stored`` have results already."""

    def reported(self, unit: Unit, what: Any) -> None:
        """A unit reported progress."""

    def finished(self, unit: Unit, result: Any, seconds: float) -> None:
        """A unit is finished and its result stored; ``seconds`` is its running time."""

    def retried(self, unit: Unit, why: str) -> None:
        """A unit will be tried again."""


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
