"""How good are the learner's parts on real data, and can its confidence be trusted?

Six questions, each a handful of trainings (*units*); one that was interrupted goes on from its checkpoint.

``full``         ATIS and SNIPS, all training data: one shared model against one model a task.
``few``          200 random SNIPS sentences.
``trees``        EWT parsing and UNER entities on 3,000 sentences: single, shared and gated (paper 1, Table 3).
``joint``        SciERC entities and relations over spans.
``calibration``  ATIS and SNIPS pools: does label smoothing lower the overconfidence error (paper 1, Table 6)?
``layers``       a few hundred sentences and a hundred steps: which layers of the encoder to use and to train?
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from bursar.compute import ProgressCallback
from bursar.corpus import Corpus
from bursar.learners import Learner, make_learner
from bursar.ragged import IntArray
from bursar.uncertainty import MEASURES, confidences
from bursar.uncertainty.calibration import calibration_summary, overconfidence_error
from experiments.studies.arms import Place, corpus_of
from experiments.studies.defaults import with_defaults_of_then
from experiments.studies.findings import Cell, Findings, Table
from experiments.studies.statistics import r_squared, spread
from experiments.studies.study import STUDIES, Run, Study


@dataclass(frozen=True)
class Training:
    """One training and what is measured after it."""

    question: str
    data: str
    arm: str
    seed: int
    items: int | None = None  # training items, drawn with the seed; all of them if not said
    dev: int | None = None  # development items, drawn with the seed (errata 15)
    options: Mapping[str, Any] = field(default_factory=dict)  # of the learner

    @property
    def name(self) -> str:
        return f"{self.question}-{self.data}-{self.arm}-{self.seed}"


def trainings() -> list[Training]:
    """Every training of the study, those of one seed before those of the next where a question has several."""
    long = {"batch_size": 32, "evaluate_every": 1, "patience": 3}
    found = [Training("few", "snips", "shared", seed, items=200, dev=100) for seed in range(3)]
    for data, epochs in (("atis", 6), ("snips", 4)):
        arms = [{"sharing": arm, "epochs": epochs, **long} for arm in ("shared", "single")]
        found += [Training("full", data, str(options["sharing"]), 0, options=options) for options in arms]
    for arm in ("single", "shared", "gated"):
        options = {"sharing": arm, "epochs": 5, **long}
        found.append(Training("trees", "ewt", arm, 0, items=3000, dev=400, options=options))
    found.append(Training("joint", "scierc", "shared", 0, options={"epochs": 8, "evaluate_every": 2}))
    for seed in range(3):
        for data in ("atis", "snips"):
            for arm, smoothing in (("CE", 0.0), ("LS", 0.1)):
                how = {"smoothing": smoothing, "temperature": True, "epochs": 20}
                found.append(Training("calibration", data, arm, seed, items=300, dev=100, options=how))
    depths = {
        "all six layers": {"learning_rate": 3e-4},
        "six, five frozen": {"frozen_layers": 5, "learning_rate": 1e-3},
        "three, two frozen": {"layers": 3, "frozen_layers": 2, "learning_rate": 1e-3},
    }
    for seed in range(3):
        for data, items in (("ewt", 250), ("atis", 150), ("snips", 150)):
            for arm, depth in depths.items():
                how = {"steps": 100, "patience": 8, **depth}
                found.append(Training("layers", data, arm, seed, items=items, dev=100, options=how))
    return found


def grid(scale: str) -> list[dict[str, Any]]:
    """The trainings as units of work."""
    return [asdict(training) for training in trainings()]


def train(unit: Mapping[str, Any], tell: ProgressCallback, *, place: Place) -> dict[str, Any]:
    """One training and its scores."""
    training = Training(**unit)
    corpus = corpus_of(training.data, place.data)
    rng = np.random.default_rng(training.seed)
    chosen, rest = _draw(corpus.in_split("train"), training.items, rng)
    dev, _ = _draw(corpus.in_split("dev"), training.dev, rng)
    learner = make_learner("transformer", corpus.schema, with_defaults_of_then(training.options))
    begun = time.monotonic()
    report = learner.fit(
        corpus.take(chosen),
        dev=corpus.take(dev),
        seed=training.seed,
        checkpoint=place.runs / f"{training.name}.training",
        progress=lambda what, done: tell((what, done)),
    )
    result = {
        "items": {"train": len(chosen), "dev": len(dev)},
        "steps": report.steps,
        "dev": report.best_score,
        "history": [dict(entry) for entry in report.history],
    }
    if training.question == "calibration":
        pool, _ = _draw(rest, 1500, rng)
        result["calibration"] = _calibration(learner, corpus.take(pool), training)
    else:
        result["test"] = learner.evaluate(corpus.split("test"))
    result["seconds"] = round(time.monotonic() - begun, 1)
    return result


def _draw(items: IntArray, count: int | None, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """So many of the items at random, and the others."""
    if count is None:
        return items, items[:0]
    order = rng.permutation(items)
    return order[:count], order[count:]


def _calibration(learner: Learner, pool: Corpus, training: Training) -> dict[str, Any]:
    """The errors of every way to be confident that this training offers, per task, on pool items in hindsight."""
    from bursar.learners.neural import NeuralLearner

    assert isinstance(learner, NeuralLearner)
    fitted = dict(learner.temperatures)
    ways: dict[str, tuple[str, dict[str, float]]] = {
        training.arm: ("entropy", {}),
        f"{training.arm}+TS": ("entropy", fitted),
    }
    if training.arm == "CE":
        ways["DA"] = ("dropout-agreement", {})
    found: dict[str, Any] = {"temperatures": fitted}
    for way, (measure, temperatures) in ways.items():
        learner.temperatures = temperatures
        how = MEASURES[measure]
        beliefs = learner.predict_proba(pool.unlabelled(), passes=how.passes, seed=training.seed)
        sure = confidences(learner.tasks, beliefs, how)
        found[way] = {}
        for column, (name, task) in enumerate(learner.tasks.items()):
            right = task.accuracies(pool.labels[name].rows, task.decode(beliefs[name]), pool.words)
            found[way][name] = calibration_summary(sure[:, column], right) | {
                "overconfidence": overconfidence_error(sure[:, column], right),
                "r_squared": r_squared(sure[:, column], right),
                "mean_confidence": float(sure[:, column].mean()),
                "mean_accuracy": float(right.mean()),
            }
    return found


def summarise(runs: Sequence[Run]) -> dict[str, Any]:
    """Mean and spread over seeds of every main score, and of the overconfidence error.

    >>> unit = {"question": "few", "data": "snips", "arm": "shared"}
    >>> scores = [{"test": {"intent": {"accuracy": a, "macro_f1": 0.0}}} for a in (0.9, 0.8)]
    >>> found = summarise([{"unit": unit, "result": result} for result in scores])
    >>> round(found["few snips shared"]["intent accuracy"]["mean"], 6)
    0.85
    """
    values: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        unit, result = run["unit"], run["result"]
        arm = values.setdefault(f"{unit['question']} {unit['data']} {unit['arm']}", {})
        for task, scores in result.get("test", {}).items():
            metric = next(iter(scores))
            arm.setdefault(f"{task} {metric}", []).append(scores[metric])
        for way, tasks in result.get("calibration", {}).items():
            if way == "temperatures":
                continue
            arm = values.setdefault(f"{unit['question']} {unit['data']} {way}", {})
            for task, errors in tasks.items():
                for what in ("overconfidence", "calibration", "mean_accuracy"):
                    arm.setdefault(f"{task} {what}", []).append(errors[what])
    return {arm: {what: spread(found) for what, found in scores.items()} for arm, scores in values.items() if scores}


QUESTIONS = {
    "full": "All training data: one model for both tasks against one each",
    "few": "200 sentences",
    "trees": "3,000 sentences: single, shared and gated (paper 1, Table 3)",
    "joint": "Entities and relations over spans",
    "layers": "A hundred steps on 250 EWT, 150 ATIS or 150 SNIPS sentences, by the layers used and trained",
    "calibration": "Overconfidence and calibration error on pool items (paper 1, Table 6)",
}


def analyse(runs: Sequence[Run], scale: str) -> Findings:
    """A table for every question."""
    summary = summarise(runs)
    tables = []
    for question, title in QUESTIONS.items():
        mine = {arm: scores for arm, scores in summary.items() if arm.startswith(f"{question} ")}
        columns = list(dict.fromkeys(what for scores in mine.values() for what in scores))
        rows = {
            arm.removeprefix(f"{question} "): [
                Cell(
                    100 * scores[what]["mean"], None if scores[what]["spread"] is None else 100 * scores[what]["spread"]
                )
                if what in scores
                else Cell(None)
                for what in columns
            ]
            for arm, scores in mine.items()
        }
        tables.append(Table(question, title, columns, rows, note="Percent.", best=""))  # rows are of several data sets
    return Findings(
        "How good the learner's parts are on real data, and how far its confidence can be trusted.",
        tables=tables,
        sizes={"few": "200 sentences, three seeds", "trees": "3,000 sentences, one seed", "calibration": "three seeds"},
    )


STUDIES.add(
    "learner",
    Study(
        "learner",
        "The learner's parts on real data",
        "paper 1, Tables 3 and 6, and our own",
        grid,
        train,
        analyse,
        reads=("atis", "snips", "ud_ewt", "uner_ewt", "scierc"),
        scales=("small",),
    ),
)
