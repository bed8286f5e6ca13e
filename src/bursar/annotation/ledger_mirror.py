"""The open items and totals of a campaign, kept in memory and consistent with the ledger across storage faults."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bursar.annotation.suggestions import left_for
from bursar.campaign.state import SEEDS, CampaignState, ItemRequest
from bursar.errors import StorageError


class LedgerMirror:
    """What a session knows without a search in the ledger: an answer then takes one transaction.

    After a broken connection it is unknown whether the last write was kept, and whether another process has written
    since. ``faults`` counts these cases, for callers that keep more of the ledger in memory. Hold ``lock`` to read
    several values that belong together.
    """

    def __init__(self, state: CampaignState, suggestions: Path) -> None:
        self.lock = threading.RLock()
        self.campaign_state, self._suggestions = state, suggestions
        self.writes = self.faults = 0
        self._stale = True

    def reload(self) -> None:
        """Read everything again. If that fails, the next write tries again."""
        with self.lock:
            self._stale = True
            self._read()
            self._stale = False

    def catch_up(self) -> int:
        """Own the ledger, and reload after a fault; raises while there is no storage. Returns the number of faults."""
        with self.lock:
            if self.campaign_state.ledger.own():
                self._doubt()
            if self._stale:
                self.reload()
            return self.faults

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Wrap a write: memory is current before it, and marked as stale if the connection breaks."""
        with self.lock:
            self.catch_up()
            try:
                yield
            except StorageError as fault:
                if fault.in_doubt:
                    self._doubt()
                raise

    def settle(self, want: ItemRequest, cost: int | None) -> None:
        """Close an item that was answered at this cost, or skipped."""
        del self.open[want.id]
        latest = want.round == self.campaign_state.rounds_opened
        self.answered += latest and cost is not None
        self.skipped += latest and cost is None
        paid = int(cost is not None) if self.by_item else cost or 0
        if want.purpose in SEEDS and self.terms.config.budget.total is None:
            self.budget += paid - self.campaign_state.price(want)
        self.note(paid)

    def note(self, cost: int = 0) -> None:
        """Count a write, and what it cost."""
        self.spent += cost
        self.writes += 1

    @property
    def by_item(self) -> bool:
        return self.terms.config.budget.counts == "items"

    def _doubt(self) -> None:
        self._stale = True
        self.faults += 1

    def _read(self) -> None:
        state, ledger = self.campaign_state, self.campaign_state.ledger
        state.look_again()
        self.open = {want.id: want for want in state.open()}  # an item is open in at most one round
        self.terms = state.terms()  # of the next round
        self.ended = state.ended
        round, recorded = state.rounds_opened, ledger.keys()
        self.answered = sum(want.key in recorded for want in state.wanted(round).values())
        self.skipped = sum(skip.round == round for skip in ledger.skips())
        self._count_money()
        self.suggestions: dict[str, Mapping[str, Any]] = {}
        for number in sorted({round, *(want.round for want in self.open.values())}):
            self.suggestions |= left_for(self._suggestions, number).items
        self.writes += 1

    def _count_money(self) -> None:
        state = self.campaign_state
        self.spent, self.budget = state.spent(), state.whole_budget(self.terms)
        if self.terms.config.budget.total is None:  # seed items come on top of the rounds' budgets
            self.budget += state.spent(SEEDS)
            self.budget += sum(state.price(want) for want in self.open.values() if want.purpose in SEEDS)
