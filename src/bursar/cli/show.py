"""Tables, and the progress of a run."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from bursar.compute import duration
from bursar.tasks import CostModel, Task

if TYPE_CHECKING:
    from bursar.campaign.decisions import RoundRecord
    from bursar.oracle import SearchPlan, SearchState


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = True) -> None:
    """Print a table. ``numbers`` aligns all columns but the first to the right. Cells are plain text, not markup."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, column in enumerate(columns):
        right = numbers and place > 0
        table.add_column(
            Text(column, style="dim"), justify="right" if right else "left", overflow="fold", no_wrap=right
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console()
    if numbers:  # never wrap a number: a line that is too long is better
        wide = table.__rich_measure__(console, console.options.update(max_width=10_000)).maximum
        console = Console(width=max(console.width, wide))
    console.print(Text(title, style="bold"))
    console.print(table, crop=False)
    console.print()


class RunDisplay:
    """A progress bar for a run with the current stage and the time left, and a line for each scored round."""

    # Roughly where in a round each stage begins and ends; training takes most of it.
    WEIGHTS = {
        "annotating": (0.0, 0.02),
        "pretraining": (0.02, 0.3),
        "training": (0.02, 0.7),
        "scoring": (0.7, 0.85),
    }
    LAST = (0.85, 1.0)

    def __init__(self, arms: Sequence[str], rounds: int, tasks: Mapping[str, Task], costs: CostModel) -> None:
        self.arms, self.rounds, self.tasks, self.costs = list(arms), rounds, tasks, costs
        self.name_width = max(10, *(len(arm) + 2 for arm in self.arms))
        self.score_widths = {name: max(12, len(f"{name} {task.metric}") + 2) for name, task in tasks.items()}
        self.started = time.monotonic()
        self.done = dict.fromkeys(self.arms, 0.0)
        self.console = Console(file=sys.stderr)
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self.console,
            transient=True,
        )
        self.bar = self.progress.add_task("starting", total=1.0, left="")
        self.searched: SearchPace | None = None

    def __enter__(self) -> RunDisplay:
        self.progress.start()
        header = "".join(f"{f'{name} {task.metric}':>{self.score_widths[name]}}" for name, task in self.tasks.items())
        strategy = f"{'strategy':<{self.name_width}}"
        self.console.print(Text(f"{strategy}{'round':>6}{'spent':>12}{'items':>8}{header}", style="dim"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def watcher(self, arm: str) -> ArmDisplay:
        """Give the observer of one strategy."""
        return ArmDisplay(self, arm)

    def at(self, arm: str, round: int, what: str, done: float) -> None:
        """Move the bar."""
        start, end = self.WEIGHTS.get(what.partition(",")[0], self.LAST)  # details may follow a comma
        # Later rounds train on more items and take longer: weigh round r as r + 2.
        weights = [r + 2.0 for r in range(self.rounds + 1)]
        part = (sum(weights[:round]) + weights[round] * (start + (end - start) * done)) / sum(weights)
        self.done[arm] = max(self.done[arm], part)
        whole = sum(self.done.values()) / len(self.arms)
        elapsed = time.monotonic() - self.started
        left = f"about {_clock(elapsed * (1 - whole) / whole)} left" if whole > 0.03 else ""
        self.progress.update(self.bar, completed=whole, description=f"{arm}, round {round}: {what}", left=left)

    def reading(self, what: str, done: float) -> None:
        """Show that the oracle encodes the items."""
        self.progress.update(self.bar, completed=done, description=f"best order: {what}", left="")

    def searching(self, state: SearchState, plan: SearchPlan) -> None:
        """Show the progress of the oracle's search."""
        self.searched = self.searched or SearchPace(state.step)
        done, words = self.searched.describe(state, plan)
        self.progress.update(self.bar, completed=done, description="best order", left=words)

    def row(self, arm: str, record: RoundRecord) -> None:
        """Print the scores of a round."""
        if record.round == self.rounds:
            self.done[arm] = 1.0
        scores = "".join(f"{_score(record, n, task):>{self.score_widths[n]}}" for n, task in self.tasks.items())
        spent = self.costs.show(record.spent)
        self.console.print(Text(f"{arm:<{self.name_width}}{record.round:>6}{spent:>12}{record.items:>8,}{scores}"))


class SearchPace:
    """Describes the progress of a search for the best order: steps, best score so far, time left."""

    def __init__(self, first: int) -> None:
        self.first, self.started = first, time.monotonic()

    def describe(self, state: SearchState, plan: SearchPlan) -> tuple[float, str]:
        """Give the share that is done, and a line of text."""
        words = f"step {state.step:,} of {plan.all_steps:,} · best {100 * float(state.best_curve.mean()):.2f} %"
        elapsed, went = time.monotonic() - self.started, state.step - self.first
        if elapsed > 1 and went:
            words += f" · {duration(elapsed / went * (plan.all_steps - state.step))} left"
        return state.step / max(1, plan.all_steps), words


class ArmDisplay:
    """Passes the progress of one strategy on to the display."""

    def __init__(self, display: RunDisplay, arm: str) -> None:
        self.display, self.arm = display, arm

    def stage(self, round: int, what: str, done: float) -> None:
        """Move the bar."""
        self.display.at(self.arm, round, what, done)

    def scored(self, record: RoundRecord) -> None:
        """Print the scores of the round."""
        self.display.row(self.arm, record)


def _score(record: RoundRecord, name: str, task: Task) -> str:
    if name not in record.test:
        return "–"
    return f"{100 * record.test[name][task.metric]:.1f}"


def _clock(seconds: float) -> str:
    return f"{int(seconds // 60)}:{int(seconds % 60):02d}"
