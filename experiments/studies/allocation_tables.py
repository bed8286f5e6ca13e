"""The tables and figures of the study of splits, beside paper 5's figures."""

from __future__ import annotations

import numpy as np

from experiments.studies.allocation_runs import (
    ABLATIONS,
    ALL_ON_ONE,
    MAIN,
    OURS,
    PAPER_GAIN,
    PAPERS,
    QUICK,
    TOGETHER,
    Seen,
    clear_effects,
    compared,
    draws_agree,
    heuristics,
    known_rates,
    mean_over,
    turned_out,
)
from experiments.studies.allocation_settings import ALIKE, MORE_SEEDS, SETTINGS
from experiments.studies.findings import Better, Cell, Figure, Line, Table
from experiments.studies.outcomes import common_cells
from experiments.studies.statistics import spread

WAYS = ("paper's", "quick")


# -- tables ------------------------------------------------------------------------------------------------------------
def rows_of(seen: Seen) -> list[str]:
    """All methods, ours first."""
    first = [name for name in seen.methods() if name in OURS]
    return [*first, *(name for name in seen.methods() if name in ABLATIONS), *heuristics(seen)]


def gains_table(seen: Seen) -> Table:
    """What each split gains over the seed model, beside the paper's."""
    rows = {}
    for name in rows_of(seen):
        average = mean_over(seen.divided, name)
        paper = PAPER_GAIN if name == MAIN else None
        rows[name] = [Cell(average.ours, average.spread, paper), mean_over(seen.divided, name, relative=False)]
        rows[name] += [mean_over([c for c in seen.divided if c.data == data], name) for data in seen.data]
        rows[name].append(Cell(_spent(seen, name)))
    best: list[Better] = ["high" for _ in ("percent", "points", *seen.data)]
    best.append("")
    return Table(
        "Gains",
        "What each split gains over the seed model",
        ["% on average", "points on average", *(f"{data}, %" for data in seen.data), "money spent, %"],
        rows,
        best=best,
        note="Relative gain: the test score over the seed model's, less 1, averaged over the tasks, all prices and "
        "budgets, and data sets; the spread is that of the draws. Beside the method's the paper's on PASCAL VOC with a "
        "budget of 6,300, where its heuristics reach 19.3 to 22.9 %. A seed score below 0.1 counts as 0.1. All on one "
        "task: the mean over the tasks; on the best task: the one that gains the most on the data set, over all draws, "
        "which nobody knows beforehand.",
    )


def _spent(seen: Seen, method: str) -> float | None:
    """How much of the budgets a method spends; what caps leave over is nobody's gain."""
    shares = [
        100 * cell.splits[name]["cost"] / cell.budget
        for cell in seen.divided
        for name in cell.splits
        if (name == method or (method == ALL_ON_ONE and name.startswith("only "))) and "cost" in cell.splits[name]
    ]
    return float(np.mean(shares)) if shares else None


def alone_tables(seen: Seen) -> list[Table]:
    """All money on one task, task by task."""
    rows = {}
    for data in seen.data:
        cells = [cell for cell in seen.divided if cell.data == data]
        for name in dict.fromkeys(name for cell in cells for name in cell.splits if name.startswith("only ")):
            rows[f"{data}: {name}"] = [mean_over(cells, name, relative) for relative in (True, False)]
        rows[f"{data}: {MAIN}"] = [mean_over(cells, MAIN, relative) for relative in (True, False)]
    columns, title = ["relative gain, %", "points"], "All money on one task, task by task"
    note = "Where a task's pool is smaller than what the money could buy, the rest goes to the others."
    return [Table("One task", title, columns, rows, best="", note=note)]


def prices_table(seen: Seen) -> Table:
    """Gains by what labels cost."""
    kinds = list(dict.fromkeys(cell.costs for cell in seen.divided))
    return Table(
        "Prices",
        "Relative gain by prices, %",
        kinds,
        {
            name: [mean_over([cell for cell in seen.divided if cell.costs == kind], name) for kind in kinds]
            for name in rows_of(seen)
        },
        note="Alike: 4 a label. Rising and falling: 2, 4, 6, … by task. Shared reading: 5, 6, 7, … a label, 4 of them "
        "for reading, which is paid once for an item that is labelled for all tasks. Not every data set has all.",
    )


def ahead_tables(seen: Seen) -> list[Table]:
    """By how much our splits are ahead of each other one."""
    if len({cell.cluster for cell in seen.divided}) < 3:
        return []
    methods = [name for name in seen.methods() if name in OURS]
    rows = {
        other: [Cell(compared(seen.divided, name, other)["difference"]) for name in methods]
        for other in (*ABLATIONS, *heuristics(seen))
    }
    return [
        Table(
            "Ahead by",
            "By how many points of relative gain the columns are ahead of the rows",
            methods,
            rows,
            best="",
            note="Means over data sets and draws.",
        )
    ]


def estimates_tables(seen: Seen) -> list[Table]:
    """What estimates cost, and whether cheap ones agree with the look-ahead."""
    rows: dict[str, list[Cell]] = {}
    for data in SETTINGS:
        some = [found for (of, _), found in seen.estimates.items() if of == data]
        if not some:
            continue
        cells = [Cell(float(np.mean([found["ways"][way]["seconds"] for found in some]))) for way in (PAPERS, QUICK)]
        for name in ("alignment", "probe"):
            said = [found["agreement"][name]["spearman"] for found in some if name in found["agreement"]]
            over = spread(said) if said else {"mean": None, "spread": None}
            cells.append(Cell(over["mean"], over["spread"]))
        rows[data] = cells
    return [
        Table(
            "Estimates",
            "What estimates cost, and whether cheap ones agree with the look-ahead",
            [f"seconds, {PAPERS}", f"seconds, {QUICK}", "alignment", "probe"],
            rows,
            digits=2,
            best="",
            note="Agreement: Spearman's correlation with the look-ahead over all pairs of tasks. Of two tasks there "
            "are two pairs, so it is 1 or −1. No probe can be fitted to trees.",
        )
    ]


def known_tables(seen: Seen) -> list[Table]:
    """How much the seed items tell at all."""
    rows: dict[str, list[Cell]] = {}
    for data in (*SETTINGS, *MORE_SEEDS):
        some = [found["ways"] for (of, _), found in seen.estimates.items() if of == data]
        if some:
            by_way = [[ways[way] for ways in some] for way in (PAPERS, QUICK)]
            rows[data] = [Cell(how(ways)) for how in (known_rates, clear_effects, draws_agree) for ways in by_way]
    columns = [f"{what}, {way}" for what in ("rates known, %", "clear effects, %", "draws agree") for way in WAYS]
    return [
        Table(
            "Known",
            "How much the seed items tell of what a split goes by",
            columns,
            rows,
            digits=2,
            best="",
            note="Rates known: those whose interval is not all that a rate can be. Clear effects: of one task on "
            "another, beyond two standard errors; 5 % would be by chance. Draws agree: Spearman's correlation of who "
            "informs whom between two draws of the seed items, the mean over all pairs of draws; of two tasks there is "
            "none.",
        )
    ]


def rates_tables(seen: Seen) -> list[Table]:
    """Reduction rates, task by task."""
    rows: dict[str, list[Cell]] = {}
    for data, setting in SETTINGS.items():
        some = [found["ways"] for (of, _), found in seen.estimates.items() if of == data]
        for task in setting.tasks if some else ():
            cells = []
            for way in (PAPERS, QUICK):
                over = spread([ways[way]["rates"][task][0] for ways in some])
                cells.append(Cell(over["mean"], over["spread"]))
            rows[f"{data}: {task}"] = cells
    title = "How fast labels lose worth: β of a block of as many labels as the seed has"
    return [
        Table("Rates", title, [PAPERS, QUICK], rows, digits=2, best="", note="One that is not known counts as 0.5.")
    ]


def campaigns_tables(seen: Seen) -> list[Table]:
    """Campaigns that choose their items, with and without a split."""
    cells = common_cells(seen.campaigns)
    if not cells:
        return []
    tasks = SETTINGS["builtin"].tasks
    best: list[Better] = ["high" for _ in ("all", *tasks)]
    best += ["" for _ in (*tasks, "spent")]
    rows = {}
    for name, group in seen.campaigns.items():
        last = [group.cells[cell].rounds[-1]["labels"] for cell in cells]
        rows[name] = [group.cell(cells), *(group.cell(cells, task) for task in tasks)]
        rows[name] += [Cell(float(np.mean([labels[task] for labels in last]))) for task in tasks]
        rows[name].append(Cell(float(np.mean([group.cells[cell].rounds[-1]["spent"] for cell in cells]))))
    return [
        Table(
            "Campaigns",
            "Choosing labels with and without a split, on the built-in corpus",
            ["last score", *tasks, *(f"labels of {task}" for task in tasks), "spent"],
            rows,
            best=best,
            note="60 seed items, three rounds of 700 units of money, a tenth of it for audit items; default prices.",
        )
    ]


# -- figures -----------------------------------------------------------------------------------------------------------
def budget_figures(seen: Seen) -> list[Figure]:
    """Gains against the budget."""
    shown = [MAIN, TOGETHER, "equal money", "same items", "difficulty", ALL_ON_ONE]
    lines = []
    for data in seen.data:
        cells = [cell for cell in seen.divided if (cell.data, cell.costs) == (data, ALIKE)]
        times = sorted({cell.times for cell in cells})
        for name in shown if len(times) > 1 else ():
            some = [mean_over([cell for cell in cells if cell.times == at], name).ours for at in times]
            lines.append(Line(name, times, some, panel=data))
    title = "Relative gain by budget, at equal prices"
    x = "budget, over the price of the seed labels"
    return [Figure("Figure 1", title, "lines", x, "relative gain (%)", lines)] if lines else []


def informs_figures(seen: Seen) -> list[Figure]:
    """Who informs whom by the look-ahead, as a heat map of each data set."""
    figures = []
    for data, setting in SETTINGS.items():
        some = [found["ways"][PAPERS]["value"] for (of, _), found in seen.estimates.items() if of == data]
        if some:
            mean = np.mean(some, axis=0).round(3)
            lines = [Line(task, list(setting.tasks), mean[at].tolist()) for at, task in enumerate(setting.tasks)]
            title = f"Who informs whom on {data}: what a label of the row is worth to the column"
            figures.append(Figure(f"Informativeness, {data}", title, "heat", "to", "from", lines))
    return figures


def turned_out_figures(seen: Seen) -> list[Figure]:
    """What labels of one task turned out to be worth, as a heat map beside what was estimated."""
    figures = []
    for data in seen.data:
        found = turned_out(seen, data)
        if found is not None:
            tasks = list(SETTINGS[data].tasks)
            lines = [Line(task, tasks, found[at].round(2).tolist()) for at, task in enumerate(tasks)]
            title = f"What labels turned out to be worth on {data}: all money on the row, points gained by the column"
            note = "At equal prices and the smallest budget, so that every row is of as many labels."
            figures.append(Figure(f"Turned out, {data}", title, "heat", "to", "from", lines, note))
    return figures
