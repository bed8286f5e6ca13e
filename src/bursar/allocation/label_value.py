"""The ``[allocation]`` table of a campaign, and the value of labels: informativeness of tasks, and reduction rates.

It is measured on all labels so far and recorded in the ledger, so that it is not measured again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from bursar.allocation import Informativeness, ReductionRate, SplitEstimates
from bursar.allocation.curves import SPAN, LabelCurve
from bursar.allocation.estimates import SMALLEST, UNKNOWN, tells_nothing
from bursar.allocation.informativeness import INFORMERS, Informer, make_informer
from bursar.allocation.rates import RATERS, Rater, Rates, RatingSettings, make_rater
from bursar.allocation.robust import METHODS
from bursar.campaign.config import CampaignConfig
from bursar.campaign.decisions import LabelValue
from bursar.campaign.sections import Section, TaskLimit
from bursar.corpus import Corpus
from bursar.errors import AllocationError, BursarError, ConfigError
from bursar.learners.features import can_train
from bursar.learners.frozen import frozen_encoder
from bursar.learners.learner import Learner, Progress, make_learner
from bursar.learners.probe import ProbeLearner
from bursar.tasks import Task

NO_SPLIT = "none"
FEWEST = 20  # labels of a task needed for a measurement
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
    """The fewest and the most labels of each task in these rounds, if there is room for so many."""
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
