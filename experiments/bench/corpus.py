"""Reading files against the plain way and the field's readers."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from bursar.corpus import read, write
from bursar.simulation import assistant_corpus
from experiments.bench.harness import Case, Sides, bench_case

CASES: list[Case] = []


def _built_in(name: str, format: str, tasks: list[str]) -> Path:
    path = Path(tempfile.mkdtemp(prefix="bursar-bench-")) / name
    write(assistant_corpus(5000).with_tasks(tasks), path, format)
    return path


@bench_case(CASES, "jsonl-vs-dicts", "5,000 items with two tasks: checked columns, against a list of dictionaries", 5)
def jsonl() -> Sides:
    """The plain way checks nothing and keeps a Python object for everything: the price of columns and checks."""
    path = _built_in("corpus.jsonl", "jsonl", ["intent", "slots"])

    def theirs() -> Any:
        with open(path) as file:
            return [json.loads(line) for line in file]

    return lambda: read(path), theirs


@bench_case(CASES, "conllu-vs-conllu", "5,000 parsed sentences, against the conllu library", 3)
def conllu() -> Sides:
    """The library keeps every field of every token as objects."""
    from conllu import parse_incr

    path = _built_in("train.conllu", "conllu", ["dependencies"])

    def theirs() -> Any:
        with open(path) as file:
            return list(parse_incr(file))

    return lambda: read(path, "conllu"), theirs


# A million sentences, each way in a process of its own, which says at the end how much memory it took.
OURS = "from bursar.corpus import read; corpus = read({path!r}); assert len(corpus) == 1_000_000"
PLAIN = "import json; rows = [json.loads(line) for line in open({path!r})]; assert len(rows) == 1_000_001"
PEAK = "; import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)"


@cache
def _a_million() -> str:
    """The built-in corpus over and over, under a million ids."""
    once = _built_in("corpus.jsonl", "jsonl", ["intent", "slots"]).read_text().splitlines()
    items = [json.loads(line) for line in once[1:]]
    path = Path(tempfile.mkdtemp(prefix="bursar-bench-")) / "million.jsonl"
    with open(path, "w") as file:
        file.write(once[0] + "\n")
        for number in range(1_000_000):
            file.write(json.dumps(items[number % len(items)] | {"id": f"u{number:07d}"}) + "\n")
    return str(path)


def _million_sides() -> Sides:
    path = _a_million()

    def side(code: str) -> Callable[[], float]:
        command = [sys.executable, "-c", code.format(path=path) + PEAK]
        return lambda: float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    return side(OURS), side(PLAIN)


def _gigabytes(side: Callable[[], float]) -> float:
    return side()


bench_case(CASES, "jsonl-1m", "1,000,000 sentences: checked columns, against a list of dictionaries", 1)(_million_sides)
bench_case(CASES, "jsonl-1m-memory", "peak memory of the same", 1, unit="GB", measure=_gigabytes)(_million_sides)
