"""What the campaigns of a study came to, ready for tables: final scores, curves and comparisons over the same cells.

A *cell* is a data set (or domain) and a seed. Arms are only ever compared on cells that all of them have, so that an
unfinished study says less, and nothing wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bursar.ragged import FloatArray
from experiments.studies.arms import Arm, Setup
from experiments.studies.findings import Cell, Figure, Line, Table, Verdict
from experiments.studies.statistics import PairedTest, areas, compare_all, paired_test, saved_interval, spread
from experiments.studies.study import Run

FEWEST = 3  # cells for an interval: of two, it is wider than anything it could be about

Where = tuple[str, int]  # a data set or domain, and a seed
Groups = Mapping[str, "Outcomes"]


@dataclass(frozen=True)
class Outcome:
    """One campaign and what came of it. Scores are percentages."""

    arm: Arm
    result: Mapping[str, Any]

    @property
    def where(self) -> Where:
        return self.arm.data, self.arm.seed

    @property
    def rounds(self) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = self.result["rounds"]
        return found

    @property
    def final(self) -> dict[str, float]:
        return {task: 100 * score for task, score in self.rounds[-1]["test"].items()}

    def score(self, task: str | None = None) -> float:
        """The last score of a task, or the mean over tasks."""
        return self.final[task] if task is not None else float(np.mean(list(self.final.values())))

    def curve(self, task: str | None = None) -> tuple[list[float], list[float]]:
        """What had been bought at each round, in what the budget counts, and the score then."""
        bought = [r["items"] if self.arm.setup.counts == "items" else r["spent"] for r in self.rounds]
        tests = [r["test"] for r in self.rounds]
        return bought, [100 * float(np.mean(list(t.values()) if task is None else [t[task]])) for t in tests]

    def money_curve(self) -> tuple[list[float], list[float]]:
        """What had been spent at each round, whatever the budget counts, and the mean score of the tasks then."""
        tests = [list(r["test"].values()) for r in self.rounds]
        return [float(r["spent"]) for r in self.rounds], [100 * float(np.mean(scores)) for scores in tests]


class Outcomes:
    """Campaigns of one sort, one for each cell."""

    def __init__(self, members: Sequence[Outcome]) -> None:
        self.members = list(members)

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Outcomes:
        """All campaigns of a study."""
        return cls([Outcome(Arm.of(run["unit"]), run["result"]) for run in runs])

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.members)

    def where(self, chosen: Callable[[Arm], bool]) -> Outcomes:
        """Those whose arm is chosen."""
        return Outcomes([member for member in self.members if chosen(member.arm)])

    def by(self, name: Callable[[Arm], str]) -> dict[str, Outcomes]:
        """Parted by a name of the arm, in the order that names are met."""
        parts: dict[str, list[Outcome]] = {}
        for member in self.members:
            parts.setdefault(name(member.arm), []).append(member)
        return {key: Outcomes(members) for key, members in parts.items()}

    @cached_property
    def cells(self) -> dict[Where, Outcome]:
        return {member.where: member for member in self.members}

    def scores(self, cells: Sequence[Where], task: str | None = None) -> list[float]:
        """The last scores on some cells, in their order."""
        return [self.cells[cell].score(task) for cell in cells]

    def cell(self, cells: Sequence[Where], task: str | None = None, paper: float | None = None) -> Cell:
        """The mean over data sets and seeds, with the spread of the seeds' means."""
        if not cells:
            return Cell(None, None, paper)
        by_seed: dict[int, list[float]] = {}
        for (_, seed), score in zip(cells, self.scores(cells, task), strict=True):
            by_seed.setdefault(seed, []).append(score)
        found = spread([float(np.mean(scores)) for scores in by_seed.values()])
        return Cell(found["mean"], found["spread"], paper)


def common_cells(groups: Groups, names: Sequence[str] | None = None) -> list[Where]:
    """The cells that all of the groups have: those of seeds for which no data set is missing, if there are any.

    A seed that has only some of the data sets would move a mean over data sets.
    """
    chosen = [groups[name] for name in (groups if names is None else names) if name in groups]
    if not chosen or (names is not None and len(chosen) < len(names)):
        return []
    shared = sorted(set.intersection(*(set(group.cells) for group in chosen)))
    data = {name for name, _ in shared}
    whole = [cell for cell in shared if all((name, cell[1]) in shared for name in data)]
    return whole or shared


def versus(groups: Groups, first: str, second: str, task: str | None = None) -> PairedTest:
    """The paired test of two groups on the cells that both have."""
    cells = common_cells(groups, [first, second])
    if not cells:
        return paired_test([], [])
    return paired_test(groups[first].scores(cells, task), groups[second].scores(cells, task))


def over_pairs(groups: Groups, pairs: Sequence[tuple[str, str]], task: str | None = None) -> PairedTest:
    """Several pairs of groups as one question: the difference on a cell is the mean over the pairs."""
    gaps: list[tuple[Where, float, float]] = []
    for first, second in pairs:
        cells = common_cells(groups, [first, second])
        if cells:
            a, b = groups[first].scores(cells, task), groups[second].scores(cells, task)
            gaps += list(zip(cells, a, b, strict=True))
    return paired_test([a for _, a, _ in gaps], [b for _, _, b in gaps], cluster=[cell for cell, _, _ in gaps])


def verdict(test: PairedTest, level: float = 0.05) -> Verdict:
    """Is the first better? Yes or no where the difference is more than luck would give."""
    if test["p"] is None or test["p"] >= level or not test["difference"]:
        return "not decided here"
    return "yes" if test["difference"] > 0 else "no"


def in_words(test: PairedTest) -> str:
    """A test for a reader.

    >>> in_words(paired_test([80.0, 91.0, 72.0], [81.0, 92.5, 74.0]))
    '−1.5 points (−2.7 to −0.3; p = 0.035, 3 cells)'
    """
    if test["difference"] is None:
        return "no comparison yet"
    if test["p"] is None or test["low"] is None or test["high"] is None:
        return f"{_signed(test['difference'])} points ({_cells(test['n'])})"
    p = "p < 0.001" if test["p"] < 0.001 else f"p = {test['p']:.2g}"
    low, high = _signed(test["low"]), _signed(test["high"])
    return f"{_signed(test['difference'])} points ({low} to {high}; {p}, {_cells(test['n'])})"


def _signed(points: float) -> str:
    return f"{points:+.1f}".replace("-", "−")


def _cells(count: int) -> str:
    return f"{count} cell" if count == 1 else f"{count} cells"


# -- tables and figures that several studies have ---------------------------------------------------------------------
def against_random(groups: Groups, random: str, name: str = "Against random") -> Table:
    """Every arm beside random: the last score, the area under the curve, what was saved at equal score, with tests."""
    cells = common_cells(groups) if random in groups else []
    rows: dict[str, list[Cell]] = {}
    if cells:
        tests = {c["arm"]: c for c in compare_all({n: g.scores(cells) for n, g in groups.items()}, against=random)}
        means: dict[str, list[float]] = {arm: [] for arm in groups}
        for cell in cells:
            found = areas({arm: group.cells[cell].curve() for arm, group in groups.items()})
            for arm, area in found.items():
                means[arm].append(area)
        randoms = [groups[random].cells[cell].curve() for cell in cells]
        for arm, group in groups.items():
            row = [group.cell(cells), Cell(float(np.mean(means[arm])))]
            if arm == random:
                row += [Cell(None)] * 5
            else:
                money = saved_interval([group.cells[cell].curve() for cell in cells], randoms)
                compared = tests[arm]
                row += [Cell(compared["test"]["difference"]), Cell(compared["corrected_p"])]
                ends = (money["low"], money["high"]) if money["n"] >= FEWEST else (None, None)
                row += [Cell(None if share is None else 100 * share) for share in (money["saved"], *ends)]
            rows[arm] = row
    return Table(
        name,
        "Every strategy beside random labelling, mean of the tasks",
        ["last score", "area", "over random", "p (Holm)", "saved %", "low", "high"],
        rows,
        note=(
            f"{len(cells)} cells (data set × seed). Area: the mean score over the budget. Saved: the share of the "
            "budget that random needs and the strategy does not, at the lower of their two last scores, with its 95 % "
            "interval over cells. p: paired t-test of the last scores, corrected for all rows by Holm."
        ),
        digits=2,
        best=("high", "high", "high", "", "high", "", ""),
    )


def money_gaps(arm: Outcomes, random: Outcomes, cells: Sequence[Where]) -> tuple[FloatArray, FloatArray]:
    """For every cell, what an arm spent in percent of what random did, and how far above it is for the same money.

    Both curves are read at the smaller of their two last sums.
    """
    share, gaps = [], []
    for cell in cells:
        mine, theirs = arm.cells[cell].money_curve(), random.cells[cell].money_curve()
        share.append(100 * mine[0][-1] / theirs[0][-1])
        at = min(mine[0][-1], theirs[0][-1])
        gaps.append(float(np.interp(at, *mine) - np.interp(at, *theirs)))
    return np.array(share), np.array(gaps)


def at_equal_money(groups: Groups, random: str) -> Table:
    """Where rounds buy items: what the items cost, and how the arms stand beside random for the same money.

    Uncertainty is a mean over words, so a strategy may buy shorter items than random does, and so less of them to learn
    from. Both curves are read at the smaller of their two last sums.
    """
    cells = common_cells(groups) if random in groups else []
    rows: dict[str, list[Cell]] = {}
    for arm, group in groups.items() if cells else ():
        share, gaps = money_gaps(group, groups[random], cells)
        test = paired_test(gaps, np.zeros(len(gaps)))
        items = versus(groups, arm, random)["difference"] if arm != random else None
        row = [Cell(float(np.mean(share))), Cell(items)]
        ends = (test["difference"], test["low"], test["high"]) if arm != random else (None, None, None)
        rows[arm] = row + [Cell(value) for value in ends]
    return Table(
        "At equal money",
        "The same strategies, compared with random for the same money instead of the same number of items",
        ["money, % of random's", "over random, equal items", "over random, equal money", "low", "high"],
        rows,
        note="Money is what the items would cost by the default prices, which grow with the words. At equal money both "
        "curves are read at the smaller of their two last sums; low and high are the ends of the 95 % interval over "
        "cells. Added after the results at equal items were seen.",
        digits=1,
        best=("", "high", "high", "", ""),
    )


def by_loss(
    groups: Mapping[str, Groups], names: Sequence[str], tasks: Sequence[str], random: str = "MT-R"
) -> list[Table]:
    """Choosing against random with label smoothing (LS) and without (CE): trained, and chosen, with the same loss.

    ``groups`` are campaigns by loss, then by strategy. Nothing is said of a strategy that was not run with both.
    """
    rows: dict[str, list[Cell]] = {}
    for name in names:
        if not all({name, random} <= set(mine) for mine in groups.values()):
            continue
        cells = sorted(set.intersection(*(set(common_cells(mine, [name, random])) for mine in groups.values())))
        if not cells:
            continue
        gains = {}
        for loss, mine in groups.items():
            gains[loss] = [
                np.subtract(mine[name].scores(cells, task), mine[random].scores(cells, task)) for task in (None, *tasks)
            ]
            ends = [Cell(float(np.mean(mine[arm].scores(cells)))) for arm in (random, name)]
            share, equal = money_gaps(mine[name], mine[random], cells)
            gains[loss].append(equal)
            rows[f"{name} ({loss})"] = [*ends, *_gained(gains[loss]), Cell(float(share.mean()))]
        between = [without - smoothed for without, smoothed in zip(gains["CE"], gains["LS"], strict=True)]
        rows[f"{name}, CE less LS"] = [Cell(None), Cell(None), *_gained(between), Cell(None)]
    if not rows:
        return []
    return [
        Table(
            "By loss",
            "choosing and random with label smoothing (LS) and without (CE)",
            ["random", "chosen", "difference", "p", *tasks, "at equal money", "p of that", "money, % of random's"],
            rows,
            note="Last scores, their mean over the tasks and each task's difference; paired over data sets and seeds. "
            "Asked after it was seen that strategies with smoothing trail random.",
            best="",
            digits=2,
        )
    ]


def _gained(gains: Sequence[FloatArray]) -> list[Cell]:
    """The mean gain over all tasks and how sure it is, the gain in each, and that at equal money."""
    first, *others, last = (Cell(float(np.mean(some))) for some in gains)
    sure = [Cell(paired_test(some, np.zeros(len(some)))["p"]) for some in (gains[0], gains[-1])]
    return [first, sure[0], *others, last, sure[1]]


def curves_figure(
    name: str, title: str, groups: Groups, x_title: str, tasks: Sequence[str | None] = (None,), note: str = ""
) -> Figure:
    """Mean curves of arms over seeds, a panel for each data set and task."""
    lines = []
    for data in sorted({cell[0] for group in groups.values() for cell in group.cells}):
        for task in tasks:
            for arm, group in groups.items():
                found = [m.curve(task) for cell, m in sorted(group.cells.items()) if cell[0] == data]
                if not found:
                    continue
                rounds = min(len(x) for x, _ in found)
                x = np.mean([bought[:rounds] for bought, _ in found], axis=0)
                y = np.array([score[:rounds] for _, score in found])
                lines.append(
                    Line(
                        arm,
                        x.round(1).tolist(),
                        y.mean(axis=0).round(2).tolist(),
                        y.min(axis=0).round(2).tolist(),
                        y.max(axis=0).round(2).tolist(),
                        panel=f"{data.partition(':')[2] or data}" + (f": {task}" if task else ""),
                    )
                )
    return Figure(name, title, "lines", x_title, "score", lines, note)


def sizes(setup: Setup, data: str) -> dict[str, str]:
    """What was run, in words."""
    unit = "items" if setup.counts == "items" else "units of money"
    trained = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in setup.learner.items())
    return {
        "data": data,
        "pool": f"{setup.pool:,} items at most, drawn with the seed",
        "development": f"{setup.dev} items, drawn with the seed",
        "test": "all test items" if setup.test is None else f"{setup.test} items, the same for all seeds",
        "budget": f"{setup.start} items to start, then {setup.rounds} rounds of {setup.per_round} {unit}",
        "model": f"the bundled encoder; {trained}",
    }
