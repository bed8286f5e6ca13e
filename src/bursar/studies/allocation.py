"""Does splitting a budget by what labels are worth beat plain splits? Paper 5, on four data sets.

Three kinds of units. *Estimates* are what the seed items of a draw say of who informs whom and how fast labels lose
worth. *Splits* divide one budget at some prices in every way that there is, buy that many labels of random items, and
train a model on each. *Campaigns* choose the items as well, with and without a split of each round's money.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bursar.allocation import Context, Estimates, Informativeness, Problem, Rate, Split, least_regret
from bursar.allocation.baselines import compare
from bursar.allocation.curves import only
from bursar.allocation.informativeness import agreement, make_informer
from bursar.allocation.rates import make_rater
from bursar.allocation.split import exact, together
from bursar.campaign.config import CampaignConfig, parse_config
from bursar.campaign.worth import can_probe, learner_of, tools_of
from bursar.compute import Tell
from bursar.corpus import Corpus, read
from bursar.corpus.corpus import concatenate
from bursar.learners import Learner, make_learner
from bursar.ragged import IntArray
from bursar.studies.allocation_findings import analyse
from bursar.studies.allocation_runs import PAPERS, QUICK
from bursar.studies.allocation_settings import SETTINGS, grid
from bursar.studies.arms import Arm, Place, config_of, corpus_of, run_arm
from bursar.studies.kept import kept
from bursar.studies.study import STUDIES, Study

DRAW = ("data", "seed", "sizes", "model", "learner")  # of a unit: what a model of some labels depends on
HELD_OUT = 0.25  # of the seed items, for the scores by which tasks are called hard


def split_up(unit: Mapping[str, Any], tell: Tell, *, place: Place) -> dict[str, Any]:
    """One unit, whatever kind it is."""
    if unit["kind"] == "estimates":  # all splits of a draw stand on them
        return kept(split_up, unit, place, lambda _: _timed(unit, tell, place))
    return _timed(unit, tell, place)


def _timed(unit: Mapping[str, Any], tell: Tell, place: Place) -> dict[str, Any]:
    begun = time.monotonic()
    result = KINDS[unit["kind"]](unit, tell, place)
    return {**result, "seconds": round(time.monotonic() - begun, 1)}


# -- a draw of a data set ----------------------------------------------------------------------------------------------
@lru_cache(maxsize=2)
def drawn(data: str, seed: int, folder: Path) -> tuple[Corpus, Corpus, Corpus]:
    """Seed items, the pool that more can be bought of, and test items."""
    setting = SETTINGS[data]
    corpus = _corpus(data, folder)
    rng = np.random.default_rng([seed, 71])
    if "test" in corpus.splits:
        train, test = (rng.permutation(corpus.in_split(split)) for split in ("train", "test"))
    else:
        train = rng.permutation(len(corpus))
        train, test = train[setting.test :], train[: setting.test]
    cuts = train[: setting.seed], train[setting.seed : setting.seed + setting.pool], test[: setting.test]
    return tuple(corpus.take(np.sort(part)) for part in cuts)  # type: ignore[return-value]


@lru_cache(maxsize=1)
def _corpus(data: str, folder: Path) -> Corpus:
    setting = SETTINGS[data]
    if data == "faces":
        return read(folder / "cmu_faces", images="img32x30").with_tasks(list(setting.tasks))
    return corpus_of(data, folder, setting.tasks)


@lru_cache(maxsize=1)
def _learner(data: str, folder: Path, options: str) -> Learner:
    """One learner for the trainings that follow one another: it remembers what its frozen layers made of the items."""
    return make_learner(SETTINGS[data].learner, _corpus(data, folder).schema, json.loads(options))


def learner_for(unit: Mapping[str, Any], place: Place) -> Learner:
    """The learner of a unit's data set."""
    return _learner(unit["data"], place.data, json.dumps(unit["learner"], sort_keys=True))


# -- estimates ---------------------------------------------------------------------------------------------------------
def estimated(unit: Mapping[str, Any], tell: Tell, place: Place) -> dict[str, Any]:
    """What the seed items say, in the paper's way and in the way that campaigns use; and who else agrees."""
    seeds, pool, _ = drawn(unit["data"], unit["seed"], place.data)
    learner, seed = learner_for(unit, place), unit["seed"]
    found: dict[str, Any] = {"hard": seed_scores(learner, seeds, seed), "ways": {}, "agreement": {}}
    informers = {PAPERS: make_informer("lookahead")}
    raters = {PAPERS: make_rater("pseudo-labels", **unit["rater"])}
    config = parse_config({"learner": {"name": SETTINGS[unit["data"]].learner, **unit["learner"]}})
    informers[QUICK], raters[QUICK], _ = tools_of(config, learner.tasks)
    measured = {}
    for at, way in enumerate((PAPERS, QUICK)):
        begun = time.monotonic()
        by = learner if way == PAPERS else learner_of(config, learner.tasks)
        tell((f"who informs whom, {way}", at / 2))
        informs = measured[way] = informers[way].measure(by, seeds, seed=seed)
        tell((f"how fast labels lose worth, {way}", at / 2 + 0.2))
        rates = raters[way].measure(by, seeds, pool=pool.unlabelled(), seed=seed)
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


def _written(informs: Informativeness, rates: Mapping[str, Rate]) -> dict[str, Any]:
    return {
        "value": informs.value.round(5).tolist(),
        "error": informs.error.round(5).tolist(),
        "rates": {name: [rate.beta, rate.low, rate.high, rate.block] for name, rate in rates.items()},
    }


def _read(found: Mapping[str, Any], tasks: tuple[str, ...]) -> Estimates:
    informs = Informativeness(tasks, np.array(found["value"]), np.array(found["error"]))
    return Estimates(informs, {name: Rate(*found["rates"][name]) for name in tasks})


# -- splits ------------------------------------------------------------------------------------------------------------
def divided(unit: Mapping[str, Any], tell: Tell, place: Place) -> dict[str, Any]:
    """Every split of one budget, and a model of the labels that each buys."""
    known = split_up(estimates_unit(unit), tell, place=place)
    pool = drawn(unit["data"], unit["seed"], place.data)[1]
    splits = all_splits(known, SETTINGS[unit["data"]].tasks, unit, len(pool))
    begin = model_scores(unit, (0,) * len(unit["prices"]), 0, place)
    found = {}
    for done, (name, split) in enumerate(splits.items()):
        tell((name, done / len(splits)))
        found[name] = {
            "counts": list(split.counts),
            "together": split.together,
            "cost": split.cost,
            "predicted": round(split.total, 3),
            "scores": model_scores(unit, split.counts, split.together, place),
        }
    return {"seed_scores": begin, "splits": found}


def estimates_unit(unit: Mapping[str, Any]) -> dict[str, Any]:
    """The unit that has the estimates of a draw."""
    return {"kind": "estimates"} | {name: unit[name] for name in (*DRAW, "rater")}


def all_splits(
    known: Mapping[str, Any], tasks: tuple[str, ...], unit: Mapping[str, Any], room: int
) -> dict[str, Split]:
    """By each way of estimating: exact, robust, with items for all tasks; then the baselines and ablations."""
    found: dict[str, Split] = {}
    for way in (PAPERS, QUICK):
        problem = Problem(
            _read(known["ways"][way], tasks),
            prices=tuple(unit["prices"]),
            budget=unit["budget"],
            most=(room,) * len(tasks),
            joint=unit["joint"],
        )
        found[f"exact, {way}"] = exact(problem)
        found[f"robust, {way}"] = least_regret(problem).split
        found[f"together, {way}"] = together(problem)
        if way == PAPERS:
            context = Context(known["hard"])
            drawn = np.random.SeedSequence([unit["seed"], unit["budget"], *unit["prices"]]).generate_state(1)
            found |= {split.method: split for split in compare(problem, context, seed=int(drawn[0]))}
    return found


def model_scores(unit: Mapping[str, Any], counts: Sequence[int], both: int, place: Place) -> dict[str, float]:
    """The test scores of a model of the seed and of so many more labels of each task; trained once a draw."""
    wanted = {name: unit[name] for name in DRAW} | {"counts": list(counts), "together": both}
    return kept(trained, wanted, place, lambda _: trained(wanted, place=place))


def trained(unit: Mapping[str, Any], *, place: Place) -> dict[str, float]:
    """Train a model on what a split buys."""
    seeds, pool, test = drawn(unit["data"], unit["seed"], place.data)
    items = labelled(seeds, pool, unit["counts"], unit["together"], unit["seed"])
    learner = learner_for(unit, place)
    learner.fit(items, seed=unit["seed"])
    scores = learner.evaluate(test)
    return {name: round(scores[name][task.metric], 5) for name, task in learner.tasks.items()}


def labelled(seeds: Corpus, pool: Corpus, counts: Sequence[int], both: int, seed: int) -> Corpus:
    """Seed items with all labels, and random items with those that were bought: a larger split has a smaller one's.

    The first ``both`` items are labelled for all tasks; what a task has beyond them is of other items, drawn for it.
    """
    shared = np.random.default_rng([seed, 79]).permutation(len(pool))[:both]
    there = {}
    for at, (name, count) in enumerate(zip(pool.schema, counts, strict=True)):
        order = np.random.default_rng([seed, 83, at]).permutation(len(pool))
        more = order[~np.isin(order, shared)][: count - both]
        there[name] = _mask(len(pool), np.concatenate([shared, more]))
    bought = pool.with_labels({name: only(pool.labels[name], mask) for name, mask in there.items()})
    return concatenate([seeds, bought.take(np.flatnonzero(np.any(list(there.values()), axis=0)))])


def _mask(length: int, places: IntArray) -> Any:
    found = np.zeros(length, dtype=bool)
    found[places] = True
    return found


# -- campaigns ---------------------------------------------------------------------------------------------------------
def chosen(unit: Mapping[str, Any], tell: Tell, place: Place) -> dict[str, Any]:
    """A campaign that chooses its items, perhaps within a split of each round's money."""
    return run_arm(_arm(unit).unit(), tell, place=place, allocation=_section(unit))


def campaign_of(unit: Mapping[str, Any], place: Place) -> CampaignConfig:
    """The campaign of a unit."""
    return config_of(_arm(unit), place, _section(unit))


def _arm(unit: Mapping[str, Any]) -> Arm:
    return Arm.of({key: value for key, value in unit.items() if key not in ("kind", "allocation")})


def _section(unit: Mapping[str, Any]) -> dict[str, str] | None:
    return {"method": unit["allocation"]} if unit["allocation"] else None


KINDS = {"estimates": estimated, "splits": divided, "campaign": chosen}


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
