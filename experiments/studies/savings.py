"""What does choosing save? Default campaigns beside random labelling, baselines and ablations.

Everything was chosen on the development sets (SNIPS, ATIS, MIT restaurant, the built-in corpus); this grid was written
down before a result on any confirmation set was looked at. A unit is one campaign: 50 items to start, then five rounds,
each with the price of 35 typical items. All arms of a seed have the same pool, test items and training seed. The audit
slice that a default campaign buys is charged; random labelling needs none.

On the confirmation sets, random and auto have ten seeds and the baselines three. What each part of auto contributes is
asked on the development sets: five seeds of random and auto, three of the ablations. The plan had ten seeds of every
arm on all sets; it was cut to what two cores can compute in a night, before a baseline or an ablation had run.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from bursar.campaign.campaign import Campaign
from bursar.campaign.config import CampaignConfig, parse_config
from bursar.campaign.participants import GoldAnnotator
from bursar.campaign.splits import load_parts
from bursar.compute import ProgressCallback
from bursar.learners import Learner, make_learner
from bursar.ragged import IntArray
from bursar.selection import Candidates, Selection, make_strategy, strategy
from bursar.selection.cover import cover_items, coverages_of
from experiments.studies.arms import Place, _curve, _ProgressTeller, corpus_of, name_of
from experiments.studies.savings_findings import AUTO, EXACT, GREEDY, RANDOM, analyse
from experiments.studies.study import STUDIES, Study

# Data sets by tasks, and the money of a round: 35 times the mean price of the training items.
DEVELOPMENT = {
    "snips": (("intent", "slots"), 511),
    "atis": (("intent", "slots"), 616),
    "mit_restaurant": (("entities",), 392),
    "builtin": (("intent", "slots"), 448),
}
CONFIRMATION = {
    "topv2": (("intent", "slots"), 413),
    "conll2003": (("entities",), 581),
    "ewt": (("dependencies", "entities"), 1162),
    "scierc": (("entities", "relations"), 1018),
    "webnlg": (("entities", "relations"), 1043),
    "fashion_mnist": (("label",), 105),
}
MAIN: dict[str, dict[str, Any]] = {RANDOM: {"name": "RANDOM"}, AUTO: {"name": "AUTO"}}
BASELINES: dict[str, dict[str, Any]] = {
    "random after a covering start": {"name": "RANDOM", "start": "cover"},
    "random of the same lengths": {"name": "RANDOM-OF-THE-SAME-LENGTHS"},
    "longest": {"name": "LONGEST"},
    "MT-AVG": {"name": "MT-AVG"},
    "BADGE": {"name": "BADGE"},
}
ABLATIONS: dict[str, dict[str, Any]] = {
    "auto from a random start": {"name": "AUTO", "start": "random"},
    "auto without doubt": {"name": "COVER-ALL-ALIKE", "start": "cover"},
    "auto whatever the price": {"name": "COVER-AT-ANY-PRICE", "start": "cover"},
    "auto for one task": {"name": "AUTO", "weights": "first"},
    GREEDY: {"name": "MT-SHARE"},  # no coverage; and is exact spending ahead of greedy?
    EXACT: {"name": "MT-SHARE+BLP_AL"},
}
ARMS = MAIN | BASELINES | ABLATIONS
LEARNER = {"epochs": 12, "least_steps": 250, "smoothing": 0.0, "tag_head": "crf", "precision": "bfloat16"}
POOL, TEST, START, ROUNDS = 2500, 1000, 50, 5


def confirmation(scale: str) -> list[dict[str, Any]]:
    """Random and auto on the confirmation sets, seed by seed, then the baselines."""
    return [*_units(CONFIRMATION, MAIN, 10), *_units(CONFIRMATION, BASELINES, 3)]


def development(scale: str) -> list[dict[str, Any]]:
    """Random and auto on the development sets, seed by seed, then the ablations."""
    return [*_units(DEVELOPMENT, MAIN, 5), *_units(DEVELOPMENT, ABLATIONS, 3)]


def _units(data: Mapping[str, Any], arms: Mapping[str, Any], seeds: int) -> list[dict[str, Any]]:
    return [
        {"data": name, "arm": arm, "seed": seed, "settings": settings, "learner": _learner_of(name)}
        for seed in range(seeds)
        for name, (tasks, _) in data.items()
        for arm, settings in arms.items()
        if len(tasks) > 1 or settings.get("weights") != "first"
    ]


def _learner_of(data: str) -> dict[str, Any]:
    return {"name": "image-cnn"} if data == "fashion_mnist" else {"name": "transformer", **LEARNER}


def config_of(unit: Mapping[str, Any], place: Place) -> CampaignConfig:
    """The campaign of a unit."""
    register_strategies()
    tasks, per_round = (DEVELOPMENT | CONFIRMATION)[unit["data"]]
    settings = dict(unit["settings"])
    if settings.get("weights") == "first":
        settings["weights"] = {tasks[0]: 1.0}
    source = "builtin" if unit["data"] == "builtin" else str(place.data / name_of(unit["data"]))
    audit = {"share": 0.0} if settings["name"] == "RANDOM" else {"shadow": False}
    return parse_config(
        {
            "name": "savings",
            "seed": unit["seed"],
            "tasks": list(tasks),
            "corpus": {"source": source, "pool_items": POOL, "dev": None, "test_items": TEST},
            "budget": {"seed_items": START, "per_round": per_round, "rounds": ROUNDS},
            "strategy": settings,
            "learner": dict(unit["learner"]),
            "audit": audit,
        }
    )


def run_campaign(unit: Mapping[str, Any], tell: ProgressCallback, *, place: Place) -> dict[str, Any]:
    """One campaign against gold labels, resumed where it was stopped; its curve."""
    begun, cpu = time.monotonic(), time.process_time()
    config = config_of(unit, place)
    tasks = tuple(config.tasks)
    parts = load_parts(config, corpus_of(unit["data"], place.data, tasks))
    learner = _learner(unit["data"], str(place.data), tasks, json.dumps(unit["learner"], sort_keys=True))
    folder = place.runs / "campaigns" / f"{unit['data']}-{unit['arm'].replace(' ', '-')}-{unit['seed']}"
    campaign = Campaign(config, folder, parts=parts, watcher=_ProgressTeller(tell), learner=learner)
    try:
        campaign.run(GoldAnnotator(parts.corpus))
        curve = _curve(campaign)
    finally:
        campaign.close()
    shutil.rmtree(folder, ignore_errors=True)
    rounds = [{key: r[key] for key in ("round", "spent", "items", "test")} for r in curve["rounds"]]
    seconds = {"seconds": round(time.monotonic() - begun, 1), "core_seconds": round(time.process_time() - cpu, 1)}
    return {"rounds": rounds, **seconds}


@lru_cache(maxsize=2)
def _learner(data: str, folder: str, tasks: tuple[str, ...], options: str) -> Learner:
    """One learner for all campaigns of a process on one data set: it remembers how items are read."""
    settings = json.loads(options)
    return make_learner(settings.pop("name"), corpus_of(data, Path(folder), tasks).schema, settings)


# -- strategies for baselines and ablations ---------------------------------------------------------------------------
def same_lengths(pool: Candidates, budget: int, rng: np.random.Generator) -> IntArray:
    """Each item that COVER would buy, replaced by a random one of the nearest length that can be paid for."""
    chosen = make_strategy("COVER").select(pool, budget, int(rng.integers(2**31)))
    words, price = pool.features.require("words"), pool.prices.joint()
    left, free, found = budget, np.ones(len(pool), dtype=bool), []
    for length in words[chosen.items].tolist():
        able = np.flatnonzero(free & (price <= left))
        if not len(able):
            break
        far = np.abs(words[able] - length)
        item = int(rng.choice(able[far == far.min()]))
        found.append(item)
        free[item] = False
        left -= int(price[item])
    return np.array(found, dtype=np.int64)


def all_alike(pool: Candidates, budget: int, rng: np.random.Generator) -> Selection:
    """COVER, with the same doubt about every unit that the model has any doubt about."""
    units = {
        name: replace(found, doubt=np.ones_like(found.doubt)) for name, found in pool.features.require("units").items()
    }
    pool = replace(pool, features=replace(pool.features, units=units))
    return cover_items(pool, coverages_of(pool, rng), budget, rng)


def at_any_price(pool: Candidates, budget: int, rng: np.random.Generator) -> Selection:
    """COVER, with gains that are not divided by any power of the price."""
    return cover_items(pool, coverages_of(pool, rng), budget, rng, power=0.0)


@cache
def register_strategies() -> None:
    """Make the study's own strategies known by name, in the process that runs its units."""
    units = frozenset({"units"})
    strategy("RANDOM-OF-THE-SAME-LENGTHS", "random items as long as auto's", needs=units | {"words"})(same_lengths)
    strategy("COVER-ALL-ALIKE", "COVER, all doubts alike", needs=units)(all_alike)
    strategy("COVER-AT-ANY-PRICE", "COVER, whatever items cost", needs=units)(at_any_price)


for _name, _title, _data, _grid in (
    ("savings", "What choosing saves on data that it was not chosen on", CONFIRMATION, confirmation),
    (
        "savings-development",
        "What each part of choosing saves, on the data that it was chosen on",
        DEVELOPMENT,
        development,
    ),
):
    STUDIES.add(
        _name,
        Study(
            _name,
            _title,
            "our own",
            _grid,
            run_campaign,
            partial(analyse, chosen_on=_data is DEVELOPMENT),
            reads=tuple(name_of(data) for data in _data if data != "builtin"),
            scales=("small",),
        ),
    )
