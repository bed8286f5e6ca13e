"""Plans what a round would buy: the audit slice, then the strategy's selection with the rest of the money."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bursar.campaign.advisers import RoundSplit, allocator
from bursar.campaign.audit import AuditPlan
from bursar.campaign.decisions import LabelValue, SplitDecision
from bursar.campaign.observers import Watcher
from bursar.campaign.pool_scoring import PoolScoring, Scored
from bursar.campaign.pricing import Pricing
from bursar.campaign.round_candidates import limits_of, open_labels, pool_features_of
from bursar.campaign.round_plan import Known, Offer, bought_for, round_seed
from bursar.campaign.state import BY_NO_MODEL, CampaignState, RoundSettings
from bursar.campaign.unit_space import UnitSpace
from bursar.learners import Learner
from bursar.ragged import IntArray
from bursar.selection import Candidates

SplitBudget = Callable[[RoundSettings, Candidates, int], RoundSplit]


@dataclass(eq=False)
class RoundPlanner:
    """Plans rounds of one campaign. The only decision it records is the split of a round's money between tasks."""

    state: CampaignState
    pool: IntArray
    audit: AuditPlan
    pricing: Pricing
    scoring: PoolScoring
    watcher: Watcher

    def __post_init__(self) -> None:
        self.ledger, self.seed, self.corpus = self.state.ledger, self.state.config.seed, self.pricing.corpus
        self._space: UnitSpace | None = None

    def offer(
        self,
        round: int,
        terms: RoundSettings,
        known: Known,
        learner: Learner | None,
        scored: tuple[IntArray, Scored] | None = None,
        split: SplitBudget | None = None,
    ) -> Offer:
        """What a round would buy under these settings: the audit slice, then the strategy's choice with the rest.

        ``scored`` are items with the scores of an earlier model; then only these are chosen from. ``split`` divides the
        rest between the tasks if the settings ask for it.
        """
        budget = self.state.allowance(round, terms)
        by_item = terms.config.budget.counts == "items"
        if terms.config.costs.pricing == "predicted" and not by_item:
            budget = int(budget / (1 + terms.config.costs.reserve))
        slice_ = self.audit.slice(round)
        prices = self.pricing.prices(slice_, learner or {}, terms.costs)
        cost = len(prices) if by_item else int(prices.joint().sum())
        if cost > budget:  # whole or not at all: part of a slice, chosen by price, would not be random
            slice_, prices, cost = slice_[:0], prices.take(slice_[:0]), 0
        items, pool, found = self._candidates(terms, known, learner, round, scored)
        seed, caps = round_seed(self.seed, round), None
        if terms.config.splits and split is not None and len(pool):
            chosen, caps = split(terms, pool, budget - cost).select(terms, pool, budget - cost, seed)
        else:
            chosen = terms.strategy.select(pool, budget - cost, seed=seed, in_items=by_item)
        measure = terms.strategy.measure if asks_the_model(terms) else None
        return Offer(round, budget, slice_, prices, items, pool, found, chosen, measure, caps)

    def split(self, round: int, known: Known, terms: RoundSettings, pool: Candidates, money: int) -> RoundSplit:
        """The split of a round's money, recorded before it is used."""
        decided = self.ledger.decision(SplitDecision, round)
        worth = self.label_value(round, known, terms) if decided is None else decided.known
        split = allocator().split(terms, worth, pool, money)
        if decided is None:
            self.ledger.decide(split.decision(round))
        return split

    def label_value(self, round: int, known: Known, terms: RoundSettings) -> LabelValue:
        """Measure the value of labels before a round."""
        drawn = bought_for(BY_NO_MODEL, known, self.ledger)
        items, _ = self.free(known)
        return allocator().label_value(
            terms.config,
            known.annotated,
            drawn,
            self.corpus.take(items).unlabelled(),
            seed=round_seed(self.seed, round),
            progress=lambda what, done: self.watcher.stage(round - 1, what, done),
        )

    def _candidates(
        self,
        terms: RoundSettings,
        known: Known,
        learner: Learner | None,
        round: int,
        earlier: tuple[IntArray, Scored] | None,
    ) -> tuple[IntArray, Candidates, Scored]:
        """The items that may still be bought: their positions in the corpus, the strategy's view, and their scores."""
        items, free = self.free(known)
        strategy, config = terms.strategy, terms.config
        if earlier is not None:
            both, mine, theirs = np.intersect1d(items, earlier[0], return_indices=True)
            items, free = both, free[mine]
        pool, progress = self.corpus.take(items), partial(self.watcher.stage, round - 1)
        if earlier is not None:
            scored = earlier[1].take(theirs)
        elif learner is not None and asks_the_model(terms):
            scored = self.scoring.scores(learner, strategy, pool, round_seed(self.seed, round - 1), progress)
        else:
            scored = Scored(np.zeros((len(items), len(self.corpus.schema))), self.pricing.gold(items))
        vectors = None if learner is None else partial(self.scoring.vectors, learner, progress=progress)
        aside = known.dev if known.dev is not None else self.corpus.take(items[:0])
        space = partial(self._unit_space, round, known, learner)
        features = pool_features_of(strategy, vectors, self.corpus, items, scored, known.bought, aside, space)
        limits = limits_of(config.limits, pool, scored.guesses, config.budget.rounds if strategy.once else 1)
        prices = self.pricing.prices(items, scored.guesses, terms.costs)
        return items, Candidates(pool.ids.tolist(), scored.confidence, prices, free, limits, features), scored

    def _unit_space(self, round: int, known: Known, learner: Learner | None) -> UnitSpace:
        """The vectors of units, computed once unless they depend on the newest model."""
        assert learner is not None
        if self._space is None or not self._space.lasting or not self._space.holds(known.bought):
            all_items = np.union1d(self.pool, self.corpus.positions(known.bought.ids.tolist()))
            items = self.corpus.take(self.corpus.by_id(all_items))
            progress = partial(self.watcher.stage, round - 1)
            self._space = UnitSpace(lambda part: self.scoring.embeddings(learner, part, progress), items)
        return self._space

    def free(self, known: Known) -> tuple[IntArray, Any]:
        """The items that a strategy may choose from, (items,), and for which tasks, (items, tasks)."""
        items = self.audit.outside_reserve(self.pool)
        free = open_labels(self.corpus.take(items), known.bought, known.declined, [want.id for want in known.asked])
        return items[free.any(axis=1)], free[free.any(axis=1)]


def asks_the_model(terms: RoundSettings) -> bool:
    """Whether a round depends on the model's predictions for the pool."""
    group, strategy = terms.config.limits.group, terms.strategy
    by_guess = "labels" in strategy.needs or (group is not None and group.by.startswith("label:"))
    return strategy.needs_model or by_guess or terms.config.costs.pricing == "predicted"
