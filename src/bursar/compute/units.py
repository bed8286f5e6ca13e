"""Run units of work, each once, on an engine that is found by name; results can be stored."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from bursar.compute.engine import THIS_PROCESS, Ended, Engine, ProgressCallback, Unit, Work
from bursar.compute.processes import Processes
from bursar.compute.store import ResultStore, address, name_of
from bursar.errors import ComputeError, ConfigError

_MISSING = object()
KNOWN = "here, processes, processes:4, ray, ray://host:port, ray:host:port"


class UnitObserver:
    """Receives the progress of units of work. This one ignores it."""

    def begun(self, total: int, stored: int) -> None:
        """The run starts with ``total`` distinct units, of which ``stored`` have results already."""

    def reported(self, unit: Unit, what: Any) -> None:
        """A unit reported progress."""

    def finished(self, unit: Unit, result: Any, seconds: float) -> None:
        """A unit is finished and its result stored; ``seconds`` is its running time."""

    def retried(self, unit: Unit, why: str) -> None:
        """A unit will be tried again."""


def duration(seconds: float) -> str:
    """Format a duration for reading."""
    if seconds < 99.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = round(seconds / 3600)
    return f"{hours // 24} d {hours % 24} h"


def make_engine(text: str, workers: int | None = None) -> Engine:
    """Make an engine by its name; ``workers`` units run at a time, if the name does not give a number."""
    name, _, rest = text.partition(":")
    if text == "here" and workers in (None, 1):
        return THIS_PROCESS
    if text == "here":
        raise ConfigError(f"'here' runs one unit at a time, not {workers}", fix=f"choose processes:{workers}")
    if name == "processes" and (not rest or rest.isdigit()):
        if rest and workers not in (None, int(rest)):
            raise ConfigError(f"{text!r} means {rest} workers, but {workers} are given", fix="give one number")
        return Processes(int(rest) if rest else workers)
    if name == "ray":
        from bursar.compute.cluster import Cluster

        return Cluster(text if rest.startswith("//") else rest or None, workers)
    raise ConfigError(f"there is no engine {text!r}", fix=f"choose one of: {KNOWN}")


def run_units(
    work: Work,
    units: Sequence[Unit],
    *,
    engine: Engine = THIS_PROCESS,
    store: ResultStore | None = None,
    watcher: UnitObserver | None = None,
    retries: int = 2,
    fill: Callable[[Unit], Unit] = lambda unit: unit,
) -> list[Any]:
    """Run units of work and return their results in the order of the units; equal units run once.

    ``work`` is called with a unit and a callback for progress reports. Unless it runs in this process, it must be a
    top-level function of a module, or ``functools.partial`` of one. With a store, a unit with a stored result is not
    run, and a result is on disk before its unit counts as finished: after a crash, the next call runs the rest. Stored
    results are read back from JSON, so tuples become lists.

    A unit whose worker dies, or that fails with an ``OSError`` or ``MemoryError``, is tried again up to ``retries``
    times, then given up; the others still run before the error is raised. Any other error is raised at once, with the
    worker's traceback as a note, and stops the running units.

    ``fill`` maps a unit to the argument of ``work`` right before it runs, to add data that is no JSON or too large to
    keep in memory for all units. The unit itself must identify that data.

    >>> def square(unit, report):
    ...     return unit["x"] ** 2
    >>> run_units(square, [{"x": 3}, {"x": 2}, {"x": 3}])
    [9, 4, 9]
    """
    if store is not None and "<" in name_of(work):
        raise TypeError(f"{name_of(work)} is not a top-level function, so its results cannot be stored")
    addresses = [address(work, unit) for unit in units]
    different = dict(zip(addresses, units, strict=True))
    found = {where: _MISSING if store is None else store.get(where, _MISSING) for where in different}
    results = {where: result for where, result in found.items() if result is not _MISSING}
    watch = watcher or UnitObserver()
    watch.begun(len(different), len(results))

    def finished(unit: Unit, result: Any, seconds: float) -> None:
        where = address(work, unit)
        results[where] = result if store is None else store.put(where, unit, result)
        watch.finished(unit, results[where], seconds)

    open_ones = [unit for where, unit in different.items() if where not in results]
    _Jobs(work, open_ones, watch, finished, retries, fill).run(engine)
    return [results[where] for where in addresses]


def run_all(units: Sequence[Callable[[ProgressCallback], Any]], workers: int, report: ProgressCallback) -> list[Any]:
    """Run callables with a callback for reports, ``workers`` at a time, and return their results.

    One worker is this process; for several, callables must be picklable. The first that fails stops the others.
    """
    workers = min(workers, len(units))
    engine: Engine = Processes(workers) if workers > 1 else THIS_PROCESS
    numbers: list[Unit] = [{"number": number} for number in range(len(units))]
    results: dict[int, Any] = {}

    def finished(unit: Unit, result: Any, seconds: float) -> None:
        results[unit["number"]] = result

    def fill(unit: Unit) -> Unit:
        return {"call": units[unit["number"]]}

    _Jobs(_call, numbers, _Reporter(report), finished, fill=fill, patient=False).run(engine)
    return [results[number] for number in range(len(units))]


def split_evenly(count: int, shards: int) -> list[slice]:
    """Split ``count`` things into at most ``shards`` slices, none empty, whose lengths differ by at most one."""
    shards = min(count, shards)
    cuts = [-(-count * shard // shards) for shard in range(shards + 1)] if shards > 0 else []
    return [slice(start, end) for start, end in pairwise(cuts)]


def _call(unit: Unit, report: ProgressCallback) -> Any:
    return unit["call"](report)


@dataclass(frozen=True)
class _Reporter(UnitObserver):
    report: ProgressCallback

    def reported(self, unit: Unit, what: Any) -> None:
        self.report(what)


@dataclass(frozen=True)
class _Jobs:
    """Different units of work, and what to do when one ends."""

    work: Work
    units: Sequence[Unit]
    watch: UnitObserver
    finished: Callable[[Unit, Any, float], None]
    retries: int = 0
    fill: Callable[[Unit], Unit] = lambda unit: unit
    patient: bool = True  # whether the others run to the end after one is given up

    def run(self, engine: Engine) -> None:
        """Run all units, and raise the first error of those given up. One that is tried again goes to the end."""
        if not self.units:
            return
        given_up: list[BaseException] = []
        waiting = deque(range(len(self.units)))
        running: set[int] = set()
        tries = [0] * len(self.units)
        with engine.worker_pool(lambda number, what: self.watch.reported(self.units[number], what)) as pool:
            while (waiting or running) and (self.patient or not given_up):
                while waiting and pool.can_submit():
                    number = waiting.popleft()
                    pool.submit(number, self.work, self.fill(self.units[number]))
                    running.add(number)
                ended = pool.next()
                number, unit = ended.number, self.units[ended.number]
                running.remove(number)
                if ended.how == "done":
                    self.finished(unit, ended.what, ended.seconds)
                    continue
                tries[number] += 1
                if ended.how == "failed" and not isinstance(ended.what, (OSError, MemoryError)):
                    raise _with_unit(ended, unit)
                if tries[number] > self.retries:
                    given_up.append(_final_error(ended, unit, tries[number]))
                    continue
                why = ended.what if ended.how == "lost" else f"{type(ended.what).__name__}: {ended.what}"
                self.watch.retried(unit, why)
                waiting.append(number)
        if given_up:
            raise given_up[0]


def _with_unit(ended: Ended, unit: Unit) -> BaseException:
    wrong: BaseException = ended.what
    wrong.add_note(f"in the unit of work {json.dumps(unit)}")
    return wrong


def _final_error(ended: Ended, unit: Unit, tries: int) -> BaseException:
    if ended.how == "failed":
        return _with_unit(ended, unit)
    times = "once" if tries == 1 else f"{tries} times"
    message = f"the unit of work {json.dumps(unit)} was tried {times} and given up: {ended.what}"
    return ComputeError(message, fix="read its last output; if it ran out of memory, run fewer units at a time")
