"""What a campaign asks of its advisers, and how it finds them.

Advisers read campaigns, so they lie above this package, and nothing here imports them. Each owns the table of the
campaign's file that has its name. Ours are named below and imported when first asked for. They are no entry points:
those are found in the metadata of an installed package, and a checkout on the path has none.
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

ALLOCATION, ORACLE = "allocation", "oracle"  # names of advisers, of their tables, and of what they say in results

ReviewCallback = Callable[[Any, Any], None]  # takes where a review is and its plan, both of the reviewer's own types


class Adviser(Protocol):
    """Reads campaigns and gives advice. Its settings are a table of the campaign's file."""

    @property
    def section(self) -> type[Section]:
        """The table, which checks itself."""


class RoundSplit(Protocol):
    """A round's money, divided between the tasks."""

    def decision(self, round: int) -> SplitDecision:
        """As it is written to the ledger."""

    def select(self, terms: RoundSettings, pool: Candidates, money: int, seed: int) -> tuple[Selection, dict[str, int]]:
        """What the strategy selects within the split, and how many labels of each task that may be at most."""


class Allocator(Adviser, Protocol):
    """Divides each round's money between the tasks, by what labels of each are worth."""

    def splits(self, settings: Section) -> bool:
        """Whether these settings ask for any split."""

    def check(self, config: CampaignConfig, tasks: Mapping[str, Task]) -> None:
        """Refuse settings that no money could be divided by between these tasks."""

    def check_learner(self, config: CampaignConfig, tasks: Mapping[str, Task]) -> None:
        """Refuse settings that the campaign's learner cannot measure labels by, before anything is bought."""

    def label_value(
        self, config: CampaignConfig, annotated: Corpus, drawn: Corpus, pool: Corpus, *, seed: int, progress: Progress
    ) -> LabelValue:
        """What labels are worth. ``drawn`` are the annotated items that no model chose."""

    def split(self, terms: RoundSettings, known: LabelValue, pool: Candidates, money: int) -> RoundSplit:
        """Divide the money for labels of this pool by what labels are worth."""


class Reviewer(Adviser, Protocol):
    """Judges a finished run. Its answer is part of the run's result."""

    def check(self, run: Run) -> None:
        """Refuse a run that could never be reviewed by its settings, before anything is bought."""

    def review(self, run: Run, progress: Progress, callback: ReviewCallback | None) -> None:
        """Find the answer about a finished run by its settings, and keep it beside the run."""

    def answer(self, run: Run) -> dict[str, Any] | None:
        """The answer that is kept beside a run; ``None`` if there is none about the run as it is now."""


ADVISERS: Registry[Adviser] = Registry("adviser", "bursar.advisers")
ADVISERS.add_lazily(ALLOCATION, "bursar.allocation.adviser:ADVISER")
ADVISERS.add_lazily(ORACLE, "bursar.oracle.adviser:ADVISER")


def allocator() -> Allocator:
    """Who divides a round's money."""
    return cast(Allocator, ADVISERS[ALLOCATION])


def reviewer() -> Reviewer:
    """Who judges a finished run."""
    return cast(Reviewer, ADVISERS[ORACLE])
