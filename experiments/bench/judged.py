"""Cases whose sides measure themselves, and whose line says what is aimed at and whether it is met."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bench.harness import CannotMeasureError, Case, Sides

STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Judged(Case):
    """``at_least`` and ``at_most`` are aims for numbers of the line.

    ``compare`` adds what both sides say together, and takes out of the line what is there for that alone.
    """

    at_least: Mapping[str, float] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)
    compare: Callable[[dict[str, Any]], dict[str, Any]] = lambda line: {}

    def run(self) -> dict[str, Any]:
        line = super().run()
        if "skipped" in line:
            return line
        line |= self.compare(line)
        met = all(line[name] >= aim for name, aim in self.at_least.items())
        met &= all(line[name] <= aim for name, aim in self.at_most.items())
        return line | {"at_least": self.at_least, "at_most": self.at_most, "met": met}


def judged(
    cases: list[Case], name: str, summary: str, **more: Any
) -> Callable[[Callable[..., Sides]], Callable[..., Sides]]:
    """Make a function that prepares two sides, each of which is called once and gives what it measured, a case."""

    def register(prepare: Callable[..., Sides]) -> Callable[..., Sides]:
        cases.append(Judged(name, summary, prepare, repeats=1, measure=lambda side: side(), **more))
        return prepare

    return register


def median(call: Callable[[], Any], times: int) -> tuple[float, Any]:
    """The median of the seconds of several calls, after one for nothing, and what the last gave."""
    call()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        found = call()
        taken.append(time.perf_counter() - start)
    return float(np.median(taken)), found


# -- memory ----------------------------------------------------------------------------------------------------------
def alone(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """What a function of a module gives in a fresh process, and the most memory that the process held: ``peak_gb``."""
    call = f"print_alone({function.__module__!r}, {function.__name__!r}, {arguments!r})"
    command = [sys.executable, "-c", f"from experiments.bench.judged import print_alone; {call}"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def print_alone(module: str, function: str, arguments: tuple[Any, ...]) -> None:
    """Call it, and print what it gives with the peak of this process's memory."""
    found = getattr(importlib.import_module(module), function)(*arguments)
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    sys.stdout.write(json.dumps(found | {"peak_gb": 1024 * int(line.split()[1]) / 1e9}) + "\n")


def require_memory() -> None:
    """Say so where the peak of a process's memory cannot be read."""
    if not STATUS.exists():
        raise CannotMeasureError("the peak of a process's memory is read on Linux only")
