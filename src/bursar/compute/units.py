"""Run units of work, each once, on an engine that is found by name; results can be stored."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from bursar.compute.engine import THIS_PROCESS, Ended, Engine, ProgressCallback, Unit, Work
from bursar.compute.processes import Processes
from bursar.compute.progress import UnitObserver
from bursar.compute.store import ResultStore, address, name_of
from bursar.errors import ComputeError, ConfigError

_MISSING = object()
KNOWN = "here, processes, processes:4, ray, ray://host:port, ray:host:port"


def make_engine(text: str, workers: int | None = None) -> Engine:
    """Make an engine: ``here``, ``processes``, ``processes:4``, ``ray``, ``ray://host:port``, ``ray:host:port``.

    ``workers`` is the number of units that run at a time, if the name does not give it.

    >>> make_engine("processes:4").workers
    4
    >>> make_engine("threads")
    Traceback (most recent call last):
        ...
    bursar.errors.ConfigError: there is no engine 'threads'. Fix: choose one of: here, processes, processes:4, ray, ...
    """
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
    """Run units of work and return their results in the order of the units.

    ``work`` is called with a unit and a callback for progress reports. It must be a top-level function of a module, or
    ``functools.partial`` of one, unless it runs in this process. Equal units run once. With a store, a unit with a
    stored result is not run, and a result is on disk before its unit counts as finished: after a crash, the next call
    runs the rest. Stored results are read back from JSON, so tuples become lists.

    A unit whose worker dies, or that fails with an ``OSError`` or ``MemoryError``, is tried again up to ``retries``
    times, then given up; the others still run before the error is raised. Any other error is raised at once, with the
    worker's traceback as a note, and stops the running units.

    ``fill`` maps a unit to the argument of ``work`` right before it runs. Use it to add data that is not
    JSON-serialisable or too large to keep in memory for all units. The unit itself must identify that data.

    >>> def square(unit, report):
    ...     return unit["x"] ** 2
    >>> run_units(square, [{"x": 3}, {"x": 2}, {"x": 3}])
    [9, 4, 9]
    """
    if store is not None and "<" in name_of(work):
        raise TypeError(f"{name_of(work)} is not a top-level function, so its results cannot be stored")
    addresses = [address(work, unit) for unit in units]
    different = dict(zip(addresses, units, strict=True))
    results: dict[str, Any] = {}
    if store is not None:
        found = {where: store.get(where, _MISSING) for where in different}
        results = {where: result for where, result in found.items() if result is not _MISSING}
    open_ones = [where for where in different if where not in results]
    jobs = {number: (work, different[where]) for number, where in enumerate(open_ones)}
    watch = watcher or UnitObserver()
    watch.begun(len(different), len(results))

    def finished(number: int, result: Any, seconds: float) -> None:
        where, unit = open_ones[number], jobs[number][1]
        results[where] = result if store is None else store.put(where, unit, result)
        watch.finished(unit, results[where], seconds)

    def on_report(number: int, what: Any) -> None:
        watch.reported(jobs[number][1], what)

    def retried(number: int, why: str) -> None:
        watch.retried(jobs[number][1], why)

    _run(engine, _Jobs(jobs, finished, on_report, retried, retries, fill))
    return [results[where] for where in addresses]


def run_all(units: Sequence[Callable[[ProgressCallback], Any]], workers: int, report: ProgressCallback) -> list[Any]:
    """Run callables, ``workers`` at a time, and return their results.

    Each is called with a callback whose reports go to ``report``. With one worker they run in this process, one after
    the other; for several workers they must be picklable. The first that fails, or whose process dies, stops the
    others, and its error is raised.

    >>> run_all([lambda report: report("half") or 1, lambda report: 2], workers=1, report=print)
    half
    [1, 2]
    """
    engine: Engine = THIS_PROCESS
    if workers > 1 and len(units) > 1:
        engine = Processes(min(workers, len(units)))
    results: dict[int, Any] = {}
    jobs = _Jobs(
        {number: (partial(_call, unit), {"number": number}) for number, unit in enumerate(units)},
        finished=lambda number, result, seconds: results.update({number: result}),
        on_report=lambda number, what: report(what),
        patient=False,
    )
    _run(engine, jobs)
    return [results[number] for number in range(len(units))]


def split_evenly(count: int, shards: int) -> list[slice]:
    """Split ``count`` things into at most ``shards`` slices, none empty, whose lengths differ by at most one.

    >>> [list(range(7))[shard] for shard in split_evenly(7, 3)]
    [[0, 1, 2], [3, 4], [5, 6]]
    """
    shards = min(count, shards)
    cuts = [-(-count * shard // shards) for shard in range(shards + 1)] if shards > 0 else []
    return [slice(start, end) for start, end in pairwise(cuts)]


def _call(unit: Callable[[ProgressCallback], Any], about: Unit, report: ProgressCallback) -> Any:
    return unit(report)


@dataclass(frozen=True)
class _Jobs:
    """Units of work by number, with callbacks for their events."""

    units: Mapping[int, tuple[Work, Unit]]
    finished: Callable[[int, Any, float], None]
    on_report: Callable[[int, Any], None]
    retried: Callable[[int, str], None] = lambda number, why: None
    retries: int = 0
    fill: Callable[[Unit], Unit] = lambda unit: unit
    patient: bool = True  # whether the others run to the end after one is given up


def _run(engine: Engine, jobs: _Jobs) -> None:
    """Submit jobs and handle those that end. A job that is tried again goes to the end of the queue.

    Raises the first error of the jobs given up.
    """
    if not jobs.units:
        return
    given_up: list[BaseException] = []
    waiting = deque(jobs.units)
    running: set[int] = set()
    tries = dict.fromkeys(jobs.units, 0)
    with engine.worker_pool(jobs.on_report) as pool:
        while (waiting or running) and (jobs.patient or not given_up):
            while waiting and pool.can_submit():
                number = waiting.popleft()
                work, unit = jobs.units[number]
                pool.submit(number, work, jobs.fill(unit))
                running.add(number)
            ended = pool.next()
            running.remove(ended.number)
            if ended.how == "done":
                jobs.finished(ended.number, ended.what, ended.seconds)
                continue
            unit = jobs.units[ended.number][1]
            tries[ended.number] += 1
            if ended.how == "failed" and not isinstance(ended.what, (OSError, MemoryError)):
                raise _with_unit(ended, unit)
            if tries[ended.number] > jobs.retries:
                given_up.append(_final_error(ended, unit, tries[ended.number]))
                continue
            why = ended.what if ended.how == "lost" else f"{type(ended.what).__name__}: {ended.what}"
            jobs.retried(ended.number, why)
            waiting.append(ended.number)
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
    return ComputeError(
        f"the unit of work {json.dumps(unit)} was tried {times} and given up: {ended.what}",
        fix="read its last output; if it ran out of memory, run fewer units at a time",
    )
