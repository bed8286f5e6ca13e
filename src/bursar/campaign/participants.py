"""Who takes part in a campaign: annotators answer, observers follow its progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bursar.campaign.decisions import RoundRecord
from bursar.corpus import Corpus
from bursar.errors import DataError


class Annotator(Protocol):
    """Answers for one item and some tasks."""

    name: str

    def annotate(self, item: str, tasks: Sequence[str]) -> dict[str, Any]:
        """Labels by task, as JSON."""


@dataclass
class GoldAnnotator:
    """Answers with the labels of a corpus.

    >>> from bursar.simulation import assistant_corpus
    >>> corpus = assistant_corpus(20, seed=1)
    >>> GoldAnnotator(corpus).annotate(corpus[0].id, ["intent"]) == {"intent": corpus[0].labels["intent"]}
    True
    """

    corpus: Corpus
    name = "gold"

    def annotate(self, item: str, tasks: Sequence[str]) -> dict[str, Any]:
        labels = self.corpus[int(self.corpus.positions([item])[0])].labels
        for task in tasks:
            if task not in labels:
                raise DataError(f"there is no gold label for task {task!r}", item=item)
        return {task: labels[task] for task in tasks}


class Observer:
    """Follows a campaign; by default it ignores everything."""

    def stage(self, round: int, what: str, done: float) -> None:
        """A round is at this stage, and this share of it is done."""

    def scored(self, record: RoundRecord) -> None:
        """A round's model has been trained and scored."""
