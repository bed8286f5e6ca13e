"""Who is told how a campaign gets on."""

from __future__ import annotations

from typing import Protocol

from bursar.campaign.decisions import RoundRecord


class Watcher(Protocol):
    """Somebody who wants to know how it goes."""

    def stage(self, round: int, what: str, done: float) -> None:
        """What is going on in a round, and how far it is."""
        ...

    def scored(self, record: RoundRecord) -> None:
        """A round's model has been trained and scored."""
        ...


class NullObserver:
    """Watches nothing."""

    def stage(self, round: int, what: str, done: float) -> None:
        """Is not told."""

    def scored(self, record: RoundRecord) -> None:
        """Is not told."""
