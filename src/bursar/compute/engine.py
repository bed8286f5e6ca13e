"""What an engine is: a place where units of work run. The plainest is this process.

A unit is a description of what is to be computed, a mapping that JSON can hold. The work is one function that is
called with a unit and with a function to tell things with, and returns the unit's result.
"""

from __future__ import annotations

import pickle
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal, NamedTuple, Protocol

from bursar.errors import ConfigError

Unit = Mapping[str, Any]
ProgressCallback = Callable[[Any], None]
Work = Callable[[Unit, ProgressCallback], Any]


class Ended(NamedTuple):
    """How a unit ended: ``done`` with its result, ``failed`` with an error, or ``lost`` with its worker, and why."""

    number: int
    how: Literal["done", "failed", "lost"]
    what: Any
    seconds: float = 0.0


class Crew(Protocol):
    """Whoever works on units now."""

    def has_room(self) -> bool:
        """Whether one more unit can be handed in."""

    def submit(self, number: int, work: Work, unit: Unit) -> None:
        """Hand in a unit under a number."""

    def next(self) -> Ended:
        """Wait for the next unit that ends, however it does. What units tell meanwhile is passed on."""


class Engine(Protocol):
    """Where units run.

    Workers live for one call of ``run_units``; where the engine is entered, for as long as it is:

    >>> from bursar.compute import make_engine, run_units
    >>> with make_engine("processes") as engine:  # doctest: +SKIP
    ...     first = run_units(train, units, engine=engine)
    ...     second = run_units(train, more_units(first), engine=engine)
    """

    @property
    def workers(self) -> int:
        """How many units run at a time."""

    def __enter__(self) -> Engine: ...

    def __exit__(self, *exception: object) -> None: ...

    def crew(self, told: Callable[[int, Any], None]) -> AbstractContextManager[Crew]:
        """A crew, whose units' words go to ``told``; on leaving, whatever still runs is stopped."""


class Here:
    """One unit after the other in this process."""

    workers = 1

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    @contextmanager
    def crew(self, told: Callable[[int, Any], None]) -> Iterator[Crew]:
        """Nobody but this process."""
        yield _Here(told)


class _Here:
    def __init__(self, told: Callable[[int, Any], None]) -> None:
        self.told = told
        self.waiting: deque[tuple[int, Work, Unit]] = deque()

    def has_room(self) -> bool:
        return not self.waiting

    def submit(self, number: int, work: Work, unit: Unit) -> None:
        self.waiting.append((number, work, unit))

    def next(self) -> Ended:
        number, work, unit = self.waiting.popleft()
        start = time.perf_counter()
        try:
            result = work(unit, lambda what: self.told(number, what))
        except Exception as wrong:
            return Ended(number, "failed", wrong)
        return Ended(number, "done", result, time.perf_counter() - start)


HERE = Here()


def pack(work_or_unit: Work | Unit, dumps: Callable[[Any], bytes] = pickle.dumps) -> bytes:
    """A unit or its work as it is sent elsewhere. They are sent apart: many units may have the same large work."""
    try:
        return dumps(work_or_unit)
    except Exception as wrong:  # whatever a thing says that cannot be pickled
        raise ConfigError(
            f"the work cannot be sent to another process: {wrong}",
            fix="give a function at the top of a module, or functools.partial of one",
        ) from wrong


def attempt(
    unpack: Callable[[], tuple[Work, Unit]], tell: ProgressCallback
) -> tuple[Literal["done", "failed"], Any, float]:
    """What a worker elsewhere does with a unit: unpack it, which imports what it needs, and work on it."""
    try:
        work, unit = unpack()
        start = time.perf_counter()
        result = work(unit, tell)
        return "done", result, time.perf_counter() - start
    except BaseException as wrong:
        return "failed", portable(wrong), 0.0


def portable(wrong: BaseException) -> BaseException:
    """An error as it can be sent to another process, with where it happened."""
    where = "".join(traceback.format_exception(wrong))
    try:
        wrong.add_note(where)
        pickle.loads(pickle.dumps(wrong))
    except Exception:  # an error may hold anything
        wrong = RuntimeError(f"{type(wrong).__name__}: {wrong}")
        wrong.add_note(where)
    return wrong
