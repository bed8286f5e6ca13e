"""A study: a grid of units of work, what the paper reported, and what follows from the results.

Results are kept twice. While a study runs, every finished unit is a file of its own in the study's folder; and the file
that is committed, ``studies/NAME.json``, holds them all, with the command that made them. Either is enough to go on
from: a unit that is in one of them is never run again.
"""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bursar.compute import THIS_PROCESS, Engine, ResultStore, Unit, UnitObserver, address, run_units
from bursar.corpus.formats.format import replacing
from bursar.errors import ConfigError
from bursar.registry import Registry
from experiments.progress import UnitProgress
from experiments.studies.arms import Place
from experiments.studies.findings import Findings

SCALES = ("small", "paper")
WRITE_SECONDS = 60.0  # between two versions of the file of results, while a study runs

Run = Mapping[str, Any]  # a unit and its result: {"unit": …, "result": …}


@dataclass(frozen=True)
class Study:
    """One published experiment, or one of our own."""

    name: str
    title: str
    source: str  # where it comes from, such as: paper 1, section 7
    grid: Callable[[str], Sequence[Unit]]  # a scale to the units of work, those of the first seed first
    work: Callable[..., Any]  # work(unit, tell, place=…): at the top of a module
    analyse: Callable[[Sequence[Run], str], Findings]  # runs and the scale to what follows from them
    reads: tuple[str, ...] = ()  # the data sets that it needs
    scales: tuple[str, ...] = SCALES
    shares: tuple[str, ...] = ()  # studies that have units in common with it: what they have finished is taken over


STUDIES: Registry[Study] = Registry("study", "experiments.studies")


@dataclass(frozen=True)
class Results:
    """What a study has found so far."""

    study: str
    scale: str
    command: str
    runs: Sequence[Run]
    total: int  # units in the grid
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return len(self.runs) == self.total

    def findings(self) -> Findings:
        """What follows from the runs, by today's code."""
        return STUDIES[self.study].analyse(self.runs, self.scale)

    def write(self, path: Path) -> None:
        """As JSON, a line a run, so that a later version differs by the runs that came."""
        seeds = sorted({run["unit"]["seed"] for run in self.runs if "seed" in run["unit"]})
        seconds = seconds_of(self.runs)
        head = {
            "study": self.study,
            "scale": self.scale,
            "command": self.command,
            "versions": dict(self.versions),
            "seeds": seeds,
            "seconds": round(math.fsum(seconds), 1),
            "units": {"finished": len(self.runs), "all": self.total},
            "findings": self.findings().as_json() if self.runs else None,
        }
        lines = ",\n".join(json.dumps(dict(run), ensure_ascii=False) for run in self.runs)
        with replacing(path) as file:
            file.write(json.dumps(head, indent=1, ensure_ascii=False)[:-2] + ',\n "runs": [\n' + lines + "\n]\n}\n")

    @classmethod
    def read(cls, path: Path) -> Results:
        """From its file."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return cls(
                found["study"],
                found["scale"],
                found["command"],
                found["runs"],
                found["units"]["all"],
                found["versions"],
            )
        except FileNotFoundError:
            raise ConfigError(
                f"{path}: there are no results yet", fix="run the study first: python -m experiments run NAME"
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as wrong:
            raise ConfigError(
                f"{path} is no file of results: {wrong}", fix="delete it, or give another --out"
            ) from None


def seconds_of(runs: Sequence[Run]) -> list[float]:
    """What each unit took: of a core where that was measured, else by the clock."""
    results = [run["result"] for run in runs if isinstance(run["result"], Mapping)]
    return [result.get("core_seconds") or result.get("seconds") or 0.0 for result in results]


def file_of(study: str, scale: str, folder: Path) -> Path:
    """Where the results of a study are kept."""
    return folder / (f"{study}.json" if scale == "small" else f"{study}-{scale}.json")


def run_study(
    study: Study,
    *,
    scale: str,
    place: Place,
    out: Path,
    command: str,
    engine: Engine = THIS_PROCESS,
    watcher: UnitObserver | None = None,
    seeds: Sequence[int] | None = None,
) -> Results:
    """Run what is missing of a study, and write all of it down as it comes."""
    if scale not in study.scales:
        raise ConfigError(f"study {study.name} has no scale {scale!r}", fix=f"use {' or '.join(study.scales)}")
    grid = list(study.grid(scale))
    chosen = [unit for unit in grid if seeds is None or unit.get("seed") in seeds]
    store = ResultStore(place.runs / "results")
    if out.exists():
        before = Results.read(out)
        if (before.study, before.scale) != (study.name, scale):
            raise ConfigError(
                f"{out} holds results of study {before.study} at scale {before.scale}", fix="give another --out"
            )
    for file in [out, *(file_of(other, scale, out.parent) for other in study.shares)]:
        if file.exists():
            for run in Results.read(file).runs:
                where = address(study.work, run["unit"])
                if where not in store:
                    store.put(where, run["unit"], run["result"])

    def results() -> Results:
        missing = object()
        found = [(unit, store.get(address(study.work, unit), missing)) for unit in grid]
        runs = [{"unit": unit, "result": result} for unit, result in found if result is not missing]
        versions = {name: version(name) for name in ("bursar", "torch", "numpy", "scipy")}
        return Results(study.name, scale, command, runs, len(grid), versions | {"python": platform.python_version()})

    work = partial(study.work, place=place)
    try:
        run_units(work, chosen, engine=engine, store=store, watcher=_Writing(watcher or UnitProgress(), results, out))
    finally:
        found = results()
        if found.runs:
            found.write(out)
    return found


@dataclass
class _Writing(UnitObserver):
    """A watcher that writes the results down every now and then, and passes on what it sees."""

    watcher: UnitObserver
    results: Callable[[], Results]
    out: Path
    last: float = field(default_factory=time.monotonic)

    def begun(self, total: int, stored: int) -> None:
        self.watcher.begun(total, stored)

    def reported(self, unit: Unit, what: Any) -> None:
        self.watcher.reported(unit, what)

    def retried(self, unit: Unit, why: str) -> None:
        self.watcher.retried(unit, why)

    def finished(self, unit: Unit, result: Any, seconds: float) -> None:
        self.watcher.finished(unit, result, seconds)
        if time.monotonic() - self.last >= WRITE_SECONDS:
            self.results().write(self.out)
            self.last = time.monotonic()
