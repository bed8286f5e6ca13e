"""Parsing and entities: two tasks that complement each other, in five genres of text (paper 1, section 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.studies.arms import SHORT, Arm, Setup, run_arm
from experiments.studies.complementing_tables import (
    Architecture,
    architecture_cells,
    figure_3,
    figure_5,
    table_3,
    table_4,
    table_5,
    table_6,
)
from experiments.studies.findings import Answer, Findings, Table
from experiments.studies.outcomes import (
    Groups,
    Outcomes,
    against_random,
    at_equal_money,
    by_loss,
    common_cells,
    curves_figure,
    in_words,
    over_pairs,
    sizes,
    verdict,
)
from experiments.studies.statistics import PairedTest, paired_test
from experiments.studies.study import STUDIES, Run, Study

DOMAINS = ("answers", "email", "newsgroup", "reviews", "weblog")  # errata 17
DP, NER = "dependencies", "entities"
SMOOTHED, PLAIN = 0.2, 0.0  # LS (section 5.4) and CE
JOINT = ("MT-AVG", "MT-MAX", "MT-MIN", "MT-PAR", "MT-RRF", "MT-IND")
OWN = (f"MT-EC-{DP}", f"MT-EC-{NER}")
SINGLE = (f"ST-EC-{DP}", f"ST-EC-{NER}")
UNSMOOTHED = ("MT-R", "MT-MAX")
AGREEMENT = (f"ST-DA-{DP}", f"ST-DA-{NER}", f"MT-DA-{DP}", f"MT-DA-{NER}", "MT-AVGDA")

SMALL = Setup(
    pool=1500,
    dev=100,
    test=300,
    start=50,
    per_round=100,
    rounds=2,
    learner={**SHORT, "gated_layers": 1, "steps": 120, "batch_size": 8},
)
PAPER = Setup(pool=20_000, dev=100, test=None, start=50, per_round=50, rounds=4, learner={"epochs": 30})


def grid(scale: str) -> Sequence[dict[str, Any]]:
    """Every campaign, those of one seed before those of the next."""
    setup, seeds = (SMALL, 3) if scale == "small" else (PAPER, 5)
    return [
        arm.unit() for seed in range(seeds) for domain in DOMAINS for arm in _arms(f"ewt:{domain}", seed, setup, scale)
    ]


def _arms(data: str, seed: int, setup: Setup, scale: str) -> Iterator[Arm]:
    """What the questions need of one domain and seed."""
    strategies = ["MT-R", *OWN, *JOINT, *SINGLE]
    if scale == "paper":
        strategies += [*AGREEMENT, "ST-R"]
    for strategy in strategies:  # Q1.2 and Q1.3
        trust = strategy in (*SINGLE, "MT-AVG")
        yield Arm(data, strategy, seed, setup, smoothing=SMOOTHED, trust=trust)
    for task, strategy in zip((DP, NER), SINGLE, strict=True):  # Q1.1 and Table 6
        yield Arm(data, strategy, seed, setup, tasks=(task,), smoothing=PLAIN, trust=True)
    yield Arm(data, "MT-AVG", seed, setup, smoothing=PLAIN, trust=True)
    for strategy in UNSMOOTHED:  # our own: is it the smoothing that spoils the choice?
        yield Arm(data, strategy, seed, setup, smoothing=PLAIN)
    for smoothing in (SMOOTHED, PLAIN):
        yield Arm(data, "MT-AVG", seed, setup, sharing="gated", smoothing=smoothing)
    if seed == 0 or scale == "paper":
        full = full_training(setup, scale)
        for smoothing in (SMOOTHED, PLAIN):
            yield Arm(data, "ST-R", seed, full, smoothing=smoothing)
            for sharing in ("shared", "gated"):
                yield Arm(data, "MT-R", seed, full, sharing=sharing, smoothing=smoothing)


def full_training(setup: Setup, scale: str) -> Setup:
    """A campaign that buys everything at once and then stops: the paper's full training, or a part of it."""
    if scale == "paper":
        return replace(setup, start=1_500, rounds=0)
    return replace(setup, start=600, rounds=0, learner={**setup.learner, "steps": 240})


def analyse(runs: Sequence[Run], scale: str) -> Findings:
    """Tables 3 to 6 and Figures 3 to 5 beside the paper's, and questions Q1.1 to Q1.3."""
    everything = Outcomes.of(runs)
    campaigns = everything.where(lambda arm: arm.setup.rounds > 0)
    groups = campaigns.where(_compared).by(lambda arm: arm.strategy)
    full = _architectures(everything.where(lambda arm: arm.setup.rounds == 0), ("ST-R", "ST-R"), "MT-R")
    active = _architectures(campaigns, SINGLE, "MT-AVG")
    answers = [_effective(full, active), _learning(groups), _multi(groups), _joint(groups)]
    words = {"yes": "yes", "no": "no", "not decided here": "not decided"}
    together, learning, multi, joint = (words[answer.verdict] for answer in answers)
    biggest = {
        name: groups[name].where(lambda arm: arm.data == "ewt:email")
        for name in ("MT-R", *OWN, *SINGLE)
        if name in groups
    }
    return Findings(
        headline=(
            f"Does one model for both tasks help? {together.capitalize()}. Does active learning? "
            f"{learning.capitalize()}. Is multi-task selection better than single-task selection? "
            f"{multi.capitalize()}. Is it better to choose by both tasks than by one? {joint.capitalize()}."
        ),
        answers=answers,
        tables=[
            *table_3(full, active),
            table_4(groups, JOINT),
            table_5(groups),
            table_6(_trust(campaigns), [f"ewt:{domain}" for domain in DOMAINS]),
            against_random(groups, "MT-R"),
            at_equal_money(groups, "MT-R"),
            *_by_loss(campaigns),
        ],
        figures=[
            figure_3(groups, SINGLE, (*OWN, *JOINT)),
            curves_figure(
                "Figure 4",
                "Scores against labelled sentences in the largest domain, email",
                biggest,
                "sentences",
                (DP, NER),
                note="Means over seeds; the band is from the lowest seed to the highest.",
            ),
            figure_5(
                [
                    (member.arm.tasks[0], member.result["trust"])
                    for member in campaigns.where(lambda arm: arm.trust and len(arm.tasks) == 1)
                ]
            ),
        ],
        sizes=sizes(SMALL if scale == "small" else PAPER, "EWT trees with UNER entities, five genres"),
        cut=_cut(scale),
    )


def _cut(scale: str) -> list[str]:
    always = ["OntoNotes is licensed: five genres of EWT with UNER entities stand in for its six domains"]
    if scale == "paper":
        return always
    return [
        *always,
        "three of the bundled encoder's six layers, the lowest two frozen, and 120 steps of 8 sentences; the paper "
        "trains twelve layers for up to 20,000 steps of 32",
        "two rounds of 100 sentences after 50 (to about the paper's 10 %), where the paper has four of 2 %",
        "multi-task arms share one model (SMT) in Tables 4 to 6; the gated model (CMT) runs with MT-AVG alone",
        "no dropout-agreement arms: dropout agreement is measured in Table 6, not selected by",
        "full training is 600 sentences of a domain, and one seed",
    ]


def _compared(arm: Arm) -> bool:
    """The arms of Q1.2 and Q1.3: label smoothing, both tasks, one shared model or one each."""
    return arm.smoothing == SMOOTHED and arm.sharing != "gated" and not arm.tasks


def _architectures(outcomes: Outcomes, single: Sequence[str], multi: str) -> Architecture:
    """Table 3's models: which campaigns score each task. A single-task model is judged by its own task's campaign."""
    found: dict[str, dict[str, Outcomes]] = {}
    for loss, smoothing in (("CE", PLAIN), ("LS", SMOOTHED)):
        mine = outcomes.where(lambda arm, smoothing=smoothing: arm.smoothing == smoothing)  # type: ignore[misc]
        found[f"ST ({loss})"] = {
            task: mine.where(lambda arm, name=name: arm.strategy == name)  # type: ignore[misc]
            for task, name in zip((DP, NER), single, strict=True)
        }
        for model, sharing in (("SMT", "shared"), ("CMT", "gated")):
            chosen = mine.where(lambda arm, sharing=sharing: arm.strategy == multi and arm.sharing == sharing)  # type: ignore[misc]
            found[f"{model} ({loss})"] = {DP: chosen, NER: chosen}
    return found


def _by_loss(campaigns: Outcomes) -> list[Table]:
    """Choosing against random with either loss."""
    shared = campaigns.where(lambda arm: arm.sharing == "shared" and not arm.tasks)
    groups = {
        loss: shared.where(lambda arm, smoothing=smoothing: arm.smoothing == smoothing).by(lambda arm: arm.strategy)  # type: ignore[misc]
        for loss, smoothing in (("LS", SMOOTHED), ("CE", PLAIN))
    }
    return by_loss(groups, ("MT-AVG", *UNSMOOTHED[1:]), (DP, NER))


def _trust(campaigns: Outcomes) -> dict[str, list[tuple[str, float]]]:
    """Table 6's rows: (domain, overconfidence error) of every campaign that measured it."""
    found: dict[str, list[tuple[str, float]]] = {}
    short = {DP: "DP", NER: "NER"}
    for member in campaigns.where(lambda arm: arm.trust):
        arm, trust = member.arm, member.result["trust"]
        task = "mean of tasks" if arm.strategy == "MT-AVG" else arm.strategy.removeprefix("ST-EC-")
        name = "MT-AVG" if arm.strategy == "MT-AVG" else f"ST-EC-{short[task]}"
        rows = {"EC": f"{name} ({'LS' if arm.smoothing else 'CE'})", "TS": f"{name} (TS)"}
        rows["DA"] = "MT-AVGDA (CE)" if name == "MT-AVG" else f"ST-DA-{short[task]} (CE)"
        for way, errors in trust.items():
            found.setdefault(rows[way], []).append((arm.data, errors[task]["overconfidence"]))
    return found


def _mean_test(models: Architecture, first: str, second: str) -> PairedTest:
    """Two architectures by the mean of both tasks."""
    cells = architecture_cells({name: models[name] for name in (first, second)})
    means = [
        np.mean([models[name][task].scores(cells, task) for task in (DP, NER)], axis=0) if cells else []
        for name in (first, second)
    ]
    return paired_test(means[0], means[1])


def _effective(full: Architecture, active: Architecture) -> Answer:
    gated, simple = (_mean_test(active, f"{model} (LS)", "ST (LS)") for model in ("CMT", "SMT"))
    trained = _mean_test(full, "CMT (LS)", "ST (LS)")
    smoothing = _mean_test(active, "CMT (LS)", "CMT (CE)")
    return Answer(
        "Q1.1",
        "Is multi-task learning effective in this setup?",
        verdict(gated),
        f"In active learning with label smoothing the gated model ends {in_words(gated)} from single-task models on "
        f"the mean of both tasks, the simple multi-task model {in_words(simple)}; in full training the gated model is "
        f"{in_words(trained)} from single-task models. Label smoothing against cross-entropy, gated: "
        f"{in_words(smoothing)}.",
        "Mostly yes: the gated model is best in most cases with label smoothing, the simple one is worse than ST.",
    )


def _learning(groups: Groups) -> Answer:
    arms = [*OWN, *JOINT]
    test = over_pairs(groups, [(arm, "MT-R") for arm in arms])
    by_task = {task: over_pairs(groups, [(arm, "MT-R") for arm in arms], task) for task in (DP, NER)}
    return Answer(
        "Q1.2 (first part)",
        "Is active learning effective: does choosing sentences beat taking them at random?",
        verdict(test),
        f"The eight multi-task methods together end {in_words(test)} from random on the mean of both tasks: parsing "
        f"{in_words(by_task[DP])}, entities {in_words(by_task[NER])}.",
        "Yes: MT-R is the worst method on average (Table 10).",
    )


def _multi(groups: Groups) -> Answer:
    pairs = [(arm, other) for arm in (*OWN, *JOINT) for other in SINGLE]
    test = over_pairs(groups, pairs)
    own = over_pairs(groups, list(zip(OWN, SINGLE, strict=True)))
    return Answer(
        "Q1.2 (second part)",
        "Is multi-task selection better than single-task selection?",
        verdict(test),
        f"Every multi-task method against every single-task one, on the mean of both tasks: {in_words(test)}. "
        f"Counterparts alone (MT-EC against ST-EC of the same task): {in_words(own)}.",
        "Yes: better in 79 % of comparisons on the average of both tasks, on par within a task.",
    )


def _joint(groups: Groups) -> Answer:
    test = over_pairs(groups, [(arm, other) for arm in ("MT-AVG", "MT-MAX") for other in OWN])
    cells = common_cells(groups, ["MT-AVG", "MT-MAX", *OWN])
    means = {arm: float(np.mean(groups[arm].scores(cells))) for arm in ("MT-AVG", "MT-MAX", *OWN)} if cells else {}
    order = ", ".join(f"{arm} {means[arm]:.1f}" for arm in sorted(means, key=lambda arm: -means[arm]))
    return Answer(
        "Q1.3",
        "Is a joint confidence of both tasks better to choose by than that of one task?",
        verdict(test),
        f"MT-AVG and MT-MAX against MT-EC by one task, on the mean of both tasks: {in_words(test)}. Means: {order}.",
        "Not decided: MT-MAX is best on average, MT-EC-NER close behind.",
    )


STUDIES.add(
    "complementing",
    Study(
        "complementing",
        "Parsing and entities in five genres",
        "paper 1, section 5",
        grid,
        run_arm,
        analyse,
        reads=("ud_ewt", "uner_ewt"),
    ),
)
