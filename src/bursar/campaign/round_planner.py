"""What a round would buy: the audit slice, then the strategy's selection with the rest of the money."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bursar.campaign.audit import AuditPlan
from bursar.campaign.decisions import (
    CertificateRecord,
    ConfidenceExample,
    ConfidenceSummary,
    LabelValue,
    SelectedItem,
    SplitDecision,
)
from bursar.campaign.participants import Observer, RoundSplit, allocator
from bursar.campaign.pool_scoring import PoolScoring, Scored
from bursar.campaign.pricing import Pricing
from bursar.campaign.sections import LimitsSection
from bursar.campaign.state import BY_NO_MODEL, CampaignState, ItemRequest, RoundSettings
from bursar.campaign.unit_space import UnitSpace
from bursar.corpus import Corpus
from bursar.learners import Learner
from bursar.ledger import Ledger
from bursar.ledger.records import READING
from bursar.ragged import BoolArray, FloatArray, IntArray, Ragged
from bursar.selection import Candidates, GroupCap, ItemFeatures, Limit, Limits, PoolFeatures, Selection, Strategy
from bursar.tasks import Classification, Prices

GetVectors = Callable[[Corpus], NDArray[np.float32]]
BINS = 20  # of a histogram of confidence
EXAMPLES = 8


@dataclass(frozen=True, eq=False)
class Known:
    """A snapshot of the ledger."""

    round: int  # the newest; what is planned is the one after it
    asked: tuple[ItemRequest, ...]  # and not answered yet
    declined: Collection[tuple[str, str]]  # items and tasks
    bought: Corpus  # all labelled items
    annotated: Corpus  # those that are trained on
    dev: Corpus | None  # for early stopping

    @property
    def unlabelled_tasks(self) -> list[str]:
        return [name for name, column in self.annotated.labels.items() if not column.present.any()]


class ScoredItems(NamedTuple):
    """Items as positions in the corpus, and their scores by an earlier model."""

    items: IntArray
    scored: Scored


@dataclass(frozen=True, eq=False)
class Offer:
    """What a round would buy: the audit slice, and the strategy's choice from the items of its pool."""

    round: int
    budget: int
    audit: IntArray  # positions in the corpus
    audit_prices: Prices
    items: IntArray  # of the pool, positions in the corpus
    pool: Candidates
    scored: Scored
    chosen: Selection  # positions in the pool
    measure: str | None = None  # of the model's confidence; None if it was not needed
    caps: Mapping[str, int] | None = None  # labels of each task, if the money was split between tasks

    def selected(self, corpus: Corpus) -> list[SelectedItem]:
        items = selected_items(corpus, self.audit, self.audit_prices, None, "audit")
        return items + selected_items(corpus, self.items, self.pool.prices, self.chosen, "strategy")


def selected_items(
    corpus: Corpus, items: IntArray, prices: Prices, chosen: Selection | None, purpose: str
) -> list[SelectedItem]:
    """The items to ask about: all of them for all tasks, or those that were chosen."""
    picks = [(at, prices.tasks) for at in range(len(items))]
    if chosen is not None:
        rows = zip(chosen.items.tolist(), chosen.tasks, strict=True)
        picks = [(at, tuple(compress(prices.tasks, row))) for at, row in rows]
    found = []
    for at, tasks in picks:
        own = dict(zip(prices.tasks, prices.own[at].tolist(), strict=True))
        estimate = {READING: int(prices.reading[at])} | {name: own[name] for name in tasks}
        found.append(SelectedItem(id=str(corpus.ids[int(items[at])]), tasks=tasks, purpose=purpose, estimate=estimate))
    return found


def certificate_record(chosen: Selection) -> CertificateRecord | None:
    """The certificate of a selection, for the ledger."""
    certificate = chosen.certificate
    if certificate is None:
        return None
    bound = None if certificate.bound is None else round_to(certificate.bound)
    return CertificateRecord(objective=round_to(certificate.objective), bound=bound, optimal=certificate.optimal)


def bought_for(purposes: Iterable[str], known: Known, ledger: Ledger) -> Corpus:
    """The training items that were bought for these purposes."""
    bought = set(ledger.bought(purposes=purposes))
    return known.annotated.take(np.flatnonzero([item in bought for item in known.annotated.ids.tolist()]))


def round_seed(seed: int, round: int) -> int:
    """The seed of a round, derived from the campaign's."""
    return int(np.random.SeedSequence([seed, 13, round]).generate_state(1)[0])


def round_to(value: float) -> float:
    """Round to six digits, so that the ledger does not depend on numerical noise."""
    return round(float(value), 6)


# -- confidence --------------------------------------------------------------------------------------------------------
def confidence_summary(round: int, pool: Corpus, scored: Scored, chosen: Selection) -> ConfidenceSummary:
    """Histograms of confidence in the pool and in the chosen items by task, and the most and least certain items."""
    names, confidence = list(pool.schema), scored.confidence
    order = np.lexsort((pool.id_ranks, confidence.mean(axis=1))).tolist()

    def example(at: int) -> ConfidenceExample:
        return ConfidenceExample(
            id=str(pool.ids[at]),
            confidence={name: _brief(confidence[at, k]) for k, name in enumerate(names)},
            guess={name: pool.schema[name].value(scored.guesses[name][at]) for name in names},
        )

    def histograms(values: FloatArray) -> dict[str, list[int]]:
        return {name: np.histogram(values[:, k], BINS, (0, 1))[0].tolist() for k, name in enumerate(names)}

    return ConfidenceSummary(
        round=round,
        bins=BINS,
        pool=histograms(confidence),
        chosen=histograms(confidence[chosen.items]),
        mean={name: _brief(confidence[:, k].mean()) for k, name in enumerate(names)},
        least=tuple(map(example, order[:EXAMPLES])),
        most=tuple(map(example, order[::-1][:EXAMPLES])),
    )


def _brief(value: float) -> float:
    return round(float(value), 4)


# -- features ----------------------------------------------------------------------------------------------------------
def item_features(
    needs: frozenset[str], vectors: GetVectors | None, items: Corpus, labels: Mapping[str, Ragged]
) -> ItemFeatures:
    """The features of items that a strategy needs, with these labels."""
    return ItemFeatures(
        words=items.words if "words" in needs else None,
        vectors=vectors(items) if "vectors" in needs and vectors is not None else None,
        labels=_codes(items, labels) if "labels" in needs else None,
    )


def _codes(items: Corpus, labels: Mapping[str, Ragged]) -> IntArray:
    """The class of every item for each classification task, (items, tasks); −1 if it has none."""
    codes = np.full((len(items), len(items.schema)), -1, dtype=np.int64)
    for column, (name, task) in enumerate(items.schema.items()):
        rows = labels.get(name)
        if isinstance(task, Classification) and rows is not None:
            filled = np.flatnonzero(rows.lengths)
            codes[filled, column] = rows.values[rows.offsets[:-1][filled], 0]
    return codes


# -- limits ----------------------------------------------------------------------------------------------------------
def limits_of(section: LimitsSection, pool: Corpus, guesses: Mapping[str, Ragged], rounds: int = 1) -> Limits:
    """The limits of one or several rounds on the items of a pool."""

    def use(of: Mapping[str, ArrayLike]) -> FloatArray:
        """(items, tasks)"""
        return np.stack([np.broadcast_to(of.get(name, 0.0), len(pool)) for name in pool.schema], axis=1)

    sums = []
    for task, limit in section.tasks.items():
        most = np.inf if limit.at_most is None else float(rounds * limit.at_most)
        sums.append(Limit(f"labels of {task}", use({task: 1.0}), most, float(rounds * limit.at_least)))
    for who, hours in section.hours.items():
        taken = {task: pace.per_item + pace.per_word * pool.words for task, pace in hours.tasks.items()}
        sums.append(Limit(f"hours of {who}", use(taken), rounds * hours.at_most))
    if section.group is None or not len(pool):
        return Limits(tuple(sums))
    if section.group.by == "group":
        assert pool.groups is not None
        groups: Sequence[str] | IntArray = pool.groups.tolist()
    else:
        groups = _codes(pool, guesses)[:, list(pool.schema).index(section.group.by.removeprefix("label:"))]
    return Limits(tuple(sums), GroupCap.of(groups, rounds * section.group.at_most))


def open_labels(
    pool: Corpus, bought: Corpus, declined: Collection[tuple[str, str]] = (), asked: Collection[str] = ()
) -> BoolArray:
    """Which labels may still be bought, (items, tasks): not labelled, not declined, and no request for the item."""
    free = np.ones((len(pool), len(pool.schema)), dtype=bool)
    place = {item: at for at, item in enumerate(pool.ids.tolist())} if len(bought) or declined or asked else {}
    at = np.array([place.get(item, -1) for item in bought.ids.tolist()], dtype=np.int64)
    known = at >= 0
    for column, name in enumerate(pool.schema):
        free[at[known & bought.labels[name].present], column] = False
    for item, task in declined:
        if item in place:
            free[place[item], list(pool.schema).index(task)] = False
    free[[place[item] for item in asked if item in place]] = False
    return free


# -- planning ----------------------------------------------------------------------------------------------------------
SplitBudget = Callable[[RoundSettings, Candidates, int], RoundSplit]


@dataclass(eq=False)
class RoundPlanner:
    """Plans rounds of one campaign. The only decision it records is the split of a round's money between tasks."""

    state: CampaignState
    pool: IntArray
    audit: AuditPlan
    pricing: Pricing
    scoring: PoolScoring
    watcher: Observer

    def __post_init__(self) -> None:
        self.ledger, self.seed, self.corpus = self.state.ledger, self.state.config.seed, self.pricing.corpus
        self._space: UnitSpace | None = None

    def offer(
        self, terms: RoundSettings, known: Known, model: Learner | ScoredItems | None, split: SplitBudget | None = None
    ) -> Offer:
        """What the next round would buy: the audit slice, then the strategy's choice with the rest of the money.

        The choice is from items that an earlier model scored, if these are the ``model``; ``split`` divides it by task.
        """
        round, learner = known.round + 1, None if isinstance(model, ScoredItems) else model
        budget = self.state.allowance(round, terms)
        by_item = terms.config.budget.counts == "items"
        if terms.config.costs.pricing == "predicted" and not by_item:
            budget = int(budget / (1 + terms.config.costs.reserve))
        slice_ = self.audit.slice(round)
        prices = self.pricing.prices(slice_, learner or {}, terms.costs)
        cost = len(prices) if by_item else int(prices.joint().sum())
        if cost > budget:  # whole or not at all: part of a slice, chosen by price, would not be random
            slice_, prices, cost = slice_[:0], prices.take(slice_[:0]), 0
        items, pool, found = self._candidates(terms, known, model)
        seed, caps = round_seed(self.seed, round), None
        if terms.config.splits and split is not None and len(pool):
            chosen, caps = split(terms, pool, budget - cost).select(terms, pool, budget - cost, seed)
        else:
            chosen = terms.strategy.select(pool, budget - cost, seed=seed, in_items=by_item)
        measure = terms.strategy.measure if asks_the_model(terms) else None
        return Offer(round, budget, slice_, prices, items, pool, found, chosen, measure, caps)

    def split(self, known: Known, terms: RoundSettings, pool: Candidates, money: int) -> RoundSplit:
        """The split of the next round's money, recorded before it is used."""
        round = known.round + 1
        decided = self.ledger.decision(SplitDecision, round)
        worth = self.label_value(known, terms) if decided is None else decided.known
        split = allocator().split(terms, worth, pool, money)
        if decided is None:
            self.ledger.decide(split.decision(round))
        return split

    def label_value(self, known: Known, terms: RoundSettings) -> LabelValue:
        items, _ = self.free(known)
        return allocator().label_value(
            terms.config,
            known.annotated,
            bought_for(BY_NO_MODEL, known, self.ledger),
            self.corpus.take(items).unlabelled(),
            seed=round_seed(self.seed, known.round + 1),
            progress=partial(self.watcher.stage, known.round),
        )

    def _candidates(
        self, terms: RoundSettings, known: Known, model: Learner | ScoredItems | None
    ) -> tuple[IntArray, Candidates, Scored]:
        """The items that may still be bought: their positions in the corpus, the strategy's view, and their scores."""
        items, free = self.free(known)
        strategy, config = terms.strategy, terms.config
        if isinstance(model, ScoredItems):
            items, mine, theirs = np.intersect1d(items, model.items, return_indices=True)
            free, scored, learner = free[mine], model.scored.take(theirs), None
            pool = self.corpus.take(items)
        else:
            pool, learner = self.corpus.take(items), model
            if learner is not None and asks_the_model(terms):
                seed, progress = round_seed(self.seed, known.round), partial(self.watcher.stage, known.round)
                scored = self.scoring.scores(learner, strategy, pool, seed, progress)
            else:
                scored = Scored(np.zeros((len(items), len(self.corpus.schema))), self.pricing.gold(items))
        features = self._features(strategy, pool, scored, known, learner)
        limits = limits_of(config.limits, pool, scored.guesses, config.budget.rounds if strategy.once else 1)
        prices = self.pricing.prices(items, scored.guesses, terms.costs)
        return items, Candidates(pool.ids.tolist(), scored.confidence, prices, free, limits, features), scored

    def _features(
        self, strategy: Strategy, pool: Corpus, scored: Scored, known: Known, learner: Learner | None
    ) -> PoolFeatures:
        """The features that the strategy needs beside confidence, of the pool, of labelled and of development items."""
        needs, tasks = strategy.needs, self.corpus.schema
        vectors = None
        if learner is not None:
            vectors = partial(self.scoring.vectors, learner, progress=partial(self.watcher.stage, known.round))
        mine = item_features(needs, vectors, pool, scored.guesses)
        labelled, aside = ItemFeatures(), ItemFeatures()
        if strategy.matching is not None or "vectors" in needs:
            dev = known.dev if known.dev is not None else pool.take(np.zeros(0, dtype=np.int64))
            labelled, aside = (
                item_features(needs, vectors, part, {name: column.rows for name, column in part.labels.items()})
                for part in (known.bought, dev)
            )
        features = PoolFeatures(mine.words, mine.vectors, mine.labels, scored.beliefs, labelled, aside)
        if scored.doubts is None:
            return features
        if "doubt" in needs:
            features = replace(features, doubt=np.stack([scored.doubts[name].totals for name in tasks], axis=1))
        if "units" in needs and learner is not None:
            space = self._unit_space(known, learner)
            near = {name: space.labelled(task, known.bought, scored.doubts[name]) for name, task in tasks.items()}
            units = {name: space.units(pool, scored.doubts[name]) for name in tasks}
            features = replace(features, units=units, labelled=replace(labelled, units=near))
        return features

    def _unit_space(self, known: Known, learner: Learner) -> UnitSpace:
        """The vectors of units, computed once unless they depend on the newest model."""
        if self._space is None or not self._space.lasting or not self._space.holds(known.bought):
            all_items = np.union1d(self.pool, self.corpus.positions(known.bought.ids.tolist()))
            items = self.corpus.take(self.corpus.by_id(all_items))
            progress = partial(self.watcher.stage, known.round)
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
