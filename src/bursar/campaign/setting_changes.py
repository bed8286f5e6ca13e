"""What may be changed while a campaign runs: its budget, prices, strategy and limits, from the next round on.

A change is a table like the campaign's file with only what is new in it; ``null`` takes a key back to its default.
Every change is a numbered decision in the ledger. A round says how many of them it was decided under, so what was in
force when is never in doubt, and a change that comes while a round is being decided counts for the one after it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bursar.campaign.annotation_speed import check_unit
from bursar.campaign.checks import check_served, check_split
from bursar.campaign.config import CampaignConfig, parse_config
from bursar.campaign.round_candidates import check_features
from bursar.corpus import Corpus
from bursar.errors import ConfigError

FIXED = {
    "budget": {"seed_items", "dev_items", "counts"},
    "costs": {"unit", "currency", "pricing"},
    "strategy": set(),
    "limits": set(),
    "allocation": set(),
}


def changed_config(
    config: CampaignConfig, changes: Sequence[Mapping[str, Any]], where: str = "the change"
) -> CampaignConfig:
    """The campaign after some changes, one after the other, checked like the campaign's own file.

    >>> plain = parse_config({"strategy": {"weights": {"intent": 0.4, "slots": 0.6}}})
    >>> after = changed_config(plain, [{"budget": {"per_round": 800}}, {"strategy": {"weights": {"slots": 1}}}])
    >>> after.budget.per_round, after.strategy.weights
    (800.0, {'intent': 0.4, 'slots': 1})
    >>> changed_config(plain, [{"corpus": {"source": "other.jsonl"}}])
    Traceback (most recent call last):
        ...
    bursar.errors.ConfigError: the change: corpus is fixed once a campaign has begun. Fix: change budget, costs, \
strategy, limits or allocation
    """
    table = json.loads(json.dumps(config.model_dump(mode="json")))
    for change in changes:
        _check_allowed(change, where)
        table = _merged(table, change)
    return parse_config(table, where)


def check_changed_config(before: CampaignConfig, after: CampaignConfig, corpus: Corpus) -> None:
    """Refuse what could not be gone on with on this corpus, in the words of a campaign that could not be started."""
    if after.digest == before.digest:
        raise ConfigError("nothing would be changed", fix="say what is to be another than it is")
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
        raise ConfigError(
            f"strategy {after.strategy.name}: a campaign cannot turn to or from spending all its money at once",
            fix="use BLP_AL in place of BLP",
        )


def differences(before: CampaignConfig, after: CampaignConfig) -> list[dict[str, Any]]:
    """What one campaign's settings have another value of than another's, key by key; ``None`` where one has none.

    >>> plain = parse_config({})
    >>> differences(plain, changed_config(plain, [{"budget": {"per_round": 800}}]))
    [{'key': ['budget', 'per_round'], 'before': 500.0, 'after': 800.0}]
    """
    one, other = (_leaves(config.model_dump(mode="json", include=set(FIXED))) for config in (before, after))
    return [
        {"key": list(key), "before": one.get(key), "after": other.get(key)}
        for key in dict.fromkeys([*one, *other])
        if one.get(key) != other.get(key)
    ]


def _leaves(table: Mapping[str, Any], place: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    for key, value in table.items():
        found |= _leaves(value, (*place, key)) if isinstance(value, Mapping) else {(*place, key): value}
    return found


def _check_allowed(change: Any, where: str) -> None:
    if not isinstance(change, Mapping) or not change:
        raise ConfigError(f"{where} is no table of settings", fix='for instance {"budget": {"per_round": 800}}')
    sections = f"{', '.join(list(FIXED)[:-1])} or {list(FIXED)[-1]}"
    for section, values in change.items():
        if section not in FIXED:
            raise ConfigError(f"{where}: {section} is fixed once a campaign has begun", fix=f"change {sections}")
        if not isinstance(values, Mapping):
            raise ConfigError(f"{where}: {section} = {values!r} is no table", fix=f"for instance {section} = {{ … }}")
        for key in values:
            if key in FIXED[section]:
                raise ConfigError(
                    f"{where}: {section}.{key} is fixed once a campaign has begun", fix=f"change {sections}"
                )


def _merged(table: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """A table with the values of another put into it, key by key; null takes a key out."""
    merged = dict(table)
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            merged[key] = _merged(merged[key] if isinstance(merged.get(key), Mapping) else {}, value)
        else:
            merged[key] = value
    return merged
