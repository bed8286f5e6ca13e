"""A judge that distributes its sets over processes or the machines of a cluster, and a stream from processes."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Protocol

import numpy as np

from bursar.compute import Engine, Processes, ProgressCallback, Unit, run_units
from bursar.compute.processes import ChildProcess
from bursar.errors import ComputeError
from bursar.oracle.judge import BatchStream, Judge, LocalStream, ScoreStream, SetsByKey, make_judge
from bursar.oracle.problem import LabellingProblem
from bursar.ragged import FloatArray, IntArray

RECENT = 256  # scores that a process keeps, since a request may cross the answer
TRIES = 3  # processes that may die before a stream gives up


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


# -- streams from several processes ------------------------------------------------------------------------------------
class ProcessStream(ScoreStream):
    """Works in several processes of this machine; one that dies is replaced."""

    def __init__(self, make: Callable[[], LocalStream], workers: int, room: int) -> None:
        """``make`` creates the stream of each process; ``room`` is that of all together."""
        self.room = room
        self._start = partial(ChildProcess, partial(_serve, make=make))
        self.processes = [self._start() for _ in range(workers)]
        self._held: list[dict[bytes, IntArray]] = [{} for _ in range(workers)]  # what each process works on
        self._died = 0

    def request(self, sets: SetsByKey) -> None:
        changed = set()
        for worker, held in enumerate(self._held):
            for key in [key for key in held if key not in sets]:
                del held[key]
                changed.add(worker)
        known = {key for held in self._held for key in held}
        for key, items in sets.items():
            if key not in known:
                worker = min(range(len(self._held)), key=lambda at: len(self._held[at]))
                self._held[worker][key] = items
                changed.add(worker)
        for worker in changed:
            self._send(worker)

    def _send(self, worker: int) -> None:
        try:
            self.processes[worker].line.send(self._held[worker])
        except OSError:
            self._replace(worker)

    def _replace(self, worker: int) -> None:
        """Start a new process for the work of a dead one."""
        self._died += 1
        if self._died >= TRIES:
            raise ComputeError(f"{self._died} processes that train models have died", fix="see what they printed last")
        self.processes[worker].kill()
        self.processes[worker] = self._start()
        self._send(worker)

    def results(self) -> dict[bytes, float]:
        found: dict[bytes, float] = {}
        while not found and any(self._held):
            ready = wait([process.line for process in self.processes])
            for worker, process in enumerate(self.processes):
                if process.line in ready:
                    found |= self._receive(worker)
        return found

    def _receive(self, worker: int) -> dict[bytes, float]:
        """The scores of one process, also of withdrawn sets, since they may be requested again."""
        try:
            answer = self.processes[worker].line.recv()
        except (EOFError, OSError):
            self._replace(worker)
            return {}
        if isinstance(answer, BaseException):
            raise answer
        for key in answer:
            self._held[worker].pop(key, None)
        return dict(answer)

    def close(self) -> None:
        for process in self.processes:
            process.dismiss()
        for process in self.processes:
            process.join()


def _serve(line: Connection, make: Callable[[], LocalStream]) -> None:
    """Run in a process: receive requests, work on them, send scores."""
    recent: dict[bytes, float] = {}
    try:
        stream = make()
        while True:
            found: dict[bytes, float] = {}
            while not len(stream) or line.poll():
                wanted = line.recv()
                stream.request({key: items for key, items in wanted.items() if key not in recent})
                found = {key: recent[key] for key in wanted if key in recent}
                if found:
                    break
            found |= stream.step()
            if found:
                line.send(found)
                recent = dict(islice((found | recent).items(), RECENT))
    except (EOFError, OSError):
        return
    except BaseException as wrong:
        line.send(wrong)
