"""How good are the learner's parts on real data, and can its confidence be trusted?

Five questions, each a handful of trainings (*units*) that can be stopped and taken up again: a finished unit is never
run twice, and one that was interrupted goes on from its checkpoint.

``full``         ATIS and SNIPS, all training data: one shared model against one model a task.
``few``          200 random SNIPS sentences.
``trees``        EWT parsing and UNER entities on 3,000 sentences: single, shared and gated (paper 1, Table 3).
``joint``        SciERC entities and relations over spans.
``calibration``  ATIS and SNIPS pools: does label smoothing lower the overconfidence error (paper 1, Table 6)?
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from bursar.compute import cores, run_all
from bursar.corpus import Corpus, read
from bursar.corpus.formats.format import replacing
from bursar.errors import ConfigError
from bursar.learners import Learner, make_learner
from bursar.ragged import IntArray
from bursar.uncertainty import MEASURES, confidences
from bursar.uncertainty.calibration import calibration_summary, overconfidence_error, r_squared


@dataclass(frozen=True)
class Unit:
    """One training and what is measured after it."""

    question: str
    data: str
    arm: str
    seed: int
    items: int | None = None  # training items, drawn with the seed; all of them if not said
    dev: int | None = None  # development items, drawn with the seed (errata 15)
    options: dict[str, Any] = field(default_factory=dict)  # of the learner

    @property
    def name(self) -> str:
        return f"{self.question}-{self.data}-{self.arm}-{self.seed}"


def units() -> list[Unit]:
    """Every training of the study, those of one seed before those of the next."""
    long = {"batch_size": 32, "evaluate_every": 1, "patience": 3}
    found = [Unit("few", "snips", "shared", seed, items=200, dev=100) for seed in range(3)]
    for data, epochs in (("atis", 6), ("snips", 4)):
        arms = [{"sharing": arm, "epochs": epochs, **long} for arm in ("shared", "single")]
        found += [Unit("full", data, str(options["sharing"]), 0, options=options) for options in arms]
    for arm in ("single", "shared", "gated"):
        options = {"sharing": arm, "epochs": 5, **long}
        found.append(Unit("trees", "ewt", arm, 0, items=3000, dev=400, options=options))
    found.append(Unit("joint", "scierc", "shared", 0, options={"epochs": 8, "evaluate_every": 2}))
    for seed in range(3):
        for data in ("atis", "snips"):
            for arm, smoothing in (("CE", 0.0), ("LS", 0.1)):
                how = {"smoothing": smoothing, "temperature": True, "epochs": 20}
                found.append(Unit("calibration", data, arm, seed, items=300, dev=100, options=how))
    return found


def corpus_of(data: str, folder: Path) -> Corpus:
    """A data set with the tasks that the study trains on it."""
    if data == "ewt":
        return read(folder / "ud_ewt", layer=folder / "uner_ewt").with_tasks(["dependencies", "entities"])
    return read(folder / data)


def run_unit(unit: Unit, folder: Path, data: Path, tell: Any) -> dict[str, Any]:
    """One training and its scores; what has been done is read from its file."""
    file = folder / f"{unit.name}.json"
    if file.exists():
        found: dict[str, Any] = json.loads(file.read_text())
        if found["unit"] != asdict(unit):
            raise ConfigError(f"{file} is of other settings", fix="delete it to train again")
        return found
    corpus = corpus_of(unit.data, data)
    rng = np.random.default_rng(unit.seed)
    train, rest = _draw(corpus.in_split("train"), unit.items, rng)
    dev, _ = _draw(corpus.in_split("dev"), unit.dev, rng)
    learner = make_learner("transformer", corpus.schema, unit.options)
    begun = time.monotonic()

    def progress(what: str, done: float) -> None:
        tell((unit.name, what, done))

    report = learner.fit(
        corpus.take(train),
        dev=corpus.take(dev),
        seed=unit.seed,
        checkpoint=folder / f"{unit.name}.training",
        progress=progress,
    )
    result = {
        "unit": asdict(unit),
        "items": {"train": len(train), "dev": len(dev)},
        "steps": report.steps,
        "dev": report.best_score,
        "history": [dict(entry) for entry in report.history],
    }
    if unit.question == "calibration":
        pool, _ = _draw(rest, 1500, rng)
        result["calibration"] = _calibration(learner, corpus.take(pool), unit)
    else:
        result["test"] = learner.evaluate(corpus.split("test"))
    result["seconds"] = round(time.monotonic() - begun, 1)
    with replacing(file) as out:
        out.write(json.dumps(result, indent=1) + "\n")
    return result


def _draw(items: IntArray, count: int | None, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """So many of the items at random, and the others."""
    if count is None:
        return items, items[:0]
    order = rng.permutation(items)
    return order[:count], order[count:]


def _calibration(learner: Learner, pool: Corpus, unit: Unit) -> dict[str, Any]:
    """The errors of every way to be confident that this training offers, per task, on pool items in hindsight."""
    from bursar.learners.neural import NeuralLearner

    assert isinstance(learner, NeuralLearner)
    fitted = dict(learner.temperatures)
    ways: dict[str, tuple[str, dict[str, float]]] = {unit.arm: ("entropy", {}), f"{unit.arm}+TS": ("entropy", fitted)}
    if unit.arm == "CE":
        ways["DA"] = ("dropout-agreement", {})
    found: dict[str, Any] = {"temperatures": fitted}
    for way, (measure, temperatures) in ways.items():
        learner.temperatures = temperatures
        how = MEASURES[measure]
        beliefs = learner.believe(pool.unlabelled(), passes=how.passes, seed=unit.seed)
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


def summarise(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean and spread over seeds of every main score, and of the overconfidence error.

    >>> unit = {"question": "few", "data": "snips", "arm": "shared"}
    >>> results = [{"unit": unit, "test": {"intent": {"accuracy": a, "macro_f1": 0.0}}} for a in (0.9, 0.8)]
    >>> round(summarise(results)["few snips shared"]["intent accuracy"]["mean"], 6)
    0.85
    """
    values: dict[str, dict[str, list[float]]] = {}
    for result in results:
        unit = result["unit"]
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


def spread(values: Sequence[float]) -> dict[str, Any]:
    """The mean over seeds and their standard deviation."""
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "spread": deviation, "seeds": len(values)}


def run_study(chosen: Sequence[Unit], folder: Path, data: Path, workers: int, command: str) -> dict[str, Any]:
    """All units, so many at a time, and what follows from them."""
    folder.mkdir(parents=True, exist_ok=True)
    last: dict[str, float] = {}

    def tell(told: tuple[str, str, float]) -> None:
        name, what, done = told
        if what == "training" and done - last.get(name, 0.0) >= 0.1:
            last[name] = done
            print(f"{time.strftime('%H:%M:%S')} {name} {done:.0%}", flush=True)  # noqa: T201

    results = run_all([partial(run_unit, unit, folder, data) for unit in chosen], workers, tell)
    return {
        "study": "learner",
        "command": command,
        "versions": {name: version(name) for name in ("bursar", "torch", "numpy")}
        | {"python": platform.python_version()},
        "runs": results,
        "summary": summarise(results),
    }


def main() -> None:
    """The study from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--questions", nargs="+", help="some of: full, few, trees, joint, calibration")
    parser.add_argument("--seeds", type=int, nargs="+", help="only these seeds")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BURSAR_DATA", "../shared/data")))
    parser.add_argument("--runs", type=Path, default=Path("runs/study-learner"), help="where finished units are kept")
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--out", type=Path, default=Path("studies/learner.json"))
    asked = parser.parse_args()
    chosen = [
        unit
        for unit in units()
        if (asked.questions is None or unit.question in asked.questions)
        and (asked.seeds is None or unit.seed in asked.seeds)
    ]
    found = run_study(
        chosen, asked.runs, asked.data, asked.workers, f"python -m bursar.studies.learner --out {asked.out}"
    )
    with replacing(asked.out) as file:
        file.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
