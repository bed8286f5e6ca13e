"""What a lead is offered: every strategy that a campaign would take, and of none more than it can do."""

from __future__ import annotations

import pytest

from bursar.annotation.settings import SPLITS, choices, parts_of, spendings, splits, strategies
from bursar.campaign.config import parse_config
from bursar.errors import BursarError
from bursar.selection import STRATEGIES, make_strategy
from bursar.selection.strategy import FAMILIES
from bursar.simulation import assistant_corpus

TASKS = ("intent", "slots")
OFFERED = {entry["name"]: entry for entry in strategies(TASKS)}


def works(**table) -> bool:
    try:
        parse_config(table)
    except BursarError:
        return False
    return True


def test_all_strategies_are_offered_and_those_of_one_task_once_for_each():
    families = [f"{family}-{task}" for family in FAMILIES.names() for task in TASKS]
    assert sorted(OFFERED) == sorted([*STRATEGIES.names(), *families])
    assert all(make_strategy(name).name == name for name in OFFERED)


@pytest.mark.parametrize("name", OFFERED)
def test_what_is_said_of_a_strategy_is_what_a_campaign_lets_it_do(name):
    entry = OFFERED[name]
    assert entry["weighted"] == works(strategy={"name": name, "weights": {"intent": 1}})
    assert entry["limits"] == works(strategy={"name": name}, limits={"tasks": {"intent": {"at_most": 3}}})
    assert entry["splits"] == works(strategy={"name": name}, allocation={"method": "robust"})
    assert entry["matches"] == works(strategy={"name": f"{name}+IDMR"})
    assert entry["scores"] == works(strategy={"name": f"{name}+BLP_AL"})
    assert entry["model"] == make_strategy(name).needs_model
    assert entry["spend"] == make_strategy(name).spend


def test_of_one_task_a_strategy_says_which():
    assert (OFFERED["MT-EC-slots"]["task"], OFFERED["MT-AVG"]["task"]) == ("slots", None)
    assert "of one task" not in OFFERED["BALD-slots"]["about"]
    assert "slots" in OFFERED["BALD-slots"]["about"]


def test_every_way_of_spending_can_follow_a_strategy_that_scores():
    for entry in spendings():
        made = make_strategy(f"MT-AVG+{entry['name']}")
        assert (made.spend, made.once) == (entry["spend"], entry["once"])
        assert ("in one round" in entry["about"]) == made.once


def test_a_split_is_offered_where_there_is_something_to_split():
    offered = splits(parse_config({}), TASKS)
    assert [entry["name"] for entry in offered] == list(SPLITS)
    for entry in offered:
        assert works(strategy={"name": "UDJS"}, allocation={"method": entry["name"]})
    assert splits(parse_config({}), ["intent"]) == []
    assert splits(parse_config({"budget": {"counts": "items"}}), TASKS) == []


@pytest.mark.parametrize("name", ["MT-MIN", "mt-ec-slots+BLP_AL", "bald+idmr", "UDJS+RATIO_AL+IDMR", "EQB-DJS"])
def test_a_name_taken_apart_makes_the_same_strategy_when_it_is_put_together_again(name):
    parts = parts_of(name)
    assert parts["base"] in OFFERED
    again = [
        parts["base"],
        *([parts["spending"]] if parts["spending"] else []),
        *(["IDMR"] if parts["matching"] else []),
    ]
    assert "+".join(again) == make_strategy(name).name


def test_items_are_grouped_by_classes_and_by_groups_where_there_are_some():
    tasks = assistant_corpus(50, 0).with_tasks(list(TASKS)).schema
    config = parse_config({"strategy": {"name": "mt-min+blp_al"}})
    alone, grouped = (choices(config, tasks, has_groups) for has_groups in (False, True))
    assert alone["groups"] == ["label:intent"]
    assert grouped["groups"] == ["group", "label:intent"]
    assert alone["bins"] == ["length", "cluster", "label:intent"]
    assert alone["strategy"] == {"base": "MT-MIN", "spending": "BLP_AL", "matching": False}


def test_a_strategy_in_force_that_has_a_modifier_is_offered_as_it_is():
    config = parse_config({"strategy": {"name": "mt-avg+guard+blp_al"}})
    found = choices(config, assistant_corpus(20, seed=0).with_tasks(list(TASKS)).schema, has_groups=False)
    assert found["strategy"] == {"base": "MT-AVG+GUARD", "spending": "BLP_AL", "matching": False}
    (entry,) = [entry for entry in found["strategies"] if entry["name"] == "MT-AVG+GUARD"]
    assert entry["scores"]


def test_modifiers_that_are_no_way_of_spending_stay_with_the_strategy():
    assert parts_of("MT-AVG+COVER+GUARD") == {"base": "MT-AVG+COVER+GUARD", "spending": None, "matching": False}


def test_the_ways_of_spending_go_from_the_simplest_to_one_round():
    assert [entry["name"] for entry in spendings()] == ["GRD_AL", "RATIO_AL", "BLP_AL", "BLP"]
