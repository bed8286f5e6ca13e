"""What goes into a ledger: submissions of annotations with what they cost."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

READING = "reading"


@dataclass(frozen=True)
class Annotation:
    """The label of one item for one task; a ``None`` label takes back what was said before."""

    item: str
    task: str
    label: Any


@dataclass(frozen=True)
class Charge:
    """Money for one thing on one item, in whole units: what it was thought to cost, and what it did (errata 11)."""

    item: str
    what: str  # a task's name, or "reading"
    estimate: int
    actual: int


@dataclass(frozen=True)
class Submission:
    """What somebody hands in at once: recorded whole or not at all, once however often it is sent.

    The ``key`` is the sender's: two submissions with one key are one submission sent twice.
    """

    key: str
    annotations: tuple[Annotation, ...]
    charges: tuple[Charge, ...] = ()
    round: int = 0
    purpose: str = "strategy"  # why the items were bought: seed, strategy, audit, correction
    annotator: str = "somebody"

    @property
    def digest(self) -> str:
        """A fingerprint of the content, to tell a repeat from a clash."""
        text = json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Receipt:
    """The ledger's word that a submission is on disk."""

    key: str
    repeated: bool  # it was there already; nothing was written or charged again
    cost: int = field(default=0)
