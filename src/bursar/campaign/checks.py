"""Checks that a campaign's learner supports its strategies, before anything is bought or trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from bursar.campaign.participants import allocator
from bursar.campaign.sections import LimitsSection
from bursar.corpus import Corpus
from bursar.errors import ConfigError
from bursar.learners.learner import LEARNERS, PASSES, gives
from bursar.registry import suggestion
from bursar.selection import STRATEGIES, Strategy
from bursar.selection.strategy import split_name
from bursar.tasks import Classification, Task

if TYPE_CHECKING:
    from bursar.campaign.config import CampaignConfig

SHOWN = 8  # names of suitable strategies in a message


def check_arms(config: CampaignConfig, corpus: Corpus) -> None:
    """Refuse a campaign if its strategy, or one that it is compared with, does not fit the learner or the corpus."""
    check_served(config)
    for name in (config.strategy.name, *config.compare):
        arm = config.arm(name)
        check_features(strategy_in_use(arm), corpus.schema, arm.limits, corpus.groups is not None)


def check_served(config: CampaignConfig, *, beside: bool = True) -> None:
    """Refuse a strategy that needs what the learner does not give, and with ``beside`` those it is compared with."""
    for name in (config.strategy.name, *(config.compare if beside else ())):
        strategy = strategy_in_use(config.arm(name))
        if lacking := lacks(config, strategy):
            needs = f"strategy {strategy.name} needs {' and '.join(sorted(lacking))}"
            message = f"{needs}, which the learner {config.learner.name!r} does not give"
            raise ConfigError(message, fix=_way_out(config, lacking))


def check_features(strategy: Strategy, tasks: Mapping[str, Task], limits: LimitsSection, has_groups: bool) -> None:
    """Refuse strategies and limits that do not fit the tasks."""
    wanted = [("strategy.name", strategy.task)] if strategy.task is not None else []
    wanted += [("strategy.weights", task) for task in strategy.weights]
    wanted += [("limits.tasks", task) for task in limits.tasks]
    wanted += [(f"limits.hours.{who}", task) for who, hours in limits.hours.items() for task in hours.tasks]
    bins = strategy.matching.by if strategy.matching is not None else None
    by = [("strategy.bins", bins), ("limits.group.by", limits.group.by if limits.group is not None else None)]
    labels = [(key, str(name).removeprefix("label:")) for key, name in by if str(name).startswith("label:")]
    for key, task in wanted + labels:
        if task not in tasks:
            hint = suggestion(task, tasks)
            raise ConfigError(f"{key}: there is no task {task!r}", fix=f"{hint}The tasks are {', '.join(tasks)}")
    for key, task in labels:
        if not isinstance(tasks[task], Classification):
            raise ConfigError(f"{key}: task {task!r} has more than one label an item", fix="use a classification task")
    if strategy.one_label and not any(isinstance(task, Classification) for task in tasks.values()):
        message = f"strategy {strategy.name} needs a task with one label an item, and none of {', '.join(tasks)} is one"
        raise ConfigError(message, fix="add a classification task, or use BALD")
    if limits.group is not None and limits.group.by == "group" and not has_groups:
        raise ConfigError("limits.group: the items of this corpus have no groups", fix="use by = 'label:TASK'")


def check_split(config: CampaignConfig, tasks: Mapping[str, Task]) -> None:
    """Refuse a split of the money that does not fit these tasks."""
    if config.splits:
        allocator().check(config, tasks)


def strategy_in_use(config: CampaignConfig) -> Strategy:
    """The campaign's strategy, or its fallback if the learner lacks what it asks for."""
    made = config.strategy.make()
    if made.fallback is None or not _missing(config, made):
        return made
    others = split_name(config.strategy.name)[1]
    section = config.strategy.model_copy(update={"name": "+".join([made.fallback, *others])})
    return replace(section.make(), name=made.name, start="random")


def fallback_notice(config: CampaignConfig) -> str | None:
    """The strategy's fallback and the reason, as a sentence; ``None`` if it has no need of it."""
    made = config.strategy.make()
    if made.fallback is None or not (lacking := _missing(config, made)):
        return None
    return (
        f"{made.name.lower()}: the learner {config.learner.name!r} gives no {' and no '.join(sorted(lacking))}, "
        f"so items are chosen by {made.fallback} after a random start."
    )


def _missing(config: CampaignConfig, strategy: Strategy) -> frozenset[str]:
    return strategy.asks - (gives(config.learner.name, config.learner.options) or frozenset())


def lacks(config: CampaignConfig, strategy: Strategy) -> frozenset[str]:
    """What a strategy needs and the learner is known not to give."""
    given = gives(config.learner.name, config.learner.options)
    return frozenset() if given is None else strategy.asks - given


def _way_out(config: CampaignConfig, lacking: frozenset[str]) -> str:
    learner = config.learner
    ways = []
    if PASSES in lacking and not lacking - (gives(learner.name, {**learner.options, "dropout": 0.5}) or frozenset()):
        ways.append("set learner.dropout = 0.5")
    if others := [name for name in LEARNERS if not lacking - (gives(name) or frozenset())]:
        ways.append(f"use a learner that does: {_listed(others)}")
    served = [name for name in STRATEGIES if not lacks(config, STRATEGIES[name])]
    names = ", ".join(served[:SHOWN]) + (", …" if len(served) > SHOWN else "")
    return "; or ".join([*ways, f"a strategy that needs none: {names}" if ways else f"use a strategy such as {names}"])


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
