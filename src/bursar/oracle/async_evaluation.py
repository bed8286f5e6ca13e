"""Judging without rounds: sets are wanted, some no longer, and scores come as they are ready.

A round of questions ends with its slowest model, and most lanes are empty by then. A stream keeps them full: what a
search wants to know may change with every score that it hears, and work on what it no longer wants is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Protocol

from bursar.compute.processes import ChildProcess
from bursar.errors import ComputeError
from bursar.ragged import IntArray

Wanted = Mapping[bytes, IntArray]  # sets by their keys, the most wanted first
TOLD = 256  # scores that a process remembers: some are on their way when they are asked for once more
TRIES = 3  # processes that may die before a stream gives up


class Stream(Protocol):
    """Scores of sets, as they are ready."""

    room: int  # sets that are worked on at the same time

    def want(self, sets: Wanted) -> None:
        """From now on these sets and no others."""
        ...

    def heard(self) -> dict[bytes, float]:
        """Scores of wanted sets, at least one: waits for it. Each is told once. Nothing if nothing is wanted."""
        ...

    def close(self) -> None:
        """No more questions."""
        ...


class Steps(Protocol):
    """A stream that works in this process, a little at a time."""

    room: int

    def want(self, sets: Wanted) -> None:
        """From now on these sets and no others."""
        ...

    def step(self) -> dict[bytes, float]:
        """Work for a moment; the scores that are ready by then, which may be none."""
        ...

    def __len__(self) -> int:
        """How many sets are in work."""
        ...


class Here:
    """In this process."""

    def __init__(self, steps: Steps) -> None:
        self.steps, self.room = steps, steps.room

    def want(self, sets: Wanted) -> None:
        self.steps.want(sets)

    def heard(self) -> dict[bytes, float]:
        while len(self.steps):
            if found := self.steps.step():
                return found
        return {}

    def close(self) -> None:
        self.steps.want({})


class Elsewhere:
    """In several processes of this machine, each with lanes of its own; one that dies is replaced."""

    def __init__(self, make: Callable[[], Steps], workers: int, room: int) -> None:
        """``make`` makes the steps of each process; ``room`` is that of all of them."""
        self.room = room
        self._make = make
        self._lines = [self._line() for _ in range(workers)]
        self._held: list[dict[bytes, IntArray]] = [{} for _ in range(workers)]  # by process: what it works on
        self._died = 0

    def _line(self) -> ChildProcess:
        return ChildProcess(partial(_serve, make=self._make))

    def want(self, sets: Wanted) -> None:
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
            self._lines[worker].line.send(self._held[worker])
        except OSError:
            self._replace(worker)

    def _replace(self, worker: int) -> None:
        """A new process for what a dead one was working on."""
        self._died += 1
        if self._died >= TRIES:
            raise ComputeError(f"{self._died} processes that train models have died", fix="see what they printed last")
        self._lines[worker].kill()
        self._lines[worker] = self._line()
        self._send(worker)

    def heard(self) -> dict[bytes, float]:
        found: dict[bytes, float] = {}
        while not found and any(self._held):
            ready = wait([line.line for line in self._lines])
            for worker, line in enumerate(self._lines):
                if line.line in ready:
                    found |= self._told(worker)
        return found

    def _told(self, worker: int) -> dict[bytes, float]:
        """What one process has found, also of what is no longer wanted: it may be wanted again."""
        try:
            said = self._lines[worker].line.recv()
        except (EOFError, OSError):
            self._replace(worker)
            return {}
        if isinstance(said, BaseException):
            raise said
        for key in said:
            self._held[worker].pop(key, None)
        return dict(said)

    def close(self) -> None:
        for line in self._lines:
            line.dismiss()
        for line in self._lines:
            line.join()


def _serve(line: Connection, make: Callable[[], Steps]) -> None:
    """What a process does: work on what is wanted, hear what is wanted now, tell what is ready."""
    told: dict[bytes, float] = {}
    try:
        steps = make()
        while True:
            found: dict[bytes, float] = {}
            while not len(steps) or line.poll():
                wanted = line.recv()
                steps.want({key: items for key, items in wanted.items() if key not in told})
                found = {key: told[key] for key in wanted if key in told}
                if found:
                    break
            found |= steps.step()
            if found:
                line.send(found)
                told = dict(islice((found | told).items(), TOLD))
    except (EOFError, OSError):
        return
    except BaseException as wrong:
        line.send(wrong)
