"""Which strategies pick the same items? Paper 1's Figure 1, on EWT trees and UNER entities.

One multi-task model is trained on 2 % of the training sentences; then every strategy picks another 2 % of the rest. The
table is the share of items that two strategies have in common. Random picks show what chance would give.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from bursar.compute import ProgressCallback
from bursar.learners import make_learner
from bursar.selection import Candidates, make_strategy
from bursar.tasks import CostModel
from experiments.studies.arms import Place, corpus_of
from experiments.studies.defaults import with_defaults_of_then
from experiments.studies.findings import Cell, Findings, Table
from experiments.studies.statistics import spread
from experiments.studies.study import STUDIES, Run, Study

SHARE = 0.02  # of the training sentences: those trained on, and as many to pick (paper 1, section 5.4)
STRATEGIES = ("MT-AVG", "MT-MAX", "MT-MIN", "MT-PAR", "MT-RRF", "MT-IND", "RANDOM")
OPTIONS: dict[str, Any] = {"smoothing": 0.2, "epochs": 20, "evaluate_every": 2, "patience": 3}
PAPER = {"MT-IND MT-RRF": 0.94, "MT-AVG MT-MIN": 0.84, "MT-MAX MT-MIN": 0.16, "MT-IND MT-MAX": 0.20}  # section 4.2


def grid(scale: str) -> list[dict[str, Any]]:
    """A model for each seed and way of sharing."""
    return [
        {"sharing": sharing, "seed": seed, "share": SHARE, "options": OPTIONS, "strategies": list(STRATEGIES)}
        for seed in range(3)
        for sharing in ("shared", "gated")
    ]


def pick(unit: Mapping[str, Any], tell: ProgressCallback, *, place: Place) -> dict[str, Any]:
    """Train one model, let every strategy pick."""
    begun = time.monotonic()
    sharing, seed = unit["sharing"], unit["seed"]
    corpus = corpus_of("ewt", place.data)
    rng = np.random.default_rng(seed)
    order = rng.permutation(corpus.in_split("train"))
    count = round(unit["share"] * len(order))
    train, pool = order[:count], order[count:]
    dev = rng.permutation(corpus.in_split("dev"))[: 2 * count]

    def progress(what: str, done: float) -> None:
        tell((what, done))

    learner = make_learner("transformer", corpus.schema, with_defaults_of_then({**unit["options"], "sharing": sharing}))
    checkpoint = place.runs / f"overlap-{sharing}-{seed}.training"
    learner.fit(corpus.take(train), dev=corpus.take(dev), seed=seed, checkpoint=checkpoint, progress=progress)
    items = corpus.take(pool).unlabelled()
    sure = learner.confidence(items, progress=progress)
    prices = CostModel.of(list(corpus.schema.values())).price(list(corpus.schema.values()), items.reading, {})
    candidates = Candidates(items.ids.tolist(), sure, prices)
    picked = {
        name: {items.ids[int(at)] for at in make_strategy(name).select(candidates, count, seed, in_items=True).items}
        for name in unit["strategies"]
    }
    return {
        "items": {"train": count, "pool": len(pool), "picked": count},
        "dev": {task: next(iter(scores.values())) for task, scores in learner.evaluate(corpus.take(dev)).items()},
        "confidence": {task: float(sure[:, at].mean()) for at, task in enumerate(corpus.schema)},
        "correlation": float(np.corrcoef(sure.T)[0, 1]),
        "overlap": overlaps(picked),
        "seconds": round(time.monotonic() - begun, 1),
    }


def overlaps(picked: Mapping[str, set[str]]) -> dict[str, float]:
    """The share of items that each two have in common, names in order.

    >>> overlaps({"B": {"x", "y"}, "A": {"y", "z"}})
    {'A B': 0.5}
    """
    pairs = combinations(sorted(picked), 2)
    return {f"{a} {b}": len(picked[a] & picked[b]) / max(1, min(len(picked[a]), len(picked[b]))) for a, b in pairs}


def summarise(runs: Sequence[Run]) -> dict[str, Any]:
    """Mean and spread over seeds of every overlap, for each way of sharing."""
    found: dict[str, Any] = {}
    for sharing in dict.fromkeys(run["unit"]["sharing"] for run in runs):
        mine = [run["result"]["overlap"] for run in runs if run["unit"]["sharing"] == sharing]
        found[sharing] = {pair: spread([overlap[pair] for overlap in mine]) for pair in mine[0]}
    return found


def analyse(runs: Sequence[Run], scale: str) -> Findings:
    """Figure 1 as a table: pairs of strategies, for each way of sharing."""
    summary = summarise(runs)
    pairs = list(dict.fromkeys(pair for table in summary.values() for pair in table))
    rows = {
        " and ".join(pair.split()): [
            Cell(
                100 * summary[sharing][pair]["mean"],
                None if summary[sharing][pair]["spread"] is None else 100 * summary[sharing][pair]["spread"],
                100 * PAPER[pair] if pair in PAPER else None,
            )
            for sharing in summary
        ]
        for pair in pairs
    }
    return Findings(
        "Which strategies pick the same sentences.",
        tables=[
            Table("Figure 1", "Percent of picks that two strategies share", list(summary), rows, digits=0, best="")
        ],
        sizes={"model": "trained on 2 % of EWT's training sentences; every strategy picks another 2 %"},
    )


STUDIES.add(
    "overlap",
    Study(
        "overlap",
        "Which strategies pick the same items",
        "paper 1, Figure 1",
        grid,
        pick,
        analyse,
        reads=("ud_ewt", "uner_ewt"),
        scales=("small",),
    ),
)
