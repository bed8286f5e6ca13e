"""What a panel of the watch page is, and the registry that finds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bursar.annotation.session import SessionState
from bursar.campaign.results import ArmResult, RunResult
from bursar.registry import Registry
from bursar.report.tables import Table
from bursar.web.dashboard import Section

__all__ = ["PANELS", "Panel", "RunView", "Section", "panel", "table_section"]


@dataclass(frozen=True)
class RunView:
    """What panels are made from: the result of the run with the current settings, and the state of the campaign."""

    result: RunResult
    state: SessionState
    folder: str  # of the project, for suggested commands

    @property
    def arm(self) -> ArmResult:
        """The result of the campaign itself, without the arms that it is compared with."""
        return self.result.main

    @property
    def by_item(self) -> bool:
        return self.result.config.budget.counts == "items"


Show = Callable[[RunView], Section]


@dataclass(frozen=True)
class Panel:
    """A section of the watch page.

    ``show`` returns its contents: ``words``, ``chart`` or ``panels``, ``note`` and ``tables``; or ``empty``, which says
    why there is nothing to show and what to do. A panel that shows more has a script, ``static/watch/panels/NAME.js``.
    """

    title: str
    link: str  # its name in the list of contents
    order: int  # position on the page
    show: Show


PANELS: Registry[Panel] = Registry("panel", "bursar.panels")


def panel(name: str, title: str, *, link: str, order: int) -> Callable[[Show], Show]:
    """Register a function as a panel."""

    def register(show: Show) -> Show:
        PANELS.add(name, Panel(title, link, order, show))
        return show

    return register


def table_section(title: str, table: Table) -> Section:
    """A table below a panel."""
    return {"title": title, "columns": list(table.columns), "rows": [list(row) for row in table.rows]}
