"""Which task policy trains the best model on GLUE? Paper 3, section 4.2, on the five tasks with training data here.

One model, one head a task, so many steps; only the policy and the seed differ. The development items of every task are
cut in two, in the same way for all seeds: on one part λ is chosen, the best of eight evaluations kept, and the curves
drawn; scores are reported on the other (errata 23).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.metrics import f1_score, matthews_corrcoef

from bursar.compute import ProgressCallback
from bursar.corpus import Corpus, read
from bursar.curriculum import Policy, StepLog, UniformPolicy, improve, learn_dynamic, make_policy
from bursar.learners import Learner, make_learner
from bursar.ragged import Ragged
from experiments.studies.arms import Place
from experiments.studies.defaults import with_defaults_of_then
from experiments.studies.glue_findings import TASKS, analyse
from experiments.studies.kept import kept
from experiments.studies.study import STUDIES, Study

STEPS = 1500
SEEDS = 3
CHOOSE, REPORT = 200, 400  # development items of a task in each part, at most
ENTROPIES = (0.1, 0.15, 0.2, 0.5)  # the paper's three, and the bandit's
LEARNER: dict[str, Any] = {
    "batch_size": 16,
    "learning_rate": 1e-4,
    "head_learning_rate": 1e-3,
    "frozen_layers": 2,
    "smoothing": 0.0,
    "patience": 1000,  # every training has all its steps
}
CUT = 0  # which of all ways to cut the development items in two; all seeds have the same


def grid(scale: str) -> list[dict[str, Any]]:
    """Every policy with every seed. λ is tried with the first seed; the one chosen there has the others as well."""
    steps = STEPS if scale == "small" else 200_000
    units: list[dict[str, Any]] = []
    for seed in range(SEEDS):
        policies: list[dict[str, Any]] = [
            {"policy": "uniform"},
            {"policy": "size"},
            {"policy": "exp3s"},
            {"learn": "dynamic", "entropy": 0.1},
        ]
        if seed == 0:
            policies += [{"learn": "fixed", "entropy": entropy} for entropy in ENTROPIES]
        else:
            policies.append({"learn": "fixed", "entropy": "chosen", "entropies": list(ENTROPIES)})
        units += [{**policy, "tasks": list(TASKS), "steps": steps, "seed": seed, **_setup()} for policy in policies]
        units += [
            {"policy": "uniform", "tasks": [task], "steps": steps // len(TASKS), "seed": seed, **_setup()}
            for task in TASKS
        ]
    return units


def _setup() -> dict[str, Any]:
    return {"learner": dict(LEARNER), "choose": CHOOSE, "report": REPORT, "cut": CUT}


def train_glue(unit: Mapping[str, Any], tell: ProgressCallback, *, place: Place) -> dict[str, Any]:
    """Train one model by one policy. Whoever needs it first trains it; the others wait."""
    return kept(train_glue, unit, place, lambda where: _train(unit, where, tell, place))


def _train(unit: Mapping[str, Any], where: str, tell: ProgressCallback, place: Place) -> dict[str, Any]:
    begun = time.monotonic()
    policy, entropy = _policy_of(unit, tell, place)
    train, choose, report = parts(unit, place)
    learner = _learner(tuple(unit["tasks"]), place.data, json.dumps({**unit["learner"], "steps": unit["steps"]}))
    log = place.runs / "glue" / f"{where}.parquet"
    fitted = learner.fit(
        train,
        dev=choose,
        seed=unit["seed"],
        policy=policy,
        log=log,
        checkpoint=place.runs / "glue" / f"{where}.training",
        progress=lambda what, done: tell((what, done)),
    )
    steps = StepLog.read(log)
    result = {
        "scores": glue_scores(learner, report),
        "choose": glue_scores(learner, choose),
        "curve": [[entry["step"], entry["mean"]] for entry in fitted.history if "mean" in entry],
        "steps": len(steps),
        "items": {"train": len(train), "choose": len(choose), "report": len(report)},
        "shares": (np.bincount(steps.taken, minlength=len(steps.tasks)) / len(steps)).round(4).tolist(),
        "policy": policy.describe(),
        "entropy": entropy,
        "log": _kept(steps) if _is_logger(unit) else None,
        "seconds": round(time.monotonic() - begun, 1),
    }
    log.unlink()
    return result


# -- policies ----------------------------------------------------------------------------------------------------------
def _policy_of(unit: Mapping[str, Any], tell: ProgressCallback, place: Place) -> tuple[Policy, float | None]:
    """The policy of a unit; a learned one comes from the log of the uniform policy's training with the first seed."""
    if "policy" in unit:
        return make_policy(unit["policy"]), None
    first = {key: value for key, value in unit.items() if key not in ("learn", "entropy", "entropies")} | {"seed": 0}
    if unit["entropy"] == "chosen":
        entropies = unit["entropies"]
        tried = [train_glue({"learn": "fixed", "entropy": e, **first}, tell, place=place) for e in entropies]
        entropy = entropies[int(np.argmax([np.mean(list(result["choose"].values())) for result in tried]))]
    else:
        entropy = unit["entropy"]
    log = log_of(train_glue({"policy": "uniform", **first}, tell, place=place), first)
    how = learn_dynamic if unit["learn"] == "dynamic" else improve
    return how([log], entropy=entropy).policy, entropy


def _is_logger(unit: Mapping[str, Any]) -> bool:
    return unit.get("policy") == "uniform" and unit["seed"] == 0 and len(unit["tasks"]) > 1


def log_of(result: Mapping[str, Any], unit: Mapping[str, Any]) -> StepLog:
    """The step log that a result of the uniform policy carries."""
    log, tasks = result["log"], tuple(unit["tasks"])
    chances = np.full((len(log["taken"]), len(tasks)), 1 / len(tasks))
    return StepLog(
        tasks,
        tuple(log["sizes"]),
        log["planned"],
        np.array(log["taken"]),
        chances,
        np.array(log["before"]),
        policy=UniformPolicy().describe(),
    )


def _kept(steps: StepLog) -> dict[str, Any]:
    return {
        "sizes": list(steps.sizes),
        "planned": steps.planned,
        "taken": steps.taken.tolist(),
        "before": steps.before.round(5).tolist(),
    }


# -- items and scores --------------------------------------------------------------------------------------------------
@lru_cache(maxsize=1)
def _corpus(folder: Path) -> Corpus:
    return read(folder / "glue").with_tasks(list(TASKS))


@lru_cache(maxsize=2)
def _learner(tasks: tuple[str, ...], folder: Path, options: str) -> Learner:
    """One learner for the trainings that follow one another: it remembers what it has read."""
    schema = _corpus(folder).schema
    return make_learner(
        "transformer", {name: schema[name] for name in tasks}, with_defaults_of_then(json.loads(options))
    )


def parts(unit: Mapping[str, Any], place: Place) -> tuple[Corpus, Corpus, Corpus]:
    """All training items of the tasks, and their development items in two parts, cut with the seed."""
    corpus = _corpus(place.data).with_tasks(unit["tasks"])
    training, choose, report = [], [], []
    for task in unit["tasks"]:
        there = corpus.labels[task].present
        known = {split: corpus.in_split(split)[there[corpus.in_split(split)]] for split in ("train", "dev")}
        training.append(known["train"])
        order = np.random.default_rng([unit["cut"], TASKS.index(task), 41]).permutation(known["dev"])
        first = unit["choose"] if len(order) >= 2 * unit["choose"] else len(order) // 3
        choose.append(order[:first])
        report.append(order[first : first + unit["report"]])
    return tuple(corpus.take(np.concatenate(part)) for part in (training, choose, report))  # type: ignore[return-value]


def glue_scores(learner: Learner, items: Corpus) -> dict[str, float]:
    """GLUE's own score of every task; the mean where it has two (paper 3, Table 1)."""
    guesses = learner.predict(items.unlabelled())
    found = {}
    for name, guess in guesses.items():
        known = np.flatnonzero(items.labels[name].present)
        if len(known):
            gold = items.labels[name].rows.take(known)
            labels = items.schema[name].labels
            positive = labels.index("1") if "1" in labels else 0
            found[name] = glue_score(name, gold, guess.take(known), positive)
    return found


def glue_score(task: str, gold: Ragged, guess: Ragged, positive: int = 1) -> float:
    """Matthews' correlation for CoLA; accuracy and F1 for MRPC; both correlations for STS-B; accuracy for the others.

    >>> gold, guess = Ragged.of([[1], [1], [0]], 1), Ragged.of([[1], [0], [0]], 1)
    >>> round(glue_score("MRPC", gold, guess), 4), round(glue_score("RTE", gold, guess), 4)
    (0.6667, 0.6667)
    """
    right, found = gold.values[:, 0], guess.values[:, 0]
    if task == "STS-B":
        return float(np.nan_to_num((np.corrcoef(right, found)[0, 1] + spearmanr(right, found)[0]) / 2))
    if task == "CoLA":
        return float(matthews_corrcoef(right, found))
    accuracy = float((right == found).mean())
    return (accuracy + float(f1_score(right == positive, found == positive))) / 2 if task == "MRPC" else accuracy


STUDIES.add(
    "glue",
    Study(
        "glue",
        "Which task policy trains the best model on GLUE?",
        "paper 3, section 4.2",
        grid,
        train_glue,
        analyse,
        reads=("glue",),
    ),
)
