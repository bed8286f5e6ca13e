"""The ``[oracle]`` table of a campaign's file."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from bursar.campaign.config import CampaignConfig
from bursar.campaign.sections import Section
from bursar.compute import make_engine
from bursar.errors import ConfigError
from bursar.oracle.chain import Plan
from bursar.oracle.comparison import STEPS, plan_of
from bursar.oracle.judge_registry import PROBE, known_searcher


class OracleSection(Section):
    """How long to look for the best order when a run is finished. It changes nothing of the run itself."""

    steps: int = Field(default=STEPS, ge=0)  # of annealing
    greedy_steps: int | None = Field(default=None, ge=0)  # a fifth of that if not given
    cooling: float | None = Field(default=None, ge=0)  # γ; the more steps, the slower, if not given
    judge: str = PROBE  # or one of paper 4's networks
    engine: str = "processes"  # where networks are trained; the probe stays where it is asked

    @model_validator(mode="after")
    def _known(self) -> OracleSection:
        try:
            known_searcher(self.judge)
            if self.engine.partition(":")[0] != "ray":  # only the search needs the cluster to be reachable
                make_engine(self.engine)
        except ConfigError as wrong:
            raise ConfigError(f"oracle: {wrong.message}", fix=wrong.fix) from None
        return self

    @property
    def plan(self) -> Plan:
        """The search."""
        return plan_of(self.steps, self.greedy_steps, self.cooling, self.judge)

    @classmethod
    def example(cls) -> Self:
        return cls(greedy_steps=plan_of().greedy_steps, cooling=plan_of().cooling)


def oracle_settings(config: CampaignConfig) -> OracleSection | None:
    """The table of a campaign; ``None`` where it has none."""
    return config.oracle if isinstance(config.oracle, OracleSection) else None
