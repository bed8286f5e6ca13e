"""The contents of the watch page: turns the result and the state of a run into sentences, charts and tables."""

from __future__ import annotations

from typing import Any

from bursar.annotation.session import SessionState
from bursar.campaign.results import RunResult
from bursar.report.charts import thing_look
from bursar.report.summary import summarise
from bursar.report.wording import Money
from bursar.web.dashboard_now import headline, lead, tiles, train
from bursar.web.panels import RunView, sorted_panels


def dashboard(result: RunResult, state: SessionState, folder: str = "PROJECT") -> dict[str, Any]:
    """The watch page of a run. ``state`` is that of the API; ``folder`` is used in suggested commands."""
    money, view = Money.of(result), RunView(result, state, folder)
    return {
        "name": result.name,
        "money": {"unit": f"{money.unit.normalize():f}", "currency": money.currency},
        "by_item": view.by_item,
        "looks": {name: thing_look(at) for at, name in enumerate(result.tasks, start=1)},
        "headline": headline(result, state),
        "lead": lead(result, state),
        "story": list(summarise(result).lead[:2]) if view.arm.rounds else [],
        "tiles": tiles(result, state),
        "train": train(state),
        "panels": {name: panel.show(view) for name, panel in sorted_panels().items()},
    }
