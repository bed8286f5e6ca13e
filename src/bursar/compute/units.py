"""Running units of work: each once, wherever the engine says, with finished ones kept."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from bursar.compute.engine import HERE, Ended, Engine, ProgressCallback, Unit, Work
from bursar.compute.processes import Processes
from bursar.compute.progress import Progress, Watcher
from bursar.compute.store import Store, address, name_of
from bursar.errors import ComputeError

_MISSING = object()


def run_units(
    work: Work,
    units: Sequence[Unit],
    *,
    engine: Engine = HERE,
    store: Store | None = None,
    watcher: Watcher | None = None,
    retries: int = 2,
    fill: Callable[[Unit], Unit] = lambda unit: unit,
) -> list[Any]:
    """Run units of work and return their results, in the order of the units.

    ``work`` is called with a unit and a function to tell things with. It has to be a function at the top of a module,
    or ``functools.partial`` of one, unless it runs in this process. Equal units run once. With a store, a unit whose
    result is there is not run, and a result is on disk before its unit counts as finished: whenever all of this is
    killed, the next call runs the others. Results then are what JSON makes of them: tuples become lists.

    A unit whose worker dies, or that fails for want of memory or of a file, is tried again so many times, then given
    up; the others still run before that is raised. Any other error is raised here at once, with the worker's traceback
    as a note, and stops the units that still run.

    ``fill`` makes a unit what ``work`` is called with, right before it runs: add data there that JSON cannot hold or
    that is too much to have in memory for all units at once. The unit itself must say which data that is.

    >>> def square(unit, tell):
    ...     return unit["x"] ** 2
    >>> run_units(square, [{"x": 3}, {"x": 2}, {"x": 3}])
    [9, 4, 9]
    """
    if store is not None and "<" in name_of(work):
        raise TypeError(f"{name_of(work)} has no name of its own that results could be stored under")
    addresses = [address(work, unit) for unit in units]
    different = dict(zip(addresses, units, strict=True))
    results: dict[str, Any] = {}
    if store is not None:
        found = {where: store.get(where, _MISSING) for where in different}
        results = {where: result for where, result in found.items() if result is not _MISSING}
    open_ones = [where for where in different if where not in results]
    jobs = {number: (work, different[where]) for number, where in enumerate(open_ones)}
    watch = watcher or Progress()
    watch.begun(len(different), len(results))

    def finished(number: int, result: Any, seconds: float) -> None:
        where, unit = open_ones[number], jobs[number][1]
        results[where] = result if store is None else store.put(where, unit, result)
        watch.finished(unit, results[where], seconds)

    def told(number: int, what: Any) -> None:
        watch.told(jobs[number][1], what)

    def retried(number: int, why: str) -> None:
        watch.retried(jobs[number][1], why)

    given_up = _run(engine, jobs, told, finished, retried, retries, fill)
    if given_up:
        raise given_up[0]
    return [results[where] for where in addresses]


def run_all(units: Sequence[Callable[[ProgressCallback], Any]], workers: int, tell: ProgressCallback) -> list[Any]:
    """Run callables, so many at a time, and return what each returned.

    Each is called with a function to tell things with; what it tells is handed to ``tell`` here. With one worker all
    happens in this process, one after the other. Callables for several workers must be picklable. The first that
    fails, or whose process dies, stops the others, and its error is raised here.

    >>> run_all([lambda tell: tell("half") or 1, lambda tell: 2], workers=1, tell=print)
    half
    [1, 2]
    """
    engine: Engine = HERE
    if workers > 1 and len(units) > 1:
        engine = Processes(min(workers, len(units)))
    results: dict[int, Any] = {}
    given_up = _run(
        engine,
        {number: (partial(_call, unit), {"number": number}) for number, unit in enumerate(units)},
        told=lambda number, what: tell(what),
        finished=lambda number, result, seconds: results.update({number: result}),
        retried=lambda number, why: None,
        retries=0,
        fill=lambda unit: unit,
        patient=False,
    )
    if given_up:
        raise given_up[0]
    return [results[number] for number in range(len(units))]


def in_shards(count: int, shards: int) -> list[slice]:
    """Cut so many things into at most so many runs, none empty, whose lengths differ by one at most.

    >>> [list(range(7))[shard] for shard in in_shards(7, 3)]
    [[0, 1, 2], [3, 4], [5, 6]]
    """
    shards = min(count, shards)
    cuts = [-(-count * shard // shards) for shard in range(shards + 1)] if shards > 0 else []
    return [slice(start, end) for start, end in pairwise(cuts)]


def _call(unit: Callable[[ProgressCallback], Any], about: Unit, tell: ProgressCallback) -> Any:
    return unit(tell)


def _run(
    engine: Engine,
    jobs: Mapping[int, tuple[Work, Unit]],
    told: Callable[[int, Any], None],
    finished: Callable[[int, Any, float], None],
    retried: Callable[[int, str], None],
    retries: int,
    fill: Callable[[Unit], Unit],
    patient: bool = True,
) -> list[BaseException]:
    """Hand in job after job, and see to those that end. One that is tried again waits behind the others.

    Returns the errors of those given up. The patient run the others first; the impatient leave at the first.
    """
    given_up: list[BaseException] = []
    if not jobs:
        return given_up
    waiting = deque(jobs)
    running: set[int] = set()
    tries = dict.fromkeys(jobs, 0)
    with engine.crew(told) as crew:
        while (waiting or running) and (patient or not given_up):
            while waiting and crew.has_room():
                number = waiting.popleft()
                work, unit = jobs[number]
                crew.submit(number, work, fill(unit))
                running.add(number)
            ended = crew.next()
            running.remove(ended.number)
            if ended.how == "done":
                finished(ended.number, ended.what, ended.seconds)
                continue
            tries[ended.number] += 1
            if ended.how == "failed" and not isinstance(ended.what, (OSError, MemoryError)):
                raise _named(ended, jobs[ended.number][1])
            if tries[ended.number] > retries:
                given_up.append(_given_up(ended, jobs[ended.number][1], tries[ended.number]))
                continue
            retried(ended.number, ended.what if ended.how == "lost" else f"{type(ended.what).__name__}: {ended.what}")
            waiting.append(ended.number)
    return given_up


def _named(ended: Ended, unit: Unit) -> BaseException:
    wrong: BaseException = ended.what
    wrong.add_note(f"in the unit of work {json.dumps(unit)}")
    return wrong


def _given_up(ended: Ended, unit: Unit, tries: int) -> BaseException:
    if ended.how == "failed":
        return _named(ended, unit)
    times = "once" if tries == 1 else f"{tries} times"
    return ComputeError(
        f"the unit of work {json.dumps(unit)} was tried {times} and given up: {ended.what}",
        fix="see what it printed last; if it was killed for want of memory, run fewer units at a time",
    )
