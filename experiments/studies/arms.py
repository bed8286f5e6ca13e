"""One campaign as a unit of a study: a data set, a strategy, a way to train, a seed.

A unit says all that its result depends on, so its result can be found again by what it says. All arms of a seed start
from one round-0 model: whoever needs it first trains it, the others take it from the same folder.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bursar.campaign.campaign import Campaign
from bursar.campaign.checks import check_served
from bursar.campaign.config import CampaignConfig, parse_config
from bursar.campaign.decisions import RoundRecord, RoundSelection
from bursar.campaign.folder import Lock
from bursar.campaign.participants import GoldAnnotator, Observer
from bursar.campaign.savings import savings_of
from bursar.campaign.splits import DataSplits, load_parts
from bursar.compute import ProgressCallback
from bursar.corpus import Corpus, read
from bursar.errors import ConfigError
from bursar.learners import Learner, make_learner
from bursar.selection import make_strategy
from bursar.simulation import assistant_corpus
from bursar.uncertainty import MEASURES, confidences
from bursar.uncertainty.calibration import overconfidence_error
from experiments.studies.defaults import with_defaults_of_then
from experiments.studies.statistics import r_squared

TASKS = {"ewt": ["dependencies", "entities"], "scierc": ["entities", "relations"], "webnlg": ["entities", "relations"]}
SHORT = {"layers": 3, "frozen_layers": 2, "learning_rate": 1e-3, "patience": 8}  # a learner for hundreds of trainings
SPEAK_SECONDS = 0.5
WAIT = 3600.0  # seconds for somebody else's round-0 model


@dataclass(frozen=True)
class Place:
    """Where a study finds its data and keeps its unfinished work."""

    runs: Path
    data: Path


@dataclass(frozen=True)
class Setup:
    """The sizes of a campaign and how its models are trained: what all arms of a study have in common."""

    pool: int
    dev: int
    test: int | None
    start: int  # items bought at random first
    per_round: int
    rounds: int
    counts: str = "items"  # or money
    learner: Mapping[str, Any] = field(default_factory=dict)
    costs: Mapping[str, Any] = field(default_factory=dict)
    audit: float = 0.0
    shadow: bool = False


@dataclass(frozen=True)
class Arm:
    """One campaign. ``data`` is a data set, or one domain of it after a colon."""

    data: str
    strategy: str
    seed: int
    setup: Setup
    tasks: tuple[str, ...] = ()  # those of the data set if empty
    weights: Mapping[str, float] = field(default_factory=dict)
    sharing: str = "shared"
    smoothing: float = 0.1
    trust: bool = False  # also measure, at the end, how far confidence can be trusted on what is left of the pool

    def unit(self) -> dict[str, Any]:
        """The arm as plain values, which its result is filed under."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found

    @classmethod
    def of(cls, unit: Mapping[str, Any]) -> Arm:
        """The arm that a unit describes.

        >>> arm = Arm("snips", "MT-AVG", 0, Setup(2000, 100, 500, 50, 500, 5, "money"))
        >>> Arm.of(arm.unit()) == arm
        True
        """
        return cls(**{**unit, "setup": Setup(**unit["setup"]), "tasks": tuple(unit["tasks"])})


def run_arm(
    unit: Mapping[str, Any], tell: ProgressCallback, *, place: Place, allocation: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Run one campaign, or go on with it, and return its curve.

    ``allocation`` is how each round's money is split between tasks. A unit does not tell it: whoever gives it has units
    of its own.
    """
    begun = time.monotonic()
    arm = Arm.of(unit)
    split = f"-{allocation['method']}" if allocation else ""
    folder = place.runs / "arms" / f"{folder_name(arm)}{split}"
    config = config_of(arm, place, allocation)
    parts = load_parts(config, corpus_of(arm.data, place.data, arm.tasks))
    learner = _learner(arm.data, str(place.data), arm.tasks, json.dumps(config.learner.options, sort_keys=True))
    if arm.setup.rounds:
        _begin_from_round_0(arm, config, parts, learner, place, folder)
    campaign = Campaign(config, folder, parts=parts, watcher=_ProgressTeller(tell), learner=learner)
    try:
        campaign.run(GoldAnnotator(parts.corpus))
        result = _curve(campaign)
        if arm.setup.shadow:
            found = savings_of(campaign.ledger, parts.corpus.schema, len(parts.test))
            result["savings"] = found and found.model_dump()
        if arm.trust:
            result["trust"] = _trust(arm, campaign)
    finally:
        campaign.close()
    result["seconds"] = round(time.monotonic() - begun, 1)
    grave = folder.with_name(f".{folder.name}.removed")  # in one step: half a folder would look like a lost ledger
    shutil.rmtree(grave, ignore_errors=True)
    folder.rename(grave)
    shutil.rmtree(grave, ignore_errors=True)  # all that counts is in the result
    return result


# -- the parts of a campaign ------------------------------------------------------------------------------------------
@lru_cache(maxsize=4)
def corpus_of(data: str, folder: Path, tasks: tuple[str, ...] = ()) -> Corpus:
    """A data set with its tasks; after a colon one of its domains, which the ids begin with (errata 17)."""
    name, _, domain = data.partition(":")
    if name == "builtin":
        corpus = assistant_corpus()
    elif not (folder / name_of(name)).exists():
        raise ConfigError(
            f"{folder / name_of(name)}: there is no such data set", fix="say where the data sets are: BURSAR_DATA"
        )
    elif name == "ewt":
        corpus = read(folder / "ud_ewt", layer=folder / "uner_ewt")
    else:
        corpus = read(folder / name)
    if domain:
        corpus = corpus.take(np.flatnonzero([item.startswith(domain) for item in corpus.ids.tolist()]))
    return corpus.with_tasks(list(tasks) or TASKS.get(name, list(corpus.schema)))


def name_of(data: str) -> str:
    """The folder of a data set."""
    return "ud_ewt" if data.partition(":")[0] == "ewt" else data.partition(":")[0]


@lru_cache(maxsize=2)  # each remembers vectors of up to a gigabyte
def _learner(data: str, folder: str, tasks: tuple[str, ...], options: str) -> Learner:
    """One learner for the campaigns that follow one another: it remembers the frozen layers' view of the items."""
    return make_learner("transformer", corpus_of(data, Path(folder), tasks).schema, json.loads(options))


def config_of(arm: Arm, place: Place, allocation: Mapping[str, Any] | None = None) -> CampaignConfig:
    """The campaign of an arm."""
    setup = arm.setup
    sharing = "single" if make_strategy(arm.strategy).alone else arm.sharing
    learner = {"sharing": sharing, "smoothing": arm.smoothing, **setup.learner}
    if sharing != "gated":
        learner.pop("gated_layers", None)
    config = parse_config(
        {
            "name": "arm",
            "seed": arm.seed,
            "tasks": list(arm.tasks),
            "corpus": {
                "source": "builtin" if arm.data == "builtin" else str(place.data / name_of(arm.data)),
                "pool_items": setup.pool,
                "dev_items": setup.dev,
                "test_items": setup.test,
            },
            "costs": dict(setup.costs),
            "budget": {
                "seed_items": setup.start,
                "counts": setup.counts,
                "per_round": setup.per_round,
                "rounds": setup.rounds,
            },
            "strategy": {"name": arm.strategy, "weights": dict(arm.weights)},
            "learner": {"name": "transformer", **with_defaults_of_then(learner)},
            "audit": {"share": setup.audit, "shadow": setup.shadow},
            **({"allocation": dict(allocation)} if allocation else {}),
        }
    )
    check_served(config)
    return config


def _begin_from_round_0(
    arm: Arm, config: CampaignConfig, parts: DataSplits, learner: Learner, place: Place, folder: Path
) -> None:
    """Put the round-0 model where the campaign looks for it; train it if nobody has."""
    if (folder / "models").exists():
        return
    start = config.model_copy(
        update={
            "budget": config.budget.model_copy(update={"rounds": 0}),
            "strategy": config.strategy.model_copy(
                update={"name": "ST-R" if make_strategy(arm.strategy).alone else "MT-R", "weights": {}}
            ),
            "allocation": None,
        }
    )
    where = start_folder(arm.data, start, place)
    lock = Lock(where.with_name(f"{where.name}.lock"), patience=WAIT)
    try:
        campaign = Campaign(start, where, parts=parts, learner=learner)
        try:
            campaign.run(GoldAnnotator(parts.corpus))
        finally:
            campaign.close()
    finally:
        lock.release()
    draft = folder / "models.draft"
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(where / "models", draft)
    draft.rename(folder / "models")


def start_folder(data: str, start: CampaignConfig, place: Place) -> Path:
    """Where a round-0 model is kept. A digest of settings leaves the corpus out, so its name goes before it."""
    return place.runs / "starts" / f"{data.replace(':', '-')}-{start.digest}"


def folder_name(arm: Arm) -> str:
    """A folder for an arm that a person can read, and no two share."""
    from hashlib import blake2b

    digest = blake2b(json.dumps(arm.unit(), sort_keys=True).encode(), digest_size=6).hexdigest()
    return f"{arm.data.replace(':', '-')}-{arm.strategy}-{arm.seed}-{digest}"


@dataclass
class _ProgressTeller(Observer):
    """Passes on how far a campaign is, now and then: a training has more to say than anybody can read."""

    tell: ProgressCallback
    last: float = 0.0

    def stage(self, round: int, what: str, done: float) -> None:
        if time.monotonic() - self.last >= SPEAK_SECONDS:
            self.last = time.monotonic()
            self.tell((round, what, done))


# -- what came of it --------------------------------------------------------------------------------------------------
def _curve(campaign: Campaign) -> dict[str, Any]:
    """Round by round: what was spent and allowed, what it bought, and the main scores."""
    ledger, schema = campaign.ledger, campaign.corpus.schema
    selections = {selection.round: selection for selection in ledger.decisions(RoundSelection)}
    rounds = []
    for record in ledger.decisions(RoundRecord):
        chosen = selections[record.round]
        cost = sum(sum(item.estimate.values()) for item in chosen.items)
        rounds.append(
            {
                "round": record.round,
                "spent": record.spent,
                "items": record.items,
                "labels": record.labels,
                "test": {name: record.test[name][task.metric] for name, task in schema.items()},
                "dev": record.dev,
                "agreement": record.agreement,
                "budget": chosen.budget,
                "cost": cost if campaign.config.budget.counts == "money" else len(chosen.items),
                "certificate": chosen.certificate and chosen.certificate.model_dump(),
            }
        )
    return {"rounds": rounds, "ended": campaign.state.ended}


def _trust(arm: Arm, campaign: Campaign) -> dict[str, Any]:
    """The overconfidence error of the last model on what is left of the pool, for every way to be confident."""
    from bursar.learners.neural import NeuralLearner

    bought = campaign.ledger.view()
    left = np.setdiff1d(campaign.parts.pool, campaign.corpus.positions(bought.ids.tolist()))
    pool = campaign.corpus.take(left)
    dev = campaign.corpus.take(campaign.parts.dev)
    learner, _ = campaign.models.fitted(bought, dev, lambda what, done: None)
    assert isinstance(learner, NeuralLearner)
    ways: dict[str, tuple[str, dict[str, float]]] = {"EC": ("entropy", {})}
    if arm.smoothing == 0:
        ways |= {"TS": ("entropy", learner.fit_temperatures(dev)), "DA": ("dropout-agreement", {})}
    found: dict[str, Any] = {}
    for way, (measure, temperatures) in ways.items():
        how = MEASURES[measure]
        learner.temperatures = temperatures
        beliefs = learner.predict_proba(pool.unlabelled(), passes=how.passes, seed=arm.seed)
        sure = confidences(learner.tasks, beliefs, how)
        right = np.stack(
            [
                task.accuracies(pool.labels[name].rows, task.decode(beliefs[name]), pool.words)
                for name, task in learner.tasks.items()
            ],
            axis=1,
        )
        grid = [
            np.histogram2d(sure[:, k], right[:, k], bins=10, range=((0, 1), (0, 1)))[0] for k in range(sure.shape[1])
        ]
        found[way] = {
            name: {
                "overconfidence": overconfidence_error(sure[:, k], right[:, k]),
                "r_squared": r_squared(sure[:, k], right[:, k]),
                "grid": grid[k].astype(int).tolist(),
            }
            for k, name in enumerate(learner.tasks)
        }
        found[way]["mean of tasks"] = {"overconfidence": overconfidence_error(sure.mean(axis=1), right.mean(axis=1))}
    learner.temperatures = {}
    return found
