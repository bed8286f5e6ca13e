"""The allocator that campaigns use to split the budget of their rounds between tasks."""

from __future__ import annotations

from bursar.allocation.budget_split import BudgetSplit
from bursar.allocation.label_value import check_informer, check_tasks, measured
from bursar.allocation.settings import NO_SPLIT, AllocationSection
from bursar.campaign.participants import Allocator
from bursar.campaign.sections import Section


class AllocationAdviser:
    """The allocator of campaigns with an ``[allocation]`` table."""

    section = AllocationSection
    check = staticmethod(check_tasks)
    check_learner = staticmethod(check_informer)
    label_value = staticmethod(measured)
    split = staticmethod(BudgetSplit.of)

    def splits(self, settings: Section) -> bool:
        return isinstance(settings, AllocationSection) and settings.method != NO_SPLIT


ADVISER: Allocator = AllocationAdviser()
