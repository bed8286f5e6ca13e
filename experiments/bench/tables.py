"""Importing a table of 100,000 rows with all its columns, against pandas alone.

pandas finds no words, checks no row and keeps no notes: the ratio is the price of that.
"""

from __future__ import annotations

import csv
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from experiments.bench.harness import Case, Sides, bench_case

CASES: list[Case] = []
ROWS = 100_000
COLUMNS = ("Ticket", "Date", "Channel", "Body", "Category", "Cost")
# Each way in a process of its own, which says at the end how long it took and how much memory.
START = "import time; start = time.perf_counter(); "
# The largest resident size since the program started; that of getrusage includes the process it was started from.
PEAK = "[line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')]"
END = "; print(time.perf_counter() - start, int(" + PEAK + "[0]) / 2**20)"
OURS = "import bursar; found = bursar.read({path!r}, labels={{'intent': 'Category'}})"
PANDAS = {
    suffix: f"import pandas; found = pandas.{reader}({{path!r}})"
    for suffix, reader in ((".csv", "read_csv"), (".xlsx", "read_excel"))
}
CHECK = f"; assert len(found) == {ROWS}"


@cache
def table(suffix: str) -> str:
    """The file of a kind, with texts of 8 to 40 words."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghij", k=rng.randint(2, 9))) for _ in range(5000)]
    rows = [
        (
            f"T{number:06d}",
            f"2026-05-{1 + number % 28:02d}",
            ("mail", "phone", "chat")[number % 3],
            " ".join(rng.choices(words, k=rng.randint(8, 40))),
            ("order", "refund", "")[number % 3],
            round(rng.uniform(0, 100), 2),
        )
        for number in range(ROWS)
    ]
    path = Path(tempfile.mkdtemp(prefix="bursar-bench-")) / f"messages{suffix}"
    if suffix == ".csv":
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(rows)
    else:
        from bursar.corpus.formats.table_files import write_table

        columns = [list(column) for column in zip(*rows, strict=True)]
        write_table(dict(zip(COLUMNS, columns, strict=True)), path)
    return str(path)


def sides(suffix: str, number: int) -> Sides:
    """Both ways; each says its seconds (0) or its gigabytes (1)."""
    path = table(suffix)

    def side(code: str) -> Callable[[], float]:
        command = [sys.executable, "-c", START + code.format(path=path) + CHECK + END]
        return lambda: float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[number])

    return side(OURS), side(PANDAS[suffix])


def said(side: Callable[[], float]) -> float:
    """What the process said."""
    return side()


for _suffix in PANDAS:
    for _number, (_what, _unit) in enumerate((("seconds", "s"), ("peak memory", "GB"))):
        _name = f"{_suffix.lstrip('.')}-100k" + ("-memory" if _number else "")
        _summary = f"{ROWS:,} rows of {_suffix} with {len(COLUMNS)} columns, checked and kept, against pandas: {_what}"

        def _prepare(suffix: str = _suffix, number: int = _number) -> Sides:
            return sides(suffix, number)

        bench_case(CASES, _name, _summary, 1, unit=_unit, measure=said)(_prepare)
