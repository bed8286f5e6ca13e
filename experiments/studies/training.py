"""How should a model be trained on few labels, so that asking it pays?

Random labels of the development sets, 50, 150 and 400 items, no development items: a protocol is kept only if it raises
the score. ``before`` is how campaigns were trained until now, one layer of three and 120 steps; the default trains all
of the encoder, with a floor on updates and a CRF over tags. Every other arm changes one thing about the default;
further pretraining reads a pool of 2,500 unlabelled items first. The smaller draws of a seed are parts of the larger
ones and of the pool, and all arms of a seed see the same items.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bursar.campaign.folder import Lock
from bursar.compute import ProgressCallback
from bursar.corpus import Corpus
from bursar.learners import Learner, make_learner
from experiments.studies.arms import WAIT, Place, corpus_of
from experiments.studies.findings import Answer, Cell, Findings, Table
from experiments.studies.statistics import PairedTest, paired_test, spread
from experiments.studies.study import STUDIES, Run, Study

DATA = ("snips", "atis", "mit_restaurant", "builtin")
TASKS = {"builtin": ("intent", "slots")}
ITEMS = (50, 150, 400)
SEEDS = 5
SIDE_SEEDS = 2  # of arms that change one thing
TEST = 1000  # items at most
POOL = 2500
HARM = 0.005  # how much of a score a set may lose by a change that helps the others
Key = tuple[str, str, int, int]  # arm, data, items, seed
BEFORE, LINEAR, DEFAULT, PRETRAINED = "before", "default without CRF", "default", "further pretraining"

TRAINED: dict[str, Any] = {
    "epochs": 12,
    "least_steps": 250,
    "learning_rate": 3e-4,
    "head_learning_rate": 3e-3,
    "warmup": 0.1,
    "smoothing": 0.0,
    "average": 0.0,
    "batch_size": 16,
    "tag_head": "crf",
    "precision": "bfloat16",
}
PRETRAINING = {"pretraining_steps": 500, "pretraining_rate": 3e-4}
MAIN: dict[str, dict[str, Any]] = {
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
    LINEAR: {**TRAINED, "tag_head": "linear"},
    DEFAULT: TRAINED,
    PRETRAINED: {**TRAINED, **PRETRAINING},
}
SIDE: dict[str, dict[str, Any]] = {  # each changes one thing about the default
    "averaged weights": {**TRAINED, "average": 0.33},
    "a floor of 150 updates": {**TRAINED, "least_steps": 150, "epochs": 8},
    "a floor of 400 updates": {**TRAINED, "least_steps": 400},
    "learning rate 0.0001": {**TRAINED, "learning_rate": 1e-4},
    "lower layers slower": {**TRAINED, "layer_decay": 0.8},
    "label smoothing 0.1": {**TRAINED, "smoothing": 0.1},
    "four layers": {**TRAINED, "layers": 4, "learning_rate": 5e-4},
    "further pretraining, slower": {**TRAINED, **PRETRAINING, "pretraining_rate": 1e-4},
}
ARMS = MAIN | SIDE


def grid(scale: str) -> list[dict[str, Any]]:
    """Every training, seed by seed: the four protocols first, then arms that change one thing, with fewer seeds."""
    return [
        {"data": data, "items": items, "seed": seed, "arm": arm, "options": ARMS[arm]}
        for arms, seeds in ((MAIN, SEEDS), (SIDE, SIDE_SEEDS))
        for seed in range(seeds)
        for arm in arms
        for items in ITEMS
        for data in DATA
    ]


def train(unit: Mapping[str, Any], tell: ProgressCallback, *, place: Place) -> dict[str, Any]:
    """One training, and its scores on test items of a development set."""
    corpus = corpus_of(unit["data"], place.data, TASKS.get(unit["data"], ()))
    rng = np.random.default_rng([unit["seed"], 99])
    order = rng.permutation(corpus.in_split("train"))
    test = rng.permutation(corpus.in_split("test"))[:TEST]
    learner = make_learner("transformer", corpus.schema, {"tag_head": "linear", **unit["options"]})
    if learner.adapts:
        _read_pool(learner, corpus.take(order[:POOL]).unlabelled(), unit, tell, place)
    begun = time.process_time()
    report = learner.fit(
        corpus.take(order[: unit["items"]]), seed=unit["seed"], progress=lambda what, done: tell((what, done))
    )
    seconds = time.process_time() - begun
    scores = learner.evaluate(corpus.take(test))
    main = {name: scores[name][task.metric] for name, task in learner.tasks.items()}
    mean = sum(main.values()) / len(main)
    return {"scores": main, "mean": mean, "steps": report.steps, "core_seconds": round(seconds, 1)}


def _read_pool(learner: Learner, pool: Corpus, unit: Mapping[str, Any], tell: ProgressCallback, place: Place) -> None:
    """Further pretraining: once for all units of a data set, a seed and a way to do it."""
    how = "-".join(str(unit["options"].get(name)) for name in ("pretraining_steps", "pretraining_rate", "layers"))
    file = place.runs / "pretrained" / f"{unit['data']}-{unit['seed']}-{how}.safetensors"
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = Lock(file.with_name(f"{file.name}.lock"), patience=WAIT)
    try:
        learner.adapt(pool, seed=unit["seed"], file=file, progress=lambda what, done: tell((what, done)))
    finally:
        lock.release()


def analyse(runs: Sequence[Run], scale: str) -> Findings:
    """The mean score over tasks by data set and number of items, and what each arm changes about its base."""
    means = {_key(run["unit"]): run["result"]["mean"] for run in runs}
    arms = [arm for arm in ARMS if any(key[0] == arm for key in means)]
    cells = [(data, items) for data in DATA for items in ITEMS]
    scores = {
        arm: [_cell([means[k] for k in means if k[0] == arm and k[1:3] == cell]) for cell in cells] for arm in arms
    }
    sizes = [f"{items} items" for items in ITEMS]
    return Findings(
        "All layers, a floor on updates and a CRF over tags against one layer and 120 steps, on random labels.",
        answers=[
            _gate(means),
            _kept(means, DEFAULT, LINEAR, "a CRF over tags"),
            _kept(means, PRETRAINED, DEFAULT, "further pretraining on the pool"),
        ],
        tables=[
            Table(
                "Scores",
                "Mean score over tasks, percent, with the spread over seeds",
                [f"{data} {items}" for data, items in cells],
                scores,
            ),
            Table(
                "Gains",
                "Points above or below the default on the same items, over all sets; the spread is over seeds and sets",
                [*sizes, "all"],
                {arm: _gains(means, arm, DEFAULT) for arm in arms if arm != DEFAULT},
                best="high",
            ),
            Table("Time", "Seconds of a core a training, without pretraining", sizes, _time(runs), best="low"),
        ],
        sizes={
            "data": "SNIPS, ATIS, MIT restaurant and the built-in corpus (intents and slots); up to 1,000 test items",
            "labels": "50, 150 and 400 random items, no development items; a pool of 2,500",
            "seeds": f"{SEEDS}; {SIDE_SEEDS} for one change",
        },
    )


def _key(unit: Mapping[str, Any]) -> Key:
    return unit["arm"], unit["data"], unit["items"], unit["seed"]


def _cell(values: Sequence[float]) -> Cell:
    if not values:
        return Cell(None)
    found = spread(values)
    return Cell(100 * found["mean"], None if found["spread"] is None else 100 * found["spread"])


def _gains(means: Mapping[Key, float], arm: str, base: str) -> list[Cell]:
    """What an arm adds to its base, by the number of items and over all of them."""
    found = _differences(means, arm, base)
    sizes = [[gain for key, gain in found.items() if key[1] == items] for items in ITEMS]
    return [_cell(values) for values in (*sizes, list(found.values()))]


def _differences(means: Mapping[Key, float], arm: str, base: str) -> dict[tuple[str, int, int], float]:
    """By data set, items and seed, where both were run."""
    return {
        key[1:]: value - means[base, *key[1:]]
        for key, value in means.items()
        if key[0] == arm and (base, *key[1:]) in means
    }


def _gate(means: Mapping[Key, float]) -> Answer:
    """Whether the new protocol is ahead of how campaigns were trained before, on every development set."""
    found = {}
    for data in DATA:
        both = [key[1:] for key in means if key[:2] == (DEFAULT, data) and (BEFORE, *key[1:]) in means]
        if len(both) > 1:
            found[data] = paired_test([means[DEFAULT, *cell] for cell in both], [means[BEFORE, *cell] for cell in both])
    ahead = len(found) == len(DATA) and all((test["difference"] or 0) > 0 for test in found.values())
    return Answer(
        "Gate",
        "Is random labelling under the new protocol ahead of random labelling under the old one, on every set?",
        "yes" if ahead else "no" if len(found) == len(DATA) else "not decided here",
        "; ".join(f"{data} {_points(test)}" for data, test in found.items()) or "not run yet",
        "our own",
    )


def _kept(means: Mapping[Key, float], arm: str, base: str, what: str) -> Answer:
    """Whether an arm raises the mean over sets at every size, and lowers no set's mean by more than half a point."""
    found = _differences(means, arm, base)
    sizes = {n: [gain for key, gain in found.items() if key[1] == n] for n in ITEMS}
    sets = {data: [gain for key, gain in found.items() if key[0] == data] for data in DATA}
    decided = all([*sizes.values(), *sets.values()])
    good = decided and min(map(np.mean, sizes.values())) > 0 and min(map(np.mean, sets.values())) >= -HARM
    told = [*((f"{n} items", gains) for n, gains in sizes.items()), *sets.items()]
    return Answer(
        arm,
        f"Does {what} raise the score at every size, and lower it by more than {100 * HARM:.1f} on no set?",
        "not decided here" if not decided else "yes" if good else "no",
        "; ".join(f"{name} {100 * np.mean(gains):+.1f}" for name, gains in told if gains) or "not run yet",
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
