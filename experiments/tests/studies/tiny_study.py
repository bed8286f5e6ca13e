"""A study of arithmetic, to see what happens to studies; run as a module it is a study of its own process."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bursar.compute import ProgressCallback, make_engine
from experiments.studies.arms import Place, Setup
from experiments.studies.findings import Findings
from experiments.studies.study import STUDIES, Run, Study, run_study

SETUP = Setup(
    pool=60,
    dev=10,
    test=30,
    start=12,
    per_round=8,
    rounds=1,
    learner={"layers": 1, "frozen_layers": 0, "steps": 4},
)


def work(unit: Mapping[str, Any], tell: ProgressCallback, *, place: Place) -> dict[str, Any]:
    """Square a number, and leave a mark that it was done."""
    place.runs.mkdir(parents=True, exist_ok=True)
    with open(place.runs / "marks.txt", "a") as file:
        file.write(f"{unit['seed']} {unit['x']}\n")
    if os.environ.get("BURSAR_TINY_SLOW"):
        time.sleep(0.3)
    return {"value": unit["x"] ** 2 + unit["seed"], "seconds": 0.0}


def count(runs: Path) -> Counter[str]:
    """How often each unit was begun."""
    marks = runs / "marks.txt"
    return Counter(marks.read_text().splitlines()) if marks.exists() else Counter()


def analyse(runs: Sequence[Run], scale: str) -> Findings:
    return Findings(f"The sum is {sum(run['result']['value'] for run in runs)}.")


def grid(scale: str) -> list[dict[str, Any]]:
    return [{"seed": seed, "x": x} for seed in range(2) for x in range(3)]


TINY = Study("tiny", "Squares", "our own", grid, work, analyse)
STUDIES.add("tiny", TINY)


if __name__ == "__main__":
    import experiments.tests.studies.tiny_study as by_name

    folder = Path(sys.argv[1])
    run_study(
        by_name.TINY,
        scale="small",
        place=Place(folder / "runs", folder),
        out=folder / "tiny.json",
        command="tiny",
        engine=make_engine("processes:2"),
    )
