"""Selects the items to label before there is a model.

A random start repeats common items and misses rare ones. A covering start selects items that are close to as much of
the pool as possible, in the untrained encoder's space: of sentences for tasks on items, of words for tasks on words.
"""

from __future__ import annotations

import numpy as np

from bursar.campaign.audit import AuditPlan
from bursar.campaign.config import CampaignConfig
from bursar.campaign.decisions import RoundSelection
from bursar.campaign.models import Models
from bursar.campaign.observers import Watcher
from bursar.campaign.pricing import Pricing
from bursar.campaign.round_plan import round_seed, selected_items
from bursar.campaign.state import GIVEN, START, RoundSettings
from bursar.campaign.unit_space import UnitSpace
from bursar.corpus import Corpus
from bursar.learners import Learner
from bursar.learners.learner import Progress, no_progress
from bursar.ragged import IntArray
from bursar.random_streams import rng
from bursar.selection import Candidates, ItemFeatures, PoolFeatures, make_strategy
from bursar.tasks import Prices

CANDIDATES = 5_000  # items that a covering start chooses from: a random sample of a larger pool
FEWEST_CANDIDATES = 500  # however long the texts are


class Start:
    """Selects the items before the first model: at random, drawn on opening, or so that they cover the pool."""

    def __init__(self, config: CampaignConfig, pool: IntArray, pricing: Pricing, typical_price: float) -> None:
        self.config, self.pool, self.pricing, self.typical_price = config, pool, pricing, typical_price
        self.corpus = pricing.corpus
        count = config.budget.seed_items + config.budget.dev_items
        self.most_words: int | None = None  # that a covering start may read, where people wait for it
        self.drawn: IntArray = rng(config.seed, "seed items").choice(self.corpus.by_id(pool), count, replace=False)
        self.dev = self.drawn[config.budget.seed_items :]  # set aside as development items

    def first(
        self, terms: RoundSettings, models: Models, audit: AuditPlan, watcher: Watcher, spent: int
    ) -> RoundSelection:
        """The first selection: seed items for all tasks, then development items; ``spent`` is money, or items."""
        count, seed = self.config.budget.seed_items, round_seed(self.config.seed, 0)
        free = np.setdiff1d(audit.outside_reserve(self.pool), self.dev)
        covers = terms.strategy.start == "cover" and self.corpus.texts is not None and len(free) > count
        if not covers or not (learner := models.untrained()).pretrained:
            return self.selection(0, self.drawn, terms, spent)
        free = start_candidates(self.corpus.by_id(free), seed, self._most_candidates(free))
        by_item = self.config.budget.counts == "items"
        chosen = covering_start(
            learner,
            self.corpus,
            free,
            self.corpus.in_split(GIVEN) if GIVEN in self.corpus.splits else free[:0],
            self.pricing.prices(free, {}, terms.costs),
            count if by_item else round(count * self.typical_price),
            in_items=by_item,
            seed=seed,
            progress=lambda what, done: watcher.stage(0, what, done),
        )
        return self.selection(0, np.concatenate([chosen, self.dev]), terms, spent, START)

    def _most_candidates(self, free: IntArray) -> int:
        """How many items to choose from: fewer if the texts are long and people wait."""
        if self.most_words is None:
            return CANDIDATES
        affordable = int(self.most_words / max(float(self.corpus.reading[free].mean()), 1.0))
        return min(CANDIDATES, max(FEWEST_CANDIDATES, affordable))

    def more(self, round: int, free: IntArray, terms: RoundSettings, spent: int) -> RoundSelection | None:
        """More random items, if too few were answered to train a model; ``None`` if none are left or affordable."""
        count = min(len(free), self.config.budget.seed_items)
        if not count:
            return None
        drawn = rng(self.config.seed, "seed items", round).choice(self.corpus.by_id(free), count, replace=False)
        selection = self.selection(round, drawn, terms, spent)
        return selection if selection.items else None

    def selection(
        self, round: int, items: IntArray, terms: RoundSettings, spent: int, purpose: str = "seed"
    ) -> RoundSelection:
        """These items for all tasks, as far as the money goes."""
        aside = set(self.dev.tolist())
        prices = self.pricing.prices(items, {}, terms.costs)
        total = terms.config.budget.total
        if total is not None and self.config.budget.counts == "items":
            most = max(0, int(total) - spent)
            items, prices = items[:most], prices.take(np.arange(min(most, len(items))))
        elif total is not None:
            affordable = np.cumsum(prices.joint()) <= terms.costs.units(total) - spent
            items, prices = items[affordable], prices.take(np.flatnonzero(affordable))
        selected = selected_items(self.corpus, items, prices, None, purpose)
        for at, item in enumerate(items.tolist()):
            if item in aside:
                selected[at] = selected[at].model_copy(update={"purpose": "dev"})
        return RoundSelection(round=round, items=tuple(selected))


def start_candidates(items: IntArray, seed: int, most: int = CANDIDATES) -> IntArray:
    """The items that a covering start chooses from: all of a pool, or a random sample of a large one."""
    if len(items) <= most:
        return items
    return np.sort(rng(seed, "start candidates").choice(items, most, replace=False))


def covering_start(
    learner: Learner,
    corpus: Corpus,
    items: IntArray,
    labelled: IntArray,
    prices: Prices,
    budget: int,
    *,
    in_items: bool = False,
    seed: int = 0,
    progress: Progress = no_progress,
) -> IntArray:
    """The ``items`` that cover the others best within a budget, beside ``labelled`` ones; all are positions."""
    read = corpus.take(np.union1d(items, labelled))
    space = UnitSpace(lambda part: learner.embeddings(part.unlabelled(), progress=progress), read)
    pool, known = corpus.take(items), corpus.take(labelled)
    near = {name: np.flatnonzero(known.labels[name].present) for name in corpus.schema}
    features = PoolFeatures(
        units={name: space.all_units(task, pool) for name, task in corpus.schema.items()},
        labelled=ItemFeatures(units={n: space.all_units(t, known.take(near[n])) for n, t in corpus.schema.items()}),
    )
    unsure = np.zeros((len(items), len(corpus.schema)))
    candidates = Candidates(pool.ids.tolist(), unsure, prices, features=features)
    chosen = make_strategy("COVER").select(candidates, budget, seed, in_items=in_items).items
    return items[chosen]
