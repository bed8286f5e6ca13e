"""Which items to label before there is a model.

A random start repeats what is common and misses what is rare. A covering start buys items that lie near as much of the
pool as possible: sentences for tasks on whole items, words for tasks on words. The encoder as it comes says what is
near.
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
from bursar.selection import Candidates, ItemFeatures, PoolFeatures, make_strategy
from bursar.tasks import Prices

CANDIDATES = 5_000  # items that are read for a start: a random sample of a larger pool


class Start:
    """The items before the first model: drawn at random when a campaign is opened, or chosen to cover the pool."""

    def __init__(self, config: CampaignConfig, pool: IntArray, pricing: Pricing, typical_price: float) -> None:
        self.config, self.pool, self.pricing, self.typical_price = config, pool, pricing, typical_price
        self.corpus = pricing.corpus
        count = config.budget.seed_items + config.budget.dev_items
        rng = np.random.default_rng([config.seed, 11])
        self.drawn: IntArray = rng.choice(self.corpus.by_id(pool), count, replace=False)

    @property
    def dev(self) -> IntArray:
        """Those of the drawn items that are set aside as development items."""
        return self.drawn[self.config.budget.seed_items :]

    def first(
        self, terms: RoundSettings, models: Models, audit: AuditPlan, watcher: Watcher, spent: int
    ) -> RoundSelection:
        """The first selection: items for all tasks, drawn or chosen to cover the pool, then development items."""
        if terms.strategy.start != "cover" or self.corpus.texts is None:
            return self.selection(0, self.drawn, terms, spent)
        learner = models.untrained()
        if not learner.pretrained:
            return self.selection(0, self.drawn, terms, spent)
        count, seed = self.config.budget.seed_items, round_seed(self.config.seed, 0)
        free = np.setdiff1d(audit.outside_reserve(self.pool), self.dev)
        if len(free) <= count:
            return self.selection(0, self.drawn, terms, spent)
        free = start_candidates(self.corpus.by_id(free), seed)
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

    def more(self, round: int, free: IntArray, terms: RoundSettings, spent: int) -> RoundSelection | None:
        """A selection of other random items, where so few were answered that no model can be trained.

        ``None`` if there are none, or none can be paid for.
        """
        count = min(len(free), self.config.budget.seed_items)
        if not count:
            return None
        rng = np.random.default_rng([self.config.seed, 11, round])
        selection = self.selection(round, rng.choice(self.corpus.by_id(free), count, replace=False), terms, spent)
        return selection if selection.items else None

    def selection(
        self, round: int, items: IntArray, terms: RoundSettings, spent: int, purpose: str = "seed"
    ) -> RoundSelection:
        """Items for all tasks, as far as the money goes."""
        aside = set(self.dev.tolist())
        prices = self.pricing.prices(items, {}, terms.costs)
        if terms.config.budget.total is not None:
            affordable = np.cumsum(prices.joint()) <= terms.costs.units(terms.config.budget.total) - spent
            items, prices = items[affordable], prices.take(np.flatnonzero(affordable))
        selected = [
            entry.model_copy(update={"purpose": "dev"}) if item in aside else entry
            for item, entry in zip(
                items.tolist(), selected_items(self.corpus, items, prices, None, purpose), strict=True
            )
        ]
        return RoundSelection(round=round, items=tuple(selected))


def start_candidates(items: IntArray, seed: int) -> IntArray:
    """The items that a covering start chooses from: all of a pool, or a random sample of a large one."""
    if len(items) <= CANDIDATES:
        return items
    return np.sort(np.random.default_rng([seed, 23]).choice(items, CANDIDATES, replace=False))


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
    """Those of the ``items`` of a corpus that cover the others best, within a budget; both are positions.

    What lies near ``labelled`` items, which have labels already, need not be covered again.
    """
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
