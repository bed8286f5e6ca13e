"""The result of a simulation: scores by strategy, seed, round and task, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bursar.campaign.curves import area
from bursar.comparison.paired import PairedTest, holm, paired_test, saved_interval
from bursar.errors import ConfigError
from bursar.ragged import FloatArray

MEAN = "mean"  # of all tasks
AREA, LAST, SAVED = "area", "last score", "saved"
POINTS = 60  # of a mean curve


@dataclass(frozen=True)
class Round:
    """The model after a round: what was spent until then, and the main score of each task on test items."""

    round: int
    spent: float
    items: int
    scores: Mapping[str, float]


@dataclass(frozen=True)
class Cell:
    """One campaign: a strategy and a seed."""

    strategy: str
    seed: int
    rounds: tuple[Round, ...]


@dataclass(frozen=True, eq=False)
class MeanCurve:
    """The mean score over seeds by what was spent, and the lowest and the highest of any seed."""

    strategy: str
    seeds: int
    spent: FloatArray  # (points,): items, or money
    mean: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class Difference:
    """How much better one strategy is than another, seed by seed, with a 95 % interval."""

    strategy: str
    against: str
    task: str
    measure: str  # the mean score over the budget (area), the last score, or the share of the budget saved
    difference: float
    low: float | None  # None with a single seed
    high: float | None
    p: float | None  # of a paired t-test; None with a single seed, and for the share saved
    p_corrected: float | None  # for the number of strategies compared, by Holm
    seeds: int


@dataclass(frozen=True, eq=False)
class Simulation:
    """Several strategies on the same corpus and seeds, as ``bursar.simulate`` returns them.

    ``to_frame`` has all scores, ``plot`` draws the curves, ``compare`` tests differences, ``report`` writes a page.

    >>> import bursar
    >>> corpus = bursar.assistant_corpus(120, seed=1).with_tasks(["intent"])
    >>> result = bursar.simulate(corpus, ["MT-AVG", "RANDOM"], seeds=[0, 1], budget=30, learner="scikit", workers=1)
    >>> result.strategies, result.seeds
    (['MT-AVG', 'RANDOM'], [0, 1])
    >>> result.compare()["measure"].tolist()
    ['area', 'last score', 'saved']
    """

    cells: tuple[Cell, ...]
    metrics: Mapping[str, str]  # the main metric of each task
    counts: str  # what was spent: "items" or "money"
    currency: str = ""
    notes: tuple[str, ...] = ()  # strategies that fell back on another
    about: Mapping[str, str] = field(default_factory=dict)

    @property
    def strategies(self) -> list[str]:
        """The strategies, in the order in which they were named."""
        return list(dict.fromkeys(cell.strategy for cell in self.cells))

    @property
    def seeds(self) -> list[int]:
        return sorted({cell.seed for cell in self.cells})

    @property
    def tasks(self) -> list[str]:
        return list(self.metrics)

    def __repr__(self) -> str:
        names, seeds = ", ".join(self.strategies), len(self.seeds)
        return f"<Simulation of {names} on {', '.join(self.tasks)}, {seeds} seed{'s' if seeds != 1 else ''}>"

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row for each strategy, seed, round and task."""
        import pandas as pd

        columns = ["strategy", "seed", "round", "task", "spent", "items", "metric", "score"]
        rows = [
            (cell.strategy, cell.seed, part.round, task, part.spent, part.items, metric, part.scores[task])
            for cell in self.cells
            for part in cell.rounds
            for task, metric in self.metrics.items()
        ]
        return pd.DataFrame(rows, columns=columns)

    # -- curves --------------------------------------------------------------------------------------------------------
    def curve(self, strategy: str, seed: int, task: str | None = None) -> tuple[FloatArray, FloatArray]:
        """What had been spent at each round, in items or money, and the score: of a task, or the mean over tasks."""
        name = self.name_of(strategy)
        found = next((cell for cell in self.cells if (cell.strategy, cell.seed) == (name, seed)), None)
        if found is None:
            raise ConfigError(f"there is no seed {seed}", fix=f"use one of {', '.join(map(str, self.seeds))}")
        if task is not None and task not in self.metrics:
            raise ConfigError(f"there is no task {task!r}", fix=f"the tasks are {', '.join(self.tasks)}")
        spent = [part.items if self.counts == "items" else part.spent for part in found.rounds]
        names = self.tasks if task is None else [task]
        scores = [float(np.mean([part.scores[name] for name in names])) for part in found.rounds]
        return np.array(spent, dtype=float), np.array(scores)

    def mean_curves(self, task: str | None = None) -> list[MeanCurve]:
        """The mean curve of every strategy over the seeds, where all of them have a score."""
        found = []
        for strategy in self.strategies:
            curves = [self.curve(strategy, seed, task) for seed in self.seeds]
            grid = _grid([spent for spent, _ in curves])
            values = np.stack([np.interp(grid, *curve) for curve in curves])
            found.append(
                MeanCurve(strategy, len(curves), grid, values.mean(axis=0), values.min(axis=0), values.max(axis=0))
            )
        return found

    def name_of(self, strategy: str) -> str:
        """A strategy as it is named here, whatever its case."""
        for name in self.strategies:
            if name.casefold() == strategy.casefold():
                return name
        raise ConfigError(f"{strategy!r} was not simulated", fix=f"use one of {', '.join(self.strategies)}")

    def plot(self, task: str | None = None, ax: Any = None) -> Any:
        """Draw a task or the mean over tasks with matplotlib, and a band over all seeds; return the axes."""
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ConfigError("matplotlib is not installed", fix="install it: pip install 'bursar[plots]'") from None
        curves = self.mean_curves(task)
        axes = plt.subplots(figsize=(7, 4.5))[1] if ax is None else ax
        for number, curve in enumerate(curves):
            (line,) = axes.plot(
                curve.spent, curve.mean, label=curve.strategy, linestyle=("-", "--", ":", "-.")[number % 4]
            )
            if curve.seeds > 1:
                axes.fill_between(curve.spent, curve.low, curve.high, color=line.get_color(), alpha=0.15, linewidth=0)
        axes.set_xlabel("items labelled" if self.counts == "items" else f"spent, in {self.currency or 'money'}")
        axes.set_ylabel(self.measure(task))
        axes.legend(frameon=False)
        return axes

    def measure(self, task: str | None = None) -> str:
        """What is drawn, in words."""
        if task is None and len(self.tasks) > 1:
            return "mean score of the tasks"
        name = task or self.tasks[0]
        return f"{name}: {self.metrics[name]}"

    # -- comparisons ---------------------------------------------------------------------------------------------------
    def compare(self, strategy: str | None = None, against: str | None = None) -> Any:
        """Paired differences as a pandas DataFrame: of one strategy against another, or of all against the last.

        For every task and their mean: the difference of the areas under the curves (mean scores over the budget) and
        of the last scores, each with its 95 % interval, the p of a paired t-test over seeds, and p corrected for the
        number of strategies. ``saved`` is the share of what the other spent that was not needed for the same score.
        """
        import pandas as pd

        return pd.DataFrame([vars(found) for found in self.differences(strategy, against)])

    def differences(self, strategy: str | None = None, against: str | None = None) -> list[Difference]:
        other = self.name_of(against) if against is not None else self.strategies[-1]
        mine = [self.name_of(strategy)] if strategy is not None else [n for n in self.strategies if n != other]
        if not mine or mine == [other]:
            raise ConfigError(
                f"{other} cannot be compared with itself", fix=f"name two of {', '.join(self.strategies)}"
            )
        tasks: list[str | None] = [None, *(self.tasks if len(self.tasks) > 1 else [])]
        found = []
        for task in tasks:
            for measure in (AREA, LAST):
                tests = [self._tested(name, other, task, measure) for name in mine]
                for name, test, p in zip(mine, tests, holm([test["p"] for test in tests]), strict=True):
                    gap, about = test["difference"], self._about(task)
                    assert gap is not None
                    ends = test["low"], test["high"]
                    found.append(Difference(name, other, about, measure, gap, *ends, test["p"], p, test["n"]))
        return found + [self._saved(name, other) for name in mine]

    def _about(self, task: str | None) -> str:
        """What a difference is about: a task, or the mean of several."""
        return task or (MEAN if len(self.tasks) > 1 else self.tasks[0])

    def _tested(self, name: str, other: str, task: str | None, measure: str) -> PairedTest:
        pairs = [[self.curve(arm, seed, task) for arm in (name, other)] for seed in self.seeds]
        if measure == LAST:
            return paired_test([mine[1][-1] for mine, _ in pairs], [theirs[1][-1] for _, theirs in pairs])
        values = []
        for both in pairs:
            low, high = max(spent[0] for spent, _ in both), min(spent[-1] for spent, _ in both)
            values.append([area(spent, score, low, high) for spent, score in both])
        return paired_test([mine for mine, _ in values], [theirs for _, theirs in values])

    def _saved(self, name: str, other: str) -> Difference:
        mine, theirs = ([self.curve(arm, seed) for seed in self.seeds] for arm in (name, other))
        found = saved_interval(mine, theirs)
        low, high = found["low"], found["high"]
        return Difference(name, other, self._about(None), SAVED, found["saved"], low, high, None, None, found["n"])

    def report(self, path: str | Path) -> Path:
        """Write a self-contained HTML page: curves with bands, last scores, and paired differences."""
        from bursar.comparison.page import render_simulation
        from bursar.report.page import write_page

        return write_page(render_simulation(self), Path(path))


def _grid(spent: Sequence[FloatArray]) -> FloatArray:
    """The points of a mean curve: the rounds if they cost the same with every seed, else between their common ends."""
    if all(len(one) == len(spent[0]) and np.allclose(one, spent[0]) for one in spent):
        return spent[0]
    low, high = max(float(one[0]) for one in spent), min(float(one[-1]) for one in spent)
    return np.linspace(low, max(low, high), POINTS, dtype=np.float64)
