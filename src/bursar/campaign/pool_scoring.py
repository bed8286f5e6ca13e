"""Scores a pool in shards of items, in this process or on the workers of an engine.

Shards do not depend on the engine and models predict the same to the bit, so the engine changes only the time. Finished
shards are kept until the round is decided, so that a killed run continues with them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bursar.campaign.models import SavedModel
from bursar.campaign.unit_space import UnitDoubts
from bursar.compute import THIS_PROCESS, ArrayStore, Engine, Unit, UnitObserver, run_units, split_evenly
from bursar.corpus import Corpus
from bursar.learners import Learner
from bursar.learners.learner import Embeddings, Progress, no_progress
from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.selection import Strategy
from bursar.tasks import AnyBeliefs, Beliefs, Estimates
from bursar.uncertainty import MEASURES, confidences

SHARD = 1024  # items at most: a second or two of one core
FEW = 4096  # items times dropout passes that are scored in this process: a worker takes about as long to start

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Scored:
    """A model's confidence in items and its predicted labels; its beliefs and doubts if a strategy needs them."""

    confidence: FloatArray  # (items, tasks)
    guesses: Mapping[str, Ragged]
    beliefs: Mapping[str, AnyBeliefs] | None = None
    doubts: Mapping[str, UnitDoubts] | None = None

    def take(self, items: IntArray) -> Scored:
        """Some items, without beliefs and doubts."""
        return Scored(self.confidence[items], {name: rows.take(items) for name, rows in self.guesses.items()})

    @classmethod
    def concatenate(cls, parts: Sequence[Scored]) -> Scored:
        def joined(columns: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
            found = [column for column in columns if column is not None]
            names = found[0] if found else ()
            return {name: type(found[0][name]).concatenate([part[name] for part in found]) for name in names} or None

        return cls(
            np.concatenate([part.confidence for part in parts]),
            joined([part.guesses for part in parts]) or {},
            joined([part.beliefs for part in parts]),
            joined([part.doubts for part in parts]),
        )


@dataclass(frozen=True)
class Question:
    """What to compute for every item: its scores, its vector, or the embeddings of it and its words."""

    ask: Literal["scores", "vectors", "embeddings"]
    measure: str = "entropy"  # of confidence
    seed: int = 0  # of dropout passes
    keep: tuple[str, ...] = ()  # beside confidence and guesses: "beliefs", "units"

    @property
    def passes(self) -> int:
        return MEASURES[self.measure].passes if self.ask == "scores" else 1

    @property
    def stage(self) -> str:
        return "scoring" if self.ask == "scores" else "reading"


@dataclass(eq=False)
class PoolScoring:
    """Scores many items with a campaign's models, in shards on an ``engine``; enter it first to keep its workers.

    ``saved`` gives the files of the model. Finished shards are kept in ``folder``, if given, until ``forget``.
    """

    saved: Callable[[], SavedModel]
    folder: Path | None = None
    engine: Engine = THIS_PROCESS

    def scores(
        self, learner: Learner, strategy: Strategy, items: Corpus, seed: int, progress: Progress = no_progress
    ) -> Scored:
        needs = strategy.needs | ({"units"} if "doubt" in strategy.needs else set())
        keep = tuple(sorted(needs & {"beliefs", "units"}))
        parts = self._ask(learner, items, Question("scores", strategy.measure, seed, keep), progress)
        scored = [
            Scored(
                part["confidence"],
                _columns("guesses", items.schema, part, Ragged) or {},
                _columns("beliefs", items.schema, part, Beliefs, Estimates),
                _columns("units", items.schema, part, UnitDoubts),
            )
            for part in parts
        ]
        return Scored.concatenate(scored or [Scored(np.zeros((0, len(items.schema))), {})])

    def vectors(self, learner: Learner, items: Corpus, progress: Progress = no_progress) -> NDArray[np.float32]:
        if not len(items):
            return learner.vectors(items.unlabelled())
        return np.concatenate([part["vectors"] for part in self._ask(learner, items, Question("vectors"), progress)])

    def embeddings(self, learner: Learner, items: Corpus, progress: Progress = no_progress) -> Embeddings:
        if not len(items):
            return learner.embeddings(items.unlabelled())
        parts = self._ask(learner, items, Question("embeddings"), progress)
        words = [part["words"] for part in parts if "words" in part]
        return Embeddings(
            np.concatenate([part["items"] for part in parts]),
            np.concatenate(words) if words else None,
            bool(parts[0]["lasting"]),
        )

    def forget(self) -> None:
        """Remove the shards, once the round is decided."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _ask(self, learner: Learner, items: Corpus, question: Question, progress: Progress) -> list[Arrays]:
        items = items.unlabelled()
        few = len(items) * question.passes <= FEW
        engine = THIS_PROCESS if few else self.engine
        store = None if few or self.folder is None else ArrayStore(self.folder)
        load: Callable[[], Learner] = lambda: learner  # noqa: E731
        parts = split_evenly(len(items), -(-len(items) // SHARD))
        units: list[Unit] = [{"question": asdict(question), "from": part.start, "to": part.stop} for part in parts]

        def filled(unit: Unit) -> Unit:
            return {**unit, "corpus": items.take(np.arange(unit["from"], unit["to"]))}

        if store is not None or engine is not THIS_PROCESS:
            model = self.saved()
            load = load if engine is THIS_PROCESS else model.load
            units = [{**unit, "model": model.digest, "items": filled(unit)["corpus"].digest()} for unit in units]
        watcher = _Watcher(question.stage, progress)
        return run_units(partial(answer, load=load), units, engine=engine, store=store, watcher=watcher, fill=filled)


@dataclass
class _Watcher(UnitObserver):
    """Sums the progress of shards."""

    stage: str
    progress: Progress
    total: int = 1
    finished_ones: int = 0
    begun_ones: dict[int, float] = field(default_factory=dict)  # progress of shards by their first item

    def begun(self, total: int, stored: int) -> None:
        self.total, self.finished_ones = max(1, total), stored
        if stored:
            self._tell()

    def reported(self, unit: Unit, what: Any) -> None:
        self.begun_ones[unit["from"]] = float(what)
        self._tell()

    def finished(self, unit: Unit, result: Any, seconds: float) -> None:
        self.begun_ones.pop(unit["from"], None)
        self.finished_ones += 1
        self._tell()

    def retried(self, unit: Unit, why: str) -> None:
        self.begun_ones.pop(unit["from"], None)
        self._tell(f", items {unit['from']:,} to {unit['to']:,} again: {why}")

    def _tell(self, more: str = "") -> None:
        self.progress(self.stage + more, (self.finished_ones + sum(self.begun_ones.values())) / self.total)


# -- one shard -------------------------------------------------------------------------------------------------------
def answer(unit: Unit, callback: Callable[[Any], None], *, load: Callable[[], Learner]) -> Arrays:
    """Compute one shard: the work of a unit, in this process or in a worker."""
    learner, items, question = load(), unit["corpus"], Question(**unit["question"])
    reported = 0.0

    def progress(what: str, done: float) -> None:
        nonlocal reported
        if round(done, 1) > reported:  # not every batch: the callback may go to another machine
            reported = round(done, 1)
            callback(reported)

    if question.ask == "vectors":
        return {"vectors": learner.vectors(items, progress=progress)}
    if question.ask == "embeddings":
        found = learner.embeddings(items, progress=progress)
        words = {} if found.words is None else {"words": found.words}
        return {"items": found.items, "lasting": np.asarray(found.lasting), **words}
    beliefs = learner.predict_proba(items, passes=question.passes, seed=question.seed, progress=progress)
    guesses = {name: task.decode(beliefs[name]) for name, task in items.schema.items()}
    arrays = {"confidence": confidences(learner.tasks, beliefs, MEASURES[question.measure])}
    arrays |= _arrays("guesses", guesses)
    if "beliefs" in question.keep:
        arrays |= _arrays("beliefs", {name: beliefs[name] for name in items.schema})
    if "units" in question.keep:
        arrays |= _arrays("units", {name: UnitDoubts.of(task, beliefs[name]) for name, task in items.schema.items()})
    return arrays


def _arrays(what: str, columns: Mapping[str, Any]) -> Arrays:
    """Dataclasses of arrays, one for each task, as arrays by name."""
    return {
        f"{what} {number} {each.name}": np.asarray(getattr(column, each.name))
        for number, column in enumerate(columns.values())
        for each in fields(column)
        if getattr(column, each.name) is not None
    }


def _columns(what: str, tasks: Mapping[str, Any], arrays: Arrays, *kinds: type) -> dict[str, Any] | None:
    """The inverse of ``_arrays``, each of the kind whose first field is present; ``None`` if there are none."""
    found: dict[str, Any] = {}
    for number, name in enumerate(tasks):
        for kind in kinds:
            values = {each.name: arrays.get(f"{what} {number} {each.name}") for each in fields(kind)}
            if next(iter(values.values())) is not None:
                found[name] = kind(**{key: v if v is None or v.ndim else v.item() for key, v in values.items()})
    return found or None
