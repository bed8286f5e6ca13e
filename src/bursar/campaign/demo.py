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
            "strategy": {"name": "MT-MAX"},  # beats random on the mean of six seeds: studies/demo.json
            # Three layers of six: faster, and on development items better than six with the top two trained.
            "learner": {"layers": 3, "frozen_layers": 2, "steps": 120, "learning_rate": 1e-3},
        },
        "demo",
    )
