"""Units of work in processes of this machine, which tell how they get on.

Small models train fastest on one thread: two threads on one small matrix mostly wait for each other. So work that can
be parted is spread over processes, each with its share of the cores. A process takes unit after unit, so whatever it
has loaded for one is there for the next.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Literal

from bursar.compute.engine import Crew, Ended, Unit, Work, attempt, pack, portable
from bursar.errors import ConfigError

_SPAWN = multiprocessing.get_context("spawn")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_settings(threads: int) -> dict[str, str]:
    """The environment in which the libraries that compute take so many threads. They read it when first imported."""
    return dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))


class Processes:
    """So many processes of this machine, as many as there are cores unless it is said."""

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise ConfigError(f"{workers} processes cannot work", fix="ask for at least one")
        self.workers = workers or cores()
        self._idle: list[_Worker] = []
        self._kept = False

    def __enter__(self) -> Processes:
        self._kept = True
        return self

    def __exit__(self, *exception: object) -> None:
        self._kept = False
        self.dismiss()

    @contextmanager
    def crew(self, told: Callable[[int, Any], None]) -> Iterator[Crew]:
        """The processes; those still busy at the end are killed, the others sent home unless they are kept."""
        crew = _Crew(told, self.workers, self._idle)
        try:
            yield crew
        finally:
            for worker in crew.busy:
                worker.kill()
            if not self._kept:
                self.dismiss()

    def dismiss(self) -> None:
        """Send home those that have nothing to do; others come when there is work."""
        for worker in self._idle:
            worker.dismiss()
        while self._idle:
            self._idle.pop().join()


class _Crew:
    def __init__(self, told: Callable[[int, Any], None], workers: int, idle: list[_Worker]) -> None:
        self.told = told
        self.workers = workers
        self.idle = idle
        self.busy: list[_Worker] = []
        self.ended: deque[Ended] = deque()
        self.packed: tuple[Work, bytes] | None = None  # the work of the last unit

    def has_room(self) -> bool:
        return len(self.busy) < self.workers

    def submit(self, number: int, work: Work, unit: Unit) -> None:
        if self.packed is None or self.packed[0] is not work:
            self.packed = work, pack(work)
        sent = self.packed[1], pack(unit)
        while self.idle:
            worker = self.idle.pop()
            if worker.take(number, *sent):
                break
            worker.kill()  # it died with nothing to do
        else:
            worker = _Worker(max(1, cores() // self.workers))
            worker.take(number, *sent)  # if it is dead already, ``next`` will find out
        self.busy.append(worker)

    def next(self) -> Ended:
        while not self.ended:
            wait([worker.line for worker in self.busy], timeout=0.5)
            for worker in list(self.busy):
                self._hear(worker)
        return self.ended.popleft()

    def _hear(self, worker: _Worker) -> None:
        """All that a worker has said. One that is gone has lost its unit, unless its last word was the result."""
        gone = worker.process.exitcode is not None
        try:
            while worker.line.poll():
                how, what, seconds = worker.line.recv()
                if how == "told":
                    self.told(worker.number, what)
                    continue
                self.busy.remove(worker)
                self.idle.append(worker)
                self.ended.append(Ended(worker.number, how, what, seconds))
                return
        except (EOFError, OSError):  # the line was cut, perhaps in the middle of a word
            gone = True
        if gone:
            self.busy.remove(worker)
            worker.join(patience=1)
            why = f"its process ended with code {worker.process.exitcode}"
            self.ended.append(Ended(worker.number, "lost", why))


class Line:
    """A process at the other end of a line of its own: nobody else waits for a word that a dead one cannot finish.

    ``serve`` is what it does, given its end of the line: a function at the top of a module, or a partial of one. It
    ends when the line is closed, or with this process, however that ends.
    """

    def __init__(self, serve: Callable[[Connection], None], threads: int = 1) -> None:
        self.line, theirs = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=_begin, args=(serve, theirs, os.getpid()), daemon=True)
        resource_tracker.ensure_running()  # it would let SIGINT through again
        with _environment(thread_settings(threads)), _no_interrupt():
            self.process.start()
        theirs.close()

    def dismiss(self) -> None:
        """Let it end; ``join`` waits for that."""
        self.line.close()

    def join(self, patience: float = 5) -> None:
        self.process.join(patience)
        self.kill()

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.line.close()


class _Worker(Line):
    """One that takes units of work."""

    def __init__(self, threads: int) -> None:
        super().__init__(_work, threads)
        self.number = -1
        self.work = b""  # that it has

    def take(self, number: int, work: bytes, unit: bytes) -> bool:
        """Hand it a unit, if it is there; the work only where it has another."""
        self.number = number
        try:
            self.line.send((None if work == self.work else work, unit))
        except OSError:
            return False
        self.work = work
        return True


@contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    """Settings that a process started meanwhile is born with."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """A process started meanwhile does not hear Ctrl-C, not even before its first line; this one hears it after."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(serve: Callable[[Connection], None], line: Connection, parent: int) -> None:
    """The first thing that a process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    serve(line)


def _work(line: Connection) -> None:
    """What a worker does: unit after unit, for as long as its parent lives and has any."""
    one_at_a_time = threading.Lock()  # a unit may tell from threads of its own
    received = _Received()

    def say(how: Literal["told", "done", "failed"], what: Any, seconds: float = 0.0) -> None:
        with one_at_a_time:
            line.send((how, what, seconds))

    while True:
        try:
            work, unit = line.recv()
        except (EOFError, OSError):
            return
        ended = attempt(partial(received.unpack, work, unit), lambda what: say("told", what))
        try:
            say(*ended)
        except OSError:
            return
        except Exception as wrong:  # the result cannot be pickled
            say("failed", portable(wrong))


class _Received:
    """The work that a worker received last, unpacked once."""

    def __init__(self) -> None:
        self.packed: bytes | None = None
        self.work: Work | None = None

    def unpack(self, work: bytes | None, unit: bytes) -> tuple[Work, Unit]:
        if work is not None:
            self.packed, self.work = work, None
        if self.work is None:
            assert self.packed is not None
            self.work = pickle.loads(self.packed)
        self.packed = None
        return self.work, pickle.loads(unit)


def _end_with(parent: int) -> None:
    """A worker whose parent was killed must not work on: somebody may start the same work again."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)
