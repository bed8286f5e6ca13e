"""The protocols of a campaign's advisers, and how these are found.

Advisers read campaigns, so this package must not import them: they are registered by name and imported on first use.
They are no entry points, as a checkout that is not installed has none. Each owns the table of its name in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from bursar.campaign.decisions import LabelValue, SplitDecision
from bursar.campaign.sections import Section
from bursar.corpus import Corpus
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
