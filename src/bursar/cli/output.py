"""Tables, JSON, warnings and a progress bar on the command line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

SECONDS_BETWEEN_LINES = 5.0


def print_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    typer.echo(json.dumps(value, ensure_ascii=False))


def print_warnings(warnings: Iterable[str]) -> None:
    """Print warnings on standard error."""
    for warning in warnings:
        typer.echo(f"Warning: {warning}", err=True)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True) -> None:
    """Print a table. ``numbers`` aligns all columns but the first to the right. Cells are plain text, not markup."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, column in enumerate(columns):
        right = numbers and place > 0
        side: Literal["left", "right"] = "right" if right else "left"
        table.add_column(Text(column, style="dim"), justify=side, overflow="fold", no_wrap=right)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console()
    if numbers:  # never wrap a number: a line that is too long is better
        wide = table.__rich_measure__(console, console.options.update(max_width=10_000)).maximum
        console = Console(width=max(console.width, wide))
    console.print(Text(title, style="bold"))
    console.print(table, crop=False)
    console.print()


class ProgressBar:
    """A progress bar on standard error; plain lines where standard error is not a terminal.

    Lines are printed when the stage changes and then every few seconds, but none in the first ``patience`` seconds.
    The time left follows from the speed of the last ``window`` seconds.
    """

    def __init__(
        self, *, quiet: bool = False, first: str = "starting", patience: float = 0.0, window: float = 30.0
    ) -> None:
        self.console = Console(file=sys.stderr, quiet=quiet)
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=40),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[detail]}"),
            console=self.console,
            transient=True,
            speed_estimate_period=window,
        )
        self._bar = self._bars.add_task(first, total=1.0, detail="")
        self._quiet_until = time.monotonic() + patience
        self._stage, self._last_line = "", 0.0

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self._bars.stop()

    def update(self, stage: str, done: float, detail: str = "") -> None:
        """Show the stage, the share of it that is done (0 to 1), and a detail."""
        self._bars.update(self._bar, description=stage, completed=done, detail=detail)
        now = time.monotonic()
        due = stage != self._stage or now - self._last_line >= SECONDS_BETWEEN_LINES
        if self.console.is_terminal or not due or now < self._quiet_until:
            return
        self._stage, self._last_line = stage, now
        line = f"{time.strftime('%H:%M:%S')} {stage}: {detail or f'{100 * done:.0f} %'}"
        self.console.print(line, soft_wrap=True, markup=False, highlight=False)
