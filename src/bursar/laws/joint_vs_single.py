"""Should a campaign's tasks be trained together? What laws say beforehand, and what two trainings say afterwards.

Both are kept in a folder, a run's own if there is one, with a fingerprint of what they are about: what was said of
other labels is never shown.
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
from bursar.learners.learner import Progress, no_progress
from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.tasks.groups import groups_of

if TYPE_CHECKING:
    from bursar.laws.advice import Laws

FILE, TRAININGS_FILE, MODELS_FOLDER = "together.json", "together.trainings.json", "together"
BEFORE_FILE = "before.json"
KIND = "bursar together 1"
SEEDS = 3
LEVEL = 0.9  # of the interval of a measured difference
DRAWS = 500  # of judged items, for it
WAYS = ("together", "alone")
BEFORE = "before buying"  # when advice was given; else of the labels that are there


@dataclass(frozen=True, eq=False)
class Subject:
    """What is asked about: labels that are known, how many there would be to train on, and who is judged by what."""

    config: CampaignConfig
    known: Corpus  # what it is measured on how related the tasks are
    annotated: Corpus  # what models are trained on
    dev: Corpus | None
    judged: Corpus
    judged_by: str  # "test items" or "development items"
    units: Mapping[str, int]  # how many words, or items, of every task there would be to train on
    unit: str  # "words" or "items"
    basis: str  # what those are, for readers
    pool: Callable[[], Corpus] | None = None  # what could be labelled

    @classmethod
    def of(
        cls, config: CampaignConfig, parts: DataSplits, known: Corpus, annotated: Corpus, dev: Corpus | None, basis: str
    ) -> Subject:
        """Judged by test items, or by development items where there are none."""
        test = parts.corpus.take(parts.test)
        judged, by = (dev, "development items") if dev is not None and not len(test) else (test, "test items")
        pool = partial(parts.corpus.take, parts.pool)
        return cls(config, known, annotated, dev, judged, by, *labelled_units(annotated), basis, pool)

    @property
    def fingerprint(self) -> str:
        """A digest of all labels that the answers depend on."""
        about = [self.known.digest(), self.annotated.digest(), self.judged.digest(), dict(self.units), self.unit]
        return hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=12).hexdigest()


# -- what is asked about -----------------------------------------------------------------------------------------------
def subject_of_run(run: Run) -> Subject:
    """A run as far as it is: what it has bought, and its development items beside that."""
    if not run.has_ledger(run.arms[0]):
        raise ConfigError(f"{run.folder} has bought nothing yet", fix="ask about the campaign's file instead")
    campaign = run.campaign(run.arms[0])
    try:
        now = campaign.known()
    finally:
        campaign.close()
    known = now.annotated if now.dev is None else concatenate([now.annotated, now.dev])
    return Subject.of(run.config, run.parts, known, now.annotated, now.dev, "what the run has bought")


def subject_of_campaign(config: CampaignConfig, parts: DataSplits) -> Subject:
    """A campaign before it begins, with as many labels as its budget buys.

    How related its tasks are is measured on what is labelled already. A pool with all labels is a simulation's: nobody
    would have them beforehand, so none is looked at.
    """
    corpus, pool = parts.corpus, parts.pool
    simulated = len(fully_labelled(corpus, pool)) == len(pool)
    hidden = np.concatenate([parts.test, pool]) if simulated else parts.test
    known = corpus.take(np.setdiff1d(np.arange(len(corpus)), hidden))
    items = planned_items(config, parts, known)
    mine = _some(corpus, pool if simulated else _with_labels(corpus, pool), items, config.seed)
    dev = corpus.take(parts.dev) if len(parts.dev) else None
    found = Subject.of(config, parts, known, corpus.take(mine), dev, f"what the budget buys, about {items:,} items")
    length = float(corpus.words[pool].mean()) if found.unit == "words" else 1.0
    return replace(found, units=dict.fromkeys(corpus.schema, round(items * length)))


def subject_of_corpus(config: CampaignConfig, parts: DataSplits, items: int | None = None) -> Subject:
    """Labelled data: what is labelled of its pool, or so many items of it at random."""
    corpus = parts.corpus
    known = corpus.take(np.setdiff1d(np.arange(len(corpus)), parts.test))
    mine = _with_labels(corpus, parts.pool)
    mine = mine if items is None else _some(corpus, mine, items, config.seed)
    dev = corpus.take(parts.dev) if len(parts.dev) else None
    return Subject.of(config, parts, known, corpus.take(mine), dev, f"{len(mine):,} labelled items")


def planned_items(config: CampaignConfig, parts: DataSplits, known: Corpus) -> int:
    """About how many items a budget buys, all tasks of each, at what the pool's cost on average."""
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
    """How many words the items have that are labelled for each task; or items, where no task labels words."""
    what = "words" if any(task.counted != "item" for task in items.schema.values()) else "items"
    units = items.words if what == "words" else np.ones(len(items), dtype=np.int64)
    return {name: int(units[column.present].sum()) for name, column in items.labels.items()}, what


def _with_labels(corpus: Corpus, items: IntArray) -> IntArray:
    present = np.any([column.present[items] for column in corpus.labels.values()], axis=0)
    return items[present]


def _some(corpus: Corpus, items: IntArray, count: int, seed: int) -> IntArray:
    """So many at random; the ids and the seed decide."""
    by_id = corpus.by_id(items)
    return np.sort(np.random.default_rng([seed, 131]).choice(by_id, min(count, len(by_id)), replace=False))


# -- beforehand --------------------------------------------------------------------------------------------------------
def advice_on(subject: Subject, laws: Laws) -> dict[str, Any]:
    """What the laws say of every task, as JSON."""
    from bursar.laws.advice import advise

    told = advise(subject.known, subject.units, laws, seed=subject.config.seed)
    return {"of": subject.fingerprint, "unit": subject.unit, "basis": subject.basis, **told}


# -- afterwards --------------------------------------------------------------------------------------------------------
def check(
    subject: Subject,
    folder: Path,
    *,
    seeds: int = SEEDS,
    own_models: Path | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Train the tasks together and alone on the same labels, with several seeds, and compare them: as JSON.

    Whatever is trained stays in the folder: a check that was stopped goes on where it was, and one with more seeds
    trains those alone. ``own_models`` is where the campaign keeps its models, one of which may be what is looked for.
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

        def told(what: str, part: float, done: int = done, way: str = way, seed: int = seed) -> None:
            progress(f"{what} {way}, seed {seed}", (done + part) / len(runs))

        found[name] = _trained(subject, way, seed, folder / MODELS_FOLDER, own_models, told)
        _keep(folder / TRAININGS_FILE, {"kind": KIND, "asked": asked, "tallies": found})
    tasks = {}
    for task in subject.judged.schema:
        tallies = {
            way: np.array([found[f"{way} {subject.config.seed + at}"][task] for at in range(seeds)]) for way in WAYS
        }
        tasks[task] = compared(subject.judged.schema[task].score, tallies["together"], tallies["alone"])
        tasks[task]["metric"] = subject.judged.schema[task].metric
    return {
        **asked,
        "seeds": seeds,
        "items": len(subject.annotated),
        "judged": len(subject.judged),
        "judged_by": subject.judged_by,
        "level": LEVEL,
        "tasks": tasks,
    }


def _check_can_be_compared(subject: Subject) -> None:
    learner = subject.config.learner.name
    if learner in TAGGERS:
        raise ConfigError(
            f"the learner {learner!r} trains every task by itself: together is the same as alone",
            fix=f"use one whose tasks share a model: {', '.join(SHARERS)}",
        )
    if len(groups_of(subject.judged.schema)) < 2:
        raise ConfigError("there is one task, or tasks that cannot be taken apart", fix="ask about two tasks or more")
    if not len(subject.judged):
        raise ConfigError("there are no items to judge by", fix="name a split as corpus.test or corpus.dev")
    missing = [name for name, column in subject.annotated.labels.items() if not column.present.any()]
    if missing:
        raise ConfigError(f"nothing is labelled for task {missing[0]!r}", fix="label some items for it first")


def _trained(
    subject: Subject, way: str, seed: int, folder: Path, own_models: Path | None, progress: Progress
) -> dict[str, list[list[float]]]:
    """Tallies of every task and judged item, by a model of all tasks or by one a task."""
    config = subject.config.model_copy(update={"seed": seed})
    if config.strategy.make().alone:  # its models are single-task ones, whatever the learner says
        config = config.model_copy(update={"strategy": StrategySection()})
    schema, sharing = subject.annotated.schema, config.learner.options.get("sharing", "shared")
    groups = [list(schema)]
    if config.learner.name in SHARERS:
        config = _sharing(config, "single" if way == "alone" else "shared" if sharing == "single" else sharing)
    elif way == "alone":
        groups = groups_of(schema)
    place = folder
    if own_models is not None and way == "together" and seed == subject.config.seed:
        place = own_models
    found: dict[str, list[list[float]]] = {}
    for at, group in enumerate(groups):

        def told(what: str, done: float, at: int = at) -> None:
            progress(what, (at + done) / len(groups))

        models = Models(place, config, {name: schema[name] for name in group}, pool=subject.pool)
        dev = subject.dev.with_tasks(group) if subject.dev is not None else None
        learner, _ = models.fitted(subject.annotated.with_tasks(group), dev, told)
        found |= _tallies(learner, subject.judged.with_tasks(group))
    return found


def _sharing(config: CampaignConfig, sharing: str) -> CampaignConfig:
    """The same campaign with another way of sharing; its own where that is the same. Single tasks have no policy."""
    own = config.learner.options.get("sharing", "shared")
    if own == sharing:
        return config
    settings = config.learner.model_dump() | {"sharing": sharing}
    if sharing == "single":
        settings = {key: value for key, value in settings.items() if key not in ("policy", "log_steps")}
    return config.model_copy(update={"learner": LearnerSection(**settings)})


def _tallies(learner: Learner, judged: Corpus) -> dict[str, list[list[float]]]:
    found = {}
    guesses: Mapping[str, Ragged] = learner.predict(judged.unlabelled())
    for name, task in judged.schema.items():
        known = np.flatnonzero(judged.labels[name].present)
        counts = task.tally(judged.labels[name].rows.take(known), guesses[name].take(known))
        found[name] = counts.tolist()
    return found


def compared(score: Callable[[FloatArray], FloatArray], together: FloatArray, alone: FloatArray) -> dict[str, Any]:
    """The scores of both, and their difference with an interval: (seeds, items, counts) each, of the same items.

    Two things make a difference uncertain: which items it was judged by, and which seeds were trained with. The first
    is told by drawing items again, the second by how much seeds differ; what both lead to is added as errors add.

    >>> right = np.array([[[1.0, 1.0], [1.0, 1.0], [0.0, 1.0], [1.0, 1.0]]])
    >>> found = compared(lambda counts: counts[..., 0] / counts[..., 1], right, right)
    >>> found["together"], found["gain"]["value"], found["verdict"]
    (0.75, 0.0, 'cannot tell')
    """
    from scipy.stats import norm, t

    from bursar.laws.gains import verdict_of

    seeds, items, _ = together.shape
    rng = np.random.default_rng([items, 137])
    times = rng.multinomial(items, np.full(items, 1 / items), size=DRAWS).astype(float)
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
    """Whether a prediction held.

    >>> outcome_of("helps", "helps"), outcome_of("helps", "harms"), outcome_of("helps", "cannot tell")
    ('held', 'did not hold', 'not decided')
    >>> outcome_of("cannot tell", "helps"), outcome_of(None, "helps")
    ('none was made', 'none was made')
    """
    if predicted in (None, "cannot tell"):
        return "none was made"
    return "not decided" if measured == "cannot tell" else "held" if predicted == measured else "did not hold"


# -- what was said before anything was bought ------------------------------------------------------------------------
def place_of(config: CampaignConfig, beside: Path = Path("runs")) -> Path:
    """Where what is said of a campaign is kept that has no run yet."""
    return beside / f"{config.name}-together"


def keep_before(config: CampaignConfig, advice: Mapping[str, Any], folder: Path) -> Path:
    """Keep advice on a campaign that has bought nothing, so that it can be checked afterwards."""
    file = folder / BEFORE_FILE
    _keep(file, {"kind": KIND, "campaign": config.digest, "advice": advice})
    return file


def advice_before(run: Run) -> dict[str, Any] | None:
    """What was said of a run's campaign before it bought anything, as of the labels that it has now."""
    for beside in (run.folder.parent, Path("runs")):  # a run may lie elsewhere than advice is kept
        kept = read_kept(place_of(run.config, beside) / BEFORE_FILE)
        if kept.get("campaign") == run.config.digest and isinstance(kept.get("advice"), dict):
            return {**kept["advice"], "of": subject_of_run(run).fingerprint, "when": BEFORE}
    return None


# -- what is kept ------------------------------------------------------------------------------------------------------
def keep(folder: Path, **parts: Mapping[str, Any]) -> dict[str, Any]:
    """Write advice or a check into a folder, beside what is there already of the same labels."""
    (of,) = {part["of"] for part in parts.values()}
    before = read_kept(folder / FILE)
    kept = {name: before[name] for name in ("advice", "check") if before.get(name, {}).get("of") == of}
    found = {"kind": KIND, **kept, **parts}
    _keep(folder / FILE, found)
    return found


def current_together(run: Run) -> dict[str, Any] | None:
    """What is kept beside a run of the labels that it has now: advice, a check, or both."""
    kept = read_kept(run.folder / FILE)
    if not kept:
        return None
    try:
        of = subject_of_run(run).fingerprint
    except BursarError:
        return None
    found = {name: kept[name] for name in ("advice", "check") if kept.get(name, {}).get("of") == of}
    return found or None


def read_kept(file: Path) -> dict[str, Any]:
    """What is in a file of ours; nothing where there is none, or where it is damaged."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and found.get("kind") == KIND else {}


def _keep(file: Path, found: Mapping[str, Any]) -> None:
    with replacing(file) as stream:
        json.dump(found, stream, allow_nan=False)
