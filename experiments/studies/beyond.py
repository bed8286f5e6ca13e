"""What the paper leaves to others: more tasks, matching with exact spending, partial annotation, an honest audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bursar.campaign.sections import StoppingSection
from bursar.campaign.stopping import DEFAULTS, KnownRound, advice_by_round
from experiments.studies import granularity
from experiments.studies.arms import SHORT, Arm, Setup, run_arm
from experiments.studies.findings import Answer, Cell, Findings, Table
from experiments.studies.outcomes import (
    Groups,
    Outcomes,
    against_random,
    common_cells,
    curves_figure,
    in_words,
    over_pairs,
    sizes,
    verdict,
    versus,
)
from experiments.studies.statistics import compare_all, regret, saved
from experiments.studies.study import STUDIES, Run, Study

FEW = ("intent", "slots")
MANY = ("intent", "slots", "urgency", "dependencies")
JOINT = ("MT-AVG+BLP_AL", "MT-MIN+BLP_AL")
MATCHED = tuple(f"{name}+IDMR" for name in JOINT)
FEW_ARMS = ("MT-R", *JOINT, *MATCHED, "UDJS+BLP_AL")
MANY_ARMS = ("MT-R", "MT-AVG", "MT-MAX", "MT-RRF", "MT-PAR", "UDJS+BLP_AL", "MT-AVG+BLP_AL")
AUDITED = ("MT-AVG", "MT-MAX")
LONG = "MT-MIN+BLP_AL"  # what is followed for twelve rounds, for the stopping advice

SMALL = Setup(
    pool=2000,
    dev=100,
    test=500,
    start=50,
    per_round=700,
    rounds=4,
    counts="money",
    learner={**SHORT, "steps": 120, "batch_size": 8},
)
PAPER = replace(SMALL, pool=16_000, test=None, learner={"epochs": 30})


def setups(scale: str) -> dict[str, Setup]:
    """Two tasks; four tasks with twice the money; two with an audit slice; two for twelve rounds."""
    plain = SMALL if scale == "small" else PAPER
    return {
        "few": plain,
        "many": replace(plain, per_round=2 * plain.per_round),
        "audited": replace(plain, audit=0.15, shadow=True),
        "long": replace(plain, rounds=12),
    }


def grid(scale: str) -> Sequence[dict[str, Any]]:
    """Every campaign, those of one seed before those of the next."""
    setup = setups(scale)
    return [
        arm.unit()
        for seed in range(3 if scale == "small" else 5)
        for arm in [
            *(Arm("builtin", strategy, seed, setup["few"], FEW) for strategy in FEW_ARMS),
            *(Arm("builtin", strategy, seed, setup["many"], MANY) for strategy in MANY_ARMS),
            *(Arm("builtin", strategy, seed, setup["audited"], FEW) for strategy in AUDITED),
            *(Arm(data, LONG, seed, setup["long"], FEW) for data in ("builtin", *granularity.DATA)),
        ]
    ]


def analyse(runs: Sequence[Run], scale: str) -> Findings:
    """One answer and one table for each of the questions."""
    outcomes, setup = Outcomes.of(runs), setups(scale)
    groups = {
        kind: outcomes.where(lambda arm, mine=mine: arm.setup == mine).by(lambda arm: arm.strategy)  # type: ignore[misc]
        for kind, mine in setup.items()
    }
    answers = [
        _more_tasks(groups["many"]),
        _matching(groups["few"]),
        _partial(groups["few"], groups["many"]),
        _audit(groups["audited"], groups["few"]),
        _stopping(groups["long"]),
    ]
    return Findings(
        headline=" ".join(
            f"{question} {answer.verdict.capitalize()}."
            for question, answer in zip(
                (
                    "Does active learning help four tasks at once?",
                    "Does matching help exact spending?",
                    "Is partial annotation better at equal money?",
                    "Does the audit's interval hold the truth?",
                    "Does the stopping advice lose less than a point?",
                ),
                answers,
                strict=True,
            )
        ),
        answers=answers,
        tables=[
            _by_task("Four tasks", "Last scores of every task, four tasks in one campaign", groups["many"], MANY),
            against_random(groups["many"], "MT-R", "Four tasks, against random"),
            _by_task("Two tasks", "Exact spending, with and without matching, joint and partial", groups["few"], FEW),
            _audit_table(groups["audited"], groups["few"]),
            _stopping_table(groups["long"]),
            _thresholds(groups["long"]),
        ],
        figures=[
            curves_figure("Four tasks", "Mean of four tasks against what was spent", groups["many"], "spent"),
            curves_figure("Two tasks", "Mean of two tasks against what was spent", groups["few"], "spent"),
        ],
        sizes=sizes(setup["few"], "the built-in corpus; ATIS and SNIPS for the stopping advice")
        | {"four tasks": f"{', '.join(MANY)}; rounds of {setup['many'].per_round} units of money"},
    )


def _by_task(name: str, title: str, groups: Groups, tasks: Sequence[str]) -> Table:
    cells = common_cells(groups)
    rows = {arm: [group.cell(cells, task) for task in (*tasks, None)] for arm, group in groups.items()}
    return Table(name, title, [*tasks, "mean"], rows, note=f"{len(cells)} seeds.")


def _more_tasks(groups: Groups) -> Answer:
    arms = [arm for arm in MANY_ARMS if arm != "MT-R"]
    test = over_pairs(groups, [(arm, "MT-R") for arm in arms])
    cells = common_cells(groups, MANY_ARMS)
    better: list[str] = []
    if cells:
        found = compare_all({arm: groups[arm].scores(cells) for arm in MANY_ARMS}, against="MT-R")
        better = [c["arm"] for c in found if c["verdict"] == "better"]
    return Answer(
        "More tasks",
        f"Does active learning help when {', '.join(MANY[:-1])} and {MANY[-1]} share one budget?",
        verdict(test),
        f"The six strategies together end {in_words(test)} from random on the mean of the four tasks; by themselves "
        f"significantly better (Holm): {', '.join(better) or 'none'}.",
        "The paper leaves more than two tasks to future work.",
    )


def _matching(groups: Groups) -> Answer:
    test = over_pairs(groups, list(zip(MATCHED, JOINT, strict=True)))
    return Answer(
        "Matching",
        "Does matching the length of what is bought to the pool's (IDMR) help exact spending?",
        verdict(test),
        f"With matching, MT-AVG and MT-MIN end {in_words(test)} from without, on the mean of both tasks.",
        "Paper 4 has matching with greedy selection alone.",
    )


def _partial(few: Groups, many: Groups) -> Answer:
    two = over_pairs(few, [("UDJS+BLP_AL", name) for name in JOINT])
    four = versus(many, "UDJS+BLP_AL", "MT-AVG+BLP_AL")
    return Answer(
        "Partial annotation",
        "At equal money, is it better to buy each item for the tasks that need it than for all tasks?",
        verdict(two),
        f"Partial annotation (UDJS) ends {in_words(two)} from joint annotation with two tasks, and {in_words(four)} "
        "with four.",
        "No, in the paper's Table 9 (slots and intents): joint annotation is ahead.",
    )


# -- the audit -------------------------------------------------------------------------------------------------------
def _audits(audited: Groups, plain: Groups) -> list[dict[str, Any]]:
    """For every audited campaign: what its audit slice estimated, and what was saved in truth against random."""
    found = []
    for strategy in AUDITED:
        cells = common_cells({"audited": audited[strategy], "random": plain["MT-R"]}) if strategy in audited else []
        for cell in cells:
            estimate = audited[strategy].cells[cell].result["savings"]
            truth = saved(audited[strategy].cells[cell].curve(), plain["MT-R"].cells[cell].curve())
            at = min(truth["at_arm_end"], truth["at_random_end"], key=lambda end: end["score"])
            found.append({"strategy": strategy, "cell": cell, "estimate": estimate, "truth": at["saved"]})
    return found


def _audit(audited: Groups, plain: Groups) -> Answer:
    known = [one for one in _audits(audited, plain) if one["estimate"] is not None]
    inside = sum(one["estimate"]["low"] <= one["truth"] <= one["estimate"]["high"] for one in known)
    gaps = [100 * (one["estimate"]["saved"] - one["truth"]) for one in known]
    width = [100 * (one["estimate"]["high"] - one["estimate"]["low"]) for one in known]
    why = "No audited campaign is finished."
    if known:
        why = (
            f"In {inside} of {len(known)} campaigns the 90 % interval holds what was truly saved against a random "
            f"campaign. The estimate is off by {np.mean(np.abs(gaps)):.0f} points on average (bias "
            f"{np.mean(gaps):+.0f}); its interval is {np.median(width):.0f} points wide."
        )
    return Answer(
        "Audit",
        "Does the audit slice's estimate of what was saved hold the truth that the simulation knows?",
        "not decided here" if len(known) < 5 else "yes" if inside >= 0.8 * len(known) else "no",
        why,
        "Not in the paper.",
    )


def _audit_table(audited: Groups, plain: Groups) -> Table:
    rows = {}
    for one in _audits(audited, plain):
        estimate = one["estimate"] or {"saved": None, "low": None, "high": None}
        figures = [estimate["saved"], estimate["low"], estimate["high"], one["truth"]]
        rows[f"{one['strategy']}, seed {one['cell'][1]}"] = [Cell(None if v is None else 100 * v) for v in figures]
    return Table(
        "Audit",
        "Percent of the money saved against random: the audit slice's estimate beside the truth",
        ["estimate", "low", "high", "truth"],
        rows,
        note="Truth: the money that the audited campaign and a whole random campaign need for the lower of their two "
        "last test scores.",
        best="",
    )


# -- when to stop -----------------------------------------------------------------------------------------------------
def _stops(groups: Groups, settings: StoppingSection = DEFAULTS) -> list[dict[str, Any]]:
    """For every long campaign: where the advice would have stopped it, and what that would have cost."""
    found = []
    for member in groups.get(LONG, Outcomes([])):
        rounds = [KnownRound(r["spent"], r["dev"], r["agreement"]) for r in member.rounds]
        advised = advice_by_round(rounds, settings=settings)
        stop = next((at for at, advice in enumerate(advised) if advice.stop), None)
        found.append({"cell": member.where, "stop": stop, **regret(stop, member.curve())})
    return found


def _stopping(groups: Groups) -> Answer:
    found = _stops(groups)
    lost, money = [one["score_lost"] for one in found], [100 * one["share_saved"] for one in found]
    stopped = sum(one["stop"] is not None for one in found)
    why = "No long campaign is finished."
    if found:
        why = (
            f"The advice stopped {stopped} of {len(found)} campaigns before their twelfth round. Over all of them that "
            f"loses {np.mean(lost):.1f} points of score (at most {max(lost):.1f}) and saves {np.mean(money):.0f} % of "
            "the money."
        )
    return Answer(
        "Stopping",
        "Does following the stopping advice lose less than one point of score on average?",
        "not decided here" if len(found) < 5 else "yes" if np.mean(lost) < 1 else "no",
        why,
        "Not in the paper.",
    )


def _stopping_table(groups: Groups) -> Table:
    rows = {
        f"{one['cell'][0]}, seed {one['cell'][1]}": [
            Cell(one["stop"]),
            Cell(one["score_lost"]),
            Cell(100 * one["share_saved"]),
        ]
        for one in _stops(groups)
    }
    return Table(
        "Stopping",
        "What following the stopping advice would have cost in campaigns of twelve rounds",
        ["stopped after round", "points lost", "money saved %"],
        rows,
        note="No round: the advice was to go on to the end. Points: mean of both tasks on test items, which the advice "
        "never sees. When the advice was made, shorter campaigns on ATIS with seed 0 were looked at; no others here.",
        best="",
    )


def _thresholds(groups: Groups) -> Table:
    """The same with other thresholds: what a round must bring, and which figure of the forecast is held against it."""
    rows = {}
    for judge_by in ("high", "mean"):
        for least in (0.0025, 0.005, 0.01, 0.02):
            found = _stops(groups, StoppingSection(least_gain=least, judge_by=judge_by))
            if found:
                rows[f"{100 * least:g} points, by the {judge_by}"] = [
                    Cell(100 * float(np.mean([one["stop"] is not None for one in found]))),
                    Cell(float(np.mean([one["score_lost"] for one in found]))),
                    Cell(100 * float(np.mean([one["share_saved"] for one in found]))),
                ]
    return Table(
        "Stopping, by threshold",
        "What a round must bring, and whether the forecast's upper end or its mean decides",
        ["stopped %", "points lost", "money saved %"],
        rows,
        note="The default is 0.5 points, by the upper end (high).",
        best="",
    )


STUDIES.add(
    "beyond",
    Study(
        "beyond",
        "More tasks, matching, partial annotation, the audit and the stopping advice",
        "our own, after paper 1",
        grid,
        run_arm,
        analyse,
        reads=granularity.DATA,
    ),
)
