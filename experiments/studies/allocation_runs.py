"""The runs of the study of splits, sorted out, and the numbers that its tables and answers are made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from bursar.allocation import Informativeness, ReductionRate, SplitEstimates, gain
from bursar.allocation.estimates import tells_nothing
from bursar.allocation.informativeness import from_gains
from bursar.allocation.rates import LearningCurve
from bursar.ragged import FloatArray
from experiments.studies.allocation_models import agreement
from experiments.studies.allocation_settings import ALIKE, ARMS, MORE_SEEDS, READING, SETTINGS, setting_of
from experiments.studies.findings import Cell
from experiments.studies.outcomes import Outcomes
from experiments.studies.statistics import PairedTest, paired_test, spread
from experiments.studies.study import Run

PAPERS, QUICK = "the paper's estimates", "quick estimates"
MAIN = f"exact, {PAPERS}"
TOGETHER = f"together, {PAPERS}"
ABLATIONS = ("no transfer", "one rate")
OURS = tuple(f"{how}, {way}" for way in (PAPERS, QUICK) for how in ("exact", "robust", "together"))
FOREKNOWN, WEIGHED = "other draws' curves", "other draws' curves and own gains"
AS_OFTEN = ("same items", "equal counts")  # beside the method
LEAST_SCORE = 0.1
PAPER_GAIN = 24.7  # percent over the seed model, PASCAL VOC, a budget of 6,300; its heuristics 19.3 to 22.9


@dataclass(frozen=True)
class Divided:
    """One budget at some prices in one draw, and the gains of all its splits."""

    data: str
    seed: int
    costs: str
    times: float
    budget: int
    seed_scores: Mapping[str, float]
    splits: Mapping[str, Mapping[str, Any]]
    best_one: str = ""  # the split for one task that gains the most on this data set, over all draws

    @property
    def cluster(self) -> tuple[str, int]:
        return self.data, self.seed

    @property
    def place(self) -> tuple[str, int, str, float]:
        """Which budget at which prices of which draw."""
        return self.data, self.seed, self.costs, self.times

    def relative(self, name: str) -> float:
        """What a split gains over the seed model, in percent of its score, on average over the tasks: the paper's.

        A seed score below 0.1 counts as 0.1, or one task that is hardly begun would decide on everything.
        """
        scores = self.splits[name]["scores"]
        gains = [(scores[task] - begin) / max(begin, LEAST_SCORE) for task, begin in self.seed_scores.items()]
        return 100 * float(np.mean(gains))

    def with_splits(self, run: Run) -> Divided:
        """With the splits of a control beside its own, or in place of those of the same name."""
        return replace(self, splits={**self.splits, **run["result"]["splits"]})

    def points(self, name: str) -> float:
        """The same in points."""
        scores = self.splits[name]["scores"]
        return 100 * float(np.mean([scores[task] - begin for task, begin in self.seed_scores.items()]))

    def foresight(self, plain: bool = False) -> float:
        """How well predicted gains order the splits as their relative gains do: Spearman's correlation.

        Of splits that one model predicts, each once: quick estimates are on a scale of their own. ``plain`` leaves out
        those that give all money to one task.
        """
        of = {self._bought(name): name for name in self.splits if not name.endswith(QUICK)}
        names = [name for name in of.values() if not (plain and name.startswith("only "))]
        rank = spearmanr([self.splits[n]["predicted"] for n in names], [self.relative(n) for n in names])[0]
        return float(np.nan_to_num(rank))

    def _bought(self, name: str) -> tuple[Any, ...]:
        split = self.splits[name]
        return (*split.get("counts", (name,)), split.get("together", 0))

    @property
    def shares_reading(self) -> bool:
        """Whether an item for all tasks is cheaper than its labels apart."""
        return self.costs == READING


class Seen:
    """The runs, by what they are."""

    def __init__(self, runs: Sequence[Run]) -> None:
        of: dict[str, list[Run]] = defaultdict(list)
        for run in runs:
            of[run["unit"]["kind"]].append(run)
        self.estimates = {(run["unit"]["data"], run["unit"]["seed"]): run["result"] for run in of["estimates"]}
        cells = {
            _where(run): Divided(*_where(run), run["unit"]["budget"], **_kept(run["result"])) for run in of["splits"]
        }
        best = {
            data: _best_one([cell for cell in cells.values() if cell.data == data]) for data in (*SETTINGS, *MORE_SEEDS)
        }
        cells = {where: replace(cell, best_one=best[cell.data]) for where, cell in cells.items()}
        self.divided = [cell for cell in cells.values() if cell.data in SETTINGS]
        self.more_seeds = [cell for cell in cells.values() if cell.data in MORE_SEEDS]
        self.foreknown = [cells[at].with_splits(run) for run in of["foreknown"] if (at := _where(run)) in cells]
        self.as_often = [cells[at].with_splits(run) for run in of["seen as often"] if (at := _where(run)) in cells]
        self.curves: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for run in of["real curves"]:
            self.curves[run["unit"]["data"]].append(run["result"])
        arms = [(run["unit"]["allocation"], _as_arm(run)) for run in of["campaign"]]
        self.campaigns = {
            name: Outcomes.of([run for split, run in arms if arm_name(run["unit"]["strategy"], split) == name])
            for name in (arm_name(*arm) for arm in ARMS)
        }

    @property
    def data(self) -> list[str]:
        return [name for name in SETTINGS if any(one.data == name for one in self.divided)]

    def methods(self) -> list[str]:
        """Splits that every data set has, ours first; those that are for one task of a data set are one method."""
        return [name for name in self.divided[0].splits if not name.startswith("only ")] if self.divided else []


def _where(run: Run) -> tuple[str, int, str, float]:
    unit = run["unit"]
    return unit["data"], unit["seed"], unit["costs"], unit["times"]


def _kept(result: Mapping[str, Any]) -> dict[str, Any]:
    return {"seed_scores": result["seed_scores"], "splits": result["splits"]}


def _best_one(cells: Sequence[Divided]) -> str:
    """The split for one task that gains the most over some cells."""
    names = [name for name in cells[0].splits if name.startswith("only ")] if cells else []
    return max(names, key=lambda name: float(np.mean([cell.relative(name) for cell in cells])), default="")


def _as_arm(run: Run) -> Run:
    return {**run, "unit": {key: value for key, value in run["unit"].items() if key not in ("kind", "allocation")}}


def arm_name(strategy: str, split: str | None) -> str:
    """What a campaign is called.

    >>> arm_name("UDJS", "robust"), arm_name("UDJS", None)
    ('UDJS, split (robust)', 'UDJS')
    """
    return f"{strategy}, split ({split})" if split else strategy


# -- numbers -----------------------------------------------------------------------------------------------------------
def only_one(cell: Divided, how: Callable[[str], float]) -> float:
    """The mean over the splits that give all money to one task."""
    return float(np.mean([how(name) for name in cell.splits if name.startswith("only ")]))


ALL_ON_ONE = "all on one task"
BEST_ONE = "all on the best task"  # which nobody knows beforehand


def value(cell: Divided, method: str, relative: bool = True) -> float:
    """The gain of a method in a cell."""
    how = cell.relative if relative else cell.points
    return only_one(cell, how) if method == ALL_ON_ONE else how(cell.best_one if method == BEST_ONE else method)


def heuristics(seen: Seen) -> list[str]:
    """Splits that nothing is measured for but, at most, how hard tasks are; and the best task, known afterwards."""
    return [ALL_ON_ONE, BEST_ONE, *(name for name in seen.methods() if name not in (*OURS, *ABLATIONS))]


def compared(cells: Sequence[Divided], one: str, other: str, relative: bool = True) -> PairedTest:
    """Two methods over cells; what shares a data set and a draw is one observation."""
    a, b = ([value(cell, name, relative) for cell in cells] for name in (one, other))
    return paired_test(a, b, cluster=[cell.cluster for cell in cells])


def mean_over(cells: Sequence[Divided], method: str, relative: bool = True) -> Cell:
    """The mean over data sets of the means over settings, with the spread over draws."""
    by: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for cell in in_whole_draws(cells):
        by[cell.seed][cell.data].append(value(cell, method, relative))
    draws = [float(np.mean([np.mean(found) for found in of.values()])) for of in by.values()]
    found = spread(draws)
    return Cell(found["mean"], found["spread"])


def in_whole_draws(cells: Sequence[Divided]) -> Sequence[Divided]:
    """Those of draws for which no data set and no setting is missing, if there are any: others would move a mean."""
    there = defaultdict(set)
    for cell in cells:
        there[cell.seed].add((cell.data, cell.costs, cell.times))
    every = set().union(*there.values())
    return [cell for cell in cells if there[cell.seed] == every] or cells


def known_rates(ways: Sequence[Mapping[str, Any]]) -> float:
    """Of how many reduction rates anything is known, in percent."""
    rates = [ReductionRate(*rate) for way in ways for rate in way["rates"].values()]
    return 100 * float(np.mean([not tells_nothing(rate) for rate in rates]))


def clear_effects(ways: Sequence[Mapping[str, Any]]) -> float:
    """How many effects of one task on another are beyond two standard errors, in percent; 5 would be by chance."""
    values, errors = (np.array([way[of] for way in ways]) for of in ("value", "error"))
    others = ~np.eye(values.shape[1], dtype=bool)
    return 100 * float(np.mean(np.abs(values[:, others]) > 2 * errors[:, others]))


def draws_agree(ways: Sequence[Mapping[str, Any]]) -> float | None:
    """Spearman's correlation of who informs whom in two draws, the mean over all pairs; none of two tasks."""
    if len(ways) < 2 or len(ways[0]["rates"]) < 3:
        return None
    found = [Informativeness(tuple(way["rates"]), np.array(way["value"]), np.array(way["error"])) for way in ways]
    return float(np.mean([agreement(one, other) for one, other in combinations(found, 2)]))


def turned_out(seen: Seen, data: str) -> FloatArray | None:
    """Points that each task gained from as many labels of one task each: (from, to), the mean over draws.

    The estimates call a task's own gain 1, whichever task it is; here it is in points of its score.
    """
    cells = [cell for cell in seen.divided if (cell.data, cell.costs) == (data, ALIKE)]
    least = min((cell.times for cell in cells), default=None)
    tasks = setting_of(data).tasks
    found = [
        [[100 * (cell.splits[f"only {of}"]["scores"][to] - cell.seed_scores[to]) for to in tasks] for of in tasks]
        for cell in cells
        if cell.times == least
    ]
    return np.mean(found, axis=0) if found else None


def estimates_from(
    tasks: tuple[str, ...], draws: Sequence[Mapping[str, Any]], block: int
) -> tuple[SplitEstimates, tuple[float, ...]]:
    """What real curves of some draws say: who informs whom, how fast labels lose worth, and what own labels gain.

    The rate of a task is that of its own curve. What it gains for another is then the rise of that one's curve along
    the returns of such a rate, by least squares. The last are the relative gains of each task from the first block of
    its own, over the mean of all tasks: the measure that splits are judged by.
    """
    sizes = np.array(draws[0]["sizes"])
    begin: FloatArray = np.array([[draw["seed_scores"][task] for task in tasks] for draw in draws])
    rates, rises = {}, np.zeros((len(draws), len(tasks), len(tasks)))  # of the first block: (draws, from, to)
    for at, task in enumerate(tasks):
        scores = np.array([[[row[to] for to in tasks] for row in draw["scores"][task]] for draw in draws])
        curve = np.concatenate([begin[:, at, None], scores[:, :, at]], axis=1)
        rates[task] = LearningCurve(np.array([0, *sizes]), curve).rate(block, "real labels")
        along = gain(sizes, rates[task]) / block
        rises[:, at] = np.einsum("dst,s->dt", scores - begin[:, None], along) / (along @ along)
    own = np.maximum(rises.mean(axis=0).diagonal(), 0.0)
    relative = own / np.maximum(begin.mean(axis=0), LEAST_SCORE)
    weights = relative / relative.mean() if relative.any() else np.ones(len(tasks))
    return SplitEstimates(from_gains(tasks, rises), rates), tuple(weights.tolist())
