"""A judge that distributes its sets over processes or the machines of a cluster."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Protocol

import numpy as np

from bursar.compute import Engine, Processes, ProgressCallback, Unit, run_units
from bursar.oracle.async_evaluation import LocalStream, ProcessStream, ScoreStream
from bursar.oracle.judge import BatchStream, Judge, make_judge
from bursar.oracle.problem import LabellingProblem
from bursar.ragged import FloatArray, IntArray


class JudgeFactory(Protocol):
    """Makes a judge in another process: a callable frozen dataclass, at the top of a module.

    It must equal its copies, so that a worker makes its judge once and not for every set.
    """

    def __hash__(self) -> int: ...

    def __call__(self) -> Judge: ...


@dataclass(frozen=True)
class PackedJudge:
    """A judge by its name, with the items of its problem, so that no files are needed."""

    name: str
    seed: int  # of trainings
    items: bytes

    @classmethod
    def of(cls, name: str, problem: LabellingProblem, seed: int = 0) -> PackedJudge:
        return cls(name, seed, zlib.compress(pickle.dumps(problem.alone())))

    def __call__(self) -> Judge:
        return make_judge(self.name, pickle.loads(zlib.decompress(self.items)), seed=self.seed)


class ParallelJudge(Judge):
    """Gives the same scores as the factory's judge; each worker of the engine has a judge of its own.

    Enter the engine first (``with make_engine("processes") as engine``), so that workers last for several requests.
    """

    def __init__(self, factory: JudgeFactory, engine: Engine) -> None:
        self.factory, self.engine = factory, engine
        self.here = made(factory)
        self.pool, self.highest = self.here.pool, self.here.highest
        self.at_once = self.here.at_once * engine.workers

    def scores_on(self, sets: Sequence[IntArray], parts: Sequence[str]) -> FloatArray:
        """Distribute large and small sets alike. A few are judged here: starting processes takes seconds."""
        workers = min(self.engine.workers, len(sets))
        few = self.here.at_once if isinstance(self.engine, Processes) else 1
        if workers < 2 or len(sets) <= few:
            return self.here.scores_on(sets, parts)
        units = [{"sets": [some.tolist() for some in sets[at::workers]], "parts": list(parts)} for at in range(workers)]
        answers = run_units(partial(_judged, factory=self.factory), units, engine=self.engine)
        found = np.empty((len(parts), len(sets)))
        for at, answer in enumerate(answers):
            found[:, at::workers] = answer
        return found

    def stream(self) -> ScoreStream:
        """Set by set only by processes of this machine; on a cluster, sets are judged in batches."""
        here = self.here.stream()
        if self.engine.workers < 2:
            return here
        if isinstance(here, BatchStream) or not isinstance(self.engine, Processes):
            return super().stream()
        self.engine.dismiss()  # a stream has its own workers
        return ProcessStream(partial(_local_stream, self.factory), self.engine.workers, here.room * self.engine.workers)


@lru_cache(maxsize=2)
def made(factory: JudgeFactory) -> Judge:
    """The judge of a factory, made once in each process."""
    return factory()


def _local_stream(factory: JudgeFactory) -> LocalStream:
    stream = made(factory).stream()
    assert isinstance(stream, LocalStream)
    return stream


def _judged(unit: Unit, tell: ProgressCallback, *, factory: JudgeFactory) -> list[list[float]]:
    sets = [np.array(items, dtype=np.int64) for items in unit["sets"]]
    answer: list[list[float]] = made(factory).scores_on(sets, unit["parts"]).tolist()
    return answer
