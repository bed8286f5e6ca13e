"""The allocator of campaigns: the ``[allocation]`` table, the value of labels, and the split of a round's budget by it.

The value of labels is measured on all labels so far and recorded in the ledger, so that it is not measured again. The
split limits the number of labels of each task; the strategy selects the items within these limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from bursar.allocation import Informativeness, ReductionRate, Split, SplitEstimates, SplitProblem
from bursar.allocation.estimates import SMALLEST, UNKNOWN, tells_nothing
from bursar.allocation.informativeness import INFORMERS, Informer, make_informer
from bursar.allocation.rates import RATERS, SPAN, LabelCurve, Rater, Rates, RatingSettings, make_rater
from bursar.allocation.robust import METHODS
from bursar.allocation.split import typical_price
from bursar.campaign.config import CampaignConfig
from bursar.campaign.decisions import LabelValue, SplitDecision
from bursar.campaign.participants import Allocator
from bursar.campaign.round_planner import round_to
from bursar.campaign.sections import Section, TaskLimit
from bursar.campaign.state import RoundSettings
from bursar.corpus import Corpus
from bursar.errors import AllocationError, BursarError, ConfigError, InfeasibleError
from bursar.learners.features import can_train
from bursar.learners.frozen import frozen_encoder
from bursar.learners.learner import Learner, Progress, make_learner
from bursar.learners.probe import ProbeLearner
from bursar.selection import Candidates, Limit, Selection
from bursar.tasks import Task

NO_SPLIT = "none"
FEWEST = 20  # labels of a task needed for a measurement
TIMES = 4  # at most, that a round's budget is split again
STEEPEST = 2.0  # largest exponent by which the value of labels falls with their number


class AllocationSection(Section):
    """How a round's budget is split between tasks before items are selected."""

    paths = (("rater_settings", "law"),)
    method: str = "robust"  # because estimates are uncertain after a few rounds
    informer: str | None = None  # default: the fastest for the tasks
    rater: str | None = None  # default: learning curves of the labels of random items
    informer_settings: dict[str, Any] = Field(default_factory=dict)  # its options
    rater_settings: dict[str, Any] = Field(default_factory=dict)  # its options

    @model_validator(mode="after")
    def _known(self) -> AllocationSection:
        if self.method not in (*METHODS, NO_SPLIT):
            raise ConfigError(
                f"allocation.method = {self.method!r}", fix=f"use {', '.join(METHODS)}, or {NO_SPLIT!r} for no split"
            )
        for key, known in (("informer", INFORMERS), ("rater", RATERS)):
            name = getattr(self, key)
            if name is not None:
                name in known or known[name]  # a known one is not imported yet
            elif getattr(self, f"{key}_settings"):
                raise ConfigError(f"allocation.{key}_settings is set without a {key}", fix=f"set allocation.{key}")
        return self

    @classmethod
    def example(cls) -> Self:
        return cls(method=NO_SPLIT)


def allocation_settings(config: CampaignConfig) -> AllocationSection:
    """The table of a campaign, or the defaults if it has none."""
    return config.allocation if isinstance(config.allocation, AllocationSection) else AllocationSection()


# -- the value of labels ---------------------------------------------------------------------------------------------
def check_tasks(config: CampaignConfig, tasks: Mapping[str, Task]) -> None:
    """Refuse settings by which no budget could be split between these tasks."""
    if len(tasks) < 2:
        raise ConfigError(
            f"allocation: there is one task, {next(iter(tasks))!r}, and nothing to split", fix="remove [allocation]"
        )
    try:
        tools_of(config, tasks)[1].check_tasks(tasks)
    except BursarError as wrong:
        raise ConfigError(f"allocation: {wrong.message}", fix=wrong.fix) from None


def check_informer(config: CampaignConfig, tasks: Mapping[str, Task]) -> None:
    """Refuse an informer that does not support the campaign's learner, before any label is bought."""
    try:
        tools_of(config, tasks)[0].check(learner_of(config, tasks))
    except AllocationError as wrong:
        raise ConfigError(f"allocation.informer: {wrong.message}", fix=wrong.fix) from None


def measured(
    config: CampaignConfig, annotated: Corpus, drawn: Corpus, pool: Corpus, *, seed: int, progress: Progress
) -> LabelValue:
    """The numbers of labels, their rates and their informativeness.

    ``drawn`` are the items drawn at random: a curve over selected items would be biased by the selection. A task with
    too few labels has an unknown rate (0.5, from 0 to 1) and an informativeness of 0 ± 1.
    """
    labels, at_random = counts(annotated), counts(drawn)
    enough = [name for name in labels if at_random[name] >= FEWEST]
    informs: Informativeness | None = None
    rates: Rates = {}
    why = []
    if len(enough) > 1:  # a measurement may still fail for too few labels; the campaign goes on without it
        some, at_chance = annotated.with_tasks(enough), drawn.with_tasks(enough)
        informer, rater = tools_of(config, some.schema)
        try:
            informs = informer.measure(
                learner_of(config, some.schema),
                some,
                seed=seed,
                progress=lambda _, done: progress("who informs whom", done),
            )
        except AllocationError as wrong:
            why.append(wrong.message)
        how = RatingSettings(
            pool.with_tasks(enough), seed=seed, progress=lambda _, done: progress("how fast tasks saturate", done)
        )
        try:
            rates = present_rates(rater, learner_of(config, some.schema), some, at_chance, how)
        except AllocationError as wrong:
            why.append(wrong.message)
    if few := [name for name in labels if name not in enough]:
        why.append(f"there were too few labels of {', '.join(few)}")
    if silent := [name for name, rate in rates.items() if tells_nothing(rate)]:
        why.append(f"the labels of {', '.join(silent)} fit every rate")
    return LabelValue(
        labels=labels,
        rates={name: _rate(rates.get(name), labels[name]) for name in labels},
        informs={name: {to: _informs(informs, name, to) for to in labels if to != name} for name in labels},
        unknown=tuple(name for name in labels if name not in rates or name in silent),
        why="; ".join(dict.fromkeys(why)) or None,
    )


def label_limits(
    config: CampaignConfig, tasks: Sequence[str], rounds: int, room: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The minimum and maximum number of labels of each task in these rounds, capped by what is left."""
    limits = [config.limits.tasks.get(name, TaskLimit()) for name in tasks]
    return tuple(rounds * limit.at_least for limit in limits), tuple(
        left if limit.at_most is None else min(rounds * limit.at_most, left)
        for limit, left in zip(limits, room, strict=True)
    )


def counts(items: Corpus) -> dict[str, int]:
    """The number of labels of each task."""
    return {name: int(column.present.sum()) for name, column in items.labels.items()}


def present_rates(
    rater: Rater, learner: Learner, annotated: Corpus, drawn: Corpus | None, how: RatingSettings
) -> Rates:
    """The rates, for blocks of the present number of labels. Curves of real labels use those of ``drawn`` items."""
    of = drawn if isinstance(rater, LabelCurve) and drawn is not None else annotated
    labels, known = counts(annotated), counts(of)
    rates = rater.measure(learner, of, how)
    return {name: replace(rate, block=rate.block * labels[name] / known[name]) for name, rate in rates.items()}


def tools_of(config: CampaignConfig, tasks: Mapping[str, Task]) -> tuple[Informer, Rater]:
    """The informer and the rater, by default the fastest for these tasks."""
    section, quick = allocation_settings(config), can_probe(tasks)
    if section.informer is not None:
        informer = make_informer(section.informer, **section.informer_settings)
    elif quick:
        informer = make_informer("probe")
    else:
        informer = make_informer("alignment", repetitions=2, moments=2, until=0.25)
    if section.rater is not None:
        return informer, make_rater(section.rater, **section.rater_settings)
    return informer, LabelCurve(student="probe") if quick else LabelCurve(repetitions=2, points=3)


def can_probe(tasks: Mapping[str, Task]) -> bool:
    """Whether linear models on frozen features support all of these tasks."""
    return all(can_train(task) for task in tasks.values())


def learner_of(config: CampaignConfig, tasks: Mapping[str, Task]) -> Learner:
    """The learner for measurements: the campaign's, or a probe if that is supported and nothing else is configured."""
    section = allocation_settings(config)
    if config.learner.name != "probe" and section.informer is None and section.rater is None and can_probe(tasks):
        return ProbeLearner(tasks, encoder=frozen_encoder())
    return make_learner(config.learner.name, tasks, config.learner.options)


def _rate(rate: ReductionRate | None, labels: int) -> tuple[float, float, float, float]:
    known = rate or ReductionRate(UNKNOWN, SMALLEST, 1.0, max(1, labels))
    return _short(known.beta), _short(known.low), _short(known.high), _short(known.block)


def _informs(found: Informativeness | None, name: str, to: str) -> tuple[float, float]:
    """The value of a label to another task, and its standard error."""
    if found is None or name not in found.tasks or to not in found.tasks:
        return 0.0, 1.0
    pair = found.tasks.index(name), found.tasks.index(to)
    return _short(found.value[pair]), _short(found.error[pair])


def estimates_of(known: LabelValue, tasks: tuple[str, ...]) -> SplitEstimates:
    """A recorded measurement as the estimates of a split."""
    pairs = np.array([[known.informs[a].get(b, (1.0, 0.0)) for b in tasks] for a in tasks])
    informs = Informativeness(tasks, pairs[..., 0], pairs[..., 1])
    return SplitEstimates(informs, {name: ReductionRate(*known.rates[name]) for name in tasks})


def importance_of(known: LabelValue, tasks: Sequence[str], seed_items: int) -> tuple[float, ...]:
    """The value of a label of each task now, relative to one right after the seed.

    By its rate, the value falls to ``β^((SPAN − 1) · n / u)`` from ``n`` to ``SPAN · n`` labels. For a power law that
    is ``SPAN^−p``, so from the seed until now it fell to ``(seed / n)^p``. Without this, a task with ten times the
    labels would count as if it had as much to gain as one without any.
    """
    found = []
    for name in tasks:
        beta, _, _, block = known.rates[name]
        now = max(1, known.labels[name])
        power = min(STEEPEST, (SPAN - 1) * now / block * -math.log(beta) / math.log(SPAN))
        found.append((seed_items / now) ** power)
    return tuple(found)


def _short(value: float) -> float:
    """Rounded, so that a split is the same when computed again from the ledger."""
    return round(float(value), 6)


# -- the split of a round --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class BudgetSplit:
    """The split of a round's budget, and the estimates behind it."""

    split: Split
    known: LabelValue
    least: tuple[int, ...]  # minimums of the settings

    @classmethod
    def of(cls, terms: RoundSettings, known: LabelValue, pool: Candidates, money: int) -> BudgetSplit:
        """Split a budget between labels of this pool, within the limits of the settings."""
        rounds = terms.config.budget.rounds if terms.strategy.once else 1
        least, most = label_limits(terms.config, pool.tasks, rounds, pool.open.sum(axis=0).tolist())
        each = pool.prices.reading[:, None] + pool.prices.own
        alone = tuple(typical_price(each[pool.open[:, at], at]) for at in range(each.shape[1]))
        try:
            problem = SplitProblem(
                estimates_of(known, pool.tasks),
                prices=alone,
                budget=money,
                least=payable(least, alone, money),
                most=most,
                joint=typical_price(pool.prices.joint()),
                costs=terms.costs,
                importance=importance_of(known, pool.tasks, terms.config.budget.seed_items),
                items=int(pool.open.all(axis=1).sum()),
            )
            return cls(_split(problem, allocation_settings(terms.config).method), known, least)
        except AllocationError as wrong:
            raise InfeasibleError(wrong.message, fix=wrong.fix) from None

    @property
    def caps(self) -> dict[str, int]:
        """The number of labels of each task that may be bought: the split's, but at least the minimum."""
        bought = zip(self.split.tasks, self.split.counts, self.least, strict=True)
        return {name: max(count, least) for name, count, least in bought}

    @property
    def set_aside(self) -> bool:
        """Whether the measured informativeness was ignored because by it no label has any value."""
        measured = replace(self.split.problem, estimates=estimates_of(self.known, self.split.tasks))
        return not (measured.worth > 0).any()

    def paying(self, prices: Mapping[str, int]) -> BudgetSplit:
        """The split of the same budget if some tasks have other prices."""
        problem = self.split.problem
        now = tuple(prices.get(name, before) for name, before in zip(problem.tasks, problem.prices, strict=True))
        least = payable(self.least, now, problem.budget)
        return replace(self, split=_split(replace(problem, prices=now, least=least), self.split.method))

    def select(self, terms: RoundSettings, pool: Candidates, money: int, seed: int) -> tuple[Selection, dict[str, int]]:
        """The strategy's selection within the split, and the limits of each task.

        The first split uses mean prices of single labels. The strategy may select more or less expensive items, and
        items for several tasks are read once. So the budget is split again at the prices of the selected labels, until
        that changes nothing.
        """
        split = self
        for time in range(TIMES):
            chosen = terms.strategy.select(capped(pool, split.caps), money, seed=seed)
            again = split.paying(paid(pool, chosen))
            if time == TIMES - 1 or again.caps == split.caps:
                break
            split = again
        return chosen, split.caps

    def decision(self, round: int) -> SplitDecision:
        problem = self.split.problem
        return SplitDecision(
            round=round,
            method=self.split.method,
            money=problem.budget,
            prices=dict(zip(problem.tasks, problem.prices, strict=True)),
            worth={name: round_to(worth) for name, worth in zip(problem.tasks, problem.first, strict=True)},
            labels=self.caps,
            gain=round_to(self.split.total),
            known=self.known,
            set_aside=self.set_aside,
        )


def payable(least: tuple[int, ...], prices: tuple[int, ...], money: int) -> tuple[int, ...]:
    """Minimums that the budget pays for without shared reading; the strategy, which may share it, enforces all."""
    cost = sum(price * count for price, count in zip(prices, least, strict=True))
    return least if cost <= money else tuple(count * money // cost for count in least)


def _split(problem: SplitProblem, method: str) -> Split:
    """Split by the method. If no label has any value, informativeness is ignored, because it may be wrong."""
    if not (problem.worth > 0).any():
        problem = replace(problem, estimates=problem.estimates.alone())
    return METHODS[method](problem)


def paid(pool: Candidates, chosen: Selection) -> dict[str, int]:
    """The mean price of a selected label of each task; the tasks of an item share the price of reading it."""
    prices, tasks = pool.prices.take(chosen.items), chosen.tasks
    share = prices.reading / np.maximum(1, tasks.sum(axis=1))
    costs = np.where(tasks, share[:, None] + prices.own, 0.0).sum(axis=0)
    return {
        name: max(1, math.ceil(cost / many - 1e-9))
        for name, cost, many in zip(pool.tasks, costs.tolist(), tasks.sum(axis=0).tolist(), strict=True)
        if many
    }


def capped(pool: Candidates, caps: Mapping[str, int]) -> Candidates:
    """The pool with a maximum number of labels for each task."""
    sums = list(pool.limits.sums)
    for at, name in enumerate(pool.tasks):
        use = np.broadcast_to(np.eye(len(pool.tasks))[at], (len(pool), len(pool.tasks)))
        sums.append(Limit(f"the split's labels of {name}", use, float(caps[name])))
    return replace(pool, limits=replace(pool.limits, sums=tuple(sums)))


class AllocationAdviser:
    """The allocator of campaigns with an ``[allocation]`` table."""

    section = AllocationSection
    check = staticmethod(check_tasks)
    check_learner = staticmethod(check_informer)
    label_value = staticmethod(measured)
    split = staticmethod(BudgetSplit.of)

    def splits(self, settings: Section) -> bool:
        return isinstance(settings, AllocationSection) and settings.method != NO_SPLIT


ADVISER: Allocator = AllocationAdviser()
