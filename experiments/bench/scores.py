"""Scores against the libraries that define them."""

from __future__ import annotations

from typing import Any

import numpy as np

from bursar.tasks import Tagging
from bursar.tasks.schemes import spans_of_codes
from experiments.bench.harness import Case, Sides, bench_case

CASES: list[Case] = []


@bench_case(
    CASES, "spans-vs-seqeval", "span F1 of 10,000 sentences from tag codes, against seqeval from tag strings", 3
)
def spans() -> Sides:
    """Both start from what a tagger puts out: ours from codes, seqeval from the strings that it takes."""
    from seqeval.metrics import f1_score

    rng = np.random.default_rng(0)
    words = rng.integers(4, 20, 10_000)
    gold = rng.choice(21, int(words.sum()), p=[0.8] + [0.01] * 20)
    guess = np.where(rng.random(len(gold)) < 0.1, rng.integers(0, 21, len(gold)), gold)
    task = Tagging("slots", tuple(f"type{i}" for i in range(10)))
    names = np.array(["O"] + [f"{p}-type{i}" for i in range(10) for p in "BI"])
    cuts = np.cumsum(words)[:-1]
    strings = [[list(part) for part in np.split(names[codes], cuts)] for codes in (gold, guess)]

    def ours() -> Any:
        return task.score(task.tally(spans_of_codes(gold, words), spans_of_codes(guess, words)).sum(axis=0))

    return ours, lambda: f1_score(*strings)
