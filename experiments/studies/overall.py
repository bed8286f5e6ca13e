"""The seven ways to choose in all three scenarios, greedy and with equal weights (paper 1, section 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.studies import complementing, granularity, hierarchical
from experiments.studies.arms import Arm, run_arm
from experiments.studies.findings import Answer, Cell, Findings, Table, Verdict
from experiments.studies.outcomes import Groups, Outcomes, Where, common_cells
from experiments.studies.statistics import agreement_with, compare_all
from experiments.studies.study import STUDIES, Run, Study

WAYS = ("MT-R", "MT-AVG", "MT-MAX", "MT-MIN", "MT-PAR", "MT-RRF", "MT-IND")
SCENARIOS = {
    "DP + NER": (complementing, ("dependencies", "entities")),
    "NER + RE": (hierarchical, ("entities", "relations")),
    "SF + ID": (granularity, ("slots", "intent")),
}
COLUMNS = ("DP", "NER", "NER (with RE)", "RE", "SF", "ID", "average")
TABLE_10 = {
    "MT-R": (86.40, 70.78, 81.96, 52.47, 76.94, 91.95, 76.75),
    "MT-AVG": (89.03, 74.44, 80.23, 55.97, 76.42, 91.09, 77.86),
    "MT-MAX": (88.64, 75.90, 81.50, 57.74, 76.64, 89.17, 78.27),
    "MT-MIN": (88.73, 74.77, 81.32, 54.76, 73.75, 91.74, 77.51),
    "MT-PAR": (88.31, 75.86, 81.47, 56.92, 77.72, 90.28, 78.43),
    "MT-RRF": (88.31, 75.89, 81.78, 54.29, 77.63, 92.26, 78.36),
    "MT-IND": (87.54, 74.83, 82.13, 54.85, 76.67, 91.44, 77.91),
}


def grid(scale: str) -> Sequence[dict[str, Any]]:
    """Campaigns of the three scenarios that decide greedily and weigh the tasks alike: nothing that they do not run."""
    units = [unit for study, _ in SCENARIOS.values() for unit in study.grid(scale) if way_of(Arm.of(unit)) is not None]
    return sorted(units, key=lambda unit: int(unit["seed"]))


def way_of(arm: Arm) -> str | None:
    """Which of the seven ways a campaign chooses by; ``None`` if it is not one of this comparison."""
    way = arm.strategy.removesuffix("+GRD_AL")
    alike = len(set(arm.weights.values())) <= 1
    plain = arm.sharing == "shared" and arm.smoothing > 0 and not arm.tasks and arm.setup.rounds > 0
    return way if way in WAYS and alike and plain else None


def analyse(runs: Sequence[Run], scale: str) -> Findings:
    """Table 10 beside the paper's."""
    outcomes = Outcomes.of(runs)
    scenarios = {
        name: outcomes.where(lambda arm, tasks=tasks, name=name: _scenario(arm) == name).by(lambda a: way_of(a) or "")  # type: ignore[misc]
        for name, (_, tasks) in SCENARIOS.items()
    }
    cells = {name: common_cells(groups, WAYS) for name, groups in scenarios.items()}
    rows = {way: _row(way, scenarios, cells) for way in WAYS}
    answer = _answer(scenarios, cells, rows)
    return Findings(
        headline=answer.why,
        answers=[answer],
        tables=[
            Table(
                "Table 10",
                "All ways to choose in all three scenarios, greedy and with equal weights",
                COLUMNS,
                rows,
                note="Cells (data set or domain × seed): "
                + ", ".join(f"{name} {len(found)}" for name, found in cells.items())
                + ". The average is over the six tasks.",
            )
        ],
        sizes={name: f"see the study {study.__name__.rpartition('.')[2]}" for name, (study, _) in SCENARIOS.items()},
        cut=["what the three studies cut"],
    )


def _scenario(arm: Arm) -> str:
    name = arm.data.partition(":")[0]
    if name == "ewt":
        return "DP + NER"
    return "NER + RE" if name in hierarchical.DATA else "SF + ID"


def _row(way: str, scenarios: dict[str, dict[str, Outcomes]], cells: dict[str, list[Where]]) -> list[Cell]:
    paper = TABLE_10[way]
    row: list[Cell] = []
    for name, (_, tasks) in SCENARIOS.items():
        for task in tasks:
            theirs = paper[len(row)]
            found = cells[name]
            row.append(scenarios[name][way].cell(found, task, theirs) if found else Cell(None, None, theirs))
    ours = [cell.ours for cell in row if cell.ours is not None]
    row.append(Cell(float(np.mean(ours)) if len(ours) == len(row) else None, None, paper[-1]))
    return row


def _answer(
    scenarios: dict[str, dict[str, Outcomes]], cells: dict[str, list[Where]], rows: dict[str, list[Cell]]
) -> Answer:
    """Is any way better than random over all scenarios, and do the ways come in the paper's order?"""
    asks = "Is choosing better than random over all three scenarios, and is MT-PAR the best way, as in the paper?"
    theirs = "Yes: random is worst on average; MT-PAR is best, MT-RRF and MT-MAX close behind."
    means = {way: row[-1].ours for way, row in rows.items()}
    whole = {way: mean for way, mean in means.items() if mean is not None}
    if len(whole) < len(WAYS):
        return Answer("Table 10", asks, "not decided here", "Not all scenarios are finished yet.", theirs)
    scores = {way: [_mean(scenarios[n], way, cell) for n in SCENARIOS for cell in cells[n]] for way in WAYS}
    tests = compare_all(scores, against="MT-R")
    better = [found["arm"] for found in tests if found["verdict"] == "better"]
    worse = [found["arm"] for found in tests if found["verdict"] == "worse"]
    order = sorted(whole, key=lambda way: -whole[way])
    found: Verdict = "not decided here"
    if better and not worse:
        found = "yes" if order[0] == "MT-PAR" else "not decided here"
    elif worse and not better:
        found = "no"
    same = agreement_with({way: figures[-1] for way, figures in TABLE_10.items()}, whole)
    rank = "not defined" if same["spearman"] is None else f"{same['spearman']:+.2f} (p = {same['p']:.2f})"
    why = (
        f"Averages over the six tasks: {', '.join(f'{way} {whole[way]:.1f}' for way in order)}. Significantly better "
        f"than random over {len(scores['MT-R'])} cells (paired t-test, Holm): {', '.join(better) or 'none'}; worse: "
        f"{', '.join(worse) or 'none'}. Rank correlation with the paper's averages: {rank}."
    )
    return Answer("Table 10", asks, found, why, theirs)


def _mean(groups: Groups, way: str, cell: Where) -> float:
    return groups[way].cells[cell].score()


STUDIES.add(
    "overall",
    Study(
        "overall",
        "Seven ways to choose in three scenarios",
        "paper 1, section 8",
        grid,
        run_arm,
        analyse,
        reads=("ud_ewt", "uner_ewt", *hierarchical.DATA, *granularity.DATA),
        shares=("complementing", "hierarchical", "granularity"),
    ),
)
