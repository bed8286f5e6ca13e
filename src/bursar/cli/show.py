"""The progress of runs and of searches for the best order."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from rich.text import Text

from bursar.campaign.participants import Observer
from bursar.cli.output import ProgressBar
from bursar.compute import duration
from bursar.tasks import CostModel, Task

if TYPE_CHECKING:
    from bursar.campaign.decisions import RoundRecord
    from bursar.oracle import SearchPlan, SearchState


class RunDisplay(ProgressBar):
    """A progress bar for a run with the current stage and the time left, and a line for each scored round."""

    # Roughly where in a round each stage begins and ends; training takes most of it.
    WEIGHTS = {"annotating": (0.0, 0.02), "pretraining": (0.02, 0.3), "training": (0.02, 0.7), "scoring": (0.7, 0.85)}
    LAST = (0.85, 1.0)

    def __init__(self, arms: Sequence[str], rounds: int, tasks: Mapping[str, Task], costs: CostModel) -> None:
        super().__init__(patience=math.inf, window=math.inf)
        self.rounds, self.tasks, self.costs = rounds, tasks, costs
        self.name_width = max(10, *(len(arm) + 2 for arm in arms))
        self.score_widths = [max(12, len(f"{name} {task.metric}") + 2) for name, task in tasks.items()]
        self.done = dict.fromkeys(arms, 0.0)
        self.search = SearchDisplay(self.update)

    def __enter__(self) -> Self:
        super().__enter__()
        titles = [f"{name} {task.metric}" for name, task in self.tasks.items()]
        self.console.print(Text(self.line("strategy", "round", "spent", "items", titles), style="dim"))
        return self

    def watcher(self, arm: str) -> ArmDisplay:
        return ArmDisplay(self, arm)

    def move(self, arm: str, round: int, what: str, done: float) -> None:
        start, end = self.WEIGHTS.get(what.partition(",")[0], self.LAST)  # details may follow a comma
        # Later rounds train on more items and take longer: weigh round r as r + 2.
        weights = [r + 2.0 for r in range(self.rounds + 1)]
        part = (sum(weights[:round]) + weights[round] * (start + (end - start) * done)) / sum(weights)
        self.done[arm] = max(self.done[arm], part)
        self.update(f"{arm}, round {round}: {what}", sum(self.done.values()) / len(self.done))

    def row(self, arm: str, record: RoundRecord) -> None:
        if record.round == self.rounds:
            self.done[arm] = 1.0
        test = record.test
        scores = [f"{100 * test[n][task.metric]:.1f}" if n in test else "–" for n, task in self.tasks.items()]
        line = self.line(arm, str(record.round), self.costs.show(record.spent), f"{record.items:,}", scores)
        self.console.print(Text(line))

    def line(self, arm: str, round: str, spent: str, items: str, scores: Sequence[str]) -> str:
        cells = "".join(f"{score:>{width}}" for score, width in zip(scores, self.score_widths, strict=True))
        return f"{arm:<{self.name_width}}{round:>6}{spent:>12}{items:>8}{cells}"


@dataclass(frozen=True)
class ArmDisplay(Observer):
    """Passes the progress of one strategy on to the display."""

    display: RunDisplay
    arm: str

    def stage(self, round: int, what: str, done: float) -> None:
        self.display.move(self.arm, round, what, done)

    def scored(self, record: RoundRecord) -> None:
        self.display.row(self.arm, record)


@dataclass(frozen=True)
class FirstSelection(Observer):
    """The progress of selecting the first items, which may read thousands of texts."""

    bar: ProgressBar

    def stage(self, round: int, what: str, done: float) -> None:
        self.bar.update("selecting the first items" if what == "reading" else what, done)


class SearchDisplay:
    """Shows the progress of a search for the best order, and keeps its last state."""

    def __init__(self, show: Callable[[str, float, str], None]) -> None:
        self.show = show
        self.state: SearchState | None = None
        self.first, self.started = 0, 0.0

    def reading(self, what: str, done: float) -> None:
        self.show(f"{what} the items", done, "")

    def update(self, state: SearchState, plan: SearchPlan) -> None:
        """Show the steps, the best score so far and the time left."""
        if self.state is None:
            self.first, self.started = state.step, time.monotonic()
        self.state = state
        words = f"step {state.step:,} of {plan.all_steps:,} · best {100 * float(state.best_curve.mean()):.2f} %"
        elapsed, went = time.monotonic() - self.started, state.step - self.first
        if elapsed > 1 and went:
            words += f" · {duration(elapsed / went * (plan.all_steps - state.step))} left"
        stage = "annealing" if state.step < plan.steps else "greedy steps"
        self.show(stage, state.step / max(1, plan.all_steps), words)
