"""Tables 3 to 6 and Figures 3 to 5 of paper 1 from the campaigns of the complementing study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.studies.findings import Cell, Figure, Line, Table
from experiments.studies.outcomes import Groups, Outcomes, Where, common_cells
from experiments.studies.statistics import spread, table4

DP, NER = "dependencies", "entities"
TASKS = (DP, NER)
MODELS = ("ST (CE)", "SMT (CE)", "CMT (CE)", "ST (LS)", "SMT (LS)", "CMT (LS)")

# Average and domains where best, for DP and NER: full training, then active learning
TABLE_3 = {
    "ST (CE)": (87.17, 1, 70.35, 0, 86.43, 3, 74.65, 6),
    "SMT (CE)": (86.94, 2, 67.51, 0, 85.86, 2, 70.31, 0),
    "CMT (CE)": (87.04, 3, 72.79, 6, 85.91, 1, 72.11, 0),
    "ST (LS)": (87.64, 0, 71.31, 1, 88.96, 0, 75.61, 2),
    "SMT (LS)": (86.87, 0, 69.07, 0, 87.53, 0, 73.26, 1),
    "CMT (LS)": (87.98, 6, 72.86, 5, 89.03, 6, 74.44, 3),
}
TABLE_4 = {"within DP": 47.22, "within NER": 63.88, "across DP": 90.74, "across NER": 89.81, "average": 78.78}
TABLE_5 = {
    f"ST-EC-{DP}": (88.96, 71.34, 80.15),
    f"ST-EC-{NER}": (86.66, 75.75, 81.21),
    f"MT-EC-{DP}": (88.99, 73.75, 81.37),
    f"MT-EC-{NER}": (86.90, 77.13, 82.01),
    "MT-AVG": (89.02, 74.44, 81.74),
    "MT-MAX": (88.64, 75.90, 82.27),
}
TABLE_6 = {  # the Average column
    "ST-EC-DP (CE)": 0.1051,
    "ST-EC-DP (TS)": 0.1009,
    "ST-EC-DP (LS)": 0.0450,
    "ST-DA-DP (CE)": 0.0505,
    "ST-EC-NER (CE)": 0.0130,
    "ST-EC-NER (TS)": 0.0124,
    "ST-EC-NER (LS)": 0.0004,
    "ST-DA-NER (CE)": 0.0107,
    "MT-AVG (CE)": 0.0637,
    "MT-AVG (TS)": 0.0622,
    "MT-AVG (LS)": 0.0114,
    "MT-AVGDA (CE)": 0.0349,
}

Architecture = Mapping[str, Mapping[str, Outcomes]]  # a model of Table 3 to the campaigns that score each task


def table_3(full: Architecture, active: Architecture) -> list[Table]:
    """Architectures and losses: one table for full training, one for active learning."""
    titles = {
        "full training": ("Table 3, full training", full, 0),
        "active learning": ("Table 3, active learning", active, 4),
    }
    tables = []
    for way, (name, models, offset) in titles.items():
        cells = architecture_cells(models)
        rows: dict[str, list[Cell]] = {}
        for model in MODELS:
            row = []
            for at, task in enumerate(TASKS):
                average, best = TABLE_3[model][offset + 2 * at : offset + 2 * at + 2]
                if not cells:
                    row += [Cell(None, None, average), Cell(None, None, best)]
                    continue
                row += [
                    models[model][task].cell(cells, task, average),
                    Cell(_best(models, model, task, cells), None, best),
                ]
            rows[model] = row
        tables.append(
            Table(
                name,
                f"Single-task, simple and gated multi-task models in {way}, by loss",
                ["DP average", "DP best in", "NER average", "NER best in"],
                rows,
                note=f"{len(cells)} cells. Best in: domains in which a model leads those of its loss; ours of "
                f"{len({d for d, _ in cells})}, the paper's of 6.",
            )
        )
    return tables


def architecture_cells(models: Architecture) -> list[Where]:
    """The cells that every architecture has for both tasks."""
    return common_cells({f"{m} {t}": o for m, by_task in models.items() for t, o in by_task.items()})


def _best(models: Architecture, model: str, task: str, cells: Sequence[Where]) -> int:
    """In how many domains a model leads those trained with the same loss."""
    rivals = [name for name in MODELS if name[-4:] == model[-4:]]
    count = 0
    for domain in sorted({cell[0] for cell in cells}):
        mine = [cell for cell in cells if cell[0] == domain]
        means = {name: float(np.mean(models[name][task].scores(mine, task))) for name in rivals}
        count += max(means, key=lambda name: means[name]) == model
    return count


def table_4(groups: Groups, joint: Sequence[str]) -> Table:
    """How often multi-task selection won."""
    arms = [f"{kind}-EC-{task}" for kind in ("ST", "MT") for task in TASKS] + list(joint)
    cells = common_cells(groups, arms)
    columns = list(TABLE_4)
    if not cells:
        return Table("Table 4", "", columns, {"MT-AL winning %": [Cell(None, None, v) for v in TABLE_4.values()]})
    scores = {
        arm: {task: {cell: groups[arm].cells[cell].score(task) for cell in cells} for task in TASKS} for arm in arms
    }
    won = table4(
        scores,
        single={task: [f"ST-EC-{task}"] for task in TASKS},
        own={task: [f"MT-EC-{task}"] for task in TASKS},
        joint=joint,
    )
    parts = [*(won["within"][t] for t in TASKS), *(won["cross"][t] for t in TASKS), won["average"]]
    return Table(
        "Table 4",
        "In how many percent of comparisons multi-task selection was superior to single-task selection",
        columns,
        {
            "MT-AL winning %": [
                Cell(part["percent"], None, theirs) for part, theirs in zip(parts, TABLE_4.values(), strict=True)
            ],
            "comparisons": [Cell(part["comparisons"]) for part in parts],
            "significant": [Cell(part["significant"]) for part in parts],
            "significant wins": [Cell(part["significant_wins"]) for part in parts],
        },
        note="Comparisons are of two methods in one domain, over the means of the seeds; significant: a paired t-test "
        "over the seeds, not corrected, as in the paper. No dropout-agreement arms here, so fewer comparisons.",
        best="",
    )


def table_5(groups: Groups) -> Table:
    """Selection by one task against selection by both."""
    cells = common_cells(groups, list(TABLE_5))
    rows = {
        arm: [
            groups[arm].cell(cells, task, theirs) if arm in groups else Cell(None, None, theirs)
            for task, theirs in zip((*TASKS, None), figures, strict=True)
        ]
        for arm, figures in TABLE_5.items()
    }
    return Table(
        "Table 5",
        "Selection by one task's confidence and by both, averaged over the domains",
        ["DP (LAS)", "NER (F1)", "average"],
        rows,
        note=f"{len(cells)} cells (domain × seed).",
    )


def table_6(found: Mapping[str, Sequence[tuple[str, float]]], domains: Sequence[str]) -> Table:
    """The overconfidence error at the last round, by domain; ``found`` has (domain, error) pairs for every row."""
    rows = {}
    for name, theirs in TABLE_6.items():
        errors = {d: [error for domain, error in found.get(name, ()) if domain == d] for d in domains}
        row = [
            Cell(spread(errors[d])["mean"], spread(errors[d])["spread"]) if errors[d] else Cell(None) for d in domains
        ]
        means = [cell.ours for cell in row if cell.ours is not None]
        rows[name] = [*row, Cell(float(np.mean(means)) if len(means) == len(domains) else None, None, theirs)]
    return Table(
        "Table 6",
        "Overconfidence error on the unlabelled pool at the last round",
        [*domains, "average"],
        rows,
        note="CE: cross-entropy, TS: the same model with a temperature fitted on development items, LS: label "
        "smoothing, DA: dropout agreement of the CE model. MT-AVG's error is of the mean confidence against the mean "
        "accuracy of both tasks. The CE and DA rows are of the same campaigns: DA is measured, not selected by.",
        digits=4,
        best="low",
    )


def figure_3(groups: Groups, single: Sequence[str], multi: Sequence[str]) -> Figure:
    """The best single-task against the best multi-task method of every domain."""
    cells = common_cells(groups, [*single, *multi])
    lines = []
    domains = sorted({domain for domain, _ in cells})
    for task in TASKS:
        for kind, arms in (("best ST-AL", single), ("best MT-AL", multi)):
            heights = [
                max(float(np.mean(groups[arm].scores([c for c in cells if c[0] == d], task))) for arm in arms)
                for d in domains
            ]
            lines.append(Line(kind, [_short(d) for d in domains], [round(h, 2) for h in heights], panel=task))
    return Figure(
        "Figure 3",
        "The best single-task and the best multi-task method of every domain",
        "bars",
        "domain",
        "score",
        lines,
        note="Best of two single-task and of eight multi-task methods, picked on the reported scores as in the paper: "
        "the best of more candidates is higher by luck alone.",
    )


def figure_5(trusted: Sequence[tuple[str, Mapping[str, Any]]]) -> Figure:
    """Sentence-level accuracy against confidence, counted on a grid, for single-task models trained with CE."""
    lines = []
    edges = [round(0.05 + 0.1 * at, 2) for at in range(10)]
    notes = []
    for task in TASKS:
        grids = [np.array(trust["EC"][task]["grid"]) for name, trust in trusted if name == task]
        if not grids:
            continue
        total = np.sum(grids, axis=0)  # (confidence, accuracy)
        r2 = float(np.mean([trust["EC"][task]["r_squared"] for name, trust in trusted if name == task]))
        notes.append(f"{task}: mean R² {r2:.2f}")
        lines += [Line(f"{edge:g}", edges, total[:, at].tolist(), panel=task) for at, edge in enumerate(edges)]
    return Figure(
        "Figure 5",
        "Accuracy of a sentence against the confidence in it, cross-entropy models",
        "heat",
        "confidence",
        "accuracy",
        lines,
        note="; ".join(notes) + ". In the paper R² is 0.10 for DP and 0.13 for NER.",
    )


def _short(data: str) -> str:
    return data.partition(":")[2] or data
