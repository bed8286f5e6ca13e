"""Selects the items to label before there is a model.

A random start repeats common items and misses rare ones. A covering start selects items that are close to as much of
the pool as possible, in the untrained encoder's space: of sentences for tasks on items, of words for tasks on words.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from bursar.campaign.audit import AuditPlan
from bursar.campaign.decisions import RoundSelection
from bursar.campaign.models import Models
from bursar.campaign.participants import Observer
from bursar.campaign.pricing import Pricing
from bursar.campaign.round_planner import round_seed, selected_items
from bursar.campaign.state import GIVEN, START, CampaignState, RoundSettings
from bursar.campaign.unit_space import UnitSpace
from bursar.corpus import Corpus
from bursar.learners.learner import Embeddings
from bursar.ragged import IntArray
from bursar.random_streams import rng
from bursar.selection import Candidates, ItemFeatures, PoolFeatures, make_strategy
from bursar.tasks import Prices

CANDIDATES = 5_000  # items that a covering start chooses from: a random sample of a larger pool
FEWEST_CANDIDATES = 500  # however long the texts are


class Start:
    """Selects the items before the first model: at random, drawn on opening, or so that they cover the pool."""

    def __init__(self, state: CampaignState, pool: IntArray, pricing: Pricing) -> None:
        self.state, self.config, self.pool, self.pricing = state, state.config, pool, pricing
        self.corpus = pricing.corpus
        self.typical_price = pricing.typical_price(pool, state.first_terms.costs)
        count = self.config.budget.seed_items + self.config.budget.dev_items
        self.most_words: int | None = None  # that a covering start may read, where people wait for it
        self.drawn: IntArray = rng(self.config.seed, "seed items").choice(self.corpus.by_id(pool), count, replace=False)
        self.dev = self.drawn[self.config.budget.seed_items :]  # set aside as development items

    def first(self, terms: RoundSettings, models: Models, audit: AuditPlan, watcher: Observer) -> RoundSelection:
        """The first selection: seed items for all tasks, then development items."""
        count, seed = self.config.budget.seed_items, round_seed(self.config.seed, 0)
        free = np.setdiff1d(audit.outside_reserve(self.pool), self.dev)
        covers = terms.strategy.start == "cover" and self.corpus.texts is not None and len(free) > count
        if not covers or not (learner := models.untrained()).pretrained:
            return self.selection(0, self.drawn, terms)

        def embed(part: Corpus) -> Embeddings:
            return learner.embeddings(part.unlabelled(), progress=partial(watcher.stage, 0))

        free = start_candidates(self.corpus.by_id(free), seed, self._most_candidates(free))
        given = self.corpus.in_split(GIVEN) if GIVEN in self.corpus.splits else free[:0]
        pool = cover_candidates(self.corpus, free, given, self.pricing.prices(free, {}, terms.costs), embed)
        by_item = self.config.budget.counts == "items"
        budget = count if by_item else round(count * self.typical_price)
        chosen = free[make_strategy("COVER").select(pool, budget, seed, in_items=by_item).items]
        return self.selection(0, np.concatenate([chosen, self.dev]), terms, START)

    def _most_candidates(self, free: IntArray) -> int:
        """How many items to choose from: fewer if the texts are long and people wait."""
        if self.most_words is None:
            return CANDIDATES
        affordable = int(self.most_words / max(float(self.corpus.reading[free].mean()), 1.0))
        return min(CANDIDATES, max(FEWEST_CANDIDATES, affordable))

    def more(self, round: int, free: IntArray, terms: RoundSettings) -> RoundSelection | None:
        """More random items, if too few were answered to train a model; ``None`` if none are left or affordable."""
        count = min(len(free), self.config.budget.seed_items)
        if not count:
            return None
        drawn = rng(self.config.seed, "seed items", round).choice(self.corpus.by_id(free), count, replace=False)
        selection = self.selection(round, drawn, terms)
        return selection if selection.items else None

    def selection(self, round: int, items: IntArray, terms: RoundSettings, purpose: str = "seed") -> RoundSelection:
        """These items for all tasks, as far as the money goes."""
        prices = self.pricing.prices(items, {}, terms.costs)
        total = terms.config.budget.total
        if total is not None:
            by_item = self.config.budget.counts == "items"
            each, left = (np.ones(len(items)), int(total)) if by_item else (prices.joint(), terms.costs.units(total))
            affordable = np.flatnonzero(np.cumsum(each) <= left - self.state.spent())
            items, prices = items[affordable], prices.take(affordable)
        selected = selected_items(self.corpus, items, prices, None, purpose)
        for at in np.flatnonzero(np.isin(items, self.dev)).tolist():
            selected[at] = selected[at].model_copy(update={"purpose": "dev"})
        return RoundSelection(round=round, items=tuple(selected))


def start_candidates(items: IntArray, seed: int, most: int = CANDIDATES) -> IntArray:
    """The items that a covering start chooses from: all of a pool, or a random sample of a large one."""
    if len(items) <= most:
        return items
    return np.sort(rng(seed, "start candidates").choice(items, most, replace=False))


def cover_candidates(
    corpus: Corpus, items: IntArray, labelled: IntArray, prices: Prices, embed: Callable[[Corpus], Embeddings]
) -> Candidates:
    """The ``items`` as COVER selects from them before there is a model, beside ``labelled`` ones; all are positions."""
    space = UnitSpace(embed, corpus.take(np.union1d(items, labelled)))
    pool, known = corpus.take(items), corpus.take(labelled)
    near = {name: known.take(np.flatnonzero(known.labels[name].present)) for name in corpus.schema}
    features = PoolFeatures(
        units={name: space.all_units(task, pool) for name, task in corpus.schema.items()},
        labelled=ItemFeatures(units={n: space.all_units(task, near[n]) for n, task in corpus.schema.items()}),
    )
    return Candidates(pool.ids.tolist(), np.zeros((len(items), len(corpus.schema))), prices, features=features)
