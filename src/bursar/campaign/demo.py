"""The demo's campaign: two tasks of the built-in corpus share one budget, beside random labelling."""

from __future__ import annotations

from bursar.campaign.config import CampaignConfig, parse_config


def demo_config() -> CampaignConfig:
    """What ``bursar demo`` runs."""
    return parse_config(
        {
            "name": "demo",
            "tasks": ["intent", "slots"],
            "compare": ["RANDOM"],
            "corpus": {"items": 8000, "pool_items": 3000, "dev_items": 100, "test_items": 600},
            "budget": {"seed_items": 60, "per_round": 900, "rounds": 5},
            "strategy": {"name": "MT-MAX"},  # chosen on the seeds of studies/demo-exploration.json
            "learner": {"frozen_layers": 4, "epochs": 10, "evaluate_every": 5},
        },
        "demo",
    )
