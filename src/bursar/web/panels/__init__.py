"""The watch page and its panels, one file each. A new file in this folder is found by itself."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from bursar.annotation.session import SessionState
from bursar.campaign.results import RunResult
from bursar.report.charts import thing_look
from bursar.report.summary import summarise
from bursar.report.wording import Money
from bursar.web.dashboard import headline, lead, tiles, train
from bursar.web.panels.panel import PANELS, Panel, RunView, Section, panel, table_section

__all__ = ["PANELS", "Panel", "RunView", "Section", "dashboard", "panel", "sorted_panels", "table_section"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")


def sorted_panels() -> dict[str, Panel]:
    """All panels by name, in the order of the page."""
    return {name: PANELS[name] for name in sorted(PANELS, key=lambda name: PANELS[name].order)}


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
