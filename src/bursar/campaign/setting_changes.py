"""Changes to a running campaign: its budget, prices, strategy and limits, from the next round on.

A change is a table like the campaign's file with only the new values; ``null`` resets a key to its default. Changes are
numbered decisions in the ledger, and every round records how many were in force. A change that arrives while a round is
being decided applies to the one after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from bursar.campaign.checks import check_features, check_served, check_split
from bursar.campaign.config import CampaignConfig, parse_config
from bursar.campaign.pricing import check_unit
from bursar.corpus import Corpus
from bursar.errors import ConfigError

Change = Mapping[str, Any]  # a table with the new values
FIXED = {"budget": {"seed_items", "dev_items", "counts"}, "costs": {"unit", "currency", "pricing"}}
FIXED |= {"strategy": set(), "limits": set(), "allocation": set()}


def changed_config(config: CampaignConfig, changes: Iterable[Change], where: str = "the change") -> CampaignConfig:
    """The campaign after some changes, checked like the campaign's file."""
    table = json.loads(json.dumps(config.model_dump(mode="json")))
    for change in changes:
        _check_allowed(change, where)
        table = _merged(table, change)
    return parse_config(table, where)


def check_changed_config(before: CampaignConfig, after: CampaignConfig, corpus: Corpus) -> None:
    """Refuse settings that the campaign could not continue with on this corpus."""
    if after.digest == before.digest:
        raise ConfigError("nothing would change", fix="give at least one new value")
    tasks = list(corpus.schema.values())
    strategy = after.strategy.make()
    check_served(after, beside=False)
    check_features(strategy, corpus.schema, after.limits, corpus.groups is not None)
    strategy.weights_of(tuple(corpus.schema))
    check_split(after, corpus.schema)
    costs = after.costs.model(tasks)
    if after.costs.measured and after.costs.hourly is not None:
        check_unit(costs, after.costs.hourly)
    if strategy.once != before.strategy.make().once:
        what = "a running campaign cannot start or stop spending all its money at once"
        raise ConfigError(f"strategy {after.strategy.name}: {what}", fix="use BLP_AL instead of BLP")


def differences(before: CampaignConfig, after: CampaignConfig) -> list[dict[str, Any]]:
    """The differences between two campaigns' settings, key by key; ``None`` where one has no value."""
    one, other = (leaves_of(config.model_dump(mode="json", include=set(FIXED))) for config in (before, after))
    return [
        {"key": list(key), "before": one.get(key), "after": other.get(key)}
        for key in dict.fromkeys([*one, *other])
        if one.get(key) != other.get(key)
    ]


def leaves_of(table: Mapping[str, Any], place: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """The values of a table and of the tables in it, by their keys."""
    found: dict[tuple[str, ...], Any] = {}
    for key, value in table.items():
        found |= leaves_of(value, (*place, key)) if isinstance(value, Mapping) else {(*place, key): value}
    return found


def _check_allowed(change: Any, where: str) -> None:
    if not isinstance(change, Mapping) or not change:
        raise ConfigError(f"{where} is no table of settings", fix='for instance {"budget": {"per_round": 800}}')
    for section, values in change.items():
        if section in FIXED and not isinstance(values, Mapping):
            raise ConfigError(f"{where}: {section} = {values!r} is no table", fix=f"for instance {section} = {{ … }}")
        keys = [f"{section}.{key}" for key in values if key in FIXED[section]] if section in FIXED else [section]
        if keys:
            sections = f"{', '.join(list(FIXED)[:-1])} or {list(FIXED)[-1]}"
            raise ConfigError(f"{where}: {keys[0]} is fixed once a campaign has begun", fix=f"change {sections}")


def _merged(table: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """A table updated key by key with the values of another; null removes a key."""
    merged = dict(table)
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            merged[key] = _merged(merged[key] if isinstance(merged.get(key), Mapping) else {}, value)
        else:
            merged[key] = value
    return merged
