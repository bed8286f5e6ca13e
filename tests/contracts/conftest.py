"""What several contract suites ask for."""

from __future__ import annotations

import pytest


@pytest.fixture
def ledger(ledger_place):
    """An open ledger, once for each engine that one can be kept in."""
    opened = ledger_place.open()
    yield opened
    opened.close()
