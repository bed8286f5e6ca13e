"""What goes into a ledger, submissions of annotations with what they cost, and what comes out of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

READING = "reading"

ANSWER = "answer"  # what the campaign asked for
OVERLAP = "overlap"  # somebody else's answer to the same question, to see whether people agree
ADJUDICATION = "adjudication"  # what stands after people disagreed
CORRECTION = "correction"  # what stands instead of a mistake
ROLES = (ANSWER, OVERLAP, ADJUDICATION, CORRECTION)


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
    timings: tuple[tuple[str, float], ...] = ()  # seconds that reading and each task took, of one item
    role: str = ANSWER

    @property
    def digest(self) -> str:
        """A fingerprint of the content, to tell a repeat from a clash; how long it took is no part of that.

        >>> said = (Annotation("u1", "intent", "alarm"),)
        >>> Submission("k", said).digest == Submission("k", said, timings=(("intent", 1.5),)).digest
        True
        """
        content = asdict(self)
        del content["timings"]
        if self.role == ANSWER:  # as it was when there were no roles
            del content["role"]
        text = json.dumps(content, sort_keys=True, ensure_ascii=False)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Skip:
    """Somebody would not annotate an item, for one task or at all, and said why. The ``key`` is the sender's.

    A skip that was undone stays in the ledger and counts no more.
    """

    key: str
    item: str
    reason: str
    task: str | None = None
    round: int = 0
    annotator: str = "somebody"
    created_at: str = field(default="", compare=False)  # by the ledger's clock
    undone_by: str | None = field(default=None, compare=False)
    undone_at: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Receipt:
    """The ledger's word that a submission is on disk."""

    key: str
    repeated: bool  # it was there already; nothing was written or charged again
    cost: int = field(default=0)


@dataclass(frozen=True)
class Answer:
    """What one person said of one item for one task, whether or not it is what stands."""

    item: str
    task: str
    label: Any
    annotator: str
    role: str
    round: int
    purpose: str
    seconds: float | None
    created_at: str
    key: str


@dataclass(frozen=True)
class Timing:
    """How many seconds one thing on one item took one person."""

    item: str
    what: str  # a task's name, or "reading"
    seconds: float
    annotator: str
    round: int
