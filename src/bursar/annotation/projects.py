"""Creates projects: folders of campaigns with human annotators, from a corpus and a few options.

Labels in the corpus are used: some are held out to evaluate models, the others train the first model at no cost. If
there are none, a few random items can be annotated as development items, and scores come from the audit slices.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.campaign.campaign import Campaign
from bursar.campaign.config import CampaignConfig, parse_config
from bursar.campaign.participants import Observer
from bursar.campaign.pricing import Rate, check_unit, prices_at, prices_of
from bursar.campaign.runs import Run
from bursar.campaign.state import GIVEN
from bursar.corpus import FORMATS, Corpus, Labels
from bursar.corpus.formats.format import new_folder
from bursar.corpus.schema import recoded
from bursar.errors import ConfigError, SchemaError
from bursar.learners import Learner
from bursar.ledger import Annotation, Submission
from bursar.ragged import IntArray
from bursar.random_streams import rng
from bursar.tasks import KINDS, CostModel, Task, make_task

DATA_FILE, CAMPAIGN_FILE = "data.jsonl", "campaign.toml"
BEFORE = -1  # the round of labels that came with the corpus
UNIT = 0.0001
READ_AT_START = 60_000  # words that the encoder reads before the first item: some fifteen seconds
# Seconds per item and per counted unit: guesses until annotators are timed.
READING = (1.0, 0.25)
FEWEST_HELD_OUT = 40  # labelled items; if there are fewer, none are held out
A_ROUND, MOST_ROUNDS = 40, 10  # items in a round, as long as that makes no more than so many rounds
MOST_SEED_ITEMS, SEED_SHARE = 40, 0.3  # the seed items of a budget: how many, and what share of it, at most
HELD_OUT = {"dev": (0.2, 100), "test": (0.3, 200)}  # share of labelled items, and maximum number
SPLITS = ("train", *HELD_OUT, GIVEN)


@dataclass(frozen=True)
class Wishes:
    """The options of a new project."""

    name: str
    budget: float
    hourly: float | None = 20.0
    currency: str = "€"
    prices: Mapping[str, Any] = field(default_factory=dict)  # in money, by task and for reading
    rounds: int | None = None
    seed_items: int | None = None
    dev_items: int | None = None
    strategy: str = "AUTO"
    learner: str | None = None
    forget_labels: bool = False
    seed: int = 0
    ledger: str | None = None  # URL of a PostgreSQL server, for a team; default: a file in the project


@dataclass(frozen=True)
class FullCost:
    """What labelling every item of a pool for all tasks is expected to cost."""

    items: int
    price: float  # of an item, on average

    @property
    def total(self) -> float:
        """The sum, rounded up to two decimals."""
        return math.ceil(100 * self.items * self.price - 1e-6) / 100

    def affordable(self, budget: float) -> int:
        """About how many items a budget buys."""
        return min(self.items, int(budget / self.price + 1e-6)) if self.price else self.items


@dataclass(frozen=True, eq=False)
class Draft:
    """A checked project that has not been created yet."""

    corpus: Corpus
    config: CampaignConfig
    everything: FullCost | None = None  # where prices are those of a project

    @property
    def given(self) -> IntArray:
        """Items outside dev and test that came with labels for some or all tasks."""
        there = np.any([column.present for column in self.corpus.labels.values()], axis=0)
        apart = np.isin([self.corpus.splits[code] for code in self.corpus.split_codes], list(HELD_OUT))
        return np.flatnonzero(there & ~apart)

    def counts(self) -> dict[str, int]:
        """The number of items by role."""
        roles = {"to choose from": "train", "development": "dev", "test": "test", "labelled already": GIVEN}
        counts = self.corpus.split_counts()
        return {role: counts.get(split, 0) for role, split in roles.items()}


# -- tasks -------------------------------------------------------------------------------------------------------------
def task_of(text: str) -> Task:
    """Parse a task: name, kind, and labels or, for regression, the range."""
    name, *rest = (part.strip() for part in text.split(":"))
    if not name or not rest:
        raise ConfigError(f"{text!r} is not a task", fix="write NAME:KIND:LABELS, as in mood:classification:good,bad")
    kind, *lists = rest
    return listed_task(name, kind, lists)


def listed_task(name: str, kind: str, lists: Sequence[str]) -> Task:
    """A task from its kind and lists of labels, or its range, separated by commas."""
    names = [[label.strip() for label in part.split(",") if label.strip()] for part in lists]
    try:
        options = KINDS[kind].parse_options(names) if kind in KINDS else {}
        return make_task(name, {"kind": kind} | options)
    except SchemaError as wrong:
        text = ":".join((name, kind, *lists))
        raise ConfigError(f"{text!r}: {wrong.message}", fix=wrong.fix) from None


def with_wished_tasks(corpus: Corpus, wished: Sequence[str]) -> Corpus:
    """The corpus with the requested tasks: its own by name, new ones by description; all of its own by default."""
    if not wished:
        return corpus
    schema: dict[str, Task] = {}
    labels: dict[str, Labels] = {}
    for text in wished:
        name = text.partition(":")[0].strip()
        own = corpus.schema.get(name)
        schema[name] = task = own if ":" not in text and own is not None else task_of(text)
        labels[name] = Labels.none(len(corpus), task) if own is None else recoded(corpus, own, task)
    return replace(corpus, schema=schema, labels=labels)


# -- parts -------------------------------------------------------------------------------------------------------------
def parts_by_labels(corpus: Corpus) -> NDArray[Any]:
    """The split of every item: dev or test if fully labelled there, given if elsewhere, else train (the pool)."""
    names = np.array([corpus.splits[code] for code in corpus.split_codes])
    known = np.all([column.present for column in corpus.labels.values()], axis=0)
    return np.where(np.isin(names, list(HELD_OUT)) & known, names, np.where(known, GIVEN, "train"))


def in_parts(corpus: Corpus, parts: Iterable[str]) -> Corpus:
    """The corpus with these splits, listed in a fixed order."""
    return replace(corpus, splits=SPLITS, split_codes=np.array([SPLITS.index(part) for part in parts], dtype=np.int16))


def parted(corpus: Corpus, forget: bool = False, seed: int = 0) -> Corpus:
    """The corpus in the splits of a project: train (the pool), dev and test for evaluation, and given labels."""
    parts = parts_by_labels(corpus)
    if forget:
        parts[parts == GIVEN] = "train"
        kept = np.where(parts == "train", -1, np.arange(len(corpus)))
        corpus = corpus.with_labels({name: column.take_or_none(kept) for name, column in corpus.labels.items()})
    else:
        labelled = np.flatnonzero(parts == GIVEN)
        if len(labelled) and not (parts == "train").any():
            fix = "add items, or label them again with --forget-labels"
            raise ConfigError("all items are already labelled for all tasks", fix=fix)
        if len(labelled) >= FEWEST_HELD_OUT and not np.isin(parts, list(HELD_OUT)).any():
            order = rng(seed, "held-out items").permutation(corpus.by_id(labelled))
            for part, (share, most) in HELD_OUT.items():
                count = min(most, int(share * len(labelled)))
                parts[order[:count]], order = part, order[count:]
    return in_parts(corpus, parts.tolist())


# -- settings ----------------------------------------------------------------------------------------------------------
def draft_project(corpus: Corpus, wishes: Wishes) -> Draft:
    """Plan a project from a corpus and options, and check it."""
    _check_tasks(corpus)
    if not 0 < wishes.budget < 1e12:
        raise ConfigError(f"{wishes.budget:g} is not a valid budget", fix="give a positive amount: --budget 200")
    corpus, costs, everything = _priced(corpus, wishes)
    check_budget(wishes, everything)
    return Draft(corpus, parse_config(_table(corpus, wishes, costs, everything.price), "the project"), everything)


def full_cost(corpus: Corpus, wishes: Wishes) -> FullCost:
    """What labelling every item would cost, by the prices of the options; their budget is not used."""
    _check_tasks(corpus)
    return _priced(corpus, wishes)[2]


def check_budget(wishes: Wishes, everything: FullCost) -> None:
    """Refuse a budget that is more than labelling everything costs."""
    if wishes.budget > everything.total:
        raise ConfigError(
            f"a budget of {money_text(wishes.currency, wishes.budget)} is more than labelling everything costs: about "
            f"{money_text(wishes.currency, everything.total)} for all {everything.items:,} items",
            fix=f"give at most --budget {everything.total:.2f}, or correct the prices with --hourly or --price",
        )


def money_text(sign: str, amount: float | Decimal) -> str:
    """An amount with two decimals, or none if it is whole."""
    return f"{sign}{amount:,.2f}".removesuffix(".00")


def _check_tasks(corpus: Corpus) -> None:
    if not corpus.schema:
        raise ConfigError("the data has no tasks", fix="define them: --tasks NAME:KIND:LABEL,LABEL")
    for name, task in corpus.schema.items():
        if "labels" in task.vocabularies and not task.labels:
            raise ConfigError(f"task {name!r} has no labels", fix=f"list them: --tasks {name}:{task.kind}:LABEL,LABEL")


def _priced(corpus: Corpus, wishes: Wishes) -> tuple[Corpus, dict[str, Any], FullCost]:
    """The corpus in the splits of a project, the table of prices, and what labelling the whole pool would cost."""
    corpus = parted(corpus, wishes.forget_labels, wishes.seed)
    items = corpus.split_counts()["train"]
    if items < 2:
        raise ConfigError(f"the pool has only {items} items", fix="use data with more items")
    tasks = list(corpus.schema.values())
    prices = dict(wishes.prices)
    costs: dict[str, Any] = {"unit": UNIT, "currency": wishes.currency, "pricing": "predicted"}
    if wishes.hourly is not None:
        guessed = {"reading": Rate(*READING)} | {task.name: Rate(*task.seconds) for task in tasks}
        prices = prices_at(guessed, tasks, wishes.hourly, Decimal(str(UNIT))) | prices
        costs |= {"hourly": wishes.hourly, "measured": True}
    elif not prices:
        raise ConfigError("annotation has no price", fix="give the cost of an hour: --hourly 20")
    costs |= prices
    model = parse_config({"costs": costs}, "the project").costs.model(tasks)
    if wishes.hourly is not None:
        check_unit(model, wishes.hourly)
    price = mean_price(corpus, model)
    if not price > 0:
        raise ConfigError("annotation has no price", fix="give the cost of an hour: --hourly 20")
    return corpus, costs, FullCost(items, price)


def mean_price(corpus: Corpus, costs: CostModel) -> float:
    """The mean price of an item of the pool for all tasks, before there is a model."""
    tasks, pool = list(corpus.schema.values()), corpus.take(corpus.in_split("train"))
    return float(np.mean(prices_of(costs, tasks, pool, {}, {task.name: 1.0 for task in tasks}).joint())) * UNIT


def usual_seed_items(affordable: float, pool: int, dev_items: int = 0) -> int:
    """How many items to label before the first model: at most 40, and at most 30 % of what the budget buys."""
    most = max(2, min(int(SEED_SHARE * affordable), pool // 2))
    return max(2, min(MOST_SEED_ITEMS, most - dev_items))


def usual_rounds(items: int) -> int:
    """The number of rounds for labelling a number of items: about 40 in each, in at most ten rounds."""
    return int(np.clip(round(items / A_ROUND), 1, MOST_ROUNDS))


def _table(corpus: Corpus, wishes: Wishes, costs: Mapping[str, Any], price: float) -> dict[str, Any]:
    """The campaign's file; ``price`` is that of an item."""
    counts = corpus.split_counts()
    dev_items = wishes.dev_items or 0  # training does not need any
    if dev_items and counts["dev"]:
        raise ConfigError("the data already has development items", fix="omit --dev-items")
    seed_items = wishes.seed_items
    if seed_items is None:
        seed_items = usual_seed_items(wishes.budget / max(price, 1e-9), counts["train"], dev_items)
    left = wishes.budget - (seed_items + dev_items) * price
    if left <= price:
        raise ConfigError(
            f"a budget of {wishes.budget:g} buys about {int(wishes.budget / price)} items, which is too few",
            fix="raise the budget, or use fewer seed items",
        )
    most = int(min(left / price, max(1, counts["train"] - seed_items - dev_items)))
    rounds = wishes.rounds or usual_rounds(most)
    per_round = max(round(left / rounds, 2), 0.01)
    budget = {"seed_items": seed_items, "total": wishes.budget, "rounds": rounds, "per_round": per_round}
    table: dict[str, Any] = {
        "name": wishes.name,
        "seed": wishes.seed,
        "corpus": {"source": DATA_FILE, "format": "jsonl"},
        "costs": dict(costs),
        "budget": budget | ({"dev_items": dev_items} if dev_items else {}),
        "strategy": {"name": wishes.strategy},
        "learner": {"name": wishes.learner or ("image-cnn" if corpus.images is not None else "transformer")},
    }
    if wishes.ledger:
        table["ledger"] = {"url": wishes.ledger}
    if 2 * rounds * max(1.0, 0.1 * per_round / price) <= 0.2 * counts["train"]:
        table["audit"] = {"rounds": 2 * rounds}  # twice the rounds, in case the budget is raised
    return table


# -- making it ---------------------------------------------------------------------------------------------------------
def create_project(
    folder: Path, draft: Draft, learner: Learner | None = None, *, watcher: Observer | None = None
) -> Run:
    """Write a project atomically: its folder appears when it is complete. ``watcher`` follows the first selection."""
    with new_folder(folder) as place:
        FORMATS["jsonl"].write(draft.corpus, place / DATA_FILE)
        (place / CAMPAIGN_FILE).write_text(toml_of(draft.config), encoding="utf-8")
        _begin(place, draft, learner, watcher or Observer())
        for lock in place.glob("*lock"):
            lock.unlink()
    return Run.open(folder)


def _begin(folder: Path, draft: Draft, learner: Learner | None, watcher: Observer) -> None:
    """Pin the run, check its learner, select the seed items, and record the given labels."""
    config = draft.config
    here = config.model_copy(update={"corpus": config.corpus.model_copy(update={"source": str(folder / DATA_FILE)})})
    run = Run(folder, config, Run(folder, here).parts)
    run.pin()
    with closing(Campaign(config, folder, parts=run.parts, learner=learner, watcher=watcher)) as campaign:
        begin_with_given(campaign, draft.given, f"{DATA_FILE} as it came")


def begin_with_given(campaign: Campaign, items: IntArray, source: str) -> None:
    """Begin a campaign and record the labels that came with these items, at no cost."""
    campaign.start.most_words = READ_AT_START
    campaign.begin()
    given = tuple(
        Annotation(item.id, task, label)
        for item in (campaign.corpus[at] for at in items.tolist())
        for task, label in item.labels.items()
    )
    if given:
        campaign.ledger.submit(Submission(GIVEN, given, round=BEFORE, purpose=GIVEN, annotator=source))


def toml_of(config: CampaignConfig) -> str:
    """The configuration file of a campaign, without defaults."""
    table = config.model_dump(mode="json", exclude_unset=True)
    sections = {name: values for name, values in table.items() if isinstance(values, dict) and values}
    lines = _toml_lines({name: value for name, value in table.items() if not isinstance(value, dict)})
    for name, values in sections.items():
        lines += ["", f"[{name}]", *_toml_lines(values)]
    return "\n".join(lines) + "\n"


def _toml_lines(values: Mapping[str, Any]) -> list[str]:
    return [f"{_toml_key(key)} = {_toml(value)}" for key, value in values.items() if value is not None]


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(_toml_lines(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)
