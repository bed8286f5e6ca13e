"""Units of work in processes of their own, which tell how they get on.

Small models train fastest on one thread: two threads on one small matrix mostly wait for each other. So work that can
be parted is spread over processes, each with its share of the cores.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

Tell = Callable[[Any], None]
Unit = Callable[[Tell], Any]


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_all(units: Sequence[Unit], workers: int, tell: Tell) -> list[Any]:
    """Run units of work, so many at a time, and return what each returned.

    A unit is called with a function to tell things with; what it tells is handed to ``tell`` here. With one worker all
    happens in this process, one unit after the other. Units for several workers must be picklable. The first unit that
    fails stops the others, and its error is raised here.

    >>> run_all([lambda tell: tell("half") or 1, lambda tell: 2], workers=1, tell=print)
    half
    [1, 2]
    """
    if workers <= 1 or len(units) <= 1:
        return [unit(tell) for unit in units]
    return _run_in_processes(units, min(workers, len(units)), tell)


def _run_in_processes(units: Sequence[Unit], workers: int, tell: Tell) -> list[Any]:
    context = multiprocessing.get_context("spawn")
    told: Any = context.Queue()
    threads = max(1, cores() // workers)
    waiting = list(enumerate(units))[::-1]
    running: dict[int, Any] = {}
    results: dict[int, Any] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                number, unit = waiting.pop()
                arguments = (number, unit, told, os.getpid(), threads)
                running[number] = context.Process(target=_work, args=arguments, daemon=True)
                running[number].start()
            number, kind, what = _next(told, running)
            if kind == "told":
                tell(what)
            elif kind == "failed":
                raise what
            else:
                results[number] = what
                running.pop(number).join()
    finally:
        for process in running.values():
            process.kill()
            process.join()
    return [results[number] for number in range(len(units))]


def _next(told: Any, running: dict[int, Any]) -> tuple[int, str, Any]:
    """The next thing that a worker says; a worker that died without a word is an error."""
    while True:
        try:
            message: tuple[int, str, Any] = told.get(timeout=0.2)
            return message
        except queue.Empty:
            for number, process in running.items():
                if process.exitcode is not None and told.empty():
                    raise RuntimeError(f"worker {number} ended with code {process.exitcode}") from None


def _work(number: int, unit: Unit, told: Any, parent: int, threads: int) -> None:
    """What a worker does: its unit, with its share of the threads, for as long as its parent lives."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    os.environ["OMP_NUM_THREADS"] = str(threads)  # read by torch when the unit first imports it
    try:
        result = unit(lambda what: told.put((number, "told", what)))
    except BaseException as wrong:
        told.put((number, "failed", _portable(wrong)))
    else:
        told.put((number, "done", result))


def _portable(wrong: BaseException) -> BaseException:
    """The error as it can be sent to another process, with where it happened."""
    wrong.add_note(traceback.format_exc())
    try:
        pickle.loads(pickle.dumps(wrong))
    except Exception:  # an error may hold anything
        return RuntimeError(f"{type(wrong).__name__}: {wrong}")
    return wrong


def _end_with(parent: int) -> None:
    """A worker whose parent was killed must not work on: somebody may start the same work again."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)
