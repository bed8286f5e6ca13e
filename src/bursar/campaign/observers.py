"""Observers of a campaign's progress."""

from __future__ import annotations

from typing import Protocol

from bursar.campaign.decisions import RoundRecord


class Watcher(Protocol):
    """Follows a campaign."""

    def stage(self, round: int, what: str, done: float) -> None:
        """A round is at this stage, and this share of it is done."""
        ...

    def scored(self, record: RoundRecord) -> None:
        """A round's model has been trained and scored."""
        ...


class NullObserver:
    """Ignores everything."""

    def stage(self, round: int, what: str, done: float) -> None:
        """Ignored."""

    def scored(self, record: RoundRecord) -> None:
        """Ignored."""
