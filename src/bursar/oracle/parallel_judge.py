"""A judge whose sets are shared out among processes or the machines of a cluster."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Protocol

import numpy as np

from bursar.compute import Engine, Processes, ProgressCallback, Unit, run_units
from bursar.oracle.async_evaluation import Elsewhere, Here, Steps, Stream
from bursar.oracle.judge import Judge
from bursar.oracle.judges import make_judge
from bursar.oracle.problem import Problem
from bursar.ragged import FloatArray, IntArray
from bursar.tasks import Beliefs


class Recipe(Protocol):
    """How a judge is made, as it can be sent elsewhere: a frozen dataclass that can be called, at the top of a module.

    It must compare equal to a copy of itself, so that a worker makes its judge once and not for every set.
    """

    def __hash__(self) -> int: ...

    def __call__(self) -> Judge: ...


@dataclass(frozen=True)
class Packed:
    """A judge by its name, with the items of its problem: whoever gets it needs no file."""

    name: str
    seed: int  # of trainings
    items: bytes

    @classmethod
    def of(cls, name: str, problem: Problem, seed: int = 0) -> Packed:
        return cls(name, seed, zlib.compress(pickle.dumps(problem.alone())))

    def __call__(self) -> Judge:
        return make_judge(self.name, pickle.loads(zlib.decompress(self.items)), seed=self.seed)


class ParallelJudge(Judge):
    """Says what the recipe's judge would say; the work is done by an engine's workers, each with a judge of its own.

    Enter the engine first (``with make_engine("processes") as engine``), or its workers go home after every question.
    """

    def __init__(self, recipe: Recipe, engine: Engine) -> None:
        self.recipe, self.engine = recipe, engine
        self.here = made(recipe)
        self.pool, self.highest, self.ordered = self.here.pool, self.here.highest, self.here.ordered
        self.at_once = self.here.at_once * engine.workers

    def scores_on(self, sets: Sequence[IntArray], parts: Sequence[str]) -> FloatArray:
        """Every worker gets every so-manieth set, so that large and small ones are shared out evenly.

        As many as are judged at once are not worth the seconds that a process takes to come.
        """
        workers = min(self.engine.workers, len(sets))
        few = self.here.at_once if isinstance(self.engine, Processes) else 1
        if workers < 2 or len(sets) <= few:
            return self.here.scores_on(sets, parts)
        units = [{"sets": [some.tolist() for some in sets[at::workers]], "parts": list(parts)} for at in range(workers)]
        answers = run_units(partial(_judged, recipe=self.recipe), units, engine=self.engine)
        found = np.empty((len(parts), len(sets)))
        for at, answer in enumerate(answers):
            found[:, at::workers] = answer
        return found

    def stream(self) -> Stream | None:
        """Where workers are processes of this machine; elsewhere questions are asked in rounds."""
        here = self.here.stream()
        if here is None or self.engine.workers < 2:
            return here
        if not isinstance(self.engine, Processes):
            return None
        self.engine.dismiss()  # a stream has workers of its own, each with its judge
        return Elsewhere(partial(_steps, self.recipe), self.engine.workers, here.room * self.engine.workers)

    def learn(self, sets: Sequence[IntArray]) -> None:
        self.here.learn(sets)

    def predict_proba(self, items: IntArray, passes: int = 1, seed: int = 0) -> Mapping[str, Beliefs]:
        return self.here.predict_proba(items, passes, seed)


@lru_cache(maxsize=2)
def made(recipe: Recipe) -> Judge:
    """The judge of a recipe, made once in every process."""
    return recipe()


def _steps(recipe: Recipe) -> Steps:
    stream = made(recipe).stream()
    assert isinstance(stream, Here)
    return stream.steps


def _judged(unit: Unit, tell: ProgressCallback, *, recipe: Recipe) -> list[list[float]]:
    sets = [np.array(items, dtype=np.int64) for items in unit["sets"]]
    answer: list[list[float]] = made(recipe).scores_on(sets, unit["parts"]).tolist()
    return answer
