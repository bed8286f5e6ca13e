"""The ``Engine`` protocol: where units of work run. The simplest engine is this process.

A unit is a JSON-serialisable mapping that describes what to compute. The work is a function of a unit and a callback
for progress reports; it returns the unit's result.
"""

from __future__ import annotations

import pickle
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, Self

from bursar.errors import ConfigError

Unit = Mapping[str, Any]
ProgressCallback = Callable[[Any], None]
Work = Callable[[Unit, ProgressCallback], Any]


How = Literal["done", "failed"]


class Ended(NamedTuple):
    """How a unit ended: ``done`` with a result, ``failed`` with an error, ``lost`` with the reason its worker died."""

    number: int
    how: How | Literal["lost"]
    what: Any
    seconds: float = 0.0


class WorkerPool(Protocol):
    """Workers that run units."""

    def can_submit(self) -> bool:
        """Whether one more unit can be submitted."""

    def submit(self, number: int, work: Work, unit: Unit) -> None:
        """Submit a unit under a number."""

    def next(self) -> Ended:
        """Wait for the next unit to end. Reports of units are forwarded meanwhile."""


class Engine(Protocol):
    """Where units run. Workers live for one call of ``run_units``, or for a ``with`` block."""

    @property
    def workers(self) -> int:
        """The number of units that run at a time."""

    def __enter__(self) -> Engine: ...

    def __exit__(self, *exception: object) -> None: ...

    def worker_pool(self, on_report: Callable[[int, Any], None]) -> AbstractContextManager[WorkerPool]:
        """A pool whose units report to ``on_report``; on exit, running units are stopped."""


class KeepsWorkers:
    """The part of an engine that keeps its workers while it is entered."""

    kept = False

    def __enter__(self) -> Self:
        self.kept = True
        return self

    def __exit__(self, *exception: object) -> None:
        self.kept = False
        self.dismiss()

    def dismiss(self) -> None:
        """Let idle workers go; new ones start when there is work."""


class ThisProcess(KeepsWorkers):
    """Runs one unit after the other in this process."""

    workers = 1

    @contextmanager
    def worker_pool(self, on_report: Callable[[int, Any], None]) -> Iterator[WorkerPool]:
        yield _InProcessPool(on_report)


@dataclass(eq=False)
class _InProcessPool:
    on_report: Callable[[int, Any], None]
    waiting: deque[tuple[int, Work, Unit]] = field(default_factory=deque)

    def can_submit(self) -> bool:
        return not self.waiting

    def submit(self, number: int, work: Work, unit: Unit) -> None:
        self.waiting.append((number, work, unit))

    def next(self) -> Ended:
        number, work, unit = self.waiting.popleft()
        start = time.perf_counter()
        try:
            result = work(unit, lambda what: self.on_report(number, what))
        except Exception as wrong:
            return Ended(number, "failed", wrong)
        return Ended(number, "done", result, time.perf_counter() - start)


THIS_PROCESS = ThisProcess()


def pack(work_or_unit: Work | Unit, dumps: Callable[[Any], bytes] = pickle.dumps) -> bytes:
    """Pickle a unit or its work. They are sent separately, because many units may share the same large work."""
    try:
        return dumps(work_or_unit)
    except Exception as wrong:  # pickling may raise anything
        fix = "give a function at the top of a module, or functools.partial of one"
        raise ConfigError(f"the work cannot be sent to another process: {wrong}", fix=fix) from wrong


def attempt(unpack: Callable[[], tuple[Work, Unit]], report: ProgressCallback) -> tuple[How, Any, float]:
    """Run a unit in a worker: unpack it, which imports what it needs, and call the work."""
    try:
        work, unit = unpack()
        start = time.perf_counter()
        result = work(unit, report)
        return "done", result, time.perf_counter() - start
    except BaseException as wrong:
        return "failed", picklable_error(wrong), 0.0


def picklable_error(wrong: BaseException) -> BaseException:
    """An error that can be sent to another process, with its traceback as a note."""
    where = "".join(traceback.format_exception(wrong))
    try:
        wrong.add_note(where)
        pickle.loads(pickle.dumps(wrong))
    except Exception:  # an error may hold anything
        wrong = RuntimeError(f"{type(wrong).__name__}: {wrong}")
        wrong.add_note(where)
    return wrong
