"""The answer of one person to one item, and the one place that checks it and turns it into a ledger submission."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bursar.campaign.campaign import Campaign
from bursar.campaign.state import ItemRequest
from bursar.corpus.corpus import Labels
from bursar.errors import LabelError, LedgerError
from bursar.ledger import Annotation, Submission
from bursar.ledger.records import ANSWER, OVERLAP


@dataclass(frozen=True)
class Answer:
    """One person's labels for one item, by task, and the time taken."""

    item: str
    labels: Mapping[str, Any]
    annotator: str
    seconds: Mapping[str, float] = field(default_factory=dict)  # by task, and for reading
    role: str = ANSWER


class AnswerEncoder:
    """Checks answers of a campaign and encodes them as submissions. Writes nothing."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign

    def requested(self, want: ItemRequest, answer: Answer) -> Submission:
        """The submission of a first answer or an overlap, with its charges."""
        self._check_given(answer)
        more: dict[str, Any] = {"role": answer.role, "timings": tuple(answer.seconds.items())}
        if answer.role == OVERLAP:
            more |= {"key": f"{want.key}: overlap by {answer.annotator}", "purpose": OVERLAP}
        submission = self._campaign.books.submission(want, answer.labels, answer.annotator, **more)
        self._check_trainable(answer)
        return submission

    def replacing(self, key: str, answer: Answer) -> Submission:
        """The submission of a correction or an adjudication, which replaces earlier labels at no cost."""
        annotations = tuple(Annotation(answer.item, task, label) for task, label in answer.labels.items())
        self._check_given(answer)
        self._campaign.ledger.check(annotations)
        self._check_trainable(answer)
        said = {entry.task: entry for entry in self._campaign.ledger.answers(answer.item)}
        if unanswered := [task for task in answer.labels if task not in said]:
            raise LedgerError(
                f"item {answer.item!r} has no answer for task {unanswered[0]!r} to replace",
                fix=f"it was answered for {', '.join(said)}" if said else "answer it first",
            )
        round = max(said[task].round for task in answer.labels)
        role = answer.role
        return Submission(key, annotations, round=round, purpose=role, annotator=answer.annotator, role=role)

    def _check_given(self, answer: Answer) -> None:
        """Raise if there are no labels or a label is None, which would delete earlier labels."""
        if not answer.labels:
            raise LabelError(f"item {answer.item!r}: no labels given", fix="give one for every task, or skip the item")
        for task, label in answer.labels.items():
            if label is None:
                raise LabelError(f"item {answer.item!r}: no label for task {task!r}", fix="give one, or skip the item")

    def _check_trainable(self, answer: Answer) -> None:
        """Raise if the learner cannot be trained on these labels."""
        corpus = self._campaign.corpus
        one = corpus.take(corpus.positions([answer.item]))
        columns = {task: Labels.of(one, task, label) for task, label in answer.labels.items()}
        self._campaign.models.check_label(one.with_labels(columns))
