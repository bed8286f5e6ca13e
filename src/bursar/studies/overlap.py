"""Which strategies pick the same items? Paper 1's Figure 1, on EWT trees and UNER entities.

One multi-task model is trained on 2 % of the training sentences; then every strategy picks another 2 % of the rest. The
table is the share of items that two strategies have in common. Random picks show what chance would give.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from bursar.compute import cores, run_all
from bursar.corpus.formats.format import replacing
from bursar.errors import ConfigError
from bursar.learners import make_learner
from bursar.selection import Candidates, make_strategy
from bursar.studies.learner import corpus_of, spread
from bursar.tasks import CostModel

SHARE = 0.02  # of the training sentences: those trained on, and as many to pick (paper 1, section 5.4)
STRATEGIES = ("MT-AVG", "MT-MAX", "MT-MIN", "MT-PAR", "MT-RRF", "MT-IND", "RANDOM")
OPTIONS: dict[str, Any] = {"smoothing": 0.2, "epochs": 20, "evaluate_every": 2, "patience": 3}
PAPER = {"MT-IND MT-RRF": 0.94, "MT-AVG MT-MIN": 0.84, "MT-MAX MT-MIN": 0.16, "MT-IND MT-MAX": 0.20}  # section 4.2


def run_unit(sharing: str, seed: int, folder: Path, data: Path, tell: Any) -> dict[str, Any]:
    """Train one model, let every strategy pick; what has been done is read from its file."""
    unit = {"sharing": sharing, "seed": seed, "share": SHARE, "options": OPTIONS, "strategies": list(STRATEGIES)}
    file = folder / f"overlap-{sharing}-{seed}.json"
    if file.exists():
        found: dict[str, Any] = json.loads(file.read_text())
        if found["unit"] != unit:
            raise ConfigError(f"{file} is of other settings", fix="delete it to train again")
        return found
    begun = time.monotonic()
    corpus = corpus_of("ewt", data)
    rng = np.random.default_rng(seed)
    order = rng.permutation(corpus.in_split("train"))
    count = round(SHARE * len(order))
    train, pool = order[:count], order[count:]
    dev = rng.permutation(corpus.in_split("dev"))[: 2 * count]

    def progress(what: str, done: float) -> None:
        tell((file.stem, what, done))

    learner = make_learner("transformer", corpus.schema, {**OPTIONS, "sharing": sharing})
    checkpoint = folder / f"{file.stem}.training"
    learner.fit(corpus.take(train), dev=corpus.take(dev), seed=seed, checkpoint=checkpoint, progress=progress)
    items = corpus.take(pool).unlabelled()
    sure = learner.confidence(items, progress=progress)
    prices = CostModel.of(list(corpus.schema.values())).price(list(corpus.schema.values()), items.reading, {})
    candidates = Candidates(items.ids.tolist(), sure, prices)
    picked = {
        name: {items.ids[int(at)] for at in make_strategy(name).select(candidates, count, seed, in_items=True).items}
        for name in STRATEGIES
    }
    result = {
        "unit": unit,
        "items": {"train": count, "pool": len(pool), "picked": count},
        "dev": {task: next(iter(scores.values())) for task, scores in learner.evaluate(corpus.take(dev)).items()},
        "confidence": {task: float(sure[:, at].mean()) for at, task in enumerate(corpus.schema)},
        "correlation": float(np.corrcoef(sure.T)[0, 1]),
        "overlap": overlaps(picked),
        "seconds": round(time.monotonic() - begun, 1),
    }
    with replacing(file) as out:
        out.write(json.dumps(result, indent=1) + "\n")
    return result


def overlaps(picked: Mapping[str, set[str]]) -> dict[str, float]:
    """The share of items that each two have in common, names in order.

    >>> overlaps({"B": {"x", "y"}, "A": {"y", "z"}})
    {'A B': 0.5}
    """
    pairs = combinations(sorted(picked), 2)
    return {f"{a} {b}": len(picked[a] & picked[b]) / max(1, min(len(picked[a]), len(picked[b]))) for a, b in pairs}


def summarise(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean and spread over seeds of every overlap, for each way of sharing."""
    found: dict[str, Any] = {}
    for sharing in dict.fromkeys(result["unit"]["sharing"] for result in results):
        mine = [result["overlap"] for result in results if result["unit"]["sharing"] == sharing]
        found[sharing] = {pair: spread([overlap[pair] for overlap in mine]) for pair in mine[0]}
    return found


def main() -> None:
    """The study from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BURSAR_DATA", "../shared/data")))
    parser.add_argument("--runs", type=Path, default=Path("runs/study-overlap"), help="where finished units are kept")
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--out", type=Path, default=Path("studies/overlap.json"))
    asked = parser.parse_args()
    asked.runs.mkdir(parents=True, exist_ok=True)
    last: dict[tuple[str, str], float] = {}

    def tell(told: tuple[str, str, float]) -> None:
        name, what, done = told
        if done - last.get((name, what), 0.0) >= 0.2:
            last[name, what] = done
            print(f"{time.strftime('%H:%M:%S')} {name} {what} {done:.0%}", flush=True)  # noqa: T201

    units = [
        partial(run_unit, sharing, seed, asked.runs, asked.data)
        for seed in asked.seeds
        for sharing in ("shared", "gated")
    ]
    results = run_all(units, asked.workers, tell)
    found = {
        "study": "overlap",
        "command": f"python -m bursar.studies.overlap --out {asked.out}",
        "versions": {name: version(name) for name in ("bursar", "torch", "numpy")}
        | {"python": platform.python_version()},
        "paper": PAPER,
        "runs": results,
        "summary": summarise(results),
    }
    with replacing(asked.out) as file:
        file.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
