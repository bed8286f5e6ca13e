"""Kinds of decisions that only tests make."""

from __future__ import annotations

from typing import Any

from bursar.ledger import Decision


class Note(Decision):
    """Anything."""

    kind = "note"
    text: Any


class Choice(Decision):
    """Anything else."""

    kind = "choice"
    items: Any = ()
