"""The ``[oracle]`` table of a campaign file."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from bursar.campaign.config import CampaignConfig
from bursar.campaign.sections import Section
from bursar.compute import make_engine
from bursar.errors import ConfigError
from bursar.oracle.chain import SearchPlan
from bursar.oracle.comparison import STEPS, plan_of
from bursar.oracle.judge_registry import PROBE, known_judge


class OracleSection(Section):
    """How long to search for the best order after a run. It does not change the run itself."""

    steps: int = Field(default=STEPS, ge=0)  # of annealing
    greedy_steps: int | None = Field(default=None, ge=0)  # a fifth of the steps if not given
    cooling: float | None = Field(default=None, ge=0)  # γ; slower with more steps if not given
    judge: str = PROBE  # or one of paper 4's networks
    engine: str = "processes"  # where networks are trained; the probe runs in the searching process

    @model_validator(mode="after")
    def _known(self) -> OracleSection:
        try:
            known_judge(self.judge)
            if self.engine.partition(":")[0] != "ray":  # a cluster need not be reachable before the search
                make_engine(self.engine)
        except ConfigError as wrong:
            raise ConfigError(f"oracle: {wrong.message}", fix=wrong.fix) from None
        return self

    @property
    def plan(self) -> SearchPlan:
        """The plan of the search."""
        return plan_of(self.steps, self.greedy_steps, self.cooling, self.judge)

    @classmethod
    def example(cls) -> Self:
        return cls(greedy_steps=plan_of().greedy_steps, cooling=plan_of().cooling)


def oracle_settings(config: CampaignConfig) -> OracleSection | None:
    """The table of a campaign; ``None`` if it has none."""
    return config.oracle if isinstance(config.oracle, OracleSection) else None
