"""The ``[allocation]`` table of a campaign's file."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from bursar.allocation.informativeness import INFORMERS
from bursar.allocation.rates import RATERS
from bursar.allocation.robust import METHODS
from bursar.campaign.config import CampaignConfig
from bursar.campaign.sections import Section
from bursar.errors import ConfigError

NO_SPLIT = "none"


class AllocationSection(Section):
    """How a round's budget is split between tasks before items are selected."""

    paths = (("rater_settings", "law"),)
    method: str = "robust"  # because estimates are uncertain after a few rounds
    informer: str | None = None  # default: the fastest for the tasks
    rater: str | None = None  # default: learning curves of the labels of random items
    informer_settings: dict[str, Any] = Field(default_factory=dict)  # its options
    rater_settings: dict[str, Any] = Field(default_factory=dict)  # its options

    @model_validator(mode="after")
    def _known(self) -> AllocationSection:
        if self.method not in (*METHODS, NO_SPLIT):
            raise ConfigError(
                f"allocation.method = {self.method!r}", fix=f"use {', '.join(METHODS)}, or {NO_SPLIT!r} for no split"
            )
        for key, known in (("informer", INFORMERS), ("rater", RATERS)):
            name = getattr(self, key)
            if name is not None:
                name in known or known[name]  # a known one is not imported yet
            elif getattr(self, f"{key}_settings"):
                raise ConfigError(f"allocation.{key}_settings is set without a {key}", fix=f"set allocation.{key}")
        return self

    @classmethod
    def example(cls) -> Self:
        return cls(method=NO_SPLIT)


def allocation_settings(config: CampaignConfig) -> AllocationSection:
    """The table of a campaign, or the defaults if it has none."""
    return config.allocation if isinstance(config.allocation, AllocationSection) else AllocationSection()
