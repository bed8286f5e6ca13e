"""Who takes part in a campaign: annotators answer, observers follow its progress, advisers advise.

Advisers read campaigns, so this package must not import them: they are registered by name and imported on first use.
They are no entry points, as a checkout that is not installed has none. Each owns the table of its name in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from bursar.campaign.decisions import LabelValue, RoundRecord, SplitDecision
from bursar.campaign.sections import Section
from bursar.corpus import Corpus
from bursar.errors import DataError
from bursar.learners.learner import Progress
from bursar.registry import Registry
from bursar.selection import Candidates, Selection
from bursar.tasks import Task

if TYPE_CHECKING:
    from bursar.campaign.config import CampaignConfig
    from bursar.campaign.runs import Run
    from bursar.campaign.state import RoundSettings

ALLOCATION, ORACLE = "allocation", "oracle"  # names of advisers, their tables, and their parts of a result

ReviewCallback = Callable[[Any, Any], None]  # takes the state of a review and its plan, of the reviewer's own types


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


# -- advisers ----------------------------------------------------------------------------------------------------------
class Adviser(Protocol):
    """Reads campaigns and gives advice. Its settings are a table of the campaign's file."""

    @property
    def section(self) -> type[Section]: ...


class RoundSplit(Protocol):
    """A round's money, divided between the tasks."""

    def decision(self, round: int) -> SplitDecision: ...

    def select(self, terms: RoundSettings, pool: Candidates, money: int, seed: int) -> tuple[Selection, dict[str, int]]:
        """The strategy's selection within the split, and the maximum number of labels of each task."""


class Allocator(Adviser, Protocol):
    """Divides each round's money between the tasks, by the value of their labels."""

    def splits(self, settings: Section) -> bool:
        """Whether these settings ask for any split."""

    def check(self, config: CampaignConfig, tasks: Mapping[str, Task]) -> None:
        """Refuse settings that do not fit the tasks."""

    def check_learner(self, config: CampaignConfig, tasks: Mapping[str, Task]) -> None:
        """Refuse settings whose measurements the learner does not support."""

    def label_value(
        self, config: CampaignConfig, annotated: Corpus, drawn: Corpus, pool: Corpus, *, seed: int, progress: Progress
    ) -> LabelValue:
        """Measure the value of labels. ``drawn`` are the annotated items that no model selected."""

    def split(self, terms: RoundSettings, known: LabelValue, pool: Candidates, money: int) -> RoundSplit: ...


class Reviewer(Adviser, Protocol):
    """Judges a finished run. Its answer is part of the run's result."""

    def check(self, run: Run) -> None:
        """Refuse a run that cannot be reviewed under its settings."""

    def review(self, run: Run, progress: Progress, callback: ReviewCallback | None) -> None:
        """Review a finished run by its settings, and save the answer in its folder."""

    def answer(self, run: Run) -> dict[str, Any] | None:
        """The saved answer about a run; ``None`` if there is none about its present state."""


ADVISERS: Registry[Adviser] = Registry("adviser", "bursar.advisers")
ADVISERS.add_lazily(ALLOCATION, "bursar.allocation.adviser:ADVISER")
ADVISERS.add_lazily(ORACLE, "bursar.oracle.adviser:ADVISER")


def allocator() -> Allocator:
    """The adviser that divides a round's money."""
    return cast(Allocator, ADVISERS[ALLOCATION])


def reviewer() -> Reviewer:
    """The adviser that judges a finished run."""
    return cast(Reviewer, ADVISERS[ORACLE])
