"""What people see while units of work run: a bar over all of them and a line for each that runs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bursar.compute import Unit, duration
from experiments.progress import UnitProgress

QUIET = 1.0  # seconds between two plain lines, so that quick units do not flood a log
WIDTH = 24  # of a unit's own bar
MOST_LINES = 16  # of running units


class UnitsDisplay(UnitProgress):
    """A live display where there is a terminal, plain lines where there is none.

    ``units`` are all units that there are: what differs between them says what each of them is.
    """

    def __init__(self, title: str, units: Sequence[Unit], workers: int, console: Console | None = None) -> None:
        super().__init__(workers)
        self.title = title
        self.name = naming(units)
        self.console = console or Console(file=sys.stderr)
        self.started: dict[str, float] = {}
        self.last_line = 0.0
        self.live: Live | None = None

    def __enter__(self) -> UnitsDisplay:
        if self.console.is_terminal:
            self.live = Live(get_renderable=self.render, console=self.console, refresh_per_second=4, transient=True)
            self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None
            if kind is None:
                self.console.print(Text(self.line()))

    def begun(self, total: int, stored: int) -> None:
        super().begun(total, stored)
        self._say(f"{self.title}: {self.line()}")

    def reported(self, unit: Unit, what: Any) -> None:
        super().reported(unit, what)
        self.started.setdefault(json.dumps(unit, sort_keys=True), time.monotonic())

    def finished(self, unit: Unit, result: Any, seconds: float) -> None:
        super().finished(unit, result, seconds)
        self.started.pop(json.dumps(unit, sort_keys=True), None)
        if time.monotonic() - self.last_line >= QUIET or not self.left:
            self._say(f"{self.line()} · finished {self.name(unit)} in {duration(seconds)}")

    def retried(self, unit: Unit, why: str) -> None:
        super().retried(unit, why)
        self.started.pop(json.dumps(unit, sort_keys=True), None)
        message = f"{self.name(unit)} is tried again: {why}"
        if self.live is not None:
            self.console.print(Text(message, style="yellow"))
        self._say(message)

    def render(self) -> RenderableType:
        """The bar, what it stands for, and a line for each unit that has told something."""
        head = Table.grid(padding=(0, 2), expand=True)
        head.add_column(no_wrap=True)
        head.add_column(ratio=1)
        head.add_column(no_wrap=True, justify="right")
        bar = ProgressBar(total=max(1, self.total), completed=self.done)
        head.add_row(Text(self.title, style="bold"), bar, Text(f"{100 * self.done // max(1, self.total)} %"))
        running = Table.grid(padding=(0, 2))
        told = list(self.last_reports.items())
        for key, what in told[:MOST_LINES]:
            stage, share = stage_of(what)
            elapsed = time.monotonic() - self.started.get(key, time.monotonic())
            progress: RenderableType = Text("")
            if share is not None:
                progress = ProgressBar(total=1.0, completed=share, width=WIDTH)
            running.add_row(
                Text(f"  {self.name(json.loads(key))}"), Text(stage, style="dim"), progress, Text(duration(elapsed))
            )
        waiting = self.running - min(len(told), MOST_LINES)
        if waiting > 0 and self.total:
            running.add_row(Text(f"  {waiting} more {'is' if waiting == 1 else 'are'} starting", style="dim"))
        return Group(head, Text(f"  {self.line()}", style="dim"), running)

    def _say(self, line: str) -> None:
        if self.live is None:
            self.last_line = time.monotonic()
            self.console.print(Text(f"{time.strftime('%H:%M:%S')} {line}"), soft_wrap=True)


def naming(units: Sequence[Unit]) -> Callable[[Unit], str]:
    """A short name for each unit: the values that not all of them have.

    >>> units = [{"data": "atis", "strategy": name, "seed": 0, "setup": {"pool": 9}} for name in ("MT-R", "MT-AVG")]
    >>> name = naming([*units, {"data": "snips", "strategy": "MT-R", "seed": 1, "setup": {"pool": 9}}])
    >>> name(units[1])
    'atis · MT-AVG · seed 0'
    """
    keys = dict.fromkeys(key for unit in units for key in unit)
    values = {key: {json.dumps(unit.get(key), sort_keys=True) for unit in units} for key in keys}
    chosen = [key for key in keys if len(values[key]) > 1]
    last = [key for key in chosen if key == "seed"]

    def name(unit: Unit) -> str:
        parts = [_part(key, unit.get(key)) for key in [key for key in chosen if key not in last] + last]
        return " · ".join(filter(None, parts)) or "the only unit"

    return name


def stage_of(what: Any) -> tuple[str, float | None]:
    """What a unit told, in words, and how much of that is done.

    >>> stage_of((2, "training", 0.43)), stage_of("loading")
    (('round 2: training', 0.43), ('loading', None))
    """
    match what:
        case [int(number), str(stage), int() | float() as done]:
            return f"round {number}: {stage}", min(1.0, max(0.0, float(done)))
        case [str(stage), int() | float() as done]:
            return stage, min(1.0, max(0.0, float(done)))
    return " ".join(str(what).split())[:60], None


def _part(key: str, value: Any) -> str:
    """A value of a unit in its name; what is too long for a name is left out."""
    match value:
        case None | "" | False:
            return ""
        case True:
            return key
        case str():
            return value
        case int() | float():
            return f"{key} {value:g}"
        case Mapping() if len(value) <= 3 and all(isinstance(v, (int, float)) for v in value.values()):
            return ", ".join(f"{name} {share:g}" for name, share in value.items())
        case list() | tuple() if len(value) <= 4 and all(isinstance(v, str) for v in value):
            return "+".join(value)
    return ""
