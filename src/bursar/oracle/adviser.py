"""The ``[oracle]`` table of a campaign file, and the reviewer that compares a run with the best order found."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from bursar.campaign.config import CampaignConfig
from bursar.campaign.participants import ReviewCallback, Reviewer
from bursar.campaign.runs import Run
from bursar.campaign.sections import Section
from bursar.compute import make_engine
from bursar.errors import ConfigError
from bursar.learners.learner import Progress
from bursar.oracle.comparison import STEPS, plan_of
from bursar.oracle.judge import PROBE, known_judge
from bursar.oracle.run_comparison import OracleRequest, ask_oracle, current_answer, judged_tasks
from bursar.oracle.search import SearchPlan


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
        return plan_of(self.steps, self.greedy_steps, self.cooling, self.judge)

    @classmethod
    def example(cls) -> Self:
        return cls(greedy_steps=plan_of().greedy_steps, cooling=plan_of().cooling)


def oracle_settings(config: CampaignConfig) -> OracleSection | None:
    """The table of a campaign; ``None`` if it has none."""
    return config.oracle if isinstance(config.oracle, OracleSection) else None


class OracleAdviser:
    """Reviews runs whose campaign has the table, and shows stored answers of any run."""

    section = OracleSection

    def check(self, run: Run) -> None:
        if (settings := oracle_settings(run.config)) is not None:
            judged_tasks(run, settings.judge)
            make_engine(settings.engine)

    def review(self, run: Run, progress: Progress, callback: ReviewCallback | None) -> None:
        if (settings := oracle_settings(run.config)) is not None:
            request = OracleRequest(settings.plan, judge=settings.judge, engine=make_engine(settings.engine))
            ask_oracle(run, request, progress=progress, callback=callback)

    def answer(self, run: Run) -> dict[str, Any] | None:
        return current_answer(run)


ADVISER: Reviewer = OracleAdviser()
