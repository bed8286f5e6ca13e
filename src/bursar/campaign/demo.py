"""The demo's campaign: two tasks of the built-in corpus share one budget, beside random labelling."""

from __future__ import annotations

from bursar.campaign.config import CampaignConfig, parse_config


def demo_config() -> CampaignConfig:
    """What ``bursar demo`` runs: the default strategy and learner, and random labelling beside them."""
    return parse_config(
        {
            "name": "demo",
            "tasks": ["intent", "slots"],
            "compare": ["RANDOM"],
            "corpus": {"items": 8000, "pool_items": 2000, "dev": None, "test_items": 600},
            "budget": {"seed_items": 50, "per_round": 500, "rounds": 4},
            "audit": {"shadow": False},  # random labelling itself says what was saved
        },
        "demo",
    )
