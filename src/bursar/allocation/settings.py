"""The ``[allocation]`` table of a campaign's file."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from bursar.allocation.informativeness import INFORMERS
from bursar.allocation.methods import METHODS
from bursar.allocation.rates import RATERS
from bursar.campaign.config import CampaignConfig
from bursar.campaign.sections import Section
from bursar.errors import ConfigError

NO_SPLIT = "none"  # a method of splitting


class AllocationSection(Section):
    """How a round's money is split between the tasks before items are chosen for it."""

    paths = (("rater_settings", "law"),)
    method: str = "robust"  # what is known after a few rounds is not sure
    informer: str | None = None  # who informs whom; the fastest that there is for the tasks, if not given
    rater: str | None = None  # how fast labels lose worth; by curves of the labels drawn at random, if not given
    informer_settings: dict[str, Any] = Field(default_factory=dict)
    rater_settings: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _known(self) -> AllocationSection:
        if self.method not in (*METHODS, NO_SPLIT):
            raise ConfigError(
                f"allocation.method = {self.method!r}", fix=f"use {', '.join(METHODS)}, or {NO_SPLIT!r} for no split"
            )
        for key, known in (("informer", INFORMERS), ("rater", RATERS)):
            name = getattr(self, key)
            if name is not None:
                known[name]
            elif getattr(self, f"{key}_settings"):
                raise ConfigError(f"allocation.{key}_settings: of which {key}?", fix=f"name it as allocation.{key}")
        return self

    @classmethod
    def example(cls) -> Self:
        return cls(method=NO_SPLIT)


def allocation_settings(config: CampaignConfig) -> AllocationSection:
    """The table of a campaign, or the defaults where it has none."""
    return config.allocation if isinstance(config.allocation, AllocationSection) else AllocationSection()
