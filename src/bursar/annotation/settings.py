"""The settings of the next round: what they are, what they cost, changes by leads, and what a lead may choose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bursar.allocation.adviser import NO_SPLIT
from bursar.allocation.robust import METHODS
from bursar.annotation.answers import LedgerMirror
from bursar.campaign.campaign import Campaign
from bursar.campaign.checks import lacks
from bursar.campaign.config import CampaignConfig
from bursar.campaign.decisions import SettingChange
from bursar.campaign.participants import GoldAnnotator
from bursar.campaign.pricing import measured_rates, usual_rates
from bursar.campaign.setting_changes import FIXED, changed_config, check_changed_config
from bursar.ledger.schema import now
from bursar.selection import STRATEGIES, Strategy, make_strategy
from bursar.selection.strategy import DECISIONS, FAMILIES, MATCHING, split_name
from bursar.tasks import Classification, CostModel, Task


class SessionSettings:
    """The settings of a campaign with human annotators. Thread-safe."""

    def __init__(self, campaign: Campaign, mirror: LedgerMirror) -> None:
        self._config, self._corpus = campaign.config, campaign.corpus
        self._ledger, self._state, self._mirror = campaign.ledger, campaign.state, mirror
        self._speed: tuple[int, dict[str, Any]] | None = None  # and the number of writes before it was measured

    @property
    def in_force(self) -> CampaignConfig:
        """The settings of the next round."""
        return self._mirror.terms.config

    @property
    def costs(self) -> CostModel:
        """The prices of the latest round."""
        return self._state.terms_of(self._state.rounds_opened).costs

    def change(self, changes: Mapping[str, Any], by: str, key: str | None = None) -> None:
        """Change the budget, prices, strategy or limits from the next round on. The same key again changes nothing."""
        with self._mirror.writing():
            earlier = self._state.setting_changes()
            if key is not None and any(made.key == key for made in earlier):
                return
            self.check(changes)
            number = len(earlier) + 1
            self._ledger.decide(SettingChange(round=number, changes=dict(changes), by=by, at=now(), key=key))
            self._mirror.reload()

    def check(self, changes: Mapping[str, Any]) -> str:
        """Raise if the changes are invalid; returns a digest of the resulting settings."""
        earlier = [made.changes for made in self._state.setting_changes()]
        after = changed_config(self._config, [*earlier, changes])
        check_changed_config(self.in_force, after, self._corpus)
        return after.digest

    def to_json(self) -> dict[str, Any]:
        """The settings of the next round, the history of changes, prices, measured times and choices."""
        with self._mirror.lock:
            config, history = self.in_force, self._state.history()
        first = next(iter(self._state.wanted(0)), None)
        answers = [] if first is None else self._ledger.answers(first)
        return {
            "settings": config.model_dump(mode="json", include=set(FIXED)),
            "fixed": {section: sorted(keys) for section, keys in FIXED.items()},
            "history": history,
            "prices": self.prices(),
            "pace": self.measured_speed(),
            "choices": choices(config, self._corpus.schema, self._corpus.groups is not None),
            # whether the first round was answered with the labels of the corpus, as in a simulation
            "simulated": any(entry.annotator == GoldAnnotator.name for entry in answers),
        }

    def prices(self) -> dict[str, Any]:
        """Prices of reading and of each task: in the latest round, in the next, and as configured if not measured."""
        with self._mirror.lock:
            terms = self._mirror.terms
        costs = terms.config.costs
        following = self._state.measured(terms.config, terms.changes) if costs.measured else terms
        prices = {"now": self.costs, "next": following.costs, "stated": costs.model(self._corpus.schema.values())}
        return {
            when: {
                what: {key: float(model.money(units)) for key, units in own.items()}
                for what, own in {"reading": model.reading, **model.own}.items()
            }
            for when, model in prices.items()
        }

    def measured_speed(self) -> dict[str, Any]:
        """Measured seconds of reading and of each task, with standard errors and counts."""
        with self._mirror.lock:
            writes, costs = self._mirror.writes, self.in_force.costs
        if self._speed is None or self._speed[0] != writes:
            tasks = list(self._corpus.schema.values())
            usual = usual_rates(costs.model(tasks), tasks, costs.hourly) if costs.hourly is not None else None
            rates = measured_rates(self._ledger, usual)
            self._speed = writes, {what: rate.as_json() for what, rate in rates.items()}
        return self._speed[1]


# -- choices -----------------------------------------------------------------------------------------------------------
WAYS = {
    "greedy": "the highest score first, until the budget is spent",
    "ratio": "the highest score per price first",
    "exact": "the highest total score within the budget, proven optimal",
}
SPLITS = {
    NO_SPLIT: "the strategy decides",
    "robust": "by the measured value of a label of each task, robust to measurement errors",
    "exact": "by the measured value of a label of each task, taken as exact",
    "greedy": "label by label, where the value per price is highest",
    "together": "some items for all tasks, which are read only once, and others for a single task",
}


def strategies(tasks: Iterable[str]) -> list[dict[str, Any]]:
    """All strategies by name; single-task strategies once for each of these tasks."""
    found = [_described(name, STRATEGIES[name]) for name in STRATEGIES.names()]
    return found + [_described(f"{name}-{task}", FAMILIES[name], task) for name in FAMILIES.names() for task in tasks]


def _described(name: str, strategy: Strategy, task: str | None = None) -> dict[str, Any]:
    return {
        "name": name,
        "about": strategy.summary.replace("of one task", f"of {task}") if task else strategy.summary,
        "task": task,
        "weighted": strategy.weighted,
        "scores": strategy.value is not None or task is not None,  # supports all ways of spending
        "spend": strategy.spend,
        "limits": task is not None or strategy.keeps_limits,
        "splits": task is None and strategy.by_label and strategy.keeps_limits,
        "matches": strategy.mode != "equal",
        "model": strategy.needs_model,
    }


def spendings() -> list[dict[str, Any]]:
    """The ways of spending, which are appended to a strategy's name with a +."""
    return [
        {"name": name, "about": WAYS.get(way["spend"], way["spend"]) + (", in one round" if way["once"] else "")} | way
        for name, way in DECISIONS.items()
    ]


def splits(config: CampaignConfig, tasks: Iterable[str]) -> list[dict[str, str]]:
    """The ways to split a round's budget between tasks, the default first; empty if it cannot be split."""
    if len(list(tasks)) < 2 or config.budget.counts == "items":
        return []
    return [{"name": name, "about": SPLITS[name]} for name in sorted((NO_SPLIT, *METHODS), key=list(SPLITS).index)]


def parts_of(name: str) -> dict[str, Any]:
    """The parts of a strategy name."""
    base, modifiers = split_name(name)
    spending = next((modifier for modifier in modifiers if modifier in DECISIONS), None)
    others = [modifier for modifier in modifiers if modifier not in (*DECISIONS, MATCHING)]
    base = make_strategy("+".join([base, *others])).name
    return {"base": base, "spending": spending, "matching": MATCHING in modifiers}


def choices(config: CampaignConfig, tasks: Mapping[str, Task], has_groups: bool) -> dict[str, Any]:
    """All choices for the tasks of a corpus, including the ways to group items."""
    classes = [f"label:{name}" for name, task in tasks.items() if isinstance(task, Classification)]
    chosen = parts_of(config.strategy.name)
    base = make_strategy(chosen["base"])
    all_known = {one["name"]: one for one in strategies(tasks)}
    offered = [all_known[name] for name in all_known if name == base.name or not lacks(config, make_strategy(name))]
    if base.name not in all_known:  # it has a modifier
        offered.append(_described(base.name, base))
    by_place = not lacks(config, make_strategy("RANDOM+IDMR", bins="cluster"))
    return {
        "strategies": offered,  # those that the learner supports, and the current one
        "spendings": spendings(),
        "splits": splits(config, tasks),
        "strategy": chosen,
        "bins": ["length", *(["cluster"] if by_place or config.strategy.bins == "cluster" else []), *classes],
        "groups": [*(["group"] if has_groups else []), *classes],
    }
