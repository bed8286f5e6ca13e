"""Does a task policy help active learning? Campaigns that differ in nothing but how training steps are shared.

Without a policy every step trains all tasks that its batch has labels for. A learned policy is learned from a log of
the same campaign's first training, steered by the uniform policy; its λ is the bandit study's, nothing is tuned here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bursar.campaign.campaign import Campaign
from bursar.campaign.folder import Lock
from bursar.campaign.participants import GoldAnnotator
from bursar.campaign.splits import load_parts
from bursar.compute import ProgressCallback
from bursar.curriculum import Policy, improve, learn_dynamic
from bursar.curriculum.logs import read_logs
from experiments.studies.arms import SHORT, WAIT, Arm, Place, Setup, config_of, corpus_of, folder_name, run_arm
from experiments.studies.findings import Answer, Cell, Findings, Table
from experiments.studies.outcomes import Groups, Outcomes, common_cells, curves_figure, in_words, sizes, verdict, versus
from experiments.studies.statistics import areas
from experiments.studies.study import STUDIES, Run, Study

DATA = ("builtin", "snips")
JOINT = "all tasks at once"
FIXED, DYNAMIC = "fixed, learned", "dynamic, learned"
POLICIES = {JOINT: None, "uniform": "uniform", "Exp3.S": "exp3s", FIXED: "fixed", DYNAMIC: "dynamic"}
ENTROPIES = {"fixed": 0.5, "dynamic": 0.1}
SMALL = Setup(2000, 200, 500, 60, 60, 4, learner={**SHORT, "steps": 200})
PAPER = replace(SMALL, pool=10_000, test=None, per_round=200, start=200, rounds=5, learner={"steps": 2000})


def grid(scale: str) -> list[dict[str, Any]]:
    """Every policy on every data set, seed by seed."""
    setup = SMALL if scale == "small" else PAPER
    return [
        {"policy": policy, "entropy": ENTROPIES.get(str(POLICIES[policy])), **Arm(data, "MT-AVG", seed, setup).unit()}
        for seed in range(3)
        for data in DATA
        for policy in POLICIES
    ]


def run_steered(unit: Mapping[str, Any], tell: ProgressCallback, *, place: Place) -> dict[str, Any]:
    """A campaign under a policy; a learned one is learned first."""
    begun = time.monotonic()
    arm = _arm(unit)
    name = POLICIES[unit["policy"]]
    policy = _learned(arm, name, unit["entropy"], place).describe() if name in ENTROPIES else name
    if policy is not None:
        arm = replace(arm, setup=replace(arm.setup, learner={**arm.setup.learner, "policy": policy}))
    result = run_arm(arm.unit(), tell, place=place)
    return {**result, "policy": policy, "seconds": round(time.monotonic() - begun, 1)}


def _arm(unit: Mapping[str, Any]) -> Arm:
    return Arm.of({key: value for key, value in unit.items() if key not in ("policy", "entropy")})


def _learned(arm: Arm, kind: str, entropy: float, place: Place) -> Policy:
    """A policy from the log of this campaign's first training under the uniform policy."""
    steered = {**arm.setup.learner, "policy": "uniform", "log_steps": True}
    start = replace(arm, setup=replace(arm.setup, rounds=0, learner=steered))
    config = config_of(start, place)
    folder = place.runs / "steered" / folder_name(start)
    lock = Lock(folder.with_name(f"{folder.name}.lock"), patience=WAIT)
    try:
        campaign = Campaign(config, folder, parts=load_parts(config, corpus_of(arm.data, place.data, arm.tasks)))
        try:
            campaign.run(GoldAnnotator(campaign.parts.corpus))
        finally:
            campaign.close()
    finally:
        lock.release()
    logs = read_logs(sorted(folder.glob("logs/*.parquet")))
    learn = learn_dynamic if kind == "dynamic" else improve
    return learn(logs, entropy=entropy).policy


def analyse(runs: Sequence[Run], scale: str) -> Findings:
    """The last scores and the areas of every policy beside joint steps, and beside the uniform policy."""
    groups = {
        name: Outcomes.of([{**run, "unit": _arm(run["unit"]).unit()} for run in runs if run["unit"]["policy"] == name])
        for name in POLICIES
    }
    groups = {name: group for name, group in groups.items() if len(group)}
    cells = common_cells(groups)
    setup = SMALL if scale == "small" else PAPER
    answers = [
        _answer(groups, FIXED, "uniform", "Does a learned fixed policy help active learning, beside the uniform one?"),
        _answer(groups, DYNAMIC, "uniform", "Does a learned dynamic policy, beside the uniform one?"),
        _answer(groups, DYNAMIC, JOINT, "Is any of it better than training all tasks of a batch at once?"),
    ]
    return Findings(
        headline=(
            "The mean of the tasks' last scores under a learned dynamic policy is "
            f"{in_words(versus(groups, DYNAMIC, 'uniform'))} from the uniform policy's and "
            f"{in_words(versus(groups, DYNAMIC, JOINT))} from that of joint steps."
            if DYNAMIC in groups
            else "No campaign under a learned policy is finished yet."
        ),
        answers=[answer for answer in answers if answer is not None],
        tables=[_table(groups, cells), *_shares(runs)],
        figures=[
            curves_figure("Curves", "Mean of the tasks' scores against labelled items", groups, "items"),
        ],
        sizes=sizes(setup, "the built-in corpus (five tasks) and SNIPS (two)")
        | {
            "steps": "as many for every policy; a joint step trains all tasks of its batch, a steered one one task",
            "λ": f"{ENTROPIES['fixed']} for the fixed policy, {ENTROPIES['dynamic']} for the dynamic one: the bandit's",
        },
        cut=["The paper has no active learning: this is our own question."],
    )


def _answer(groups: Groups, one: str, other: str, asks: str) -> Answer | None:
    if one not in groups or other not in groups:
        return None
    test = versus(groups, one, other)
    return Answer(f"{one} against {other}", asks, verdict(test), f"{in_words(test)}.", "Our own question.")


def _table(groups: Groups, cells: Sequence[tuple[str, int]]) -> Table:
    """Every policy: last scores on each data set, the area, and the differences from joint steps and from uniform."""
    rows = {}
    by_cell = {cell: areas({name: group.cells[cell].curve() for name, group in groups.items()}) for cell in cells}
    data = sorted({name for name, _ in cells})
    for name, group in groups.items():
        row = [group.cell([cell for cell in cells if cell[0] == which]) for which in data]
        row.append(Cell(float(np.mean([by_cell[cell][name] for cell in cells])) if cells else None))
        row += [
            Cell(versus(groups, name, other)["difference"] if other in groups and name != other else None)
            for other in (JOINT, "uniform")
        ]
        rows[name] = row
    return Table(
        "Policies in a campaign",
        "Scores of MT-AVG campaigns by the policy that their trainings are led by",
        [*(f"{which}, last score" for which in data), "area", "over joint steps", "over uniform"],
        rows,
        note=f"Mean of the tasks' test scores; {len(cells)} cells (data set × seed). Area: the mean over the budget.",
    )


def _shares(runs: Sequence[Run]) -> list[Table]:
    """What the fixed policies came out as."""
    found: dict[str, list[Cell]] = {}
    tasks: list[str] = []
    for run in runs:
        if run["unit"]["policy"] == FIXED and run["unit"]["data"] == "builtin":
            weights = run["result"]["policy"]["weights"]
            tasks = list(weights)
            total = sum(weights.values())
            found[f"seed {run['unit']['seed']}"] = [Cell(weights[task] / total) for task in tasks]
    if not found:
        return []
    title = "The fixed policies learned on the built-in corpus: the share of the steps of each task"
    return [Table("Learned shares", title, tasks, found, digits=3, best="")]


STUDIES.add(
    "steering",
    Study(
        "steering", "Does a task policy help active learning?", "our own", grid, run_steered, analyse, reads=("snips",)
    ),
)
