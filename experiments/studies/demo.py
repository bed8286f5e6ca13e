"""Does the demo's strategy beat random? Strategies on the demo's campaign, over seeds.

The score of a run is the area under its money curves, averaged over the two tasks. Seeds 0 to 2 compare several
strategies. Seeds 3 to 5 are kept for the demo's own, which had been chosen before, on seeds 0 to 2 of an earlier model.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bursar.campaign import Run as CampaignRun
from bursar.campaign import run_campaign
from bursar.campaign.config import CampaignConfig, parse_config
from bursar.campaign.sections import LearnerSection, StrategySection
from bursar.compute import ProgressCallback
from experiments.studies.arms import Place
from experiments.studies.defaults import with_defaults_of_then
from experiments.studies.findings import Answer, Cell, Findings, Table
from experiments.studies.outcomes import in_words
from experiments.studies.statistics import paired_test
from experiments.studies.study import STUDIES, Run, Study

# The demo as it was when the study was run. Since then it trains all layers and chooses by auto.
LEARNER = {"layers": 3, "frozen_layers": 2, "steps": 120, "learning_rate": 1e-3}
SETTINGS = {
    "name": "demo",
    "tasks": ["intent", "slots"],
    "compare": ["RANDOM"],
    "corpus": {"items": 8000, "pool_items": 3000, "dev_items": 100, "test_items": 600},
    "budget": {"seed_items": 60, "per_round": 900, "rounds": 5},
    "strategy": {"name": "MT-MAX"},
    "learner": LEARNER,
}
EXPLORED = ("MT-MAX", "MT-AVG", "MT-MIN", "RANDOM")
CONFIRMED = ("MT-MAX", "RANDOM")


# What the arms set themselves, and settings that the demo does not use: a unit is found by the rest.
LEFT_OUT: dict[str, Any] = dict.fromkeys(("seed", "strategy", "compare", "oracle", "ledger", "allocation"), True) | {
    "costs": {"hourly", "measured"},
    "budget": {"dev_items", "ahead"},
    "learner": {"policy", "log_steps"},
    "audit": {"rounds"},
}


def demo_config() -> CampaignConfig:
    """The campaign that the study runs."""
    return parse_config(SETTINGS, "demo")


def grid(scale: str) -> list[dict[str, Any]]:
    """One run a seed, with all its strategies as arms."""
    settings = demo_config().model_dump(mode="json", exclude=LEFT_OUT)
    return [
        {"seed": seed, "strategies": list(EXPLORED if seed < 3 else CONFIRMED), "settings": settings}
        for seed in range(6)
    ]


def run_demo(unit: Mapping[str, Any], tell: ProgressCallback, *, place: Place) -> dict[str, Any]:
    """The demo's campaign with a seed, and strategies beside it."""
    main, *others = unit["strategies"]
    learner = LearnerSection(name="transformer", **with_defaults_of_then(LEARNER))
    update = {"seed": unit["seed"], "strategy": StrategySection(name=main), "compare": others, "learner": learner}
    begun = time.monotonic()
    folder = place.runs / f"demo-{unit['seed']}"
    result = run_campaign(CampaignRun(folder, demo_config().model_copy(update=update)))
    return {
        "area": {arm: found.mean for arm, found in result.comparison.items()},
        "area_by_task": {arm: found.area for arm, found in result.comparison.items()},
        "curves": {
            arm: [{"spent": r.spent, "items": r.items, "test": r.test} for r in found.rounds]
            for arm, found in result.arms.items()
        },
        "savings": {arm: found.savings and found.savings.model_dump() for arm, found in result.arms.items()},
        "seconds": round(time.monotonic() - begun, 1),
    }


def analyse(runs: Sequence[Run], scale: str) -> Findings:
    """Each strategy's area beside random's on the same seed."""
    parts = {
        "seeds 0 to 2": [run["result"]["area"] for run in runs if run["unit"]["seed"] < 3],
        "seeds 3 to 5": [run["result"]["area"] for run in runs if run["unit"]["seed"] >= 3],
    }
    rows = {}
    for part, areas in parts.items():
        for arm in areas[0] if areas else ():
            if arm != "RANDOM":
                over = 100 * np.array([area[arm] - area["RANDOM"] for area in areas])
                score = 100 * float(np.mean([area[arm] for area in areas]))
                spread = float(over.std(ddof=1)) if len(over) > 1 else None
                rows[f"{arm}, {part}"] = [Cell(score), Cell(float(over.mean()), spread), Cell(int((over > 0).sum()))]
    fresh = parts["seeds 3 to 5"]
    test = paired_test([100 * a["MT-MAX"] for a in fresh], [100 * a["RANDOM"] for a in fresh])
    better = (test["difference"] or 0) > 0
    return Findings(
        headline=f"On the seeds kept for it the area under the demo's curves is {in_words(test)} from random's.",
        answers=[
            Answer(
                "Demo",
                "Does the demo's strategy beat random on the mean of both tasks' curves, over the seeds kept for it?",
                "not decided here" if len(fresh) < 3 else "yes" if better else "no",
                f"{in_words(test)} on average. Three seeds show a mean, not a certainty.",
                "Our own question.",
            )
        ],
        tables=[
            Table(
                "Demo",
                "Area under the money curve, mean of both tasks",
                ["area", "over random", "seeds won"],
                rows,
                digits=2,
                note="All seeds share the corpus and the test items: they are fresh draws of the pool, the first items "
                "and the training, not of the test set.",
            )
        ],
        sizes={"campaign": "the demo's own, see bursar demo"},
    )


STUDIES.add(
    "demo",
    Study("demo", "Does the demo's strategy beat random?", "our own", grid, run_demo, analyse, scales=("small",)),
)
