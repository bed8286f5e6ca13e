"""Why splits by estimates do as they do: controls of the study of splits.

*Real curves* are what real labels of one task at a time bring to every task, on the test items. *Foreknown* splits go
by those of the other draws: what the same model of labels would do if its estimates were good, with each task's own
gain as 1 (errata 29), and with own gains as large as they are. *Seen as often*: models of texts have a number of steps,
so labels of the same items are seen more often than as many of different items; here every label is seen as often.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bursar.allocation import BASELINES, Context, Split, exact, together
from bursar.compute import ProgressCallback
from bursar.learners.settings import Schedule
from experiments.studies.allocation_models import Round, drawn, estimates_in, model_scores, problem_of, trained_splits
from experiments.studies.allocation_runs import AS_OFTEN, FOREKNOWN, MAIN, PAPERS, WEIGHED, estimates_from
from experiments.studies.allocation_settings import curves_unit, estimates_unit, setting_of
from experiments.studies.arms import Place

BLOCKS = (1, 2, 4)  # labels of one task, in as many as the seed has


def real_curves(unit: Mapping[str, Any], tell: ProgressCallback, place: Place, ask: Round) -> dict[str, Any]:
    """The test scores of all tasks with more and more labels of one."""
    setting = setting_of(unit["data"])
    none = (0,) * len(setting.tasks)
    sizes = [min(blocks * setting.seed, setting.pool) for blocks in BLOCKS]
    scores: dict[str, list[dict[str, float]]] = {}
    for at, task in enumerate(setting.tasks):
        tell((f"labels of {task} alone", at / len(setting.tasks)))
        more = [(*none[:at], size, *none[at + 1 :]) for size in sizes]
        scores[task] = [model_scores(unit, counts, 0, place) for counts in more]
    return {"seed_scores": model_scores(unit, none, 0, place), "sizes": sizes, "scores": scores}


def foreknown(unit: Mapping[str, Any], tell: ProgressCallback, place: Place, ask: Round) -> dict[str, Any]:
    """Splits of one budget by what other draws turned out to be worth."""
    setting = setting_of(unit["data"])
    others = [ask(curves_unit(unit, seed)) for seed in unit["others"]]
    estimates, weights = estimates_from(setting.tasks, others, setting.seed)
    room = len(drawn(unit["data"], unit["seed"], place.data)[1])
    splits: dict[str, Split] = {}
    for way, importance in ((FOREKNOWN, (1.0,) * len(weights)), (WEIGHED, weights)):
        problem = problem_of(unit, estimates, room, importance)
        splits |= {f"exact, {way}": exact(problem), f"together, {way}": together(problem)}
    return {"splits": trained_splits(splits, unit, tell, place)}


def seen_as_often(unit: Mapping[str, Any], tell: ProgressCallback, place: Place, ask: Round) -> dict[str, Any]:
    """Splits of one budget whose models see every label as often as those of the same items do."""
    setting = setting_of(unit["data"])
    room = len(drawn(unit["data"], unit["seed"], place.data)[1])
    problem = problem_of(unit, estimates_in(ask(estimates_unit(unit)), PAPERS, setting.tasks), room)
    rng = np.random.default_rng(unit["seed"])  # which neither of them asks for anything
    splits = {MAIN: exact(problem)} | {name: BASELINES[name](problem, Context(), rng) for name in AS_OFTEN}
    items = setting.seed + max(splits["same items"].counts)
    options = in_epochs(unit["learner"], items)
    longer = {**unit, "learner": options}
    return {"epochs": options["epochs"], "splits": trained_splits(splits, longer, tell, place)}


def in_epochs(options: Mapping[str, Any], items: int) -> dict[str, Any]:
    """A learner's options with as many epochs as its steps are for so many items.

    >>> in_epochs({"layers": 3, "steps": 200}, 120)
    {'layers': 3, 'epochs': 25}
    """
    schedule = Schedule(**{name: options[name] for name in ("steps", "batch_size") if name in options})
    epochs, _ = schedule.in_epochs(schedule.steps_per_epoch(items, by_policy=False))
    return {name: value for name, value in options.items() if name != "steps"} | {"epochs": epochs}
