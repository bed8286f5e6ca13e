"""The tables of the controls of the study of splits: why it came out as it did."""

from __future__ import annotations

import numpy as np

from bursar.allocation.estimates import tells_nothing
from experiments.studies.allocation_runs import (
    ALL_ON_ONE,
    AS_OFTEN,
    BEST_ONE,
    FOREKNOWN,
    MAIN,
    TOGETHER,
    WEIGHED,
    Divided,
    Seen,
    estimates_from,
    mean_over,
)
from experiments.studies.allocation_settings import ALIKE, MORE_SEEDS, SETTINGS
from experiments.studies.allocation_tables import rows_of
from experiments.studies.findings import Cell, Table
from experiments.studies.outcomes import FEWEST


def controls_tables(seen: Seen) -> list[Table]:
    """Those that there are runs of."""
    return [*_foreknown(seen), *_real(seen), *_as_often(seen), *_more_seeds(seen)]


def _foreknown(seen: Seen) -> list[Table]:
    """Splits by good estimates beside those by the seed's, and beside heuristics."""
    cells = seen.foreknown
    if not cells:
        return []
    ours = [f"{how}, {way}" for way in (FOREKNOWN, WEIGHED) for how in ("exact", "together")]
    plain = [name for name in ("same items", "difficulty", "equal money", "equal counts") if name in seen.methods()]
    data = [name for name in SETTINGS if any(cell.data == name for cell in cells)]
    rows = {}
    for name in (*ours, MAIN, TOGETHER, *plain, ALL_ON_ONE, BEST_ONE):
        rows[name] = [mean_over(cells, name), mean_over(cells, name, relative=False)]
        rows[name] += [mean_over([cell for cell in cells if cell.data == of], name) for of in data]
    return [
        Table(
            "Foreknown",
            "If estimates were good: splits by what real labels brought in the other draws",
            ["% on average", "points on average", *(f"{of}, %" for of in data)],
            rows,
            note="Rates, effects and own gains are those of models with 1, 2 and 4 times as many labels of one task as "
            "the seed has, on the test items, in the other four draws. Own gains: each task counts by its relative "
            "gain from its own first block, where otherwise all count as 1. Draws share test items, so differences are "
            "surer than they should be. Expressions on faces gain nothing from their own labels: what others are worth "
            "to them is counted in a standard error, and only where own gains count does that not matter.",
        )
    ]


def _real(seen: Seen) -> list[Table]:
    """What real labels of all draws say of each task."""
    rows: dict[str, list[Cell]] = {}
    for data, setting in SETTINGS.items():
        if len(draws := seen.curves[data]) < FEWEST:
            continue
        estimates, weights = estimates_from(setting.tasks, draws, setting.seed)
        informs = estimates.informativeness
        for at, task in enumerate(setting.tasks):
            rate = estimates.rates[task]
            known = [None, None, None] if tells_nothing(rate) else [rate.beta, rate.low, rate.high]
            others = np.delete(informs.value[at], at)
            clear = np.abs(others) > 2 * np.delete(informs.error[at], at)
            own = informs.about["own_gains"][task]
            cells = [*known, 100 * own, weights[at], float(others.mean()), float(clear.sum())]
            rows[f"{data}: {task}"] = [Cell(value) for value in cells]
    columns = ["β", "low", "high", "points by own labels", "own gain", "worth to another task", "clear effects"]
    note = (
        "β of a block of as many labels as the seed has, with its interval; none where every rate would fit. Points by "
        "own labels: of the first block. Own gain: that over the seed score, 1 on average over a data set's tasks. "
        "Worth to another task: in labels of its own, the mean over the others; clear effects are beyond two standard "
        "errors."
    )
    title = "What real labels turned out to be worth, over all draws"
    return [Table("Real labels", title, columns, rows, digits=2, best="", note=note)] if rows else []


def _as_often(seen: Seen) -> list[Table]:
    """Labels of the same and of different items, seen as often or not."""
    if not seen.as_often:
        return []
    before = {(cell.cluster, cell.times): cell for cell in seen.divided if cell.costs == ALIKE}
    pairs = [(before[cell.cluster, cell.times], cell) for cell in seen.as_often]
    data = list(dict.fromkeys(cell.data for cell in seen.as_often))
    rows: dict[str, list[Cell]] = {name: [] for name in (MAIN, *AS_OFTEN)}
    for name, row in rows.items():
        for of in data:
            for cells in zip(*(pair for pair in pairs if pair[0].data == of), strict=True):
                row.append(mean_over(cells, name))
    columns = [f"{of}, {how}" for of in data for how in ("as many steps", "as often")]
    note = (
        "As many steps: all models have the same number, as everywhere else in this study. As often: all have as many "
        "epochs as those of the same items."
    )
    title = "Relative gain at equal prices, %, by whether every label is seen as often"
    return [Table("Seen as often", title, columns, rows, note=note)]


def _more_seeds(seen: Seen) -> list[Table]:
    """Gains of all splits with more seed items."""
    columns: dict[str, list[Divided]] = {}
    for data, setting in MORE_SEEDS.items():
        mine = [cell for cell in seen.more_seeds if cell.data == data]
        few = [
            cell
            for cell in seen.divided
            if (cell.data, cell.costs) == (setting.corpus, ALIKE)
            and cell.times in setting.budgets
            and cell.seed in {one.seed for one in mine}
        ]
        if mine and few:
            columns |= {f"{SETTINGS[setting.corpus].seed} seed items": few, f"{setting.seed} seed items": mine}
    rows = {name: [mean_over(cells, name) for cells in columns.values()] for name in rows_of(seen)}
    note = "At equal prices, with a budget of what the seed labels cost, so four times as much; of the same draws."
    title = "Relative gain on the built-in corpus by seed items, %"
    return [Table("More seed items", title, list(columns), rows, note=note)] if columns else []
