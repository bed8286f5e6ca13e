"""Run units of work in processes of this machine, with progress reports.

Small models train fastest on one thread: two threads on one small matrix mostly wait for each other. So work is spread
over processes, each with its share of the cores. A process runs many units, so what it has loaded for one is there for
the next. ``concurrent.futures`` is not used: it has no progress reports, and one dead worker breaks its whole pool.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from types import ModuleType
from typing import Any, Literal

from bursar.compute.engine import Ended, KeepsWorkers, Unit, Work, WorkerPool, attempt, pack, picklable_error
from bursar.errors import ConfigError

_SPAWN = multiprocessing.get_context("spawn")


def cores() -> int:
    """The number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_settings(threads: int) -> dict[str, str]:
    """Environment variables that limit numerical libraries to this many threads, when set before they are imported."""
    return dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))


class Processes(KeepsWorkers):
    """Processes of this machine: by default, one per core.

    Without ``own_main``, workers do not import the program that starts them (say, a notebook), nor work defined in it.
    """

    def __init__(self, workers: int | None = None, *, own_main: bool = True) -> None:
        if workers is not None and workers < 1:
            raise ConfigError(f"{workers} processes are too few", fix="use at least one")
        self.workers, self._own_main = workers or cores(), own_main
        self._idle: list[_Worker] = []

    @contextmanager
    def worker_pool(self, on_report: Callable[[int, Any], None]) -> Iterator[WorkerPool]:
        """Use the processes; busy ones are killed at the end, idle ones stopped unless the engine is entered."""
        pool = _Pool(on_report, self.workers, self._idle, self._own_main)
        try:
            yield pool
        finally:
            for worker in pool.busy:
                worker.kill()
            if not self.kept:
                self.dismiss()

    def dismiss(self) -> None:
        for worker in self._idle:
            worker.dismiss()
        while self._idle:
            self._idle.pop().join()


@dataclass(eq=False)
class _Pool:
    on_report: Callable[[int, Any], None]
    workers: int
    idle: list[_Worker]
    own_main: bool
    busy: list[_Worker] = field(default_factory=list)
    ended: deque[Ended] = field(default_factory=deque)
    packed: tuple[Work, bytes] | None = None  # the work of the last unit

    def can_submit(self) -> bool:
        return len(self.busy) < self.workers

    def submit(self, number: int, work: Work, unit: Unit) -> None:
        if self.packed is None or self.packed[0] is not work:
            self.packed = work, pack(work)
        sent = self.packed[1], pack(unit)
        while self.idle:
            worker = self.idle.pop()
            if worker.take(number, *sent):
                break
            worker.kill()  # it died while idle
        else:
            with nullcontext() if self.own_main else _another_main():
                worker = _Worker(max(1, cores() // self.workers))
            worker.take(number, *sent)  # if it is dead already, ``next`` notices
        self.busy.append(worker)

    def next(self) -> Ended:
        while not self.ended:
            wait([worker.line for worker in self.busy], timeout=0.5)
            for worker in list(self.busy):
                self._receive(worker)
        return self.ended.popleft()

    def _receive(self, worker: _Worker) -> None:
        """Handle all messages of a worker. If it died, its unit is lost unless its last message was the result."""
        gone = worker.process.exitcode is not None
        try:
            while worker.line.poll():
                how, what, seconds = worker.line.recv()
                if how == "report":
                    self.on_report(worker.number, what)
                    continue
                self.busy.remove(worker)
                self.idle.append(worker)
                self.ended.append(Ended(worker.number, how, what, seconds))
                return
        except (EOFError, OSError):  # the pipe broke, perhaps within a message
            gone = True
        if gone:
            self.busy.remove(worker)
            worker.join(patience=1)
            why = f"its process ended with code {worker.process.exitcode}"
            self.ended.append(Ended(worker.number, "lost", why))


class ChildProcess:
    """A process with a pipe of its own, so that the death of one cannot block the messages of others.

    ``serve`` runs in it with its end of the pipe: a top-level function of a module, or a partial of one. The process
    ends when the pipe is closed, or with this process, however that ends.
    """

    def __init__(self, serve: Callable[[Connection], None], threads: int = 1) -> None:
        self.line, theirs = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=_begin, args=(serve, theirs, os.getpid()), daemon=True)
        resource_tracker.ensure_running()  # starting it later would unblock SIGINT
        with _starting(thread_settings(threads)):
            self.process.start()
        theirs.close()

    def dismiss(self) -> None:
        """Tell it to end; ``join`` waits for that."""
        self.line.close()

    def join(self, patience: float = 5) -> None:
        self.process.join(patience)
        self.kill()

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.line.close()


class _Worker(ChildProcess):
    def __init__(self, threads: int) -> None:
        super().__init__(_work, threads)
        self.number = -1
        self.work = b""  # the work sent last

    def take(self, number: int, work: bytes, unit: bytes) -> bool:
        """Send it a unit, and the work if it changed; ``False`` if the process is gone."""
        self.number = number
        try:
            self.line.send((None if work == self.work else work, unit))
        except OSError:
            return False
        self.work = work
        return True


@contextmanager
def _starting(settings: dict[str, str]) -> Iterator[None]:
    """Set environment variables for a process started meanwhile, and block SIGINT.

    So it never receives Ctrl-C, not even before its first line.
    """
    before = {name: os.environ[name] for name in settings if name in os.environ}
    os.environ.update(settings)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for name in settings.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def _another_main() -> Iterator[None]:
    """An empty module in place of the program, so that a process started meanwhile does not import it."""
    own = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = own


def _begin(serve: Callable[[Connection], None], line: Connection, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and stops its workers
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    serve(line)


def _work(line: Connection) -> None:
    """The loop of a worker: run units until the parent closes the pipe."""
    one_at_a_time = threading.Lock()  # a unit may report from several threads
    received = _Received()

    def send(how: Literal["report", "done", "failed"], what: Any, seconds: float = 0.0) -> None:
        with one_at_a_time:
            line.send((how, what, seconds))

    while True:
        try:
            work, unit = line.recv()
        except (EOFError, OSError):
            return
        ended = attempt(partial(received.unpack, work, unit), lambda what: send("report", what))
        try:
            send(*ended)
        except OSError:
            return
        except Exception as wrong:  # the result cannot be pickled
            send("failed", picklable_error(wrong))


class _Received:
    """Caches the work that a worker received last."""

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
    """Exit when the parent dies, because the same work may be started again elsewhere."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)
