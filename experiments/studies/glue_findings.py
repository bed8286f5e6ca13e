"""What the trainings on GLUE say: Tables 1 to 3 and Figure 2 of paper 3, for the five tasks that were trained here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bursar.ragged import FloatArray
from experiments.studies.findings import Answer, Cell, Figure, Findings, Line, Table
from experiments.studies.outcomes import in_words
from experiments.studies.statistics import paired_test, spread
from experiments.studies.study import Run

TASKS = ("CoLA", "MRPC", "RTE", "SST-2", "STS-B")
ALONE = "one model a task"
LEARNED, DYNAMIC = "counterfactual", "dynamic"
NAMES = {"uniform": "random", "size": "task size", "exp3s": "Exp3.S"}
PAPER = {  # Table 1: development scores of these tasks with BERT-base, 200,000 steps, eight tasks
    "random": (48.2, 88.8, 73.4, 92.1, 72.1),
    "task size": (18.5, 86.1, 77.2, 90.6, 76.6),
    "Exp3.S": (49.2, 87.6, 74.5, 91.8, 73.8),
    LEARNED: (50.1, 90.0, 77.5, 92.0, 75.6),
}
PAPER_ALONE = (52.1, 86.85, 66.4, 93.5, 86.1)  # Table 2, on the test set; the mean where it has two scores
PAPER_SHARES = {"CoLA": 0.089, "MRPC": 0.086, "RTE": 0.086, "SST-2": 0.094, "STS-B": 0.102}  # Table 3, of eight tasks

Scores = dict[int, FloatArray]  # seed to the scores of the tasks, in percent


def analyse(runs: Sequence[Run], scale: str) -> Findings:
    """Scores by policy beside the paper's, what was learned, and whether the rankings agree."""
    arms = by_policy(runs)
    if "random" not in arms:
        return Findings("No training by the random policy is finished yet, so there is nothing to compare with.")
    steps = next(run["unit"]["steps"] for run in runs if len(run["unit"]["tasks"]) > 1)
    means = {name: float(np.mean([row.mean() for row in scores.values()])) for name, scores in arms.items()}
    return Findings(
        headline=_headline(arms, means),
        answers=_answers(arms, means),
        tables=[_table1(arms), *_table3(runs), *_tried(runs)],
        figures=_figure2(runs),
        sizes={
            "tasks": ", ".join(TASKS) + ": all their training items (the paper has MNLI, QNLI and QQP as well)",
            "model": "the bundled encoder, 6 layers, 384 wide, the two lowest frozen (the paper: BERT-base)",
            "steps": f"{steps:,} of 16 items (the paper: 200,000); one model a task: a fifth of them each",
            "development items": "of each task up to 200 to choose λ and the best of eight evaluations on, and up to "
            "400 others to report on (RTE: 92 and 185)",
            "reward": "eq. 16 on the unsmoothed log-likelihood; for STS-B that of a tenth of its range around the gold "
            "score",
            "learned from": "the log of the random policy's training with seed 0",
            "seeds": "3; each draws its own batches and initial heads; the development items are cut once for all",
        },
        cut=[
            "MNLI, QNLI and QQP: their training data are not here.",
            "WNLI: the paper leaves it out of training too.",
            "Table 2 is the GLUE server's test set; here the same development items as for the policies.",
        ],
    )


def by_policy(runs: Sequence[Run]) -> dict[str, Scores]:
    """Scores by policy and seed. One model a task counts for a seed when all of its tasks are there."""
    found: dict[str, Scores] = {}
    alone: dict[int, dict[str, float]] = {}
    chosen = _chosen(runs)
    for run in runs:
        unit, result = run["unit"], run["result"]
        if len(unit["tasks"]) == 1:
            alone.setdefault(unit["seed"], {}).update(result["scores"])
            continue
        name = _name(unit)
        if name == LEARNED and unit["entropy"] not in ("chosen", chosen):
            continue
        found.setdefault(name, {})[unit["seed"]] = 100 * np.array([result["scores"][task] for task in TASKS])
    whole = {seed: 100 * np.array([by[task] for task in TASKS]) for seed, by in alone.items() if len(by) == len(TASKS)}
    return {**found, ALONE: whole} if whole else found


def _name(unit: Mapping[str, Any]) -> str:
    if "policy" in unit:
        return NAMES.get(unit["policy"], str(unit["policy"]))
    return LEARNED if unit["learn"] == "fixed" else DYNAMIC


def _chosen(runs: Sequence[Run]) -> float | None:
    """The λ that did best on the part to choose on, of those that were tried so far."""
    tried = {
        run["unit"]["entropy"]: float(np.mean(list(run["result"]["choose"].values())))
        for run in runs
        if run["unit"].get("learn") == "fixed" and run["unit"]["entropy"] != "chosen"
    }
    return max(tried, key=lambda entropy: tried[entropy]) if tried else None


def _headline(arms: Mapping[str, Scores], means: Mapping[str, float]) -> str:
    order = sorted(means, key=lambda name: -means[name])
    seeds = min(len(scores) for scores in arms.values())
    listed = ", ".join(f"{name} {means[name]:.1f}" for name in order)
    return f"Average score over five tasks, {seeds} seed{'s' if seeds > 1 else ''} at the least: {listed}."


def _paired(arms: Mapping[str, Scores], one: str, other: str) -> Any:
    seeds = sorted(arms[one].keys() & arms[other].keys())
    return paired_test([float(arms[one][s].mean()) for s in seeds], [float(arms[other][s].mean()) for s in seeds])


def _answers(arms: Mapping[str, Scores], means: Mapping[str, float]) -> list[Answer]:
    found = []
    for name, asks, paper in (
        (LEARNED, "Does the policy learned from a log train a better model than random?", "Yes: 80.5 against 79.1."),
        (
            "Exp3.S",
            "Does Exp3.S train a better model than random?",
            "No: 78.9 against 79.1 over eight tasks; on these five 75.4 against 74.9.",
        ),
        ("task size", "Is sampling by size worse than random?", "Yes: 74.9 against 79.1."),
        (DYNAMIC, "Does a policy that looks at the state of the tasks do better than random?", "Future work."),
    ):
        if name not in arms or len(arms[name].keys() & arms["random"].keys()) < 3:
            continue
        test = _paired(arms, name, "random")
        low, high = test["low"], test["high"]
        worse = name == "task size"
        decided = low is not None and high is not None and (low > 0 or high < 0)
        above = (test["difference"] or 0) > 0
        verdict = "not decided here" if not decided else "yes" if above != worse else "no"
        found.append(Answer(name, asks, verdict, f"{in_words(test)} on average over the five tasks.", paper))  # type: ignore[arg-type]
    if all(name in means for name in PAPER):
        ours = sorted(PAPER, key=lambda name: -means[name])
        theirs = sorted(PAPER, key=lambda name: -float(np.mean(PAPER[name])))
        found.append(
            Answer(
                "Ranking",
                "Is the order of the policies the paper's (on these five tasks)?",
                "yes" if ours == theirs else "no",
                f"Here: {' > '.join(ours)}. The paper: {' > '.join(theirs)}.",
                "The learned policy first, task size last.",
            )
        )
    if ALONE in means and LEARNED in means:
        found.append(
            Answer(
                "Alone",
                "Does one model for all tasks reach one model a task?",
                "yes" if means[LEARNED] >= means[ALONE] else "no",
                f"{means[LEARNED]:.1f} with the learned policy, {means[ALONE]:.1f} for five models of as many steps "
                "in all.",
                "Almost: 77.9 against 78.3 on the test set.",
            )
        )
    return found


def _table1(arms: Mapping[str, Scores]) -> Table:
    rows = {}
    for name, scores in arms.items():
        paper = PAPER_ALONE if name == ALONE else PAPER.get(name)
        table = np.array(list(scores.values()))  # (seeds, tasks)
        columns = [table.mean(axis=1), *table.T]
        theirs = [None] * 6 if paper is None else [float(np.mean(paper)), *paper]
        cells = []
        for values, reported in zip(columns, theirs, strict=True):
            over = spread(values.tolist())
            cells.append(Cell(over["mean"], over["spread"], reported))
        rows[name] = cells
    return Table(
        "Table 1",
        "Scores of each task by policy (and Table 2's single tasks)",
        ["average", *TASKS],
        rows,
        note="CoLA: Matthews' correlation; MRPC: mean of accuracy and F1; STS-B: mean of Pearson's and Spearman's "
        "correlation; the others: accuracy. The paper's average is over its eight tasks; beside ours stands the mean "
        "of its five. Its single-task row is from the test set.",
    )


def _table3(runs: Sequence[Run]) -> list[Table]:
    rows: dict[str, list[Cell]] = {}
    total = sum(PAPER_SHARES.values())
    chosen = _chosen(runs)
    for run in runs:
        unit, result = run["unit"], run["result"]
        if len(unit["tasks"]) == 1 or unit["seed"]:
            continue
        name = _name(unit)
        if unit.get("learn") == "fixed":
            name += f", λ = {unit['entropy']:g}" + (" (chosen)" if unit["entropy"] == chosen else "")
            weights = result["policy"]["weights"]
            shares = [weights[task] for task in TASKS]
        else:
            shares = result["shares"]
        paper = unit.get("learn") == "fixed" and unit["entropy"] == chosen
        rows[name] = [
            Cell(share, None, PAPER_SHARES[task] / total if paper else None)
            for task, share in zip(TASKS, shares, strict=True)
        ]
    if not rows:
        return []
    return [
        Table(
            "Table 3",
            "How the steps are shared",
            list(TASKS),
            rows,
            digits=3,
            best="",
            note="A learned fixed policy: its probabilities, beside the paper's for these five tasks, scaled to sum to "
            "1. The others: the shares of the steps that they took with seed 0.",
        )
    ]


def _tried(runs: Sequence[Run]) -> list[Table]:
    rows = {
        f"λ = {run['unit']['entropy']:g}": [
            Cell(100 * float(np.mean(list(run["result"]["choose"].values())))),
            Cell(100 * float(np.mean(list(run["result"]["scores"].values())))),
        ]
        for run in runs
        if run["unit"].get("learn") == "fixed" and run["unit"]["entropy"] != "chosen"
    }
    if len(rows) < 2:
        return []
    return [
        Table(
            "λ",
            "The learned policies of seed 0",
            ["on the part to choose on", "on the part to report on"],
            rows,
            best=["high", ""],
            note="The choice is made by the first column alone.",
        )
    ]


def _figure2(runs: Sequence[Run]) -> list[Figure]:
    curves: dict[str, list[list[tuple[float, float]]]] = {}
    chosen = _chosen(runs)
    for run in runs:
        unit = run["unit"]
        if len(unit["tasks"]) > 1 and (unit.get("learn") != "fixed" or unit["entropy"] in ("chosen", chosen)):
            curves.setdefault(_name(unit), []).append([(step, 100 * mean) for step, mean in run["result"]["curve"]])
    lines = []
    for name, several in curves.items():
        length = min(map(len, several))
        table = np.array([[score for _, score in curve[:length]] for curve in several])
        if length:
            steps = [step for step, _ in several[0][:length]]
            low, high = table.min(axis=0).tolist(), table.max(axis=0).tolist()
            lines.append(Line(name, steps, np.median(table, axis=0).tolist(), low, high))
    if not lines:
        return []
    return [
        Figure(
            "Figure 2",
            "Average score on development items over time",
            "lines",
            "step",
            "average score (%)",
            lines,
            note="The median over seeds; the bands enclose all of them. On the part to choose on, by accuracy for "
            "CoLA and MRPC and Pearson's correlation for STS-B.",
        )
    ]
