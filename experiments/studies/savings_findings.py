"""What the study of savings says: areas and money saved against random, by arm and by data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bursar.ragged import FloatArray
from experiments.studies.findings import Answer, Cell, Figure, Findings, Line, Table
from experiments.studies.statistics import LEVEL, PairedTest, areas, holm, paired_test, saved_interval
from experiments.studies.study import Run

RANDOM, AUTO = "random", "auto"
GREEDY, EXACT = "doubts added up, greedily", "doubts added up, exactly"
DRAWS = 10_000
GRID = 6  # points of the curves that are drawn
Curve = tuple[list[float], list[float]]
Gains = dict[tuple[str, int], dict[str, float]]  # data set and seed to arm to points of area above random
Curves = dict[tuple[str, int], dict[str, Curve]]  # data set and seed to arm to money and mean score


def analyse(runs: Sequence[Run], scale: str, *, chosen_on: bool = False) -> Findings:
    """Every arm against random on the same data set and seed."""
    curves = _curves(runs)
    gains = _gains(curves)
    arms = list(dict.fromkeys(arm for found in gains.values() for arm in found))
    sets = list(dict.fromkeys(data for data, _ in curves))
    return Findings(
        _headline(curves, gains, sets, chosen_on),
        answers=_answers(curves, gains, sets),
        tables=[
            _area_table(gains, arms, sets),
            _saved_table(curves, arms, sets),
            _task_table(runs, sets),
        ],
        figures=[_figure(curves, sets)],
        sizes={
            "data": ", ".join(sets) + ": pools of 2,500 items, up to 1,000 test items, no development items",
            "money": "50 items to start, then five rounds with the price of 35 typical items each; audit items charged",
            "learner": "all six layers of MiniLM, 12 epochs and at least 250 updates; image-cnn for images",
            "seeds": str(len({seed for _, seed in curves})),
        },
    )


def _curves(runs: Sequence[Run]) -> Curves:
    found: Curves = {}
    for run in runs:
        unit, rounds = run["unit"], run["result"]["rounds"]
        money = [float(r["spent"]) for r in rounds]
        found.setdefault((unit["data"], unit["seed"]), {})[unit["arm"]] = (money, [_mean(r["test"]) for r in rounds])
    return {cell: arms for cell, arms in found.items() if RANDOM in arms and len(arms) > 1}


def _mean(scores: Mapping[str, float]) -> float:
    return sum(scores.values()) / len(scores)


def _gains(curves: Curves) -> Gains:
    """By cell and arm, the area above random's, in points; each pair over the money that both have scores for."""
    found: Gains = {}
    for cell, arms in curves.items():
        found[cell] = {}
        for arm in arms:
            if arm != RANDOM:
                both = areas({arm: arms[arm], RANDOM: arms[RANDOM]})
                found[cell][arm] = 100 * (both[arm] - both[RANDOM])
    return found


def _saved(curves: Curves, arm: str, data: str | None = None) -> Any:
    cells = [cell for cell, arms in curves.items() if arm in arms and data in (None, cell[0])]
    if not cells:
        return None
    cluster = [cell[0] for cell in cells] if data is None else None
    return saved_interval([curves[c][arm] for c in cells], [curves[c][RANDOM] for c in cells], cluster=cluster)


def bootstrap_over_sets_and_seeds(values: Mapping[tuple[str, int], float], seed: int = 0) -> tuple[float, float]:
    """A 95 % interval of the mean over data sets: data sets are drawn, then seeds within each.

    >>> low, high = bootstrap_over_sets_and_seeds({("a", 0): 1.0, ("a", 1): 3.0, ("b", 0): 2.0, ("b", 1): 2.0})
    >>> 1.0 <= low <= 2.0 <= high <= 3.0
    True
    """
    by_set: dict[str, list[float]] = {}
    for (data, _), value in values.items():
        by_set.setdefault(data, []).append(value)
    rng = np.random.default_rng(seed)
    groups = [np.array(found) for found in by_set.values()]
    drawn: FloatArray = np.stack(
        [group[rng.integers(0, len(group), (DRAWS, len(group)))].mean(axis=1) for group in groups], axis=1
    )
    picked = rng.integers(0, len(groups), (DRAWS, len(groups)))
    means = np.take_along_axis(drawn, picked, axis=1).mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def _headline(curves: Curves, gains: Gains, sets: Sequence[str], chosen_on: bool) -> str:
    found = _saved(curves, AUTO)
    if found is None:
        return "Not run yet."
    ahead = sum(arms[AUTO] > 0 for arms in gains.values() if AUTO in arms)
    cells = sum(AUTO in arms for arms in gains.values())
    which = "the development sets that it was chosen on" if chosen_on else "data that it was not chosen on"
    between = "" if found["low"] is None else f" ({100 * found['low']:.0f} to {100 * found['high']:.0f})"
    return (
        f"A default campaign reached random labelling's score with {100 * found['saved']:.0f} % less money{between} "
        f"on {which}, and was ahead along the way in {ahead} of {cells} campaigns over {len(sets)} data sets."
    )


def _answers(curves: Curves, gains: Gains, sets: Sequence[str]) -> list[Answer]:
    mine = {cell: arms[AUTO] for cell, arms in gains.items() if AUTO in arms}
    if len(mine) < 2:
        return []
    share = np.mean([gain > 0 for gain in mine.values()])
    by_set = {data: float(np.mean([g for (d, _), g in mine.items() if d == data])) for data in sets}
    worst = min(by_set, key=lambda data: by_set[data])
    low, high = bootstrap_over_sets_and_seeds(mine)
    found = _saved(curves, AUTO)
    enough = found["saved"] >= 0.25 and (found["low"] or 0) > 0.1
    return [
        Answer(
            "Ahead",
            "Is the area under auto's curve above random's in at least 80 % of campaigns?",
            "yes" if share >= 0.8 else "no",
            f"{100 * share:.0f} % of {len(mine)}; mean {np.mean(list(by_set.values())):+.1f} points of area, "
            f"{low:+.1f} to {high:+.1f} by bootstrap over data sets and seeds",
            "our own",
        ),
        Answer(
            "Saved",
            "Does auto save a quarter of the money at the score that both reach, with a lower bound above a tenth?",
            "yes" if enough else "no",
            f"{100 * found['saved']:.0f} %"
            + ("" if found["low"] is None else f" ({100 * found['low']:.0f} to {100 * found['high']:.0f})"),
            "our own",
        ),
        Answer(
            "Worst",
            "Is no data set more than a point below random?",
            "yes" if by_set[worst] >= -1 else "no",
            f"the worst is {worst} with {by_set[worst]:+.1f} points of area",
            "our own",
        ),
        *_beside(gains),
        *_exact(gains),
    ]


def _beside(gains: Gains) -> list[Answer]:
    """Auto against every other arm on the cells that both have, corrected by Holm."""
    others = [arm for arm in dict.fromkeys(arm for arms in gains.values() for arm in arms) if arm != AUTO]
    tests = {arm: found for arm in others if (found := _paired(gains, AUTO, arm))["pairs"] > 1}
    if not tests:
        return []
    corrected = holm([test["p"] for test in tests.values()])
    said = [
        f"{arm} {points:+.1f} ({'not decided' if p is None or p >= LEVEL else f'p = {max(p, 0.001):.3f}'}, "
        f"{test['pairs']} pairs)"
        for (arm, test), p in zip(tests.items(), corrected, strict=True)
        if (points := test["difference"]) is not None
    ]
    behind = all((test["difference"] or 0) > 0 for test in tests.values())
    return [
        Answer(
            "Beside",
            "Is auto ahead of every baseline, and of itself without each of its parts?",
            "yes" if behind else "no",
            "auto's points of area above " + "; ".join(said),
            "our own",
        )
    ]


def _exact(gains: Gains) -> list[Answer]:
    """Whether exact spending is ahead of greedy, where values add up over units."""
    test = _paired(gains, EXACT, GREEDY)
    if test["difference"] is None or test["low"] is None or test["high"] is None:
        return []
    decided = test["low"] > 0 or test["high"] < 0
    return [
        Answer(
            "Exact",
            "With values that add up over units, is exact spending ahead of greedy?",
            "not decided here" if not decided else "yes" if test["difference"] > 0 else "no",
            f"{test['difference']:+.1f} points of area ({test['low']:+.1f} to {test['high']:+.1f}), "
            f"{test['pairs']} pairs",
            "our own",
        )
    ]


def _paired(gains: Gains, arm: str, other: str) -> PairedTest:
    """Two arms on the cells that both have."""
    both = [arms for arms in gains.values() if arm in arms and other in arms]
    return paired_test([arms[arm] for arms in both], [arms[other] for arms in both])


def _area_table(gains: Gains, arms: Sequence[str], sets: Sequence[str]) -> Table:
    rows = {}
    for arm in arms:
        by_set = {data: [g[arm] for (d, _), g in gains.items() if d == data and arm in g] for data in sets}
        means = [float(np.mean(found)) for found in by_set.values() if found]
        rows[arm] = [*(_cell(by_set[data]) for data in sets), Cell(float(np.mean(means)) if means else None)]
    title = "Points of area under the curve of score against money above random's, with the spread over seeds"
    return Table("Area", title, [*sets, "mean of sets"], rows)


def _cell(values: Sequence[float]) -> Cell:
    if not values:
        return Cell(None)
    return Cell(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None)


def _saved_table(curves: Curves, arms: Sequence[str], sets: Sequence[str]) -> Table:
    rows = {}
    for arm in arms:
        found = [_saved(curves, arm, data) for data in (*sets, None)]
        rows[arm] = [Cell(None if one is None else 100 * one["saved"]) for one in found]
    title = "Percent of the money saved at the score that both reach"
    return Table("Saved", title, [*sets, "all"], rows, digits=0)


def _task_table(runs: Sequence[Run], sets: Sequence[str]) -> Table:
    """Auto's area above random's, task by task."""
    by_task: dict[tuple[str, str], list[float]] = {}
    both = {(r["unit"]["data"], r["unit"]["seed"], r["unit"]["arm"]): r["result"]["rounds"] for r in runs}
    for (data, seed, arm), rounds in both.items():
        other = both.get((data, seed, RANDOM))
        if arm != AUTO or other is None:
            continue
        for task in rounds[0]["test"]:
            pair = {
                name: ([float(r["spent"]) for r in found], [r["test"][task] for r in found])
                for name, found in ((AUTO, rounds), (RANDOM, other))
            }
            area = areas(pair)
            by_task.setdefault((data, task), []).append(100 * (area[AUTO] - area[RANDOM]))
    rows = {f"{data}: {task}": [_cell(values)] for (data, task), values in by_task.items()}
    return Table("Tasks", "Points of area above random's for auto, task by task", ["auto"], rows)


def _figure(curves: Curves, sets: Sequence[str]) -> Figure:
    """Mean curves of random and auto by data set, over money as a share of what was spent."""
    lines = []
    share = np.linspace(0.25, 1.0, GRID)
    for data in sets:
        for arm in (RANDOM, AUTO):
            found = [arms[arm] for (d, _), arms in curves.items() if d == data and arm in arms]
            if not found:
                continue
            ends = [min(curves[cell][RANDOM][0][-1] for cell in curves if cell[0] == data)] * len(found)
            values = np.array(
                [100 * np.interp(share * end, money, score) for (money, score), end in zip(found, ends, strict=True)]
            )
            lines.append(Line(arm, (100 * share).round(0).tolist(), values.mean(axis=0).round(2).tolist(), panel=data))
    title = "Mean score against money, auto and random"
    return Figure("Curves", title, "lines", "percent of the money", "mean score over tasks, percent", lines)
