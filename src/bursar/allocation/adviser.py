"""The allocator that campaigns use to split the budget of their rounds between tasks."""

from __future__ import annotations

from collections.abc import Mapping

from bursar.allocation.budget_split import BudgetSplit
from bursar.allocation.label_value import check_informer, check_tasks, measured
from bursar.allocation.settings import NO_SPLIT, AllocationSection
from bursar.campaign.advisers import Allocator
from bursar.campaign.config import CampaignConfig
from bursar.campaign.decisions import LabelValue
from bursar.campaign.sections import Section
from bursar.campaign.state import RoundSettings
from bursar.corpus import Corpus
from bursar.learners.learner import Progress
from bursar.selection import Candidates
from bursar.tasks import Task


class AllocationAdviser:
    """The allocator of campaigns with an ``[allocation]`` table."""

    section = AllocationSection

    def splits(self, settings: Section) -> bool:
        return isinstance(settings, AllocationSection) and settings.method != NO_SPLIT

    def check(self, config: CampaignConfig, tasks: Mapping[str, Task]) -> None:
        check_tasks(config, tasks)

    def check_learner(self, config: CampaignConfig, tasks: Mapping[str, Task]) -> None:
        check_informer(config, tasks)

    def label_value(
        self, config: CampaignConfig, annotated: Corpus, drawn: Corpus, pool: Corpus, *, seed: int, progress: Progress
    ) -> LabelValue:
        return measured(config, annotated, drawn, pool, seed=seed, progress=progress)

    def split(self, terms: RoundSettings, known: LabelValue, pool: Candidates, money: int) -> BudgetSplit:
        return BudgetSplit.of(terms, known, pool, money)


ADVISER: Allocator = AllocationAdviser()
