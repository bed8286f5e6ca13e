"""Should a campaign's tasks be trained together? Advice from laws beforehand, and a check by training both ways.

Both are stored in a folder (that of the run, if there is one) with a fingerprint of the labels, so that results about
other labels are never shown.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bursar.campaign.config import CampaignConfig
from bursar.campaign.models import SHARERS, TAGGERS, Models
from bursar.campaign.pricing import prices_of, typical_counts
from bursar.campaign.runs import Run
from bursar.campaign.sections import LearnerSection, StrategySection
from bursar.campaign.splits import DataSplits, fully_labelled
from bursar.corpus import Corpus, concatenate
from bursar.corpus.formats.format import replacing
from bursar.errors import BursarError, ConfigError
from bursar.learners import Learner
from bursar.learners.learner import Progress, no_progress, part_of
from bursar.ragged import FloatArray, IntArray
from bursar.random_streams import rng
from bursar.tasks.task import groups_of

if TYPE_CHECKING:
    from bursar.laws.advice import Laws

FILE, TRAININGS_FILE, MODELS_FOLDER = "together.json", "together.trainings.json", "together"
BEFORE_FILE = "before.json"
KIND = "bursar together 1"
SEEDS = 3
LEVEL = 0.9  # of the interval of a measured gain
DRAWS = 500  # of test items, for the interval
WAYS = ("together", "alone")
BEFORE = "before buying"  # marks advice that was given before the labels were bought


@dataclass(frozen=True, eq=False)
class KnownLabels:
    """The labels that may be used."""

    known: Corpus  # to measure how related the tasks are
    annotated: Corpus  # to train models on
    dev: Corpus | None


@dataclass(frozen=True, eq=False)
class Subject:
    """Tasks to train together or alone: their labels, the planned amount of training data, and test items."""

    config: CampaignConfig
    labels: KnownLabels
    judged: Corpus
    judged_by: str  # "test items" or "development items"
    units: Mapping[str, int]  # number of words or items to train on, by task
    unit: str  # "words" or "items"
    basis: str  # where that number comes from, for readers
    pool: Callable[[], Corpus] | None = None

    @classmethod
    def of(cls, config: CampaignConfig, parts: DataSplits, labels: KnownLabels, basis: str) -> Subject:
        """Test on test items, or on development items if there are none."""
        test, dev = parts.corpus.take(parts.test), labels.dev
        judged, by = (dev, "development items") if dev is not None and not len(test) else (test, "test items")
        pool = partial(parts.corpus.take, parts.pool)
        return cls(config, labels, judged, by, *labelled_units(labels.annotated), basis, pool)

    @property
    def fingerprint(self) -> str:
        """A digest of all labels that results depend on."""
        corpora = (self.labels.known, self.labels.annotated, self.judged)
        about = [*(corpus.digest() for corpus in corpora), dict(self.units), self.unit]
        return hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=12).hexdigest()


# -- subjects ----------------------------------------------------------------------------------------------------------
def subject_of_run(run: Run) -> Subject:
    """The labels that a run has bought so far."""
    if not run.has_ledger(run.arms[0]):
        raise ConfigError(f"{run.folder} has bought nothing yet", fix="use the campaign file instead")
    campaign = run.campaign(run.arms[0])
    try:
        now = campaign.known()
    finally:
        campaign.close()
    known = now.annotated if now.dev is None else concatenate([now.annotated, now.dev])
    labels = KnownLabels(known, now.annotated, now.dev)
    return Subject.of(run.config, run.parts, labels, "what the run has bought")


def subject_of_campaign(config: CampaignConfig, parts: DataSplits) -> Subject:
    """A campaign before it starts, with as many labels as its budget buys.

    Relatedness is measured on existing labels. A pool with all labels is that of a simulation, so they are not used.
    """
    corpus, pool = parts.corpus, parts.pool
    simulated = len(fully_labelled(corpus, pool)) == len(pool)
    hidden = np.concatenate([parts.test, pool]) if simulated else parts.test
    known = corpus.take(np.setdiff1d(np.arange(len(corpus)), hidden))
    items = planned_items(config, parts, known)
    mine = _some(corpus, pool if simulated else _with_labels(corpus, pool), items, config.seed)
    labels = KnownLabels(known, corpus.take(mine), _dev(parts))
    found = Subject.of(config, parts, labels, f"what the budget buys, about {items:,} items")
    length = float(corpus.words[pool].mean()) if found.unit == "words" else 1.0
    return replace(found, units=dict.fromkeys(corpus.schema, round(items * length)))


def subject_of_corpus(config: CampaignConfig, parts: DataSplits, items: int | None = None) -> Subject:
    """Labelled data: all labelled items of the pool, or a random sample."""
    corpus = parts.corpus
    known = corpus.take(np.setdiff1d(np.arange(len(corpus)), parts.test))
    mine = _with_labels(corpus, parts.pool)
    mine = mine if items is None else _some(corpus, mine, items, config.seed)
    labels = KnownLabels(known, corpus.take(mine), _dev(parts))
    return Subject.of(config, parts, labels, f"{len(mine):,} labelled items")


def _dev(parts: DataSplits) -> Corpus | None:
    return parts.corpus.take(parts.dev) if len(parts.dev) else None


def planned_items(config: CampaignConfig, parts: DataSplits, known: Corpus) -> int:
    """The number of items that a budget buys for all tasks, at the mean price of the pool."""
    budget, tasks = config.budget, list(parts.corpus.schema.values())
    first = budget.seed_items
    if budget.counts == "items":
        wanted = first + budget.rounds * budget.per_round
        return int(min(wanted, budget.total or wanted, len(parts.pool)))
    costs = config.costs.model(tasks)
    prices = prices_of(costs, tasks, parts.corpus.take(parts.pool), {}, typical_counts(tasks, known)).joint()
    price = max(1.0, float(prices.mean())) if len(prices) else 1.0
    money = first * price + budget.rounds * costs.units(budget.per_round)
    money = money if budget.total is None else min(money, costs.units(budget.total))
    return int(min(money / price, len(parts.pool)))


def labelled_units(items: Corpus) -> tuple[dict[str, int], str]:
    """The number of labelled words of each task, or of items if no task labels words."""
    what = "words" if any(task.of_words for task in items.schema.values()) else "items"
    units = items.words if what == "words" else np.ones(len(items), dtype=np.int64)
    return {name: int(units[column.present].sum()) for name, column in items.labels.items()}, what


def _with_labels(corpus: Corpus, items: IntArray) -> IntArray:
    return items[np.any([column.present[items] for column in corpus.labels.values()], axis=0)]


def _some(corpus: Corpus, items: IntArray, count: int, seed: int) -> IntArray:
    """A random sample that depends on the ids and the seed."""
    by_id = corpus.by_id(items)
    return np.sort(rng(seed, "training items").choice(by_id, min(count, len(by_id)), replace=False))


# -- advice ------------------------------------------------------------------------------------------------------------
def advice_on(subject: Subject, laws: Laws) -> dict[str, Any]:
    """The advice of the laws on each task, as JSON."""
    from bursar.laws.advice import advise

    advice = advise(subject.labels.known, subject.units, laws, seed=subject.config.seed)
    return {"of": subject.fingerprint, "unit": subject.unit, "basis": subject.basis, **advice}


# -- check -------------------------------------------------------------------------------------------------------------
def check(
    subject: Subject,
    folder: Path,
    *,
    seeds: int = SEEDS,
    own_models: Path | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Train the tasks together and alone on the same labels with several seeds, and compare the scores, as JSON.

    Results of trainings stay in the folder, so that an interrupted check resumes and more seeds can be added.
    ``own_models`` is the folder of the campaign's models, one of which may be reused.
    """
    _check_can_be_compared(subject)
    asked = {"of": subject.fingerprint, "learner": subject.config.learner.decisive, "seed": subject.config.seed}
    kept = read_kept(folder / TRAININGS_FILE)
    found: dict[str, Any] = kept["tallies"] if kept.get("asked") == asked else {}
    runs = [(way, subject.config.seed + at) for at in range(seeds) for way in WAYS]
    for done, (way, seed) in enumerate(runs):
        name = f"{way} {seed}"
        if name in found:
            continue
        own = own_models if way == "together" and seed == subject.config.seed else None
        report = part_of(progress, done, len(runs), f" {way}, seed {seed}")
        found[name] = _trained(subject, way, seed, own or folder / MODELS_FOLDER, report)
        _keep(folder / TRAININGS_FILE, {"kind": KIND, "asked": asked, "tallies": found})

    tasks = {}
    for name, task in subject.judged.schema.items():
        tallies = (np.array([found[f"{way} {subject.config.seed + at}"][name] for at in range(seeds)]) for way in WAYS)
        tasks[name] = compared(task.score, *tallies) | {"metric": task.metric}
    return {
        **asked,
        "seeds": seeds,
        "items": len(subject.labels.annotated),
        "judged": len(subject.judged),
        "judged_by": subject.judged_by,
        "level": LEVEL,
        "tasks": tasks,
    }


def _check_can_be_compared(subject: Subject) -> None:
    learner = subject.config.learner.name
    if learner in TAGGERS:
        raise ConfigError(
            f"the learner {learner!r} trains each task by itself, so there is nothing to compare",
            fix=f"use a learner whose tasks share a model: {', '.join(SHARERS)}",
        )
    if len(groups_of(subject.judged.schema)) < 2:
        raise ConfigError("there are no two tasks that can be trained separately", fix="use two or more tasks")
    if not len(subject.judged):
        raise ConfigError("there are no items to test on", fix="set corpus.test or corpus.dev")
    missing = [name for name, column in subject.labels.annotated.labels.items() if not column.present.any()]
    if missing:
        raise ConfigError(f"nothing is labelled for task {missing[0]!r}", fix="label some items for it first")


def _trained(subject: Subject, way: str, seed: int, folder: Path, progress: Progress) -> dict[str, list[list[float]]]:
    """The tallies of each task and test item, by a model of all tasks or one per task."""
    config = subject.config.model_copy(update={"seed": seed})
    if config.strategy.make().alone:  # this strategy would train single-task models
        config = config.model_copy(update={"strategy": StrategySection()})
    labels = subject.labels
    schema, sharing = labels.annotated.schema, config.learner.options.get("sharing", "shared")
    groups = [list(schema)]
    if config.learner.name in SHARERS:
        config = _sharing(config, "single" if way == "alone" else "shared" if sharing == "single" else sharing)
    elif way == "alone":
        groups = groups_of(schema)
    found: dict[str, list[list[float]]] = {}
    for at, group in enumerate(groups):
        models = Models(folder, config, {name: schema[name] for name in group}, pool=subject.pool)
        dev = labels.dev.with_tasks(group) if labels.dev is not None else None
        learner, _ = models.fitted(labels.annotated.with_tasks(group), dev, part_of(progress, at, len(groups)))
        found |= _tallies(learner, subject.judged.with_tasks(group))
    return found


def _sharing(config: CampaignConfig, sharing: str) -> CampaignConfig:
    """The campaign with another way of sharing. Single tasks have no policy."""
    own = config.learner.options.get("sharing", "shared")
    if own == sharing:
        return config
    settings = config.learner.model_dump() | {"sharing": sharing}
    if sharing == "single":
        settings = {key: value for key, value in settings.items() if key not in ("policy", "log_steps")}
    return config.model_copy(update={"learner": LearnerSection(**settings)})


def _tallies(learner: Learner, judged: Corpus) -> dict[str, list[list[float]]]:
    found, guesses = {}, learner.predict(judged.unlabelled())
    for name, task in judged.schema.items():
        known = np.flatnonzero(judged.labels[name].present)
        found[name] = task.tally(judged.labels[name].rows.take(known), guesses[name].take(known)).tolist()
    return found


def compared(score: Callable[[FloatArray], FloatArray], together: FloatArray, alone: FloatArray) -> dict[str, Any]:
    """Compare the tallies of both ways, (seeds, items, counts) each: scores, and their difference with an interval.

    The interval combines the uncertainty from the items, by bootstrap, and from the seeds, by a t-interval.
    """
    from scipy.stats import norm, t

    from bursar.laws.advice import verdict_of

    seeds, items, _ = together.shape
    times = rng(items, "judged items").multinomial(items, np.full(items, 1 / items), size=DRAWS).astype(float)
    drawn = [score(np.tensordot(times, counts, axes=(1, 1))) for counts in (together, alone)]  # (draws, seeds) each
    scores = [score(counts.sum(axis=1)) for counts in (together, alone)]  # (seeds,) each
    by_seed = scores[0] - scores[1]
    value = float(by_seed.mean())
    of_items = float(norm.ppf((1 + LEVEL) / 2) * (drawn[0] - drawn[1]).mean(axis=1).std())
    of_seeds = float(t.ppf((1 + LEVEL) / 2, seeds - 1) * by_seed.std(ddof=1) / np.sqrt(seeds)) if seeds > 1 else 0.0
    half = float(np.hypot(of_items, of_seeds))
    return {
        "together": float(scores[0].mean()),
        "alone": float(scores[1].mean()),
        "gain": {"value": value, "low": value - half, "high": value + half},
        "by_seed": [float(gain) for gain in by_seed],
        "verdict": verdict_of(value - half, value + half),
    }


def outcome_of(predicted: str | None, measured: str) -> str:
    """Whether a prediction was right."""
    if predicted in (None, "cannot tell"):
        return "none was made"
    return "not decided" if measured == "cannot tell" else "held" if predicted == measured else "did not hold"


# -- files ----------------------------------------------------------------------------------------------------------
def place_of(config: CampaignConfig, beside: Path = Path("runs")) -> Path:
    """The folder for advice on a campaign without a run."""
    return beside / f"{config.name}-together"


def keep_before(config: CampaignConfig, advice: Mapping[str, Any], folder: Path) -> Path:
    """Store advice on a campaign that has bought nothing, to check it later."""
    _keep(folder / BEFORE_FILE, {"kind": KIND, "campaign": config.digest, "advice": advice})
    return folder / BEFORE_FILE


def advice_before(run: Run) -> dict[str, Any] | None:
    """The advice given before a run bought anything, marked with the current labels."""
    for beside in (run.folder.parent, Path("runs")):  # the run may be in another folder
        kept = read_kept(place_of(run.config, beside) / BEFORE_FILE)
        if kept.get("campaign") == run.config.digest and isinstance(kept.get("advice"), dict):
            return {**kept["advice"], "of": subject_of_run(run).fingerprint, "when": BEFORE}
    return None


def keep(folder: Path, **parts: Mapping[str, Any]) -> dict[str, Any]:
    """Store advice or a check, together with what is stored for the same labels."""
    (of,) = {part["of"] for part in parts.values()}
    before = read_kept(folder / FILE)
    found = {"kind": KIND, **_about(before, of), **parts}
    _keep(folder / FILE, found)
    return found


def current_together(run: Run) -> dict[str, Any] | None:
    """The stored advice and check for the current labels of a run."""
    kept = read_kept(run.folder / FILE)
    if not kept:
        return None
    try:
        of = subject_of_run(run).fingerprint
    except BursarError:
        return None
    return _about(kept, of) or None


def _about(kept: Mapping[str, Any], of: str) -> dict[str, Any]:
    """What is stored for the labels with this fingerprint."""
    return {name: kept[name] for name in ("advice", "check") if kept.get(name, {}).get("of") == of}


def read_kept(file: Path) -> dict[str, Any]:
    """The contents of a stored file; empty if it is missing or damaged."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and found.get("kind") == KIND else {}


def _keep(file: Path, found: Mapping[str, Any]) -> None:
    with replacing(file) as stream:
        json.dump(found, stream, allow_nan=False)
