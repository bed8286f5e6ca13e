"""How two ways of doing a thing are measured beside each other."""

from __future__ import annotations

import gc
import importlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bursar.errors import ConfigError
from bursar.registry import Registry

Sides = tuple[Callable[[], Any], Callable[[], Any]]


def seconds(side: Callable[[], Any]) -> float:
    """How long it takes to call it."""
    gc.collect()
    start = time.perf_counter()
    side()
    return time.perf_counter() - start


@dataclass(frozen=True)
class Case:
    """One measurement: ``prepare`` gives the two things to run, ours and theirs.

    ``measure`` turns calling one of them into a number of ``unit``, less being better: seconds, unless it is said.
    """

    name: str
    summary: str
    prepare: Callable[[], Sides]
    repeats: int = 5
    unit: str = "s"
    measure: Callable[[Callable[[], Any]], float] = seconds

    def run(self) -> dict[str, Any]:
        """Both sides in turn, so that a noisy moment hits both; the medians and their ratio."""
        sides = self.prepare()
        if self.repeats > 1:
            for side in sides:
                side()  # once for nothing: caches, imports, page faults
        found: tuple[list[float], list[float]] = ([], [])
        for _ in range(self.repeats):
            for side, values in zip(sides, found, strict=True):
                values.append(self.measure(side))
        mine, other = (statistics.median(values) for values in found)
        return {"ours": mine, "theirs": other, "ratio": other / mine, "unit": self.unit, "what": self.summary}


# Group to the module that holds its cases; a module's CASES are looked up only when they are asked for.
BENCHES: Registry[str] = Registry("benchmark", "bursar.benches")
BENCHES.add("corpus", "bursar.bench.corpus")
BENCHES.add("scores", "bursar.bench.scores")
BENCHES.add("selection", "bursar.bench.selection")


def bench_case(
    cases: list[Case], name: str, summary: str, repeats: int = 5, **more: Any
) -> Callable[[Callable[[], Sides]], None]:
    """Make a function that prepares two sides a case of a list."""

    def register(prepare: Callable[[], Sides]) -> None:
        cases.append(Case(name, summary, prepare, repeats, **more))

    return register


def cases_of(group: str, case: str | None = None) -> list[Case]:
    """The cases of a group, or one of them."""
    cases: list[Case] = importlib.import_module(BENCHES[group]).CASES
    chosen = [c for c in cases if case is None or c.name == case]
    if not chosen:
        raise ConfigError(f"{group!r} has no case {case!r}", fix=f"it has {', '.join(c.name for c in cases)}")
    return chosen
