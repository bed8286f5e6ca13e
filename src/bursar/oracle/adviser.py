"""Compares a finished run with the best order found: what a campaign asks of this package."""

from __future__ import annotations

from typing import Any

from bursar.campaign.advisers import ReviewCallback, Reviewer
from bursar.campaign.runs import Run
from bursar.compute import make_engine
from bursar.learners.learner import Progress
from bursar.oracle.run_comparison import ask_oracle, current_answer, judged_tasks
from bursar.oracle.settings import OracleSection, oracle_settings


class OracleAdviser:
    """The reviewer of runs: of all that have an answer, and of those with an ``[oracle]`` table at their end."""

    section = OracleSection

    def check(self, run: Run) -> None:
        if (settings := oracle_settings(run.config)) is not None:
            judged_tasks(run, settings.judge)
            make_engine(settings.engine)

    def review(self, run: Run, progress: Progress, told: ReviewCallback | None) -> None:
        if (settings := oracle_settings(run.config)) is not None:
            engine = make_engine(settings.engine)
            ask_oracle(run, settings.plan, judge=settings.judge, engine=engine, progress=progress, told=told)

    def answer(self, run: Run) -> dict[str, Any] | None:
        return current_answer(run)


ADVISER: Reviewer = OracleAdviser()
