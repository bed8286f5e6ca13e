"""Does splitting a budget by what labels are worth beat plain splits? Paper 5, on four data sets.

*Estimates* are what the seed items of a draw say of who informs whom and how fast labels lose worth. *Splits* divide
one budget at some prices in every way that there is, buy that many labels of random items, and train a model on each.
*Campaigns* choose the items as well, with and without a split of each round's money. What says why it came out as it
did is in ``allocation_controls``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from bursar.allocation import Context, Informativeness, ReductionRate, Split, least_regret, together
from bursar.allocation.advice import compare
from bursar.allocation.adviser import can_probe, learner_of, tools_of
from bursar.allocation.informativeness import make_informer
from bursar.allocation.rates import RatingSettings, make_rater
from bursar.allocation.split import exact
from bursar.campaign.config import CampaignConfig, parse_config
from bursar.compute import ProgressCallback
from bursar.corpus import Corpus
from bursar.learners import Learner
from experiments.studies.allocation_controls import foreknown, real_curves, seen_as_often
from experiments.studies.allocation_findings import analyse
from experiments.studies.allocation_models import (
    Round,
    agreement,
    drawn,
    estimates_in,
    learner_for,
    model_scores,
    problem_of,
    trained_splits,
)
from experiments.studies.allocation_runs import PAPERS, QUICK
from experiments.studies.allocation_settings import SHARED, estimates_unit, grid, setting_of
from experiments.studies.arms import Arm, Place, config_of, run_arm
from experiments.studies.kept import kept
from experiments.studies.study import STUDIES, Study

HELD_OUT = 0.25  # of the seed items, for the scores by which tasks are called hard


def split_up(unit: Mapping[str, Any], tell: ProgressCallback, *, place: Place) -> dict[str, Any]:
    """One unit, whatever kind it is."""
    if unit["kind"] in SHARED:
        return kept(split_up, unit, place, lambda _: _timed(unit, tell, place))
    return _timed(unit, tell, place)


def _timed(unit: Mapping[str, Any], tell: ProgressCallback, place: Place) -> dict[str, Any]:
    begun = time.monotonic(), time.process_time()
    result = KINDS[unit["kind"]](unit, tell, place, partial(split_up, tell=tell, place=place))
    clock, cores = time.monotonic() - begun[0], time.process_time() - begun[1]
    return {**result, "seconds": round(clock, 1), "core_seconds": round(cores, 1)}


# -- estimates ---------------------------------------------------------------------------------------------------------
def estimated(unit: Mapping[str, Any], tell: ProgressCallback, place: Place, ask: Round) -> dict[str, Any]:
    """What the seed items say, in the paper's way and in the way that campaigns use; and who else agrees."""
    seeds, pool, _ = drawn(unit["data"], unit["seed"], place.data)
    learner, seed = learner_for(unit, place), unit["seed"]
    found: dict[str, Any] = {"hard": seed_scores(learner, seeds, seed), "ways": {}, "agreement": {}}
    informers = {PAPERS: make_informer("lookahead")}
    raters = {PAPERS: make_rater("pseudo-labels", **unit["rater"])}
    config = parse_config({"learner": {"name": setting_of(unit["data"]).learner, **unit["learner"]}})
    informers[QUICK], raters[QUICK] = tools_of(config, learner.tasks)
    measured = {}
    for at, way in enumerate((PAPERS, QUICK)):
        begun = time.monotonic()
        by = learner if way == PAPERS else learner_of(config, learner.tasks)
        tell((f"who informs whom, {way}", at / 2))
        informs = measured[way] = informers[way].measure(by, seeds, seed=seed)
        tell((f"how fast labels lose worth, {way}", at / 2 + 0.2))
        rates = raters[way].measure(by, seeds, RatingSettings(pool=pool.unlabelled(), seed=seed))
        found["ways"][way] = _written(informs, rates) | {"seconds": round(time.monotonic() - begun, 1)}
    begun = time.monotonic()
    said = {"alignment": make_informer("alignment").measure(learner, seeds, seed=seed)}
    seconds = {"alignment": round(time.monotonic() - begun, 1)}
    if can_probe(learner.tasks):  # what the quick way asks
        said["probe"], seconds["probe"] = measured[QUICK], found["ways"][QUICK]["seconds"]
    for name, other in said.items():
        spearman = round(agreement(other, measured[PAPERS]), 4)
        found["agreement"][name] = {"spearman": spearman, "seconds": seconds[name]}
    return found


def seed_scores(learner: Learner, seeds: Corpus, seed: int) -> dict[str, float]:
    """The scores of a model of some seed items on the others: all that is known of how hard tasks are."""
    order = np.random.default_rng([seed, 73]).permutation(len(seeds))
    held = round(HELD_OUT * len(seeds))
    learner.fit(seeds.take(np.sort(order[held:])), seed=seed)
    scores = learner.evaluate(seeds.take(np.sort(order[:held])))
    return {name: round(min(1.0, max(0.0, scores[name][task.metric])), 5) for name, task in learner.tasks.items()}


def _written(informs: Informativeness, rates: Mapping[str, ReductionRate]) -> dict[str, Any]:
    return {
        "value": informs.value.round(5).tolist(),
        "error": informs.error.round(5).tolist(),
        "rates": {name: [rate.beta, rate.low, rate.high, rate.block] for name, rate in rates.items()},
    }


# -- splits ------------------------------------------------------------------------------------------------------------
def divided(unit: Mapping[str, Any], tell: ProgressCallback, place: Place, ask: Round) -> dict[str, Any]:
    """Every split of one budget, and a model of the labels that each buys."""
    known = ask(estimates_unit(unit))
    pool = drawn(unit["data"], unit["seed"], place.data)[1]
    splits = all_splits(known, setting_of(unit["data"]).tasks, unit, len(pool))
    begin = model_scores(unit, (0,) * len(unit["prices"]), 0, place)
    return {"seed_scores": begin, "splits": trained_splits(splits, unit, tell, place)}


def all_splits(
    known: Mapping[str, Any], tasks: tuple[str, ...], unit: Mapping[str, Any], room: int
) -> dict[str, Split]:
    """By each way of estimating: exact, robust, with items for all tasks; then the baselines and ablations."""
    found: dict[str, Split] = {}
    for way in (PAPERS, QUICK):
        problem = problem_of(unit, estimates_in(known, way, tasks), room)
        found[f"exact, {way}"] = exact(problem)
        found[f"robust, {way}"] = least_regret(problem).split
        found[f"together, {way}"] = together(problem)
        if way == PAPERS:
            context = Context(known["hard"])
            drawn = np.random.SeedSequence([unit["seed"], unit["budget"], *unit["prices"]]).generate_state(1)
            found |= {split.method: split for split in compare(problem, context, seed=int(drawn[0]))}
    return found


# -- campaigns ---------------------------------------------------------------------------------------------------------
def chosen(unit: Mapping[str, Any], tell: ProgressCallback, place: Place, ask: Round) -> dict[str, Any]:
    """A campaign that chooses its items, perhaps within a split of each round's money."""
    return run_arm(_arm(unit).unit(), tell, place=place, allocation=_section(unit))


def campaign_of(unit: Mapping[str, Any], place: Place) -> CampaignConfig:
    """The campaign of a unit."""
    return config_of(_arm(unit), place, _section(unit))


def _arm(unit: Mapping[str, Any]) -> Arm:
    return Arm.of({key: value for key, value in unit.items() if key not in ("kind", "allocation")})


def _section(unit: Mapping[str, Any]) -> dict[str, str] | None:
    return {"method": unit["allocation"]} if unit["allocation"] else None


KINDS = {
    "estimates": estimated,
    "splits": divided,
    "campaign": chosen,
    "real curves": real_curves,
    "foreknown": foreknown,
    "seen as often": seen_as_often,
}


STUDIES.add(
    "allocation",
    Study(
        "allocation",
        "Does splitting a budget by what labels are worth beat plain splits?",
        "paper 5",
        grid,
        split_up,
        analyse,
        reads=("cmu_faces", "atis", "ud_ewt", "uner_ewt"),
        scales=("small",),
    ),
)
