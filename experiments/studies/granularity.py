"""Slots and intents: tasks of different granularity under a money budget (paper 1, section 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.studies.arms import SHORT, Arm, Setup, run_arm
from experiments.studies.findings import Answer, Cell, Findings, Table, Verdict
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
from experiments.studies.study import STUDIES, Run, Study

DATA = ("atis", "snips")
JOINT = ("MT-AVG", "MT-MAX", "MT-MIN", "MT-RRF")
CHOICES = ("UDJS", "EQB-DJS", *JOINT, "MT-EC-slots", "MT-EC-intent")  # the last two are the paper's STCS
DECISIONS = ("GRD_AL", "BLP_AL", "BLP")
ALONE = ("ST-EC-slots+BLP_AL", "ST-EC-intent+BLP_AL")
RANKS = ("MT-R", "MT-PAR", "MT-IND")  # no score, so greedy alone (footnote 12); for Table 10
COSTS = {"reading": {"per_word": 1}, "slots": {"per_span": 1}, "intent": {"per_item": 3}}  # section 7

SMALL = Setup(
    pool=2000,
    dev=100,
    test=500,
    start=50,
    per_round=500,
    rounds=5,
    counts="money",
    learner={**SHORT, "steps": 100},
    costs=COSTS,
)
PAPER = replace(SMALL, pool=20_000, test=None, learner={"epochs": 30})


def grid(scale: str) -> Sequence[dict[str, Any]]:
    """Every campaign, those of one seed before those of the next."""
    setup, seeds = (SMALL, 3) if scale == "small" else (PAPER, 5)
    arms = [f"{choice}+{decision}" for choice in CHOICES for decision in DECISIONS]
    return [
        Arm(data, strategy, seed, setup).unit()
        for seed in range(seeds)
        for data in DATA
        for strategy in (*arms, *ALONE, *RANKS)
    ]


# Tables 8 and 9, BERT: ATIS slots, ATIS intent, SNIPS slots, SNIPS intent
TABLE_8 = {
    "MT-MIN+BLP_AL": (84.53, 92.27, 77.90, 97.00),
    "MT-RRF+GRD_AL": (82.11, 91.38, 71.78, 95.71),
    "MT-AVG+BLP": (85.78, 89.92, 73.46, 96.57),
}
TABLE_9 = {
    "MT-MIN+BLP_AL": (84.53, 92.27, 77.90, 97.00),
    "UDJS+BLP_AL": (87.46, 90.48, 73.56, 96.71),
    "EQB-DJS+BLP_AL": (86.59, 88.02, 69.92, 91.43),
}
COLUMNS = tuple((data, task) for data in DATA for task in ("slots", "intent"))
SHOWN = ("MT-R", "MT-RRF+GRD_AL", "MT-MIN+BLP_AL", "UDJS+BLP_AL", "EQB-DJS+BLP_AL")  # in the picture


def analyse(runs: Sequence[Run], scale: str) -> Findings:
    """Tables 8 and 9 beside the paper's, and questions Q3.1 to Q3.3."""
    groups = Outcomes.of(runs).by(lambda arm: arm.strategy)
    greedy, exact, once = ([f"{choice}+{decision}" for choice in CHOICES] for decision in DECISIONS)
    answers = [
        _optimising(groups, list(zip(exact, greedy, strict=True))),
        _iterating(groups, list(zip(exact, once, strict=True))),
        _joint(groups),
    ]
    over, rounds = _overspent(groups)
    scored = {name: group for name, group in groups.items() if not name.endswith("+BLP")}  # those have one round alone
    return Findings(
        headline=_headline(answers, over, rounds),
        answers=answers,
        tables=[
            paper_table("Table 8", "The paper's best method of every way to decide", groups, TABLE_8),
            paper_table("Table 9", "Joint annotation against disjoint sets", groups, TABLE_9),
            _all_choices(groups),
            _bought(groups),
            against_random(scored, "MT-R"),
        ],
        figures=[
            curves_figure(
                "Money curves",
                "Scores against what was spent",
                {name: groups[name] for name in SHOWN if name in groups},
                "spent",
                ("slots", "intent"),
                note="Means over seeds; the band is from the lowest seed to the highest.",
            )
        ],
        sizes=sizes(SMALL if scale == "small" else PAPER, ", ".join(DATA)),
        cut=[
            "one encoder, the bundled one, where the paper has BERT-base and RoBERTa-base",
            "three of its six layers, the lowest two frozen, and 100 training steps where the paper trains 30 epochs",
            "sub-pools of 2,000 sentences drawn with the seed, and 500 test sentences",
        ]
        if scale == "small"
        else ["one encoder, the bundled one, where the paper has BERT-base and RoBERTa-base"],
    )


def paper_table(name: str, title: str, groups: Groups, paper: Mapping[str, Sequence[float]]) -> Table:
    """Last scores of some arms on every data set and task, each beside the paper's."""
    cells = common_cells(groups, list(paper))
    rows = {
        arm: [
            groups[arm].cell([cell for cell in cells if cell[0] == data], task, theirs)
            if arm in groups
            else Cell(None, None, theirs)
            for (data, task), theirs in zip(COLUMNS, figures, strict=True)
        ]
        for arm, figures in paper.items()
    }
    return Table(name, title, [f"{data.upper()} {task}" for data, task in COLUMNS], rows, note="The paper's with BERT.")


def _all_choices(groups: Groups) -> Table:
    names = [f"{choice}+{decision}" for choice in CHOICES for decision in DECISIONS]
    cells = common_cells({name: groups[name] for name in names if name in groups})
    rows = {
        choice: [
            groups[name].cell(cells) if (name := f"{choice}+{decision}") in groups else Cell(None)
            for decision in DECISIONS
        ]
        for choice in CHOICES
    }
    return Table(
        "Every choice",
        "Mean of both tasks and data sets, for every way to choose and to decide",
        ["greedy each round (GRD_AL)", "exact each round (BLP_AL)", "exact, all at once (BLP)"],
        rows,
        note="MT-EC-slots and MT-EC-intent are the paper's STCS-SF and STCS-ID.",
    )


def _bought(groups: Groups) -> Table:
    """How many items each way buys, and what one costs: exact spending goes for short sentences."""
    rows = {}
    for choice in CHOICES:
        row: list[Cell] = []
        for decision in DECISIONS:
            mine = groups.get(f"{choice}+{decision}", Outcomes([]))
            row += [Cell(bought) for bought in _purchases(mine)]
        rows[choice] = row
    columns = [f"{what}, {decision}" for decision in DECISIONS for what in ("items", "price")]
    return Table(
        "What was bought",
        "Items bought after the start, and the mean price of one",
        columns,
        rows,
        note="In units of money: a unit a word, 3 an intent, 1 a slot.",
        best="",
    )


def _purchases(group: Outcomes) -> tuple[float | None, float | None]:
    """Items bought after the start, and what one cost on average."""
    items = [member.rounds[-1]["items"] - member.rounds[0]["items"] for member in group]
    money = [member.rounds[-1]["spent"] - member.rounds[0]["spent"] for member in group]
    return (float(np.mean(items)), float(np.sum(money) / np.sum(items))) if sum(items) else (None, None)


def _in_items(groups: Groups, names: Sequence[str]) -> str:
    items, price = _purchases(Outcomes([member for name in names if name in groups for member in groups[name]]))
    return "nothing yet" if items is None else f"{items:.0f} items at {price:.1f} each"


def _optimising(groups: Groups, pairs: Sequence[tuple[str, str]]) -> Answer:
    test = over_pairs(groups, pairs)
    tasks = {task: over_pairs(groups, pairs, task) for task in ("slots", "intent")}
    both = over_pairs(groups, [pair for pair in pairs if "DJS" not in pair[0]])
    return Answer(
        "Q3.1",
        "Does spending the budget exactly beat buying the least confident items first?",
        verdict(test),
        f"Over all {len(pairs)} ways to choose, exact spending ends {in_words(test)} from greedy on the mean of both "
        f"tasks: slots {in_words(tasks['slots'])}, intent {in_words(tasks['intent'])}. "
        f"It is ahead for {_ahead(groups, pairs)} of the {len(pairs)} ways; for those that buy both labels of an item "
        f"it ends {in_words(both)}. The sum of doubts is largest over many cheap items: for the same money it buys "
        f"{_in_items(groups, [name for name, _ in pairs])}, greedy "
        f"{_in_items(groups, [name for _, name in pairs])}.",
        "Yes: BLP_AL beats GRD_AL in all setups, and for every selection method.",
    )


def _iterating(groups: Groups, pairs: Sequence[tuple[str, str]]) -> Answer:
    test = over_pairs(groups, pairs)
    return Answer(
        "Q3.2",
        "Do exact spending and active learning add to each other: is buying in rounds better than all at once?",
        verdict(test),
        f"Exact in five rounds ends {in_words(test)} from exact at once with the same money, and is ahead for "
        f"{_ahead(groups, pairs)} of the {len(pairs)} ways to choose.",
        "Mostly yes: MT-MIN with BLP_AL is higher than MT-AVG with BLP in most cases.",
    )


def _joint(groups: Groups) -> Answer:
    exact = [f"{choice}+BLP_AL" for choice in JOINT]
    free = over_pairs(groups, [(name, "UDJS+BLP_AL") for name in exact])
    equal = over_pairs(groups, [(name, "EQB-DJS+BLP_AL") for name in exact])
    named = versus(groups, "MT-MIN+BLP_AL", "UDJS+BLP_AL")
    verdicts = {verdict(free), verdict(equal)}
    found: Verdict = verdicts.pop() if len(verdicts) == 1 else "not decided here"
    return Answer(
        "Q3.3",
        "Is it better to annotate every bought item for both tasks than to choose per task?",
        found,
        f"The four joint ways end {in_words(free)} from unrestricted disjoint sets and {in_words(equal)} from equal "
        f"shares. The paper's pick, MT-MIN, ends {in_words(named)} from unrestricted disjoint sets.",
        "Yes: MT-MIN with BLP_AL beats both kinds of disjoint sets.",
    )


def _ahead(groups: Groups, pairs: Sequence[tuple[str, str]]) -> int:
    return sum((versus(groups, *pair)["difference"] or 0) > 0 for pair in pairs)


def _overspent(groups: Groups) -> tuple[int, int]:
    """Rounds that spent more than they were allowed, and all rounds."""
    rounds = [r for group in groups.values() for member in group for r in member.rounds if r["budget"] is not None]
    return sum(r["cost"] > r["budget"] for r in rounds), len(rounds)


def _headline(answers: Sequence[Answer], over: int, rounds: int) -> str:
    words = {"yes": "yes", "no": "no", "not decided here": "not decided"}
    exact, complementary, joint = (words[answer.verdict] for answer in answers)
    return (
        f"Does exact spending beat greedy? {exact.capitalize()}. In rounds better than all at once? "
        f"{complementary.capitalize()}. Both labels for every item? {joint.capitalize()}. "
        f"{over or 'None'} of {rounds:,} rounds spent over budget."
    )


STUDIES.add(
    "granularity",
    Study(
        "granularity",
        "Slots and intents under a money budget",
        "paper 1, section 7",
        grid,
        run_arm,
        analyse,
        reads=DATA,
    ),
)
