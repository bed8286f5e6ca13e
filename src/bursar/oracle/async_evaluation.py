"""Asynchronous scoring: a search requests sets, may withdraw them, and gets scores as they are ready.

A synchronous batch ends with its slowest model, when most lanes are empty. A stream keeps them full: requests may
change with each score, and work on withdrawn sets is dropped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection, wait

from bursar.compute.processes import ChildProcess
from bursar.errors import ComputeError
from bursar.ragged import IntArray

SetsByKey = Mapping[bytes, IntArray]  # the most urgent first
RECENT = 256  # scores that a process keeps, since a request may cross the answer
TRIES = 3  # processes that may die before a stream gives up


class ScoreStream(ABC):
    """Scores sets one by one."""

    room: int  # sets that are worked on at the same time
    likely: float = 0.12  # a search requests sets that it needs with at least this probability

    @abstractmethod
    def request(self, sets: SetsByKey) -> None:
        """Replace all earlier requests by these."""

    @abstractmethod
    def results(self) -> dict[bytes, float]:
        """Wait for at least one score. Each is returned once. Empty if nothing is requested."""

    @abstractmethod
    def close(self) -> None:
        """Stop working."""


class LocalStream(ScoreStream):
    """Works in this process, a step at a time."""

    @abstractmethod
    def step(self) -> dict[bytes, float]:
        """Work for a moment; return the scores that are ready, perhaps none."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of sets in work."""

    def results(self) -> dict[bytes, float]:
        while len(self):
            if found := self.step():
                return found
        return {}

    def close(self) -> None:
        self.request({})


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
