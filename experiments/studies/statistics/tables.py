"""Tables of paper 1 from our scores: win percentages, and whether arms come in the same order as there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations, product
from math import fsum
from typing import TypedDict

import numpy as np
from scipy import stats

from experiments.studies.statistics.families import LEVEL
from experiments.studies.statistics.permutation import paired_test

Cells = Mapping[tuple[str, int], float]  # (domain or data set, seed) to a score
EXACT_UP_TO = 7  # arms that are put in every order; of more, so many random orders
ORDERS = 9999


def wins(pairs: Iterable[tuple[float, float]]) -> float | None:
    """The share of pairs whose first score is the higher; a tie counts half. ``None`` without pairs.

    >>> wins([(0.8, 0.7), (0.6, 0.7), (0.9, 0.8), (0.5, 0.5)])
    0.625
    """
    points = [1.0 if first > second else 0.5 if first == second else 0.0 for first, second in pairs]
    return _mean(points) if points else None


def _mean(values: Sequence[float]) -> float:
    """The mean, the same in whatever order the values come, so that equal scores tie."""
    return fsum(values) / len(values)


class Winning(TypedDict):
    """How often multi-task arms were superior to single-task ones."""

    percent: float | None  # of the comparisons; a tie counts half
    comparisons: int  # two arms on one domain each
    significant: int  # of them, by a paired t-test over seeds at 0.05, whoever won, not corrected, as in the paper
    significant_wins: int  # of those, the ones that the multi-task arm won
    missing: int  # comparisons for which there is no seed that both arms were run with


class Table4(TypedDict):
    """Paper 1, Table 4. Tasks are those that the scores are of, also in ``cross``."""

    within: dict[str, Winning]
    cross: dict[str, Winning]
    average: Winning


def table4(
    scores: Mapping[str, Mapping[str, Cells]],
    single: Mapping[str, Sequence[str]],
    own: Mapping[str, Sequence[str]],
    joint: Sequence[str],
) -> Table4:
    """The percentages of comparisons in which multi-task selection was superior (paper 1, Table 4).

    ``scores[arm][task][domain, seed]`` is a final score. ``single`` has the single-task arms that select by each task
    (ST-EC-i, ST-DA-i), ``own`` the multi-task arms that do (MT-EC-i, MT-DA-i), and ``joint`` those that select by all
    tasks; random selection is in none of them. On every domain, by the mean over the seeds that both arms have:

    within task i: every ``single[i]`` with every ``own[i]`` and ``joint``, on task i;
    across to task j: every ``single[i]`` with every ``own[i]`` and ``joint``, i ≠ j, on task j;
    average: every single-task with every multi-task arm, on the mean of all tasks.

    Each single-task arm meets both of its counterparts, of either measure: only so do the paper's two single-task, two
    own-task and seven joint methods make 2 · 9 · 6 = 108 comparisons a task and 4 · 11 · 6 = 264 averages. The score of
    a single-task arm on another task than its own is that of a model trained there on the items that it selected.

    >>> final = {"ST-EC-DP": (0.88, 0.70), "ST-EC-NER": (0.86, 0.75), "MT-EC-DP": (0.89, 0.73),
    ...          "MT-EC-NER": (0.87, 0.77), "MT-AVG": (0.87, 0.74)}
    >>> scores = {arm: {"DP": {("NW", 0): dp}, "NER": {("NW", 0): ner}} for arm, (dp, ner) in final.items()}
    >>> found = table4(scores, {"DP": ["ST-EC-DP"], "NER": ["ST-EC-NER"]},
    ...                {"DP": ["MT-EC-DP"], "NER": ["MT-EC-NER"]}, ["MT-AVG"])
    >>> found["within"]["DP"]["percent"], found["cross"]["DP"]["percent"], found["average"]["comparisons"]
    (50.0, 100.0, 6)
    """
    named = {arm for arms in (*single.values(), *own.values(), joint) for arm in arms}
    if unknown := sorted(named - set(scores)):
        raise ValueError(f"there are no scores of {', '.join(unknown)}")
    tasks = list(single)
    rivals = {task: list(product(single[task], dict.fromkeys([*own.get(task, ()), *joint]))) for task in tasks}
    everyone = [dict.fromkeys(arm for arms in kind.values() for arm in arms) for kind in (single, own)]
    return Table4(
        within={task: _winning(scores, rivals[task], [task]) for task in tasks},
        cross={task: _winning(scores, [p for t in tasks if t != task for p in rivals[t]], [task]) for task in tasks},
        average=_winning(scores, list(product(everyone[0], dict.fromkeys([*everyone[1], *joint]))), tasks),
    )


def _winning(
    scores: Mapping[str, Mapping[str, Cells]], rivals: Sequence[tuple[str, str]], tasks: Sequence[str]
) -> Winning:
    """Single-task arms and their multi-task rivals on the mean of some tasks, domain by domain."""
    domains = sorted({domain for by_task in scores.values() for cells in by_task.values() for domain, _ in cells})
    means, tests = [], []
    for one, many in rivals:
        mine, others = _over_tasks(scores[many], tasks), _over_tasks(scores[one], tasks)
        for domain in domains:
            shared = sorted(cell for cell in mine.keys() & others.keys() if cell[0] == domain)
            if shared:
                a, b = [mine[cell] for cell in shared], [others[cell] for cell in shared]
                means.append((_mean(a), _mean(b)))
                tests.append(paired_test(a, b))
    share = wins(means)
    significant = [test["difference"] or 0.0 for test in tests if test["p"] is not None and test["p"] < LEVEL]
    return Winning(
        percent=None if share is None else 100 * share,
        comparisons=len(means),
        significant=len(significant),
        significant_wins=sum(difference > 0 for difference in significant),
        missing=len(rivals) * len(domains) - len(means),
    )


def _over_tasks(by_task: Mapping[str, Cells], tasks: Sequence[str]) -> dict[tuple[str, int], float]:
    """The mean score over tasks of the cells that all of them have."""
    columns = [by_task.get(task, {}) for task in tasks]
    shared = set.intersection(*(set(cells) for cells in columns))
    return {cell: _mean([cells[cell] for cells in columns]) for cell in shared}


class Agreement(TypedDict):
    """Whether two tables put arms in the same order."""

    spearman: float | None  # None for fewer than two arms, or where a table has them all equal
    p: float | None  # two-sided: the share of orders that agree or disagree as much
    n: int
    left_out: list[str]  # arms that only one of the tables has


def agreement_with(paper: Mapping[str, float], ours: Mapping[str, float], seed: int = 0) -> Agreement:
    """Spearman's rank correlation of the arms that both tables have; equal scores share a rank.

    >>> paper = {"MT-R": 76.75, "MT-AVG": 77.86, "MT-MAX": 78.27, "MT-MIN": 77.51, "MT-PAR": 78.43}
    >>> agreement_with(paper, {"MT-R": 60.1, "MT-AVG": 62.0, "MT-MAX": 63.5, "MT-MIN": 61.2, "MT-RRF": 64.0})
    {'spearman': 1.0, 'p': 0.08333333333333333, 'n': 4, 'left_out': ['MT-PAR', 'MT-RRF']}
    """
    arms = [arm for arm in paper if arm in ours]
    left_out = sorted(paper.keys() ^ ours.keys())
    n = len(arms)
    x, y = (stats.rankdata([table[arm] for arm in arms]) - (n + 1) / 2 for table in (paper, ours))
    scale = float(np.sqrt((x**2).sum() * (y**2).sum()))
    if scale == 0:
        return Agreement(spearman=None, p=None, n=n, left_out=left_out)
    found = float(x @ y)
    if n <= EXACT_UP_TO:
        orders = np.abs(np.array(list(permutations(y))) @ x)
        p = float(np.mean(orders >= abs(found) - 1e-9))
    else:
        orders = np.abs(np.random.default_rng(seed).permuted(np.tile(y, (ORDERS, 1)), axis=1) @ x)
        p = float((1 + np.count_nonzero(orders >= abs(found) - 1e-9)) / (1 + ORDERS))
    return Agreement(spearman=found / scale, p=p, n=n, left_out=left_out)
