"""Small judges that predict without an encoder."""

from __future__ import annotations

import numpy as np

from bursar.tasks import Beliefs
from experiments.studies.judge_models import ModelJudge, ProbeModels
from tests.oracle import small


def probe(problem):
    """Ridge regression on the places of words."""
    return ProbeModels(small.probe(problem).tasks)


class Rule(ModelJudge):
    """Scores that follow from the set and the part by a rule with ups and downs, and beliefs that are all alike."""

    def __init__(self, pool, seed=0):
        self.pool, self.seed = pool, seed
        self.worth = np.random.default_rng(seed).random(pool)

    def scores_on(self, sets, parts):
        return np.array([[self.one(items, len(part)) for items in sets] for part in parts])

    def one(self, items, extra):
        if not len(items):
            return 0.1
        pairs = np.sin(np.add.outer(items, items) * (1.3 + self.seed) + extra).mean()
        return float(0.5 + 0.3 * self.worth[items].mean() + 0.1 * pairs)

    def predict_proba(self, items, passes=1, seed=0):
        return {"intent": Beliefs.of(np.full((passes, self.pool, 2), 0.5), np.ones(self.pool, dtype=np.int64))}
