"""One active-learning job, the same for every library: what it is given, and how its run is measured.

A script beside this file holds the job as a user of one library would write it. It runs in an environment of its own,
where this module is found beside it; so there is nothing here but the standard library.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Given:
    """What a job works with. ``pool`` and ``test`` are CSV files with the columns ``text`` and ``label``."""

    pool: Path
    test: Path
    encoder: str  # a folder with all-MiniLM-L6-v2
    start: tuple[int, ...]  # rows of the pool that are labelled first; a job may choose others, as many
    rounds: int
    per_round: int
    seed: int


def lines_of(job: Callable[[Given], float]) -> int:
    """The lines of code of a job, without blank lines, comments and the docstring.

    >>> lines_of(lines_of)  # a function is measured like any job
    4
    """
    source = inspect.getsource(job).replace(f'"""{job.__doc__}"""', "")
    lines = [line.strip() for line in source.splitlines()]
    return sum(1 for line in lines if line and not line.startswith("#"))


def peak_gigabytes() -> float:
    """The most memory that this process has held."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 2**20


def main(job: Callable[[Given], float]) -> None:
    """Run the job on what the first argument says, as JSON, and print how it went as one line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("given", help="a file of JSON with the fields of Given")
    fields = json.loads(Path(parser.parse_args().given).read_text())
    given = Given(Path(fields.pop("pool")), Path(fields.pop("test")), start=tuple(fields.pop("start")), **fields)
    begun, busy = time.perf_counter(), time.process_time()
    accuracy = job(given)
    found = {
        "accuracy": accuracy,
        "seconds": time.perf_counter() - begun,
        "core_seconds": time.process_time() - busy,
        "gigabytes": peak_gigabytes(),
        "lines": lines_of(job),
    }
    sys.stdout.write("\n" + json.dumps(found) + "\n")
