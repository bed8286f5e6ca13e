"""A strategy of your own: long items that the model is unsure of. It works with every way to spend."""

from pathlib import Path

import bursar
from bursar.selection import scoring_strategy


@scoring_strategy("LONG-AND-UNSURE", "long items that the model is unsure of", needs=frozenset({"words"}))
def long_and_unsure(pool):
    return (1 - pool.confidence.mean(axis=1)) * pool.features.require("words")  # (items,): highest first


config = bursar.CampaignConfig(
    tasks=["intent"],
    compare=["MT-AVG", "RANDOM"],
    corpus={"items": 3000, "pool_items": 1000},
    budget={"seed_items": 30, "per_round": 400, "rounds": 2},
    strategy={"name": "LONG-AND-UNSURE+BLP_AL"},  # exactly within the budget
    learner={"name": "probe"},
)
result = bursar.run_campaign(bursar.Run(Path("runs/own-strategy"), config))
for name, arm in result.arms.items():
    print(f"{name:24} {100 * arm.rounds[-1].test['intent']['accuracy']:.1f}")
