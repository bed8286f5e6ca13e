"""How two ways of doing a thing are measured beside each other."""

from __future__ import annotations

import gc
import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from bursar.errors import ConfigError

Sides = tuple[Callable[[], Any], Callable[[], Any]]


class CannotMeasureError(Exception):
    """Why a case cannot be measured here. It is skipped: nothing is wrong with what it would have measured."""


class Measured(NamedTuple):
    """A number, and what else is worth knowing of how it came about."""

    value: float
    about: Mapping[str, Any]


def seconds(side: Callable[[], Any]) -> float:
    """How long it takes to call it."""
    gc.collect()
    start = time.perf_counter()
    side()
    return time.perf_counter() - start


@dataclass(frozen=True)
class Case:
    """One measurement: ``prepare`` gives the two things to run, ours and theirs.

    ``measure`` turns calling one of them into a number of ``unit``: seconds, unless it is said. Less is better, unless
    ``more_is_better``; the ratio is above 1 where ours is better.
    """

    name: str
    summary: str
    prepare: Callable[[], Sides]
    repeats: int = 5
    unit: str = "s"
    measure: Callable[[Callable[[], Any]], float | Measured] = seconds
    more_is_better: bool = False

    def run(self) -> dict[str, Any]:
        """Both sides in turn, so that a noisy moment hits both; the medians and their ratio.

        What else was measured stands beside them, of the repeat that is the median, theirs under ``theirs_…``.
        """
        try:
            mine, other = self._medians(self.prepare())
        except CannotMeasureError as why:
            return {"skipped": str(why), "unit": self.unit, "what": self.summary}
        better, worse = (mine, other) if self.more_is_better else (other, mine)
        about = {**mine.about, **{f"theirs_{name}": value for name, value in other.about.items()}}
        line = {"ours": mine.value, "theirs": other.value, "ratio": better.value / worse.value}
        return line | about | {"unit": self.unit, "what": self.summary}

    def _medians(self, sides: Sides) -> tuple[Measured, Measured]:
        if self.repeats > 1:
            for side in sides:
                side()  # once for nothing: caches, imports, page faults
        found: tuple[list[Measured], list[Measured]] = ([], [])
        for _ in range(self.repeats):
            for side, values in zip(sides, found, strict=True):
                value = self.measure(side)
                values.append(value if isinstance(value, Measured) else Measured(value, {}))
        mine, other = (sorted(values, key=lambda m: m.value)[(len(values) - 1) // 2] for values in found)
        return mine, other


# A module each.
GROUPS = ("allocation", "compute", "corpus", "laws", "learner", "oracle", "scores", "selection", "tables")


def bench_case(
    cases: list[Case], name: str, summary: str, repeats: int = 5, **more: Any
) -> Callable[[Callable[[], Sides]], None]:
    """Make a function that prepares two sides a case of a list."""

    def register(prepare: Callable[[], Sides]) -> None:
        cases.append(Case(name, summary, prepare, repeats, **more))

    return register


def cases_of(group: str, case: str | None = None) -> list[Case]:
    """The cases of a group, or one of them."""
    if group not in GROUPS:
        raise ConfigError(f"there is no benchmark {group!r}", fix=f"choose from {', '.join(GROUPS)}")
    cases: list[Case] = importlib.import_module(f"experiments.bench.{group}").CASES
    chosen = [c for c in cases if case is None or c.name == case]
    if not chosen:
        raise ConfigError(f"{group!r} has no case {case!r}", fix=f"it has {', '.join(c.name for c in cases)}")
    return chosen
