"""The inputs for splitting the budget of a campaign: measurements on its labels, and its prices and limits."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bursar.allocation import Context, SplitEstimates, SplitProblem
from bursar.allocation.adviser import (
    AllocationSection,
    allocation_settings,
    can_probe,
    counts,
    importance_of,
    label_limits,
    present_rates,
)
from bursar.allocation.informativeness import Informer, make_informer, taken_apart
from bursar.allocation.rates import RatingSettings, make_rater
from bursar.allocation.robust import METHODS
from bursar.allocation.split import typical_price
from bursar.campaign.campaign import Campaign
from bursar.campaign.config import CampaignConfig
from bursar.campaign.decisions import LabelValue
from bursar.campaign.participants import GoldAnnotator
from bursar.campaign.runs import Run
from bursar.campaign.splits import DataSplits, fully_labelled, load_parts
from bursar.campaign.state import BY_NO_MODEL
from bursar.corpus import Corpus
from bursar.errors import AllocationError, ConfigError
from bursar.learners.learner import Learner, Progress, make_learner, no_progress
from bursar.random_streams import rng
from bursar.tasks import CostModel
from bursar.tasks.costs import counts_of

HELD_OUT = 0.25  # share of the seed items on which seed scores are measured
SIMULATED = 0.5  # a pool with a larger share of fully labelled items is one of a simulation
SOME = 20  # recommended labels for a task without any


@dataclass(frozen=True, eq=False)
class SplitInputs:
    """The labels of a campaign, its unlabelled items, and the prices of further labels."""

    config: CampaignConfig
    costs: CostModel
    annotated: Corpus
    pool: Corpus
    drawn: Corpus | None = None  # of a run: the items drawn at random, for learning curves

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.annotated.schema)

    @property
    def room(self) -> tuple[int, ...]:
        """The number of labels of each task that can still be bought."""
        return tuple(len(self.pool) + int((~column.present).sum()) for column in self.annotated.labels.values())

    @property
    def method(self) -> str:
        """The default method: that of the campaign's rounds, else with items for all tasks."""
        section = self.config.allocation
        return section.method if isinstance(section, AllocationSection) and section.method in METHODS else "together"

    def learner(self) -> Learner:
        return make_learner(self.config.learner.name, self.annotated.schema, self.config.learner.options)

    def problem(self, money: Any, estimates: SplitEstimates, importance: tuple[float, ...] = ()) -> SplitProblem:
        """The problem of splitting a budget at the campaign's prices and within its limits."""
        items, costs = self.annotated, self.costs
        labels = {name: column.rows for name, column in items.labels.items()}
        prices = costs.price(list(items.schema.values()), items.reading, counts_of(list(items.schema.values()), labels))
        known = [np.flatnonzero(items.labels[name].present) for name in items.schema]
        own = [prices.own[there, at] for at, there in enumerate(known)]
        rounds = max(1, self.config.budget.rounds)  # limits are per round
        least, most = label_limits(self.config, self.tasks, rounds, self.room)
        return SplitProblem(
            estimates,
            prices=tuple(typical_price(prices.reading[there] + of) for there, of in zip(known, own, strict=True)),
            budget=costs.units(money),
            least=least,
            most=most,
            joint=typical_price(prices.reading, *own),
            costs=costs,
            importance=importance,
            items=len(self.pool),
        )

    def check(self, money: Any, method: str) -> SplitProblem:
        """Refuse a budget that cannot be split whatever the estimates, before anything is measured."""
        _check(self)
        return METHODS[method](self.problem(money, SplitEstimates.unknown(self.tasks))).problem


@dataclass(frozen=True)
class MeasuredInputs:
    """Measured estimates, and the problems they define."""

    inputs: SplitInputs
    estimates: SplitEstimates
    scores: dict[str, float]  # of a model of three quarters of the seed items, on the others
    rater: str

    def problem(self, money: Any) -> SplitProblem:
        return self.inputs.problem(money, self.estimates, self.importance)

    @property
    def importance(self) -> tuple[float, ...]:
        """Of a run: the value of a label of each task now, relative to one right after the seed."""
        if self.inputs.drawn is None:
            return ()
        rates = {name: (r.beta, r.low, r.high, r.block) for name, r in self.estimates.rates.items()}
        known = LabelValue(labels=counts(self.inputs.annotated), rates=rates)
        return importance_of(known, self.inputs.tasks, self.inputs.config.budget.seed_items)

    @property
    def context(self) -> Context:
        return Context(self.scores)


def inputs_of_run(folder: Path) -> SplitInputs:
    """The inputs of a run, with all its labels so far."""
    run = Run.open(folder)
    if not run.has_ledger(run.arms[0]):
        raise AllocationError(f"{folder} has bought nothing yet", fix="name the campaign's file instead")
    with closing(run.campaign(run.arms[0])) as campaign:
        return _inputs_of(campaign)


def inputs_of(config: CampaignConfig) -> SplitInputs:
    """The inputs of a campaign that has not started, with all existing labels.

    If most of the pool has all labels, they are gold labels of a simulation; only those of the seed items are used.
    """
    config = config.model_copy(update={"ledger": None})  # so that no ledger is created
    parts = load_parts(config)
    if len(fully_labelled(parts.corpus, parts.pool)) > SIMULATED * len(parts.pool):
        return _simulated(config, parts)
    pool = parts.corpus.take(parts.pool)
    some = np.any([column.present for column in pool.labels.values()], axis=0)
    labelled, rest = (pool.take(np.flatnonzero(part)) for part in (some, ~some))
    return SplitInputs(config, config.costs.model(pool.schema.values()), labelled, rest)


def _simulated(config: CampaignConfig, parts: DataSplits) -> SplitInputs:
    """The seed items of a simulation, with their gold labels."""
    gold = config.costs.model_copy(update={"pricing": "gold"})  # so that only fully labelled items are drawn
    config = config.model_copy(update={"costs": gold})
    with (
        TemporaryDirectory(prefix="bursar-") as folder,
        closing(Campaign(config, Path(folder), parts=parts)) as campaign,
    ):
        annotator, ask = GoldAnnotator(campaign.corpus), campaign.ask()
        for want in ask.items if ask is not None else ():
            campaign.tell({want.id: annotator.annotate(want.id, want.tasks)}, annotator.name)
        return replace(_inputs_of(campaign), drawn=None)  # not a run


def measure(
    inputs: SplitInputs,
    *,
    informer: str | None = None,
    rater: str | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> MeasuredInputs:
    """Measure informativeness, reduction rates and seed scores on the labels.

    The default informer and rater are the campaign's. If it names none, the informer is a look-ahead, or a probe if the
    learner has no training steps; the rater uses learning curves of real labels in a run or without unlabelled items,
    else of pseudo-labels.
    """
    _check(inputs)
    section = allocation_settings(inputs.config)
    learner, items = inputs.learner(), inputs.annotated
    informing = _informer(section, informer, learner)
    curve = "ledger" if inputs.drawn is not None or not len(inputs.pool) else "pseudo-labels"
    rating = make_rater(rater or section.rater or curve, **_settings(section, rater, "rater"))
    informing.check(learner)
    rating.check(inputs.pool)
    rating.check_tasks(inputs.tasks)
    informs = informing.measure(learner, items, seed=seed, progress=lambda _, done: progress("who informs whom", done))
    how = RatingSettings(inputs.pool, seed=seed, progress=lambda _, done: progress("how fast tasks saturate", done))
    rates = present_rates(rating, inputs.learner(), items, inputs.drawn, how)
    progress("how hard tasks are", 0.0)
    scores = _seed_scores(learner, items, seed)
    progress("how hard tasks are", 1.0)
    return MeasuredInputs(inputs, SplitEstimates(informs, rates), scores, rating.name)


def _informer(section: AllocationSection, given: str | None, learner: Learner) -> Informer:
    """The named informer, or a look-ahead if the learner supports it."""
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
    """The campaign's settings of its informer or rater, if that one is used."""
    mine: dict[str, Any] = getattr(section, f"{what}_settings")
    return mine if given in (None, getattr(section, what)) else {}


def _inputs_of(campaign: Campaign) -> SplitInputs:
    annotated = campaign.ledger.view()
    bought = set(annotated.ids.tolist())
    pool = campaign.corpus.take(campaign.pool)
    rest = np.array([at for at, item in enumerate(pool.ids.tolist()) if item not in bought], dtype=np.int64)
    terms = campaign.state.terms()  # current settings and prices, which may have changed
    drawn = campaign.ledger.bought(purposes=BY_NO_MODEL)
    at_random = campaign.ledger.view(drawn) if drawn else annotated
    return SplitInputs(terms.config, terms.costs, annotated, pool.take(rest).unlabelled(), at_random)


def _check(inputs: SplitInputs) -> None:
    if len(inputs.tasks) < 2:
        raise ConfigError(
            f"there is one task, {inputs.tasks[0]!r}: nothing to split", fix="name two tasks or more in the campaign"
        )
    bare = [name for name, column in inputs.annotated.labels.items() if not column.present.any()]
    if bare:
        has, it = ("task {} has", "it") if len(bare) == 1 else ("tasks {} have", "each of them")
        others = [name for name in inputs.tasks if name not in bare]
        without = f", or go without: tasks = {others}" if len(others) > 1 else ""
        raise AllocationError(
            f"{has.format(', '.join(map(repr, bare)))} no seed labels, so the value of more is unknown",
            fix=f"label about {SOME} items of the split {inputs.config.corpus.pool!r} for {it}, "
            f"or annotate the first round{without}",
        )
    if not any(inputs.room):
        raise AllocationError("all items are labelled for all tasks: there is nothing to buy", fix="add items")


def _seed_scores(learner: Learner, items: Corpus, seed: int) -> dict[str, float]:
    """The main score of each task on held-out seed items, if there are enough."""
    try:
        trained, held = taken_apart(items, (1 - HELD_OUT, HELD_OUT), rng(seed, "seed score parts"))
    except AllocationError:  # too few labels of a task for both parts
        return {}
    learner.fit(items.take(trained), seed=seed)
    scores = learner.evaluate(items.take(held)).items()
    return {name: min(1.0, max(0.0, mine.get(learner.tasks[name].metric, 0.0))) for name, mine in scores}
