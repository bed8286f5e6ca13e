"""The records of a ledger: submissions with annotations, charges and timings; skips; answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

READING = "reading"

ANSWER = "answer"  # requested by the campaign
OVERLAP = "overlap"  # another person's answer for the same item, to measure agreement
ADJUDICATION = "adjudication"  # the final label after a disagreement
CORRECTION = "correction"  # replaces a mistake
ROLES = (ANSWER, OVERLAP, ADJUDICATION, CORRECTION)


@dataclass(frozen=True)
class Annotation:
    """The label of one item for one task; ``None`` retracts earlier labels."""

    item: str
    task: str
    label: Any


@dataclass(frozen=True)
class Answer:
    """One person's labels for one item. The fields after ``role`` are set by the ledger, unless you replace labels.

    A correction or an adjudication has a ``key`` of its own and may hold labels for some of the tasks.
    """

    item: str
    labels: Mapping[str, Any]  # by task
    annotator: str
    seconds: Mapping[str, float] = field(default_factory=dict)  # by task, and for reading
    role: str = ANSWER
    key: str = ""
    round: int = 0
    purpose: str = ""
    created_at: str = ""

    def annotations(self, tasks: Iterable[str] | None = None) -> tuple[Annotation, ...]:
        """Its labels, or those for these tasks, one by one."""
        wanted = self.labels if tasks is None else tasks
        return tuple(Annotation(self.item, task, self.labels[task]) for task in wanted)


@dataclass(frozen=True)
class Charge:
    """The cost of reading or of one task on one item, in whole units: estimated and actual (errata 11)."""

    item: str
    what: str  # a task's name, or "reading"
    estimate: int
    actual: int


@dataclass(frozen=True)
class Submission:
    """Annotations submitted together: recorded atomically, and once however often they are sent.

    The sender chooses the ``key``: two submissions with the same key are one submission sent twice.
    """

    key: str
    annotations: tuple[Annotation, ...]
    charges: tuple[Charge, ...] = ()
    round: int = 0
    purpose: str = "strategy"  # why the items were bought: seed, strategy, audit, correction
    annotator: str = "somebody"
    timings: tuple[tuple[str, float], ...] = ()  # seconds for reading and for each task, of one item
    role: str = ANSWER

    @property
    def digest(self) -> str:
        """A digest of the content without timings, to tell a repeat from a key clash."""
        content = asdict(self)
        del content["timings"]
        if self.role == ANSWER:  # the default is left out
            del content["role"]
        text = json.dumps(content, sort_keys=True, ensure_ascii=False)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Skip:
    """An annotator skipped an item, for one task or all, with a reason. The sender chooses the ``key``.

    A skip that was undone stays in the ledger but no longer counts.
    """

    key: str
    item: str
    reason: str
    task: str | None = None
    round: int = 0
    annotator: str = "somebody"
    created_at: str = field(default="", compare=False)  # set by the ledger
    undone_by: str | None = field(default=None, compare=False)
    undone_at: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class SpendingLine:
    """Money spent in one round, for one purpose, on one task or reading, in whole units."""

    round: int
    purpose: str
    what: str  # a task's name, or "reading"
    estimate: int
    actual: int
    items: int
    answers: int  # more than items if several people annotate the same item


@dataclass(frozen=True)
class Receipt:
    """Confirms that a submission is on disk."""

    key: str
    repeated: bool  # it was recorded before; nothing was written or charged again
    cost: int = field(default=0)


@dataclass(frozen=True)
class Timing:
    """The seconds one person took for reading or for one task of one item."""

    item: str
    what: str  # a task's name, or "reading"
    seconds: float
    annotator: str
    round: int
