"""One progress bar for commands that take a while."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

SECONDS_BETWEEN_LINES = 5.0


class ProgressBar:
    """A progress bar on standard error; plain lines where standard error is not a terminal.

    Lines are printed when the stage changes and then every few seconds, but none in the first ``patience`` seconds.
    """

    def __init__(self, *, quiet: bool = False, first: str = "starting", patience: float = 0.0) -> None:
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
        )
        self._bar = self._bars.add_task(first, total=1.0, detail="")
        self._quiet_until = time.monotonic() + patience
        self._stage, self._last_line = "", 0.0

    def __enter__(self) -> ProgressBar:
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
