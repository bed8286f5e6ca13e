"""A small campaign on the built-in corpus, with a learner that counts words."""

from __future__ import annotations

from bursar.campaign.config import parse_config


def config_of(**changes):
    table = {
        "name": "small",
        "tasks": ["intent", "slots"],
        "corpus": {"items": 600, "dev_items": 30, "test_items": 40},
        "budget": {"seed_items": 20, "per_round": 200, "rounds": 3},
        "strategy": {"name": "MT-AVG"},
        "learner": {"name": "word-counts"},
    }
    for section, values in changes.items():
        table[section] = {**table[section], **values} if isinstance(table.get(section), dict) else values
    return parse_config(table)
