"""Reading files against the plain way and the field's readers."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from bursar.bench.harness import Case, Sides, bench_case
from bursar.corpus import read, write
from bursar.simulation import assistant_corpus

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
