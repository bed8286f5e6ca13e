"""The choices for a lead: strategies, ways of spending, and budget splits, each with a description."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bursar.allocation.adviser import NO_SPLIT
from bursar.allocation.robust import METHODS
from bursar.campaign.checks import lacks
from bursar.campaign.config import CampaignConfig
from bursar.selection import STRATEGIES, Strategy, make_strategy
from bursar.selection.strategy import DECISIONS, FAMILIES, MATCHING, split_name
from bursar.tasks import Classification, Task

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
    """All strategies by name; single-task strategies once for each of these tasks.

    >>> known = {entry["name"]: entry for entry in strategies(["intent"])}
    >>> known["MT-MAX"]["about"], known["MT-MAX"]["weighted"]
    ('lowest maximum confidence: unsure of every task', False)
    >>> known["BALD-intent"]["task"]
    'intent'
    """
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
    """The ways of spending, which are appended to a strategy's name with a +.

    >>> [entry["name"] for entry in spendings()]
    ['GRD_AL', 'RATIO_AL', 'BLP_AL', 'BLP']
    """
    return [
        {"name": name, "about": WAYS.get(way["spend"], way["spend"]) + (", in one round" if way["once"] else "")} | way
        for name, way in DECISIONS.items()
    ]


def splits(config: CampaignConfig, tasks: Iterable[str]) -> list[dict[str, str]]:
    """The ways to split a round's budget between tasks, the default first; empty if it cannot be split.

    >>> [entry["name"] for entry in splits(CampaignConfig(), ["intent", "slots"])]
    ['none', 'robust', 'exact', 'greedy', 'together']
    """
    if len(list(tasks)) < 2 or config.budget.counts == "items":
        return []
    return [{"name": name, "about": SPLITS[name]} for name in sorted((NO_SPLIT, *METHODS), key=list(SPLITS).index)]


def parts_of(name: str) -> dict[str, Any]:
    """The parts of a strategy name.

    >>> parts_of("mt-min+BLP_AL+IDMR")
    {'base': 'MT-MIN', 'spending': 'BLP_AL', 'matching': True}
    >>> parts_of("MT-AVG+COVER+GUARD")
    {'base': 'MT-AVG+COVER+GUARD', 'spending': None, 'matching': False}
    """
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
