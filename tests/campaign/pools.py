"""A pool and models of a tiny encoder, for tests of scoring in shards; workers elsewhere can load them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from bursar.campaign import Campaign, GoldAnnotator
from bursar.campaign.config import parse_config
from bursar.campaign.decisions import ConfidenceSummary, RoundRecord, RoundSelection
from bursar.campaign.models import Models
from bursar.campaign.pool_scoring import PoolScoring
from bursar.campaign.splits import load_parts
from bursar.compute import THIS_PROCESS
from bursar.selection import make_strategy
from tests.tiny import tiny_encoder

STRATEGIES = ("MT-AVG", "BALD", "COVER")  # confidence alone, dropout passes and beliefs, units


def config_of(encoder: Path, strategy: str = "MT-AVG", **changes):
    table = {
        "tasks": ["intent", "slots"],
        "corpus": {"items": 600, "pool_items": 300, "dev_items": 20, "test_items": 20},
        "budget": {"seed_items": 30, "per_round": 150, "rounds": 2},
        "strategy": {"name": strategy},
        "learner": {"encoder": str(encoder), "epochs": 2, "evaluate_every": 1, "learning_rate": 0.01},
        "audit": {"share": 0.1, "shadow": False},
    }
    return parse_config({**table, **changes})


class Pool:
    """A trained model, the items that it is asked about, and where shards are kept."""

    def __init__(self, folder: Path, **changes) -> None:
        encoder = folder / "encoder"
        self.config = config_of(encoder if encoder.exists() else tiny_encoder(encoder), **changes)
        parts = load_parts(self.config)
        self.items, self.folder = parts.corpus.take(parts.pool), folder / "scoring"
        self.models = Models(folder / "models", self.config, parts.corpus.schema)
        annotated = self.items.take(np.arange(40))
        self.learner, _ = self.models.fitted(annotated, None, lambda what, done: None)

    def scoring(self, engine=THIS_PROCESS, folder=None) -> PoolScoring:
        return PoolScoring(self.models.saved, folder, engine)

    def all_answers(self, scoring: PoolScoring) -> dict[str, np.ndarray]:
        """All that a campaign may ask, as arrays by name."""
        found = {}
        for name in STRATEGIES:
            scored = scoring.scores(self.learner, make_strategy(name), self.items, seed=3)
            found[f"{name} confidence"] = scored.confidence
            for what in ("guesses", "beliefs", "doubts"):
                for task, column in (getattr(scored, what) or {}).items():
                    arrays = {key: value for key, value in vars(column).items() if isinstance(value, np.ndarray)}
                    found |= {f"{name} {what} {task} {key}": value for key, value in arrays.items()}
        found["vectors"] = scoring.vectors(self.learner, self.items)
        embeddings = scoring.embeddings(self.learner, self.items)
        return found | {"items": embeddings.items, "words": embeddings.words}


def assert_same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> None:
    """The same arrays, to the bit."""
    assert first.keys() == second.keys()
    for name, array in first.items():
        assert array.dtype == second[name].dtype, name
        np.testing.assert_array_equal(array, second[name], err_msg=name)


def decisions(config, folder: Path, engine=THIS_PROCESS) -> str:
    """All that a campaign decides and buys, in words."""
    campaign = Campaign(config, folder, engine=engine)
    try:
        campaign.run(GoldAnnotator(campaign.corpus))
        assert not campaign.scoring.folder.exists()
        kinds = RoundSelection, RoundRecord, ConfidenceSummary
        return json.dumps([found.model_dump() for kind in kinds for found in campaign.ledger.decisions(kind)])
    finally:
        campaign.close()
