"""How should a model be trained on few labels, so that asking it pays?

Random labels of the development sets, 50, 150 and 400 items, no development items: a protocol is kept only if it raises
the score. ``before`` is how campaigns were trained until now, one layer of three and 120 steps; ``six layers`` trains
all of the encoder with a floor on updates and averages the last third of the weights; every other arm changes one thing
about that. The smaller draws of a seed are parts of the larger ones, and all arms of a seed see the same items.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bursar.compute import Tell
from bursar.learners import make_learner
from bursar.studies.arms import Place, corpus_of
from bursar.studies.findings import Answer, Cell, Findings, Table
from bursar.studies.statistics import PairedTest, paired_test, spread
from bursar.studies.study import STUDIES, Run, Study

DATA = ("snips", "atis", "mit_restaurant", "builtin")
TASKS = {"builtin": ("intent", "slots")}
ITEMS = (50, 150, 400)
SEEDS = 5
TEST = 1000  # items at most
BEFORE, BASE = "before", "six layers"

SIX = {
    "epochs": 12,
    "least_steps": 300,
    "learning_rate": 3e-4,
    "head_learning_rate": 3e-3,
    "warmup": 0.1,
    "smoothing": 0.0,
    "average": 0.33,
    "batch_size": 16,
    "precision": "bfloat16",
}
ARMS: dict[str, dict[str, Any]] = {
    BEFORE: {
        "layers": 3,
        "frozen_layers": 2,
        "steps": 120,
        "learning_rate": 1e-3,
        "head_learning_rate": 3e-3,
        "warmup": 0.1,
        "smoothing": 0.1,
        "batch_size": 16,
        "precision": "float32",
    },
    BASE: SIX,
    "last weights instead of averaged": {**SIX, "average": 0.0},
    "a floor of 150 updates": {**SIX, "least_steps": 150},
    "a floor of 600 updates": {**SIX, "least_steps": 600},
    "learning rate 0.0001": {**SIX, "learning_rate": 1e-4},
    "learning rate 0.0005": {**SIX, "learning_rate": 5e-4},
    "layer decay 0.8": {**SIX, "layer_decay": 0.8, "learning_rate": 5e-4},
    "label smoothing 0.1": {**SIX, "smoothing": 0.1},
    "four layers": {**SIX, "layers": 4, "learning_rate": 5e-4},
    "float32": {**SIX, "precision": "float32"},
}


def grid(scale: str) -> list[dict[str, Any]]:
    """Every training, those of one seed before those of the next."""
    return [
        {"data": data, "items": items, "seed": seed, "arm": arm, "options": options}
        for seed in range(SEEDS)
        for arm, options in ARMS.items()
        for items in ITEMS
        for data in DATA
    ]


def train(unit: Mapping[str, Any], tell: Tell, *, place: Place) -> dict[str, Any]:
    """One training, and its scores on test items of a development set."""
    corpus = corpus_of(unit["data"], place.data, TASKS.get(unit["data"], ()))
    rng = np.random.default_rng([unit["seed"], 99])
    order = rng.permutation(corpus.in_split("train"))
    test = rng.permutation(corpus.in_split("test"))[:TEST]
    learner = make_learner("transformer", corpus.schema, {"tag_head": "linear", **unit["options"]})
    begun = time.process_time()
    report = learner.fit(
        corpus.take(order[: unit["items"]]), seed=unit["seed"], progress=lambda what, done: tell((what, done))
    )
    seconds = time.process_time() - begun
    scores = learner.evaluate(corpus.take(test))
    main = {name: scores[name][task.metric] for name, task in learner.tasks.items()}
    mean = sum(main.values()) / len(main)
    return {"scores": main, "mean": mean, "steps": report.steps, "core_seconds": round(seconds, 1)}


def analyse(runs: Sequence[Run], scale: str) -> Findings:
    """The mean score over tasks by data set and number of items, and what each arm changes about the base."""
    means = {_key(run["unit"]): run["result"]["mean"] for run in runs}
    arms = [arm for arm in ARMS if any(key[0] == arm for key in means)]
    cells = [(data, items) for data in DATA for items in ITEMS]
    scores = {
        arm: [_cell([means[k] for k in means if k[0] == arm and k[1:3] == cell]) for cell in cells] for arm in arms
    }
    gains = {arm: [_gain(means, arm, BASE, items) for items in (*ITEMS, None)] for arm in arms if arm != BASE}
    return Findings(
        "All layers, a floor on updates and averaged weights against one layer and 120 steps, on random labels.",
        answers=[_gate(means)],
        tables=[
            Table(
                "Scores",
                "Mean score over tasks, percent, with the spread over seeds",
                [f"{data} {items}" for data, items in cells],
                scores,
            ),
            Table(
                "Gains",
                f"Points above or below “{BASE}” on the same items, over all sets; the spread is over seeds and sets",
                [*(f"{items} items" for items in ITEMS), "all"],
                gains,
                best="high",
            ),
            Table(
                "Time", "Seconds of a core a training", [f"{items} items" for items in ITEMS], _time(runs), best="low"
            ),
        ],
        sizes={
            "data": "SNIPS, ATIS, MIT restaurant and the built-in corpus (intents and slots); up to 1,000 test items",
            "labels": "50, 150 and 400 random items, no development items",
            "seeds": f"{SEEDS}",
        },
    )


def _key(unit: Mapping[str, Any]) -> tuple[str, str, int, int]:
    return unit["arm"], unit["data"], unit["items"], unit["seed"]


def _cell(values: Sequence[float]) -> Cell:
    if not values:
        return Cell(None)
    found = spread(values)
    return Cell(100 * found["mean"], None if found["spread"] is None else 100 * found["spread"])


def _gain(means: Mapping[tuple[str, str, int, int], float], arm: str, base: str, items: int | None) -> Cell:
    both = [
        value - means[base, *key[1:]]
        for key, value in means.items()
        if key[0] == arm and (base, *key[1:]) in means and items in (None, key[2])
    ]
    return _cell(both)


def _gate(means: Mapping[tuple[str, str, int, int], float]) -> Answer:
    """Whether the base is ahead of how campaigns were trained before, on every development set."""
    found = {}
    for data in DATA:
        now = {key[1:]: value for key, value in means.items() if key[:2] == (BASE, data)}
        both = [cell for cell in now if (BEFORE, *cell) in means]
        if len(both) > 1:
            found[data] = paired_test([now[cell] for cell in both], [means[BEFORE, *cell] for cell in both])
    ahead = len(found) == len(DATA) and all((test["difference"] or 0) > 0 for test in found.values())
    return Answer(
        "Gate",
        "Is random labelling under the new protocol ahead of random labelling under the old one, on every set?",
        "yes" if ahead else "no" if len(found) == len(DATA) else "not decided here",
        "; ".join(f"{data} {_points(test)}" for data, test in found.items()) or "not run yet",
        "our own",
    )


def _points(test: PairedTest) -> str:
    """A difference in points, with its interval where it has one."""
    low, high = test["low"], test["high"]
    interval = "" if low is None or high is None else f" ({100 * low:+.1f} to {100 * high:+.1f})"
    return f"{100 * (test['difference'] or 0):+.1f} points{interval}"


def _time(runs: Sequence[Run]) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for arm in ARMS:
        taken = {
            items: [
                run["result"]["core_seconds"]
                for run in runs
                if run["unit"]["arm"] == arm and run["unit"]["items"] == items
            ]
            for items in ITEMS
        }
        if any(taken.values()):
            found[arm] = [Cell(float(np.mean(values)) if values else None) for values in taken.values()]
    return found


STUDIES.add(
    "training",
    Study(
        "training",
        "How to train on few labels",
        "our own",
        grid,
        train,
        analyse,
        reads=("snips", "atis", "mit_restaurant"),
        scales=("small",),
    ),
)
