"""Annotate in your own program: Bursar asks for items, you tell their labels. Interrupted, it goes on where it was."""

from pathlib import Path

import bursar

corpus = bursar.assistant_corpus(300)
config = bursar.CampaignConfig(
    tasks=["intent"],
    corpus={"items": 300},
    budget={"seed_items": 20, "per_round": 100, "rounds": 2},
    learner={"name": "probe"},
    costs={"pricing": "predicted"},  # nobody knows the labels yet
)
campaign = bursar.Campaign(config, Path("runs/ask-and-tell"))
annotator = bursar.GoldAnnotator(corpus)  # in place of a person
while batch := campaign.ask():
    for item in batch.items:
        campaign.tell({item.id: annotator.annotate(item.id, item.tasks)})  # on disk when this returns
print(campaign.ended)
