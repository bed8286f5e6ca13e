"""The oracle as a campaign's reviewer: compares a finished run with the best order found."""

from __future__ import annotations

from typing import Any

from bursar.campaign.advisers import ReviewCallback, Reviewer
from bursar.campaign.runs import Run
from bursar.compute import make_engine
from bursar.learners.learner import Progress
from bursar.oracle.run_comparison import OracleRequest, ask_oracle, current_answer
from bursar.oracle.run_question import judged_tasks
from bursar.oracle.settings import OracleSection, oracle_settings


class OracleAdviser:
    """Reviews runs whose campaign has an ``[oracle]`` table, and shows stored answers of any run."""

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
