"""The records of a ledger: submissions with annotations, charges and timings; skips; answers; decisions.

The checks reject everything that could not be read back unchanged.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from bursar.corpus import Corpus
from bursar.errors import LabelError, LedgerError
from bursar.tasks.task import Vocabulary

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
    """Annotations submitted together: recorded atomically, and once however often sent under one ``key``."""

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
    """An annotator skipped an item, for one task or all, with a reason. One that was undone no longer counts."""

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


# -- checks before a ledger is written to ------------------------------------------------------------------------------
LARGEST_ROUND, LARGEST_AMOUNT = 2**31 - 1, 2**63 - 1  # limits of all supported databases


def check_submission(corpus: Corpus, submission: Submission) -> None:
    """Reject a submission without key or annotation, with an unknown role, or with invalid amounts or seconds."""
    if not submission.key or not submission.annotations:
        raise LedgerError("a submission needs a key and at least one annotation")
    if submission.role not in ROLES:
        raise LedgerError(f"there is no role {submission.role!r}", fix=f"use {', '.join(ROLES)}")
    check_text(submission.key, submission.purpose, submission.annotator, *(a.item for a in submission.annotations))
    check_text(*(text for charge in submission.charges for text in (charge.item, charge.what)))
    _check_round(submission.round)
    for charge in submission.charges:
        if charge.what != READING and charge.what not in corpus.schema:
            raise LedgerError(f"item {charge.item!r}: there is no task {charge.what!r} to charge for")
        for amount in (charge.estimate, charge.actual):
            if not isinstance(amount, int) or not 0 <= amount <= LARGEST_AMOUNT:
                raise LedgerError(f"item {charge.item!r}: {amount!r} is not a whole, non-negative amount")
    _check_timings(corpus, submission)


def check_annotations(
    corpus: Corpus, vocabularies: Mapping[str, Mapping[str, Vocabulary]], annotations: Sequence[Annotation]
) -> None:
    """Reject unknown items, tasks and labels."""
    positions = corpus.positions([a.item for a in annotations])
    for annotation, at in zip(annotations, positions.tolist(), strict=True):
        task = _task(corpus, annotation.item, annotation.task)
        if annotation.label is not None:
            try:
                corpus.schema[task].rows(annotation.label, int(corpus.words[at]), vocabularies[task])
            except LabelError as wrong:
                place = f"item {annotation.item!r}, task {annotation.task!r}"
                raise LedgerError(f"{place}: {wrong.message}", fix=wrong.fix) from None


def check_skip(corpus: Corpus, skip: Skip) -> None:
    """Reject a skip without key or reason, or of an unknown item or task."""
    if not skip.key or not skip.reason.strip():
        raise LedgerError("a skip needs a key and a reason")
    check_text(skip.key, skip.item, skip.reason, skip.annotator)
    _check_round(skip.round)
    corpus.positions([skip.item])
    if skip.task is not None:
        _task(corpus, skip.item, skip.task)


def check_text(*texts: str) -> None:
    """Reject values that are not text, or that not every database can store."""
    for text in texts:
        if not isinstance(text, str) or re.search("[\0\ud800-\udfff]", text):
            raise LedgerError(f"{text!r:.100} is no text that a ledger can store")


def dump(value: Any) -> str | None:
    """A value as JSON in canonical form."""
    if value is None:
        return None
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
    check_text(text)
    return text


def _task(corpus: Corpus, item: str, name: str) -> str:
    if name not in corpus.schema:
        known = ", ".join(corpus.schema)
        raise LedgerError(f"item {item!r}: there is no task {name!r}", fix=f"this corpus has {known}")
    return name


def _check_round(round: int) -> None:
    if not isinstance(round, int) or abs(round) > LARGEST_ROUND:
        raise LedgerError(f"{round!r} is not a round number")


def _check_timings(corpus: Corpus, submission: Submission) -> None:
    if not submission.timings:
        return
    item, *others = dict.fromkeys(a.item for a in submission.annotations)
    if others:
        message = f"a submission with timings must have one item, and this one has {item!r} and {others[0]!r}"
        raise LedgerError(message, fix="submit the items one by one")
    names = [what for what, _ in submission.timings]
    for what, seconds in submission.timings:
        if what != READING and what not in corpus.schema:
            raise LedgerError(f"item {item!r}: there is no task {what!r} to time")
        if names.count(what) > 1:
            raise LedgerError(f"item {item!r}: {what!r} is timed twice")
        if not isinstance(seconds, (int, float)) or not math.isfinite(seconds) or seconds < 0:
            raise LedgerError(f"item {item!r}, {what!r}: {seconds!r} is not a number of seconds")


# -- decisions ---------------------------------------------------------------------------------------------------------
class JsonRecord(BaseModel):
    """An immutable value that can be written as JSON and read back."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Decision(JsonRecord):
    """What was decided about a round. A round has at most one decision of each kind."""

    kind: ClassVar[str]
    round: int  # a running number for kinds that do not belong to a round

    @property
    def stored_kind(self) -> str:
        """The kind under which it is stored."""
        return self.kind

    def encoded(self) -> str:
        """The body as JSON; the round and the kind have columns of their own."""
        return dump(self.model_dump(mode="json", exclude={"round"})) or ""

    @classmethod
    def decoded(cls, round: int, body: str) -> Self:
        """Read a decision of this kind back."""
        try:
            found: Any = json.loads(body)
            return cls.model_validate({"round": round} | found)
        except (ValidationError, TypeError) as wrong:
            raise LedgerError(f"round {round}: its {cls.kind} cannot be read: {wrong}") from None


class SkipUndone(Decision):
    """A skip no longer counts."""

    kind = "skip undone"
    skip: str  # its key
    by: str


class LossAccepted(Decision):
    """The ledger has lost entries, and goes on with what is left."""

    kind = "accepted loss"
    lost: str
    had: dict[str, Any] | None = None  # the head file; None if it was damaged
    kept: int  # entries
    content: str  # digest of what is left
