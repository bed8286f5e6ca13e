"""What does the audit say was saved, and is that so? Campaigns whose saving is known, real and simulated.

Real ones buy labels of the development sets, by four strategies, random itself among them, with audit slices of several
sizes; the default strategy starts with items that cover the pool, the others with random ones. Random labelling with as
much money is done beside them several times over on the same pool: its mean curve is the truth. Units keep what was
measured, so that findings follow from today's estimator. Simulated campaigns (``audit_simulated``) are learning curves
with noise, hundreds of them in seconds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bursar.campaign.audit import audit_slices
from bursar.campaign.campaign import Campaign
from bursar.campaign.config import CampaignConfig, parse_config
from bursar.campaign.decisions import ShadowScores
from bursar.campaign.participants import GoldAnnotator
from bursar.campaign.pricing import prices_of
from bursar.campaign.savings import scored_rounds
from bursar.campaign.splits import DataSplits, load_parts
from bursar.compute import ProgressCallback
from bursar.learners import Learner, make_learner
from experiments.studies.arms import Place, corpus_of
from experiments.studies.audit_findings import analyse
from experiments.studies.audit_simulated import simulate
from experiments.studies.study import STUDIES, Study

DATA = ("snips", "atis", "mit_restaurant", "builtin")
TASKS = {"builtin": ("intent", "slots")}
STRATEGIES = ("AUTO", "MT-AVG", "LONGEST", "RANDOM")
POOL, TEST, START, PER_ROUND, ROUNDS = 2500, 1000, 50, 500, 5
ORDERS = {"probe": 4, "transformer": 2}  # of random labelling
POINTS, FIRST, LAST = 8, 0.18, 1.02  # and at how many amounts, from which share of the money to which
LEARNERS: dict[str, dict[str, Any]] = {
    "probe": {},
    "transformer": {
        "layers": 4,
        "steps": 150,
        "learning_rate": 5e-4,
        "smoothing": 0.0,
        "average": 0.33,
        "precision": "bfloat16",
    },
}
SHARES = {"probe": (0.1, 0.2, 0.3), "transformer": (0.2,)}
SEEDS = {"probe": 4, "transformer": 1}
SIMULATED = 100  # campaigns a unit


def grid(scale: str) -> list[dict[str, Any]]:
    """Simulated campaigns first, then random labelling and the campaigns beside it, seed after seed."""
    units: list[dict[str, Any]] = [
        {"part": "simulated", "share": share, "test": test, "random_start": start, "size": size, "seed": 0}
        for size in (1, 8)
        for start in (True, False)
        for test in (1000, 200, 0)
        for share in (0.05, 0.1, 0.2, 0.3)
    ]
    for learner in LEARNERS:
        for seed in range(SEEDS[learner]):
            for data in DATA:
                about = {"data": data, "learner": learner, "seed": seed}
                units.append({"part": "random", **about})
                units += [
                    {"part": "campaign", **about, "strategy": strategy, "share": share}
                    for strategy in STRATEGIES
                    for share in SHARES[learner]
                ]
    return units


def work(unit: Mapping[str, Any], tell: ProgressCallback, *, place: Place) -> dict[str, Any]:
    """One unit of any part."""
    begun = time.process_time()
    if unit["part"] == "simulated":
        options = {key: unit[key] for key in ("share", "test", "random_start", "size", "seed")}
        found: dict[str, Any] = {"campaigns": simulate(SIMULATED, **options)}
    else:
        config = _config(unit, place)
        parts = load_parts(config, corpus_of(unit["data"], place.data, TASKS.get(unit["data"], ())))
        learner = _learner(unit["data"], str(place.data), unit["learner"])
        if unit["part"] == "random":
            found = _random_curve(unit["seed"], ORDERS[unit["learner"]], config, parts, learner)
        else:
            found = _campaign(config, parts, learner)
    return found | {"core_seconds": round(time.process_time() - begun, 1)}


@lru_cache(maxsize=2)
def _learner(data: str, folder: str, name: str) -> Learner:
    """One learner for all units of a data set: it remembers what the frozen layers make of the items."""
    return make_learner(name, corpus_of(data, Path(folder), TASKS.get(data, ())).schema, LEARNERS[name])


def _config(unit: Mapping[str, Any], place: Place) -> CampaignConfig:
    return parse_config(
        {
            "seed": unit["seed"],
            "tasks": list(TASKS.get(unit["data"], ())),
            "corpus": {
                "source": "builtin" if unit["data"] == "builtin" else str(place.data / unit["data"]),
                "pool_items": POOL,
                "dev": None,
                "test_items": TEST,
            },
            "budget": {"seed_items": START, "per_round": PER_ROUND, "rounds": ROUNDS},
            "strategy": {"name": unit.get("strategy", "RANDOM")},
            "learner": {"name": unit["learner"], **LEARNERS[unit["learner"]]},
            "audit": {"share": unit.get("share", 0.1)},
        }
    )


def _random_curve(
    seed: int, orders: int, config: CampaignConfig, parts: DataSplits, learner: Learner
) -> dict[str, Any]:
    """The mean score of random labelling at several amounts of money, over several orders of the pool."""
    schema, pool = parts.corpus.schema, parts.corpus.take(parts.pool)
    costs = config.costs.model(schema.values())
    gold = {name: column.rows for name, column in pool.labels.items()}
    prices = prices_of(costs, list(schema.values()), pool, gold, dict.fromkeys(schema, 0.0)).joint()
    spent = START * prices.mean() + ROUNDS * PER_ROUND
    test = parts.corpus.take(parts.test)
    money, scores = [], []
    for order in range(orders):
        items = np.random.default_rng([seed, 5, order]).permutation(len(pool))
        paid = np.cumsum(prices[items])
        for wanted in spent * np.geomspace(FIRST, LAST, POINTS):
            count = min(int(np.searchsorted(paid, wanted)) + 1, len(items))
            learner.fit(pool.take(np.sort(items[:count])), seed=order)
            found = learner.evaluate(test)
            money.append(float(paid[count - 1]))
            scores.append(float(np.mean([found[name][task.metric] for name, task in schema.items()])))
    shape = (orders, POINTS)
    return {
        "money": np.reshape(money, shape).mean(axis=0).round(1).tolist(),
        "scores": np.reshape(scores, shape).round(5).tolist(),
    }


def _campaign(config: CampaignConfig, parts: DataSplits, learner: Learner) -> dict[str, Any]:
    """One campaign: what the ledger says of its models, its shadows and its slices."""
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(config, Path(folder) / "run", parts=parts, learner=learner)
        try:
            campaign.run(GoldAnnotator(parts.corpus))
            ledger, schema = campaign.ledger, parts.corpus.schema
            rounds = [
                {key: getattr(record, key) for key in ("round", "spent", "chosen", "items")}
                | {"test": {n: {t.metric: record.test[n][t.metric]} for n, t in schema.items()}}
                for record in scored_rounds(ledger)
            ]
            shadows = [shadow.model_dump() for shadow in ledger.decisions(ShadowScores)]
            slices = [
                {
                    "round": part.round,
                    "spent": part.spent,
                    "shadow_spent": part.shadow_spent,
                    "model": {name: tally.tolist() for name, tally in part.model.items()},
                    "shadow": {name: tally.tolist() for name, tally in (part.shadow or {}).items()},
                }
                for part in audit_slices(ledger, schema)
            ]
            kinds = {name: task.describe()["kind"] for name, task in schema.items()}
        finally:
            campaign.close()
    return {"rounds": rounds, "shadows": shadows, "slices": slices, "tasks": kinds, "test_items": len(parts.test)}


STUDIES.add(
    "audit",
    Study(
        "audit",
        "What the audit says was saved, against the truth",
        "our own",
        grid,
        work,
        analyse,
        reads=("snips", "atis", "mit_restaurant"),
        scales=("small",),
    ),
)
