"""Asking how to split a budget between the tasks of a campaign: what its seed labels say, and at which prices."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bursar.allocation import Context, SplitEstimates, SplitProblem
from bursar.allocation.curves import LabelCurve
from bursar.allocation.informativeness import Informer, make_informer
from bursar.allocation.label_value import can_probe, counts, for_blocks_of, importance_of
from bursar.allocation.methods import METHODS
from bursar.allocation.rates import make_rater
from bursar.allocation.seeds import taken_apart
from bursar.allocation.settings import AllocationSection, allocation_settings
from bursar.campaign.annotators import GoldAnnotator
from bursar.campaign.campaign import Campaign
from bursar.campaign.config import CampaignConfig
from bursar.campaign.decisions import LabelValue
from bursar.campaign.runs import Run
from bursar.campaign.splits import DataSplits, fully_labelled, load_parts
from bursar.campaign.state import BY_NO_MODEL
from bursar.corpus import Corpus
from bursar.errors import AllocationError, ConfigError
from bursar.learners.learner import Learner, Progress, make_learner, no_progress
from bursar.ragged import IntArray
from bursar.tasks import CostModel
from bursar.tasks.costs import counts_of

HELD_OUT = 0.25  # of the seed items, which the seed scores are of
SIMULATED = 0.5  # of a pool: if more of its items than that have all labels, these are the answers of a simulation
SOME = 20  # labels of a task that are asked for where there are none


@dataclass(frozen=True, eq=False)
class SplitInputs:
    """The labels of a campaign, the items that have none, and at which prices more can be bought."""

    config: CampaignConfig
    costs: CostModel
    annotated: Corpus
    pool: Corpus
    drawn: Corpus | None = None  # of a run: the items that were drawn at random, which curves of labels go by

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.annotated.schema)

    @property
    def room(self) -> tuple[int, ...]:
        """How many more labels of each task there can be."""
        return tuple(len(self.pool) + int((~column.present).sum()) for column in self.annotated.labels.values())

    @property
    def method(self) -> str:
        """How it is split if nobody says: as the campaign's rounds are, or else with items for all tasks."""
        section = self.config.allocation
        return section.method if isinstance(section, AllocationSection) and section.method in METHODS else "together"

    def learner(self) -> Learner:
        """The campaign's learner, which has learned nothing yet."""
        return make_learner(self.config.learner.name, self.annotated.schema, self.config.learner.options)

    def problem(self, money: Any, estimates: SplitEstimates, importance: tuple[float, ...] = ()) -> SplitProblem:
        """The split of so much money by some estimates, at the campaign's prices and within its limits."""
        config, items, costs = self.config, self.annotated, self.costs
        tasks = list(items.schema.values())
        labels = {name: column.rows for name, column in items.labels.items()}
        prices = costs.price(tasks, items.reading, counts_of(tasks, labels))
        known = [np.flatnonzero(items.labels[name].present) for name in items.schema]
        alone = [_mean(prices.reading[there] + prices.own[there, at]) for at, there in enumerate(known)]
        joint = _mean(prices.reading) + sum(_mean(prices.own[there, at]) for at, there in enumerate(known))
        limits, rounds = config.limits.tasks, max(1, config.budget.rounds)  # limits are those of a round
        caps = [limits[name].at_most if name in limits else None for name in items.schema]
        return SplitProblem(
            estimates,
            prices=tuple(_typical(price) for price in alone),
            budget=costs.units(money),
            least=tuple(rounds * limits[name].at_least if name in limits else 0 for name in items.schema),
            most=tuple(
                room if cap is None else min(rounds * cap, room) for cap, room in zip(caps, self.room, strict=True)
            ),
            joint=_typical(joint),
            costs=costs,
            importance=importance,
            items=len(self.pool),
        )

    def check(self, money: Any, method: str) -> SplitProblem:
        """Refuse money that no split of this method can be made of, whatever estimates say: nobody measures in vain."""
        _check(self)
        return METHODS[method](self.problem(money, SplitEstimates.unknown(self.tasks))).problem


@dataclass(frozen=True)
class MeasuredInputs:
    """What a split goes by, as it was measured."""

    material: SplitInputs
    estimates: SplitEstimates
    scores: dict[str, float]  # of a model of three quarters of the seed items, on those of the others with labels
    rater: str  # by which the rates were measured

    def problem(self, money: Any) -> SplitProblem:
        """The split of so much money, at the campaign's prices and within its limits."""
        return self.material.problem(money, self.estimates, self.importance)

    @property
    def importance(self) -> tuple[float, ...]:
        """Of a run: what a label of each task is worth now, over one right after the seed, as its own rounds count."""
        tasks = self.material.tasks
        if self.material.drawn is None:
            return (1.0,) * len(tasks)
        rates = {name: (r.beta, r.low, r.high, r.block) for name, r in self.estimates.rates.items()}
        known = LabelValue(labels=counts(self.material.annotated), rates=rates)
        return importance_of(known, tasks, self.material.config.budget.seed_items)

    @property
    def context(self) -> Context:
        return Context(self.scores)


def inputs_of_run(folder: Path) -> SplitInputs:
    """What a run has been told so far."""
    run = Run.open(folder)
    if not run.has_ledger(run.arms[0]):
        raise AllocationError(f"{folder} has bought nothing yet", fix="ask about the campaign's file instead")
    campaign = run.campaign(run.arms[0])
    try:
        return _material(campaign)
    finally:
        campaign.close()


def inputs_of(config: CampaignConfig) -> SplitInputs:
    """The seed labels of a campaign that has not begun.

    Where most items of the pool have all labels, these are the answers of a simulation, which nobody would have
    beforehand: those of its seed items are looked at. Otherwise they are what is labelled already, and all of it is.
    """
    config = config.model_copy(update={"ledger": None})  # nothing is begun where the campaign will be kept
    parts = load_parts(config)
    if len(fully_labelled(parts.corpus, parts.pool)) > SIMULATED * len(parts.pool):
        return _simulated(config, parts)
    pool = parts.corpus.take(parts.pool)
    some = np.any([column.present for column in pool.labels.values()], axis=0)
    labelled, rest = (pool.take(np.flatnonzero(part)) for part in (some, ~some))
    return SplitInputs(config, config.costs.model(pool.schema.values()), labelled, rest)


def _simulated(config: CampaignConfig, parts: DataSplits) -> SplitInputs:
    """The seed items of a simulation, with their gold labels."""
    gold = config.costs.model_copy(update={"pricing": "gold"})  # so that only items with all labels are drawn
    with TemporaryDirectory(prefix="bursar-") as folder:
        campaign = Campaign(config.model_copy(update={"costs": gold}), Path(folder), parts=parts)
        try:
            annotator = GoldAnnotator(campaign.corpus)
            ask = campaign.ask()
            for want in ask.items if ask is not None else ():
                campaign.tell({want.id: annotator.annotate(want.id, want.tasks)}, annotator.name)
            return replace(_material(campaign), drawn=None)  # it is no run yet
        finally:
            campaign.close()


def measure(
    material: SplitInputs,
    *,
    informer: str | None = None,
    rater: str | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> MeasuredInputs:
    """Who informs whom, how fast each task saturates, and how hard each is, from the seed labels.

    An informer or rater that is not named is the campaign's. If that names none, it is a look-ahead, or a probe where
    the learner has no steps; and curves of real labels in a run, of guessed ones before it where there are items to
    guess labels of.
    """
    _check(material)
    section = allocation_settings(material.config)
    learner, items = material.learner(), material.annotated
    informing = _informer(section, informer, learner)
    curve = "ledger" if material.drawn is not None or not len(material.pool) else "pseudo-labels"
    rating = make_rater(rater or section.rater or curve, **_settings(section, rater, "rater"))
    informing.check(learner)
    rating.check(material.pool)
    rating.check_tasks(material.tasks)
    informs = informing.measure(
        learner, items, seed=seed, progress=lambda what, done: progress("who informs whom", done)
    )
    of = material.drawn if isinstance(rating, LabelCurve) and material.drawn is not None else items
    rates = rating.measure(
        material.learner(),
        of,
        pool=material.pool,
        seed=seed,
        progress=lambda what, done: progress("how fast tasks saturate", done),
    )
    rates = for_blocks_of(counts(items), counts(of), rates)
    progress("how hard tasks are", 0.0)
    scores = _seed_scores(learner, items, seed)
    progress("how hard tasks are", 1.0)
    return MeasuredInputs(material, SplitEstimates(informs, rates), scores, rating.name)


def _informer(section: AllocationSection, given: str | None, learner: Learner) -> Informer:
    """The one that is named, or a look-ahead where that can be."""
    if given or section.informer:
        return make_informer(given or section.informer or "", **_settings(section, given, "informer"))
    found = make_informer("lookahead")
    try:
        found.check(learner)
    except AllocationError:
        if can_probe(learner.tasks):
            return make_informer("probe")
    return found


def _settings(section: AllocationSection, given: str | None, what: str) -> dict[str, Any]:
    """What the campaign says of its informer or rater, if that is the one."""
    mine: dict[str, Any] = getattr(section, f"{what}_settings")
    return mine if given in (None, getattr(section, what)) else {}


def _material(campaign: Campaign) -> SplitInputs:
    annotated = campaign.ledger.view()
    bought = set(annotated.ids.tolist())
    pool = campaign.corpus.take(campaign.pool)
    rest = np.array([at for at, item in enumerate(pool.ids.tolist()) if item not in bought], dtype=np.int64)
    terms = campaign.state.terms()  # the settings and prices in force, which are not always those of the beginning
    drawn = campaign.ledger.bought(purposes=BY_NO_MODEL)
    at_random = campaign.ledger.view(drawn) if drawn else annotated
    return SplitInputs(terms.config, terms.costs, annotated, pool.take(rest).unlabelled(), at_random)


def _check(material: SplitInputs) -> None:
    if len(material.tasks) < 2:
        raise ConfigError(
            f"there is one task, {material.tasks[0]!r}: nothing to split", fix="name two tasks or more in the campaign"
        )
    bare = [name for name, column in material.annotated.labels.items() if not column.present.any()]
    if bare:
        has, it = ("task {} has", "it") if len(bare) == 1 else ("tasks {} have", "each of them")
        others = [name for name in material.tasks if name not in bare]
        without = f", or go without: tasks = {others}" if len(others) > 1 else ""
        raise AllocationError(
            f"{has.format(', '.join(map(repr, bare)))} no seed labels, so nothing is known of what more would be worth",
            fix=f"label about {SOME} items of the split {material.config.corpus.pool!r} for {it}, "
            f"or annotate the first round{without}",
        )
    if not any(material.room):
        raise AllocationError("all items are labelled for all tasks: there is nothing to buy", fix="add some items")


def _seed_scores(learner: Learner, items: Corpus, seed: int) -> dict[str, float]:
    """The main score of each task on held-out seed items; none of a task that none of them is labelled for."""
    try:
        parts = taken_apart(items, (1 - HELD_OUT, HELD_OUT), np.random.default_rng([seed, 61]))
    except AllocationError:  # too few labels of a task for both parts: then nothing is said of how hard tasks are
        return {}
    trained, held = (items.take(part) for part in parts)
    learner.fit(trained, seed=seed)
    scores = learner.evaluate(held)
    found = {name: mine.get(learner.tasks[name].metric, 0.0) for name, mine in scores.items()}
    return {name: min(1.0, max(0.0, score)) for name, score in found.items()}


def _mean(prices: IntArray) -> Fraction:
    return Fraction(int(prices.sum()), max(1, len(prices)))


def _typical(price: Fraction) -> int:
    """In whole units, rounded up: a split must not promise more labels than the money buys."""
    return max(1, math.ceil(price))
